"""What the server's log lines say of the request that they belong to; how they are written is in ``krm/logs.py``."""

from typing import Any, Literal

import structlog

from apiserver.machinery.request import RequestInfo
from krm import logs


def configure_logging(level: str, form: Literal["json", "console"] = "json") -> None:
    """Send every message of at least ``level`` (debug, info, warning, error) to stderr."""
    logs.configure_logging(level, form, [_spell_out])


def _spell_out(_logger: Any, _name: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Say of a request what it asked for. Only lines that are written pay for it, not every request."""
    asked = event.pop("asked", None)
    if isinstance(asked, RequestInfo):
        event.update(verb=asked.verb, object=asked.target)
    return event
