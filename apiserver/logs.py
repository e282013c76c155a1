"""Where log lines go: one JSON object per line on stderr, for our own messages and for libraries'.

Called once by the process's entry point; everything else asks structlog for a logger.
"""

import logging
import sys
from typing import Any

import orjson
import structlog

_QUIET = ("alembic", "asyncio", "dulwich", "uvicorn")
"""Libraries whose warnings matter and whose chatter does not."""


def configure_logging(level: str) -> None:
    """Send every message of at least ``level`` (debug, info, warning, error) to stderr as JSON."""
    threshold = logging.getLevelNamesMapping()[level.upper()]
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[*shared, structlog.processors.format_exc_info, structlog.processors.JSONRenderer(_encode)],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=structlog.BytesLoggerFactory(sys.stderr.buffer),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                structlog.processors.JSONRenderer(lambda value, **_: _encode(value).decode()),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(threshold)
    for name in _QUIET:
        logging.getLogger(name).setLevel(max(threshold, logging.WARNING))


def _encode(value: Any, **_: Any) -> bytes:
    return orjson.dumps(value, default=str)
