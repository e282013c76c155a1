"""Timestamps and durations: how they are read and written, and what can be asked of them.

Python's resolution is a microsecond; finer parts are cut off.
"""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from krm.expressions.errors import CelEvaluationError
from krm.expressions.values import no_overload

_TIME: Final = re.compile(r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?([Zz]|[-+]\d\d:\d\d)", re.ASCII)
_DURATION: Final = re.compile(
    r"[-+]?(?:(?:\d{1,18}\.?\d{0,18}|\.\d{1,18})(?:ns|us|µs|ms|s|m|h)){1,16}|[-+]?0", re.ASCII
)
_PART: Final = re.compile(r"(\d*\.?\d*)(ns|us|µs|ms|s|m|h)", re.ASCII)
_MICROSECONDS: Final = {"ns": 0.001, "us": 1, "µs": 1, "ms": 1000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000}
_OFFSET: Final = re.compile(r"([-+]?)(\d\d):(\d\d)", re.ASCII)


def timestamp(value: Any) -> datetime:
    """Read an RFC 3339 time, or seconds since 1970.

    Raises:
        CelEvaluationError: it is neither.
    """
    if isinstance(value, datetime):
        return value
    try:
        if isinstance(value, int) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
        match = _TIME.fullmatch(value) if isinstance(value, str) else None
        if match is not None:
            fraction = (match[3] or "")[:6].ljust(6, "0")
            return datetime.fromisoformat(f"{match[1]}T{match[2]}.{fraction}{match[4].upper()}")
    except (ValueError, OverflowError, OSError) as error:
        raise CelEvaluationError("timestamp overflow or malformed") from error
    if isinstance(value, str):
        raise CelEvaluationError(f"type conversion error from 'string' to 'google.protobuf.Timestamp': {value[:64]!r}")
    raise no_overload()


def duration(value: Any) -> timedelta:
    """Read a duration like ``1h30m``, or nanoseconds.

    Raises:
        CelEvaluationError: it is none, or longer than 290 years.
    """
    if isinstance(value, timedelta):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return timedelta(microseconds=value // 1000)
    if not isinstance(value, str):
        raise no_overload()
    if not _DURATION.fullmatch(value):
        raise CelEvaluationError(f"type conversion error from 'string' to 'google.protobuf.Duration': {value[:64]!r}")
    total = sum(float(number) * _MICROSECONDS[unit] for number, unit in _PART.findall(value))
    try:
        return timedelta(microseconds=-total if value.startswith("-") else total)
    except OverflowError as error:
        raise CelEvaluationError("duration overflow") from error


def text(value: datetime | timedelta) -> str:
    """Write a timestamp or a duration as CEL converts it to a string."""
    if isinstance(value, timedelta):
        seconds = value.total_seconds()
        return f"{seconds:.6f}".rstrip("0").rstrip(".") + "s"
    moment = value.astimezone(UTC)
    fraction = f".{moment.microsecond:06d}".rstrip("0") if moment.microsecond else ""
    return f"{moment:%Y-%m-%dT%H:%M:%S}{fraction}Z"


def _zone(name: str) -> ZoneInfo | timezone:
    match = _OFFSET.fullmatch(name)
    if match is not None:
        offset = timedelta(hours=int(match[2]), minutes=int(match[3]))
        return timezone(-offset if match[1] == "-" else offset)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise CelEvaluationError(f"unknown time zone {name[:64]}") from error


def _of_time(part: Callable[[datetime], int]) -> Callable[..., int]:
    def get(value: Any, zone: str = "UTC") -> int:
        if not isinstance(value, datetime):
            raise no_overload()
        return part(value.astimezone(UTC if zone == "UTC" else _zone(zone)))

    return get


def _of_both(part: Callable[[datetime], int], whole: Callable[[timedelta], float]) -> Callable[..., int]:
    of_time = _of_time(part)

    def get(value: Any, *zone: str) -> int:
        return int(whole(value)) if isinstance(value, timedelta) else of_time(value, *zone)

    return get


METHODS: Final[Mapping[str, Callable[..., Any]]] = {
    "getFullYear": _of_time(lambda moment: moment.year),
    "getMonth": _of_time(lambda moment: moment.month - 1),
    "getDate": _of_time(lambda moment: moment.day),
    "getDayOfMonth": _of_time(lambda moment: moment.day - 1),
    "getDayOfWeek": _of_time(lambda moment: moment.isoweekday() % 7),
    "getDayOfYear": _of_time(lambda moment: moment.timetuple().tm_yday - 1),
    "getHours": _of_both(lambda moment: moment.hour, lambda span: span.total_seconds() / 3600),
    "getMinutes": _of_both(lambda moment: moment.minute, lambda span: span.total_seconds() / 60),
    "getSeconds": _of_both(lambda moment: moment.second, lambda span: span.total_seconds()),
    "getMilliseconds": _of_both(lambda moment: moment.microsecond // 1000, lambda span: span.total_seconds() * 1000),
}
