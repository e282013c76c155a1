"""How long proposals wait for their approval: kept in memory from the events of package revisions.

A proposal waits from the event that made it. One that was there before this server started waits since what the object says
in its managedFields: when whoever manages ``spec.lifecycle`` last changed something. The wait is told too short, and never
too long, where the same manager changed something else later. Of a proposal that was made in Git nothing is recorded: it
counts from when this server first saw it.
"""

import time
from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from apiserver.engine.package_index import LIFECYCLE
from apiserver.rules.lifecycle import Lifecycle
from storage.bodies import decode
from storage.interfaces import Event, EventType, ObjectKey

Json = dict[str, Any]


class Proposals:
    """The proposals there are, by since when they wait (seconds since 1970)."""

    def __init__(self, approved: Callable[[float], None], clock: Callable[[], float] = time.time) -> None:
        """``approved`` is told the seconds that each proposal had waited when its approval came."""
        self._approved = approved
        self._clock = clock
        self._since: dict[ObjectKey, float] = {}
        self._ordered: list[tuple[float, ObjectKey]] = []
        """The same, the oldest first."""

    def observe(self, event: Event) -> None:
        """Apply one event of the packagerevisions resource."""
        key = event.entry.key
        if event.type is EventType.DELETED or event.entry.fields[LIFECYCLE] != Lifecycle.PROPOSED:
            self._forget(key)
        elif key not in self._since:
            # What was loaded, or found in Git, comes without an entry before it.
            known = proposed_at(decode(event.entry)) if event.previous is None else None
            self._add(key, self._clock() if known is None else known)

    def wait(self, key: ObjectKey) -> float:
        """Return the seconds that a proposal has been waiting; 0 for what is none."""
        now = self._clock()
        return max(0.0, now - self._since.get(key, now))

    def longest_wait(self) -> float:
        """Return the seconds of the proposal that waits longest, 0 where none does; may be asked in any thread."""
        first = self._ordered[:1]
        return max(0.0, self._clock() - first[0][0]) if first else 0.0

    @contextmanager
    def approval(self, key: ObjectKey) -> Iterator[None]:
        """Measure, if the block publishes the revision, how long it had waited when the block began."""
        waited = self.wait(key)
        yield
        self._approved(waited)

    def _add(self, key: ObjectKey, since: float) -> None:
        self._since[key] = since
        insort(self._ordered, (since, key))

    def _forget(self, key: ObjectKey) -> None:
        if (since := self._since.pop(key, None)) is not None:
            del self._ordered[bisect_left(self._ordered, (since, key))]


def proposed_at(body: Json) -> float | None:
    """Return when a decoded revision got the lifecycle that it has, as its managedFields tell; None where they do not.

    Clients may send managedFields: what is no time counts for nothing, and no time is before the object's creation.
    """
    metadata = body["metadata"]
    told = [_seconds(one.get("time")) for one in metadata.get("managedFields") or () if _manages_lifecycle(one)]
    times = [one for one in told if one is not None]
    created = _seconds(metadata.get("creationTimestamp"))
    return max(min(times), created or 0.0) if times else None


def _manages_lifecycle(entry: Json) -> bool:
    return "f:lifecycle" in ((entry.get("fieldsV1") or {}).get("f:spec") or {})


def _seconds(text: str | None) -> float | None:
    try:
        moment = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
