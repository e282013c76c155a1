"""When a repository is looked at, and how thoroughly: from what its object asks for and when it was last read.

Times are aware. Source: ``porch-api.md`` 1.9 and 7.3; ``decisions.md`` 9 (what did not change is not read again).
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any, Final

from apiserver.rules.schedule import Schedule, ScheduleProblem, parse_schedule

Json = dict[str, Any]

SYNC_ANNOTATION: Final = "porch.kpt.dev/sync"
"""Any value asks for a full read now; the server takes the annotation off when it is done."""

SHORTEST_PAUSE: Final = timedelta(seconds=1)


class Work(Enum):
    """What is done with a repository when its time has come."""

    HEALTH = "see whether the remote answers and has the branch"
    CHANGES = "read what changed since the last look"
    FULL = "read what changed, and record a full sync"
    EVERYTHING = "read and compare everything, because somebody asked for it"


@dataclass(frozen=True, slots=True)
class Rhythm:
    """How often the server looks at a repository by itself, and records a full sync of one without a schedule."""

    look: timedelta
    full: timedelta


@dataclass(frozen=True, slots=True)
class SyncWishes:
    """What a Repository object says about syncing."""

    schedule: Schedule | None = None
    run_once_at: str = ""
    """As it is written in the object; not yet done."""
    requested: str = ""
    """The value of the annotation that asks for a sync now."""

    def forced(self, now: datetime) -> bool:
        """Tell whether somebody wants everything read by now; a time in the past counts."""
        return bool(self.requested) or self._once_due(now)

    def fulfilled(self, now: datetime) -> "SyncWishes":
        """Return the wishes that a read of everything begun at ``now`` fulfils."""
        return SyncWishes(None, self.run_once_at if self._once_due(now) else "", self.requested)

    def _once_due(self, now: datetime) -> bool:
        return (at := _moment(self.run_once_at)) is not None and at <= now


def read_wishes(body: Json) -> SyncWishes:
    """Read them from a stored Repository; a schedule that cannot be understood is as if there were none."""
    sync = body["spec"].get("sync") or {}
    annotations = body["metadata"].get("annotations") or {}
    once = sync.get("runOnceAt") or ""
    done = (body.get("status") or {}).get("observedRunOnceAt") or ""
    try:
        schedule = parse_schedule(sync["schedule"]) if sync.get("schedule") else None
    except ScheduleProblem:
        schedule = None
    return SyncWishes(schedule, "" if once == done else once, annotations.get(SYNC_ANNOTATION, ""))


def next_full(wishes: SyncWishes, rhythm: Rhythm, last: datetime) -> datetime:
    """Return when the full sync after the one at ``last`` is due."""
    if wishes.schedule is None:
        return last + rhythm.full
    try:
        return wishes.schedule.next_after(last)
    except ScheduleProblem:  # the last time that it ever names is over
        return last + rhythm.full


def due(wishes: SyncWishes, rhythm: Rhythm, last_full: datetime | None, now: datetime) -> Work:
    """Return what is to be done now; ``last_full`` None means that the repository was not read, or failed since.

    With a schedule, changes made by others are read when it says so, and looks in between only check the health.
    """
    if wishes.forced(now):
        return Work.EVERYTHING
    if last_full is None or next_full(wishes, rhythm, last_full) <= now:
        return Work.FULL
    return Work.CHANGES if wishes.schedule is None else Work.HEALTH


def pause(wishes: SyncWishes, rhythm: Rhythm, last_full: datetime, now: datetime) -> timedelta:
    """Return how long nothing is to be done; a moment even where a wish stays that was fulfilled, as without a database."""
    moments = [now + rhythm.look, next_full(wishes, rhythm, last_full)]
    if (once := _moment(wishes.run_once_at)) is not None:
        moments.append(once)
    return max(min(moments) - now, SHORTEST_PAUSE)


def _moment(text: str) -> datetime | None:
    """Read an RFC 3339 time; None for none, and for what is not one."""
    try:
        moment = datetime.fromisoformat(text.upper()) if text else None
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC) if moment is not None and moment.tzinfo is None else moment
