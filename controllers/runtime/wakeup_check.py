"""A check for those who work on the mapping of events: after every event every object is looked at, whether it was woken or not.

One that then has something to write although the event did not wake it was forgotten by the mapping; that is logged and counted. It
costs a look at every object for every event, so it is off unless asked for. Source: ``variants.md`` 6.10.
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass

import structlog

from controllers.runtime.finished_passes import FinishedPasses
from controllers.runtime.workqueue import Key

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Suspicion:
    """An event that did not wake an object which had nothing to do until then."""

    event: str
    events: int
    """How many events had concerned the object."""
    written: Hashable
    """What had been written for it."""


class WakeupCheck:
    """Suspects every event of concerning everybody.

    ``objects`` returns all keys, ``look`` has one looked at, ``written`` returns what changes with everything that is written for one.
    """

    def __init__(
        self,
        objects: Callable[[], Iterable[Key]],
        look: Callable[[Key], None],
        finished: FinishedPasses,
        written: Callable[[Key], Hashable],
    ) -> None:
        self._objects, self._look, self._finished, self._written = objects, look, finished, written
        self._suspected: dict[Key, Suspicion] = {}
        self.suspicions = 0
        """How often an object was looked at because of an event that had not woken it, or is still to be."""
        self.missed = 0
        """Objects that an event should have woken."""

    def happened(self, event: str, woken: Iterable[Key]) -> None:
        """Take an event, described for people, and whom it woke."""
        for key in set(self._objects()) - set(woken):
            if self._finished.rests(key):
                self._suspected[key] = Suspicion(event, self._finished.events(key), self._written(key))
                self.suspicions += 1
                self._look(key)

    @property
    def waiting(self) -> int:
        """How many objects are still to be looked at."""
        return len(self._suspected)

    def suspects(self, key: Key) -> bool:
        """Whether an object is to be looked at although it would find what it found."""
        return key in self._suspected

    def forget(self, key: Key) -> None:
        """Suspect nothing any more: the object is gone, or a pass over it failed, which proves nothing."""
        self._suspected.pop(key, None)

    def looked(self, key: Key) -> None:
        """Take that a pass over an object has ended."""
        suspicion = self._suspected.pop(key, None)
        if suspicion is None or self._finished.events(key) != suspicion.events:
            return
        if self._written(key) != suspicion.written:
            self.missed += 1
            log.error("an event concerned an object and did not wake it", object="/".join(key), about=suspicion.event)
