"""Where log lines go: one JSON object per line on stderr, or text for people, for our own messages and for libraries'.

Called once by the process's entry point; everything else asks structlog for a logger.
"""

import logging
import sys
from collections.abc import Sequence
from typing import Any, Literal

import orjson
import structlog

_QUIET = ("aiohttp", "alembic", "asyncio", "asyncssh", "dulwich", "kubernetes_asyncio", "uvicorn")
"""Libraries whose warnings matter and whose chatter does not."""


def configure_logging(
    level: str, form: Literal["json", "console"] = "json", processors: Sequence[structlog.typing.Processor] = ()
) -> None:
    """Send every message of at least ``level`` (debug, info, warning, error) to stderr.

    ``processors`` see each message that is written, with what is bound to it.
    """
    threshold = logging.getLevelNamesMapping()[level.upper()]
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        *processors,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    own, foreign = _renderers(form)
    structlog.configure(
        processors=[*shared, *own],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=structlog.BytesLoggerFactory(sys.stderr.buffer),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *foreign],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(threshold)
    for name in _QUIET:
        logging.getLogger(name).setLevel(max(threshold, logging.WARNING))


def _renderers(
    form: Literal["json", "console"],
) -> tuple[list[structlog.typing.Processor], list[structlog.typing.Processor]]:
    """Return what turns a message into bytes, and into text for the standard library's handler."""
    if form == "console":
        console = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
        return [console, lambda _logger, _name, text: str(text).encode()], [console]
    exception = structlog.processors.format_exc_info
    return (
        [exception, structlog.processors.JSONRenderer(_encode)],
        [exception, structlog.processors.JSONRenderer(lambda value, **_: _encode(value).decode())],
    )


def _encode(value: Any, **_: Any) -> bytes:
    return orjson.dumps(value, default=str)
