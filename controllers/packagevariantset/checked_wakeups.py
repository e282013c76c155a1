"""The check of the mapping of events, for sets: each is looked at after every event that concerned another one.

Source: ``variants.md`` 6.10; off unless ``check_wakeups`` asks for it.
"""

from collections.abc import Awaitable, Callable, Hashable, Iterable

import orjson

from controllers.packagevariantset.cached_values import Key
from controllers.packagevariantset.caches import Caches
from controllers.packagevariantset.variant_writer import VariantWriter
from controllers.runtime.controller import Result
from controllers.runtime.finished_passes import FinishedPasses
from controllers.runtime.wakeup_check import WakeupCheck


class CheckedWakeups:
    """Hears of all events and passes; ``look`` has a set looked at, a while after the event."""

    def __init__(self, caches: Caches, writer: VariantWriter, look: Callable[[Key], None]) -> None:
        self._caches, self._writer = caches, writer
        self._finished = FinishedPasses(lambda key: key)
        self._check = WakeupCheck(caches.set_keys, look, self._finished, self._written)

    @property
    def missed(self) -> int:
        """Sets that an event should have woken."""
        return self._check.missed

    @property
    def followed(self) -> int:
        """How often a set was looked at because of an event that had not woken it; 0 while such a look is still to come."""
        return 0 if self._check.waiting else self._check.suspicions

    def woken(self, keys: Iterable[Key]) -> None:
        """Take that sets will be looked at, for whatever reason."""
        for key in keys:
            self._finished.woken(key)

    def happened(self, event: str, woken: Iterable[Key]) -> None:
        """Take an event, described for people, and whom it woke."""
        self._check.happened(event, woken)

    def forget(self, key: Key) -> None:
        """Drop what is known of a set that is gone."""
        self._finished.forget(key)
        self._check.forget(key)

    async def watched(self, key: Key, work: Awaitable[Result]) -> Result:
        """Do a pass over a set, and judge the event before it.

        Raises:
            Exception: what the pass raises; that proves nothing.
        """
        begun = self._finished.begin(key)
        try:
            result = await work
        except BaseException:
            self._check.forget(key)
            raise
        if result == Result():
            self._finished.finish(key, begun)
        self._check.looked(key)
        return result

    def _written(self, key: Key) -> Hashable:
        """Return the status of a set and what its variants say: nobody else writes these without waking it."""
        one = self._caches.one(key)
        if one is None:
            return None
        members = [member.existing for member in self._caches.members(one.namespace, one.uid)]
        left = frozenset((member.uid, member.digest) for member in members if not self._writer.is_deleted(member.uid))
        return orjson.dumps(one.body.get("status"), option=orjson.OPT_SORT_KEYS), left
