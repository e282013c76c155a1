"""Which objects were left with nothing to do, and what the pass over them had read then. Source: ``variants.md`` 6.9, 6.10."""

import itertools
from collections.abc import Callable, Hashable

from controllers.runtime.workqueue import Key


class FinishedPasses:
    """What each object's pass had read when it ended with nothing left to do; kept in memory only.

    ``reading`` gives what a pass over an object reads now, None for one that is gone.
    """

    def __init__(self, reading: Callable[[Key], Hashable]) -> None:
        self._reading = reading
        self._finished: dict[Key, Hashable] = {}
        self._events: dict[Key, int] = {}
        self._numbers = itertools.count(1)
        """Of events, of whatever object: none comes twice, also not after one was forgotten."""
        self._seen: dict[Key, int] = {}
        """Of the events, how many had come when the last pass began."""

    def __len__(self) -> int:
        return len(self._finished)

    def woken(self, key: Key) -> None:
        """Note that an event concerned the object: a pass that is under way may not have seen it."""
        self._events[key] = next(self._numbers)

    def rests(self, key: Key) -> bool:
        """Whether the last pass over the object left nothing to do, and no event has concerned it since that began."""
        return key in self._finished and self._events.get(key, 0) == self._seen.get(key, 0)

    def events(self, key: Key) -> int:
        """Return how many events concerned the object."""
        return self._events.get(key, 0)

    def begin(self, key: Key) -> int:
        """Begin a pass; returns what :meth:`finish` needs."""
        self._finished.pop(key, None)
        self._seen[key] = self.events(key)
        return self._seen[key]

    def finish(self, key: Key, begun: int) -> None:
        """End a pass that left nothing to do. It is forgotten if an event came meanwhile."""
        if self.events(key) == begun and (reading := self._reading(key)) is not None:
            self._finished[key] = reading

    def is_finished(self, key: Key) -> bool:
        """Whether a pass would read what the last one over the object read."""
        return key in self._finished and self._finished[key] == self._reading(key)

    def forget(self, key: Key) -> None:
        """Drop what is known of an object that is gone."""
        self._finished.pop(key, None)
        self._events.pop(key, None)
        self._seen.pop(key, None)
