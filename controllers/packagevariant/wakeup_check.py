"""A check for those who work on the mapping of events: after every event every variant is looked at, its files included.

A variant that then has something to write although the event did not wake it was forgotten by the mapping; that is logged and
counted. It costs a look at every variant for every event, so it is off unless asked for. Source: ``variants.md`` 6.10.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import structlog

from controllers.packagevariant.cached_values import Key
from controllers.packagevariant.skipping import FinishedPasses

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Suspicion:
    """An event that did not wake a variant which had nothing to do until then."""

    event: str
    events: int
    """How many events had concerned the variant."""
    writes: int
    """How much had been written for it."""


class WakeupCheck:
    """Suspects every event of concerning everybody.

    ``variants`` returns all keys, ``look`` has one looked at, ``written`` tells how often anything was written for one.
    """

    def __init__(
        self,
        variants: Callable[[], Iterable[Key]],
        look: Callable[[Key], None],
        finished: FinishedPasses,
        written: Callable[[Key], int],
    ) -> None:
        self._variants, self._look, self._finished, self._written = variants, look, finished, written
        self._suspected: dict[Key, Suspicion] = {}
        self.missed = 0
        """Variants that an event should have woken."""

    def happened(self, event: str, woken: Iterable[Key]) -> None:
        """Take an event, described for people, and whom it woke."""
        for key in set(self._variants()) - set(woken):
            if self._finished.rests(key):
                self._suspected[key] = Suspicion(event, self._finished.events(key), self._written(key))
                self._look(key)

    def suspects(self, key: Key) -> bool:
        """Whether a variant is to be looked at although it would find what it found."""
        return key in self._suspected

    def forget(self, key: Key) -> None:
        """Suspect nothing any more: the variant is gone, or a pass over it failed, which proves nothing."""
        self._suspected.pop(key, None)

    def looked(self, key: Key) -> None:
        """Take that a pass over a variant has ended."""
        suspicion = self._suspected.pop(key, None)
        if suspicion is None or self._finished.events(key) != suspicion.events:
            return
        if self._written(key) != suspicion.writes:
            self.missed += 1
            log.error("an event concerned a variant and did not wake it", variant="/".join(key), about=suspicion.event)
