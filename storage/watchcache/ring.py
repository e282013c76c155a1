"""The newest events of one resource, addressed by a running number, from which watchers read and resume.

A list that is trimmed at its old end. It keeps every event of the last 75 s, at least 100 and at most 102,400 (the
constants of ``kube-api.md`` 5.1), and no more than 32 MiB of superseded bodies beyond the 100; what is older is
still in the log.
"""

import time
from bisect import bisect_right
from collections.abc import Callable, Sequence

from storage.interfaces import Event

KEEP_SECONDS = 75.0
KEEP_LEAST = 100
KEEP_MOST = 102_400
KEEP_BYTES = 32 << 20
"""Superseded bodies that only the ring holds; bounds memory when many objects are rewritten at once."""


class EventRing:
    """Events numbered from 0 in revision order; old ones fall out.

    ``floor`` is the revision after which the ring is complete.
    """

    def __init__(self, floor: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.floor = floor
        self.first = 0
        """Number of the oldest event held."""
        self._clock = clock
        self._events: list[Event] = []
        self._times: list[float] = []
        self._bytes = 0

    @property
    def end(self) -> int:
        """Number that the next event will get."""
        return self.first + len(self._events)

    def append(self, event: Event) -> None:
        """Add an event with a revision above all before it."""
        self._events.append(event)
        self._times.append(self._clock())
        self._bytes += _superseded_bytes(event)
        # Trimming moves the whole list, so it is done for an eighth of it at a time.
        if len(self._events) & 63 == 0:
            self.trim()

    def trim(self) -> None:
        """Drop what need not be kept any longer."""
        count = self._surplus()
        if not count:
            return
        dropped = self._events[:count]
        self._bytes -= sum(map(_superseded_bytes, dropped))
        self.floor = dropped[-1].rv
        self.first += count
        del self._events[:count]
        del self._times[:count]

    def begin_anew(self, floor: int) -> None:
        """Let go of every event; whoever has not read all of them is too late."""
        self.floor, self.first, self._bytes = floor, self.end, 0
        self._events.clear()
        self._times.clear()

    def since(self, number: int, limit: int) -> Sequence[Event]:
        """Return at most ``limit`` events from a number on, which must still be held."""
        start = number - self.first
        return self._events[start : start + limit]

    def newest_first(self, above: int) -> Sequence[Event]:
        """Return the events above a revision, which must not be below ``floor``, newest first."""
        return self._events[: self._index_after(above) - 1 : -1] if self._index_after(above) else self._events[::-1]

    def number_after(self, rv: int) -> int:
        """Return the number of the first event above a revision, which must not be below ``floor``."""
        return self.first + self._index_after(rv)

    def _index_after(self, rv: int) -> int:
        return bisect_right(self._events, rv, key=_revision)

    def _surplus(self) -> int:
        length = len(self._events)
        most = length - KEEP_LEAST
        if most <= 0:
            return 0
        old = bisect_right(self._times, self._clock() - KEEP_SECONDS)
        count = max(old, length - KEEP_MOST)
        excess = self._bytes - KEEP_BYTES - sum(_superseded_bytes(event) for event in self._events[:count])
        while excess > 0 and count < most:
            excess -= _superseded_bytes(self._events[count])
            count += 1
        return min(count, most)


def _revision(event: Event) -> int:
    return event.rv


def _superseded_bytes(event: Event) -> int:
    return len(event.previous.body) if event.previous is not None else 0
