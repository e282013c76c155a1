"""Keys of objects that have to be looked at: each waits once, and nobody gets one that somebody works on.

The contract is client-go's work queue, with priorities and a delay. For one event loop; nothing is awaited but ``get``.
"""

import asyncio
import time
from collections.abc import Callable
from enum import IntEnum
from typing import Final

Key = tuple[str, str]
"""Namespace and name."""

FIRST_DELAY: Final = 0.005
"""Seconds before the first retry; each further one waits twice as long (``variants.md`` 2.14)."""
LONGEST_DELAY: Final = 1000.0
"""Seconds beyond which the delay does not grow (``variants.md`` 2.14)."""
_FAIR_TURN: Final = 8
"""One turn in so many goes to whoever has waited longest, whatever its priority."""


class Priority(IntEnum):
    """Who goes first when several wait."""

    USER = 0
    """Somebody edited the object itself."""
    CHANGE = 1
    """Something that the object depends on changed."""
    UPSTREAM = 1  # the word for it where packages are meant
    RESYNC = 2
    """Nothing is known to have changed."""


class ShutDown(Exception):
    """The queue hands out nothing any more."""


class WorkQueue:
    """Keys by priority, in the order of arrival; one turn in eight is that of the key that has waited longest.

    ``longest_delay`` (seconds) limits the back-off. ``waited`` is told how many seconds each key waited for its turn.
    """

    def __init__(
        self, *, longest_delay: float = LONGEST_DELAY, waited: Callable[[float], object] = lambda _seconds: None
    ) -> None:
        self.adds = 0
        """How often a key began to wait."""
        self.retries = 0
        """How often a key was put back because its work failed."""
        self._longest_delay = longest_delay
        self._waited = waited
        self._waiting: dict[Priority, dict[Key, float]] = {priority: {} for priority in Priority}
        self._available = asyncio.Semaphore(0)
        self._working: dict[Key, float] = {}
        self._again: dict[Key, Priority] = {}
        self._failures: dict[Key, int] = {}
        self._delayed = _Timers(self.add)
        self._retried = _Timers(self.add)
        self._turns = 0
        self._closed = False

    @property
    def depth(self) -> int:
        """How many keys wait for a worker; neither those worked on nor those delayed."""
        return sum(map(len, self._waiting.values()))

    @property
    def working(self) -> int:
        """How many keys are worked on."""
        return len(self._working)

    @property
    def longest_work(self) -> float:
        """Seconds for which the key has been worked on that was taken first; 0 when none is."""
        now = time.monotonic()
        return now - min(self._working.values(), default=now)

    def add(self, key: Key, priority: Priority = Priority.CHANGE) -> None:
        """Have the key looked at; one that waits already moves up at most, one that is worked on comes again after."""
        if self._closed:
            return
        if key in self._working:
            self._again[key] = min(priority, self._again.get(key, priority))
            return
        for other, keys in self._waiting.items():
            if key in keys:
                if priority < other:
                    self._waiting[priority][key] = keys.pop(key)
                return
        self.adds += 1
        self._waiting[priority][key] = time.monotonic()
        self._available.release()

    def add_after(self, key: Key, seconds: float, priority: Priority = Priority.CHANGE) -> None:
        """Add the key in ``seconds``; of two delays of one key the one that ends earlier is kept."""
        if seconds <= 0:
            self.add(key, priority)
        elif not self._closed:
            self._delayed.set(key, seconds, priority)

    def add_limited(self, key: Key, longest: float | None = None) -> None:
        """Add the key after a delay that doubles from failure to failure, up to ``longest`` (seconds)."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        self.retries += 1
        # Beyond 2**40 the float would only get longer.
        delay = FIRST_DELAY * 2.0 ** min(failures - 1, 40)
        if not self._closed:
            self._retried.set(key, min(delay, self._longest_delay if longest is None else longest), Priority.CHANGE)

    def forget(self, key: Key) -> None:
        """Count the next failure of the key as its first, and drop the retry that waits; other delays stay."""
        self._failures.pop(key, None)
        self._retried.drop(key)

    async def get(self) -> Key:
        """Wait for a key and take it; it is the caller's until ``done``.

        Raises:
            ShutDown: nothing is handed out any more.
        """
        await self._available.acquire()
        if self._closed:
            self._available.release()  # so that the next who waits hears of it, too
            raise ShutDown
        key = self._take()
        self._working[key] = time.monotonic()
        return key

    def done(self, key: Key) -> None:
        """Give the key back; it waits again when somebody added it meanwhile."""
        self._working.pop(key, None)
        priority = self._again.pop(key, None)
        if priority is not None:
            self.add(key, priority)

    def shut_down(self) -> None:
        """Hand out nothing more: what waits is dropped, and whoever waits gets ShutDown. Repeating it changes nothing."""
        self._closed = True
        self._delayed.clear()
        self._retried.clear()
        self._again.clear()
        self._available.release()

    def _take(self) -> Key:
        self._turns += 1
        waiting = [keys for keys in self._waiting.values() if keys]
        if self._turns % _FAIR_TURN == 0:
            waiting.sort(key=lambda keys: next(iter(keys.values())))
        keys = waiting[0]
        key = next(iter(keys))
        self._waited(time.monotonic() - keys.pop(key))
        return key


class _Timers:
    """At most one delayed ``add`` for each key."""

    def __init__(self, add: Callable[[Key, Priority], None]) -> None:
        self._add = add
        self._handles: dict[Key, tuple[asyncio.TimerHandle, Priority]] = {}

    def set(self, key: Key, seconds: float, priority: Priority) -> None:
        """Begin to wait; what ends earlier and what is more urgent wins over what was set before."""
        loop = asyncio.get_running_loop()
        when = loop.time() + seconds
        if key in self._handles:
            handle, before = self._handles[key]
            priority, when = min(priority, before), min(when, handle.when())
            handle.cancel()
        self._handles[key] = loop.call_at(when, self._fire, key), priority

    def drop(self, key: Key) -> None:
        """End the wait of a key, if it waits."""
        if key in self._handles:
            self._handles.pop(key)[0].cancel()

    def clear(self) -> None:
        """End every wait."""
        for key in list(self._handles):
            self.drop(key)

    def _fire(self, key: Key) -> None:
        _, priority = self._handles.pop(key)
        self._add(key, priority)
