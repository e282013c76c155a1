"""Times on the wire: every RFC 3339 time in the one form that Kubernetes writes, UTC in seconds or microseconds.

Source: ``kube-api.md`` 1.8.
"""

import re
from datetime import UTC, datetime

_YEAR_ONE = 1
"""Go's zero time is in this year and means that there is none."""
_MICROSECONDS = re.compile(r"[^.]{19}\.\d{6}([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_MICRO_LAYOUT = "2006-01-02T15:04:05.000000Z07:00"
"""How Go describes the form, in its errors."""


def seconds_time(text: str | None) -> str | None:
    """Return a time as ``2026-01-02T03:04:05Z``; None for none, and for Go's zero time.

    Raises:
        ValueError: it is no RFC 3339 time.
    """
    moment = _parsed(text)
    return None if moment is None else moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_time(text: str | None) -> str | None:
    """Return a time as ``2026-01-02T03:04:05.000000Z``; None for none, and for Go's zero time.

    Raises:
        ValueError: it is no RFC 3339 time, or not one with microseconds, which Kubernetes' clients always write.
    """
    if text and not _MICROSECONDS.fullmatch(text):
        rest = text[len("2026-01-02T03:04:05") :]
        raise ValueError(f'parsing time "{text}" as "{_MICRO_LAYOUT}": cannot parse "{rest}" as ".000000"')
    moment = _parsed(text)
    return None if moment is None else moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _parsed(text: str | None) -> datetime | None:
    if not text:
        return None
    moment = datetime.fromisoformat(text.upper())
    if moment.year == _YEAR_ONE:
        return None
    try:
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"{text} is after the year 9999 in UTC") from error
