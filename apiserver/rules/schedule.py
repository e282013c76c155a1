"""Schedules of full reads: the cron expressions that a Repository's ``spec.sync.schedule`` may hold.

What robfig's standard parser accepts, and nothing else: five fields, the ``@`` words, ``@every`` with a Go duration, and a
``TZ=`` or ``CRON_TZ=`` prefix. croniter does the arithmetic; what it would accept beyond that is refused here.
Source: ``porch-api.md`` 1.9; ``libraries.md``, row cron.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from croniter import croniter
from croniter.croniter import CroniterError

MAX_LENGTH: Final = 256
"""Characters of a schedule."""
_LONGEST: Final = timedelta(days=3660)
"""The longest ``@every``."""

_WORDS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: Final = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of month", 1, 31, ()),
    ("month", 1, 12, _MONTHS),
    ("day of week", 0, 6, _DAYS),
)
_RANGE: Final = re.compile(
    r"(?P<first>[*?]|[0-9]{1,2}|[a-z]{3})(?:-(?P<last>[0-9]{1,2}|[a-z]{3}))?(?:/(?P<step>[0-9]{1,3}))?"
)
_ZONE: Final = re.compile(r"(?:CRON_)?TZ=(\S+)\s+")
_DURATION_PART: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{0,9})?|\.[0-9]{1,9})(h|ms|m|s|us|µs|μs|ns)")
_UNITS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ns": 1e-9}


class ScheduleProblem(ValueError):
    """A schedule cannot be understood; the message says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """When to do something again and again: a cron expression in a time zone, or an interval."""

    expression: str
    zone: tzinfo = UTC
    every: timedelta | None = None

    def next_after(self, moment: datetime) -> datetime:
        """Return the first time after ``moment`` (aware) in UTC; for an interval, the interval later.

        Raises:
            ScheduleProblem: there is none in the next 50 years, as for 30 February.
        """
        if self.every is not None:
            return (moment + self.every).astimezone(UTC).replace(microsecond=0)
        start = moment.astimezone(self.zone)
        try:
            found: datetime = croniter(self.expression, start, implement_cron_bug=True).get_next(datetime)
        except CroniterError as problem:
            raise ScheduleProblem("it never comes due") from problem
        return found.astimezone(UTC)


def parse_schedule(text: str) -> Schedule:
    """Read a schedule.

    Raises:
        ScheduleProblem: it is not one; the message names the part.
    """
    if len(text) > MAX_LENGTH:
        raise ScheduleProblem(f"it is over {MAX_LENGTH} characters")
    prefix = _ZONE.match(text)
    zone = _zone(prefix[1]) if prefix else UTC
    rest = (text[prefix.end() :] if prefix else text).strip()
    if rest.startswith("@every "):
        return Schedule("", zone, _duration(rest.removeprefix("@every ").strip()))
    if rest.startswith("@"):
        if rest not in _WORDS:
            known = ", ".join(sorted(_WORDS))
            raise ScheduleProblem(f"{rest[:40]!r} is none of {known} and @every <duration>")
        return Schedule(_WORDS[rest], zone)
    fields = rest.split()
    if len(fields) != len(_FIELDS):
        raise ScheduleProblem(f"it has {len(fields)} fields instead of 5, as in '*/10 * * * *'")
    schedule = Schedule(
        " ".join(_field(*rule, field.lower()) for rule, field in zip(_FIELDS, fields, strict=True)), zone
    )
    schedule.next_after(datetime(2000, 1, 1, tzinfo=UTC))  # so that one that never comes due is found now
    return schedule


def _field(name: str, low: int, high: int, words: tuple[str, ...], text: str) -> str:
    """Check one field and return it with numbers only."""
    return ",".join(_part(name, low, high, words, part) for part in text.split(","))


def _part(name: str, low: int, high: int, words: tuple[str, ...], text: str) -> str:
    found = _RANGE.fullmatch(text)
    if found is None:
        raise ScheduleProblem(f"{text[:40]!r} is not a {name}")
    first, last, step = found["first"], found["last"], found["step"]
    if step is not None and int(step) == 0:
        raise ScheduleProblem(f"the step of {name} {text!r} is zero")
    suffix = f"/{int(step)}" if step else ""
    if first in ("*", "?"):
        if last:
            raise ScheduleProblem(f"{text!r} is not a {name}")
        return f"*{suffix}"
    begin = _number(name, low, high, words, first)
    if last is None:
        return f"{begin}-{high}{suffix}" if step else str(begin)
    end = _number(name, low, high, words, last)
    if begin > end:
        raise ScheduleProblem(f"the {name} range {text!r} ends before it begins")
    return f"{begin}-{end}{suffix}"


def _number(name: str, low: int, high: int, words: tuple[str, ...], text: str) -> int:
    if text in words:
        return words.index(text) + low
    if not text.isdecimal() or not low <= int(text) <= high:
        raise ScheduleProblem(f"{text!r} is not a {name} from {low} to {high}")
    return int(text)


def _zone(name: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as problem:
        raise ScheduleProblem(f"the time zone {name[:64]!r} is not known") from problem


def _duration(text: str) -> timedelta:
    """Read a Go duration, such as 1h30m; whole seconds, one at least."""
    seconds, at = 0.0, 0
    for part in _DURATION_PART.finditer(text):
        if part.start() != at:
            break
        seconds, at = seconds + float(part[1]) * _UNITS[part[2]], part.end()
    if not text or at != len(text):
        raise ScheduleProblem(f"{text[:40]!r} is not a duration such as 90s, 15m or 1h30m")
    if seconds > _LONGEST.total_seconds():
        raise ScheduleProblem(f"{text[:40]!r} is over {_LONGEST.days} days")
    return timedelta(seconds=max(1, int(seconds)))
