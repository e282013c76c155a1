"""One watcher's position in a resource's events, and the cheap waking of many watchers.

A watcher reads slices of the shared ring; while it has nothing to read it is *parked*. An event takes the
parked watchers of its scope out and one flush serves them all: who takes events at once is handed them, without waking
a task (``kube-api.md`` 6.3: 40 µs against some 10), the others are woken. Flushes are spaced by the number of watchers, so
that they never take more than a fraction of the loop, and go in slices, so that others get a turn.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from itertools import islice

from storage.interfaces import Compacted, Event, StoreUnavailable
from storage.watchcache.ring import EventRing

BATCH = 500
"""Events yielded at once at most, so that a long backlog does not hold the loop."""
GAP_PER_WATCHER = 200e-6
"""Seconds between two flushes per watcher served."""
SERVED_AT_ONCE = 100
"""Watchers served before others get a turn: some 3 ms."""
LONGEST_GAP = 0.02
"""Seconds; what coalescing may add to an event's delay."""

Backlog = Callable[[int, int], Awaitable[Sequence[Event]]]
"""(after, upto) → the next events of a resource from the log, empty at the end.

Raises Compacted or StoreUnavailable.
"""


class RingWatch:
    """A :class:`storage.interfaces.Watch` over a ring, beginning in the log when it resumes further back."""

    def __init__(self, ring: EventRing, lot: "ParkingLot", namespace: str | None, after: int, backlog: Backlog) -> None:
        self.namespace = namespace
        self._ring = ring
        self._lot = lot
        self._backlog: Backlog | None = backlog if after < ring.floor else None
        self._number = ring.number_after(after) if after >= ring.floor else -1
        self._rv = after
        self._future: asyncio.Future[None] | None = None
        self._parked = False
        self._closed = False
        self._take: Callable[[Sequence[Event]], bool] | None = None
        self._refused: Sequence[Event] = ()
        """A batch that was offered and not taken; it is yielded next."""
        lot.watches[self] = None

    def __aiter__(self) -> "RingWatch":
        return self

    async def __anext__(self) -> Sequence[Event]:
        """Return the next batch; waits for one."""
        while not self._closed:
            if self._refused:
                refused, self._refused = self._refused, ()
                return refused
            batch = await self._older() if self._backlog is not None else self._next()
            if batch is None:
                await self._park()
            elif batch:
                return batch
        self.close()
        raise StopAsyncIteration

    @property
    def rv(self) -> int:
        """Every event up to this revision has been yielded."""
        caught_up = self._parked or self._number == self._ring.end
        return max(self._rv, self._lot.applied()) if caught_up and self._backlog is None else self._rv

    def deliver_to(self, take: Callable[[Sequence[Event]], bool]) -> None:
        """Offer what comes while the reader waits to ``take`` first; see the port."""
        self._take = take

    def close(self) -> None:
        """End the iteration; a reader that waits is woken."""
        self._closed = True
        self._lot.watches.pop(self, None)
        self._lot.leave(self)
        self._wake()

    def _next(self) -> Sequence[Event] | None:
        """Return the next events in scope, empty when there were others only, None at the end of the ring."""
        if self._number < self._ring.first:
            # Too slow: what it has not read fell out of the ring. The client resumes from its last revision.
            self._closed = True
            self._lot.overtaken += 1
            return []
        events = self._ring.since(self._number, BATCH)
        if not events:
            return None
        self._number += len(events)
        self._rv = events[-1].rv
        if self.namespace is None:
            return events
        return [event for event in events if event.entry.key.namespace == self.namespace]

    async def _older(self) -> Sequence[Event]:
        """Return the next events from the log, until the ring has all that follow."""
        if self._backlog is None or self._rv >= self._ring.floor:
            self._backlog = None
            self._number = self._ring.number_after(self._rv)
            return []
        upto = self._ring.floor
        try:
            events = await self._backlog(self._rv, upto)
        except (Compacted, StoreUnavailable):
            # Ends the stream; the client resumes, and is told why it cannot.
            self._closed = True
            return []
        self._rv = events[-1].rv if events else upto
        return [event for event in events if self.namespace in {None, event.entry.key.namespace}]

    async def _park(self) -> None:
        self._future = asyncio.get_running_loop().create_future()
        self._parked = True
        self._lot.park(self)
        try:
            await self._future
        finally:
            self._future = None
            if self._parked:
                # The caller gave up for now; nothing in scope has happened up to here.
                self._number = self._ring.end
                self._parked = False
            self._lot.leave(self)

    def _called(self, number: int) -> None:
        """Take the number of the event that ends the wait; those before it were out of scope."""
        self._number = number
        self._parked = False

    def _wake(self) -> None:
        if self._future is None or self._future.done():
            return
        taken = False
        try:
            taken = self._offer()
        finally:
            if taken:
                self._parked = True
                self._lot.park(self)
            else:
                self._future.set_result(None)

    def _offer(self) -> bool:
        """Hand over what is new; tell whether all of it was taken, so that the wait goes on."""
        while self._take is not None and not self._closed:
            batch = self._next()
            if batch is None:
                return True
            if batch:
                self._refused = batch
                if not self._take(batch):
                    return False
                self._refused = ()
        return False


class ParkingLot:
    """The watchers of one resource: all of them, those that wait, and those about to be woken.

    ``applied`` returns the revision up to which the store is complete.
    """

    def __init__(self, applied: Callable[[], int]) -> None:
        self.applied = applied
        self.watches: dict[RingWatch, None] = {}
        self.overtaken = 0
        """Watches closed because the ring went on without them."""
        self._parked: dict[str | None, dict[RingWatch, None]] = {}
        self._due: dict[RingWatch, None] = {}
        self._flush_at = 0.0
        self._scheduled: asyncio.Handle | None = None

    def park(self, watch: RingWatch) -> None:
        """Remember a watcher until an event of its scope comes."""
        self._parked.setdefault(watch.namespace, {})[watch] = None

    def leave(self, watch: RingWatch) -> None:
        """Forget a watcher that no longer waits."""
        self._due.pop(watch, None)
        scope = self._parked.get(watch.namespace)
        if scope is not None:
            scope.pop(watch, None)
            if not scope:
                del self._parked[watch.namespace]

    def call(self, namespace: str, number: int) -> None:
        """Wake everybody who waits for events of a namespace; ``number`` is the event's in the ring."""
        for scope in {None, namespace}:
            for watch in self._parked.pop(scope, ()):
                watch._called(number)  # noqa: SLF001 # the lot and its watches are one mechanism
                self._due[watch] = None
        if self._due and self._scheduled is None:
            loop = asyncio.get_running_loop()
            self._scheduled = loop.call_at(self._flush_at, self._flush)

    def close_all(self) -> None:
        """End every watch."""
        for watch in list(self.watches):
            watch.close()
        if self._scheduled is not None:
            self._scheduled.cancel()
            self._scheduled = None

    def _flush(self) -> None:
        loop = asyncio.get_running_loop()
        self._scheduled = None
        self._flush_at = loop.time() + min(LONGEST_GAP, len(self._due) * GAP_PER_WATCHER)
        try:
            for watch in list(islice(self._due, SERVED_AT_ONCE)):
                # One that is served may end others.
                if watch in self._due:
                    del self._due[watch]
                    watch._wake()  # noqa: SLF001 # as above
        finally:
            if self._due and self._scheduled is None:
                self._scheduled = loop.call_soon(self._flush)
