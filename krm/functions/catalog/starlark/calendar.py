"""The module ``time.star``: instants and durations. Source: ``kpt.md`` 4.9.

``now`` is missing on purpose: the same package must render to the same files at any time. An instant is a struct
of its fields in UTC or at a fixed offset, a duration a number of seconds: the interpreter has no types of its own
for them, so they are compared and added by ``unix``.
"""

import re
from datetime import UTC, datetime
from typing import Any

from krm.functions.catalog.starlark.library import Library, LibraryError

_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"[+-]?(?:[0-9]{1,12}(?:\.[0-9]{0,12})?(?:ns|us|µs|ms|s|m|h))+")
_PART = re.compile(r"([0-9.]+)(ns|us|µs|ms|s|m|h)")


def _fields(moment: datetime) -> dict[str, Any]:
    return {
        "year": moment.year,
        "month": moment.month,
        "day": moment.day,
        "hour": moment.hour,
        "minute": moment.minute,
        "second": moment.second,
        "nanosecond": moment.microsecond * 1000,
        "unix": int(moment.timestamp() // 1),
        "rfc3339": moment.isoformat().replace("+00:00", "Z"),
    }


def _parse_time(text: str) -> dict[str, Any]:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise LibraryError(f'time.parse_time: "{text}" is no RFC 3339 time such as 2006-01-02T15:04:05Z') from None
    return _fields(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def _from_timestamp(seconds: int, nanoseconds: int) -> dict[str, Any]:
    try:
        return _fields(datetime.fromtimestamp(seconds, UTC).replace(microsecond=nanoseconds // 1000))
    except (ValueError, OverflowError, OSError) as error:
        raise LibraryError(f"time.from_timestamp: {error}") from None


def _time(*parts: int) -> dict[str, Any]:
    year, month, day, hour, minute, second, nanosecond = parts
    try:
        return _fields(datetime(year, month, day, hour, minute, second, nanosecond // 1000, tzinfo=UTC))
    except (ValueError, OverflowError, TypeError) as error:
        raise LibraryError(f"time.time: {error}") from None


def _parse_duration(text: str) -> float:
    if text in {"0", "+0", "-0"}:
        return 0.0
    if not _DURATION.fullmatch(text):
        raise LibraryError(f'time.parse_duration: "{text}" is no duration such as 1h30m')
    total = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
    return -total if text.startswith("-") else total


TIME = Library(
    """
def _now():
    fail("time.now is not offered: a package must render to the same files at any time")

def _moment(fields):
    return struct(**fields)

def _from_timestamp(sec, nsec=0):
    return _moment(_time_from_timestamp(sec, nsec))

def _time(year=1, month=1, day=1, hour=0, minute=0, second=0, nanosecond=0, location="UTC"):
    if location != "UTC":
        fail("time.time: location must be UTC, got %s" % location)
    return _moment(_time_time(year, month, day, hour, minute, second, nanosecond))

def _parse_time(x, format="2006-01-02T15:04:05Z07:00", location="UTC"):
    if format != "2006-01-02T15:04:05Z07:00" or location != "UTC":
        fail("time.parse_time: only RFC 3339 times are read")
    return _moment(_time_parse_time(x))

time = struct(
    now=_now,
    from_timestamp=_from_timestamp,
    time=_time,
    parse_time=_parse_time,
    parse_duration=_time_parse_duration,
    is_valid_timezone=lambda loc: loc in ("", "UTC"),
    nanosecond=1e-9,
    microsecond=1e-6,
    millisecond=1e-3,
    second=1.0,
    minute=60.0,
    hour=3600.0,
)
""",
    {
        "_time_from_timestamp": _from_timestamp,
        "_time_time": _time,
        "_time_parse_time": _parse_time,
        "_time_parse_duration": _parse_duration,
    },
)
