"""A queue of keys for controllers: each key once, never two workers on one key, failures with growing delays."""

import asyncio
from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)

FIRST_DELAY = 0.1
"""Seconds before the first repetition of what failed; doubled every time."""
LONGEST_DELAY = 60.0
"""Seconds between two repetitions at most."""


class WorkQueue(Generic[T]):
    """Keys that wait for a worker, in the order in which they were added.

    A key that is added while it waits is there once; one that is added while it is worked on comes again afterwards.
    """

    def __init__(self, *, first_delay: float = FIRST_DELAY, longest_delay: float = LONGEST_DELAY) -> None:
        self._first_delay = first_delay
        self._longest_delay = longest_delay
        self._waiting: dict[T, None] = {}
        self._working: set[T] = set()
        self._again: set[T] = set()
        self._failures: dict[T, int] = {}
        self._delayed: dict[T, asyncio.TimerHandle] = {}
        self._filled = asyncio.Event()

    def __len__(self) -> int:
        """Return how many keys wait or are worked on; those that wait for their repetition are not counted."""
        return len(self._waiting) + len(self._working)

    def add(self, key: T) -> None:
        """Let a worker look at a key as soon as one is free, even if it was to be repeated only later."""
        if timer := self._delayed.pop(key, None):
            timer.cancel()
        if key in self._working:
            self._again.add(key)
            return
        self._waiting[key] = None
        self._filled.set()

    async def take(self) -> T:
        """Wait for the next key; the worker says ``done`` or ``failed`` in the end."""
        while not self._waiting:
            self._filled.clear()
            await self._filled.wait()
        key = next(iter(self._waiting))
        del self._waiting[key]
        self._working.add(key)
        return key

    def done(self, key: T) -> None:
        """Say that a key was dealt with."""
        self._failures.pop(key, None)
        self._put_back(key)

    def failed(self, key: T) -> float:
        """Say that a key has to be looked at again, and return in how many seconds it is."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        delay = min(self._first_delay * 2.0 ** min(failures, 30), self._longest_delay)
        if not self._put_back(key):
            self._delayed[key] = asyncio.get_running_loop().call_later(delay, self._due, key)
        return delay

    def close(self) -> None:
        """Cancel the repetitions that are due later."""
        for timer in self._delayed.values():
            timer.cancel()
        self._delayed.clear()

    def _put_back(self, key: T) -> bool:
        self._working.discard(key)
        if key not in self._again:
            return False
        self._again.discard(key)
        self.add(key)
        return True

    def _due(self, key: T) -> None:
        self._delayed.pop(key, None)
        self.add(key)
