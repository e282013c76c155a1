"""Deletes Events an hour after they were last written, and the oldest of too many, so that reports do not fill the log.

Times are counted from what this process saw, not from timestamps that clients wrote; a restart
begins the hour anew. Every replica counts, one of them deletes. Source: ``kube-api.md`` 2.16.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Final

import structlog

from storage.bodies import decode, encode_body
from storage.interfaces import Event, EventType, Mutation, ObjectKey, ObjectStore, Op, StaleWrite, StoreUnavailable

log = structlog.get_logger()

RESOURCE: Final = "events"
ACTOR: Final = "system:apiserver"
TIME_TO_LIVE: Final = 3600.0
"""Seconds that an Event is kept after its last write."""
MOST: Final = 4_000
"""Events that are kept; of more the oldest go. They lie in memory, some 3 KB each, and a busy server would write a hundred
thousand an hour."""
INTERVAL: Final = 60.0
"""Seconds between two purges."""
BATCH: Final = 100
"""Events deleted at a time; in between, other writers get their turn."""


class EventExpiry:
    """Follows Events and deletes those whose time is over; to be made before the store starts."""

    def __init__(
        self,
        store: ObjectStore,
        *,
        ttl: float = TIME_TO_LIVE,
        most: int = MOST,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._ttl = ttl
        self._most = most
        self._clock = clock
        # In the order of their deadlines: a write puts its Event at the end.
        self._deadlines: dict[ObjectKey, float] = {}
        store.observe(RESOURCE, self._observe)

    async def run(self) -> None:
        """Purge every minute until cancelled."""
        while True:
            await asyncio.sleep(INTERVAL)
            try:
                await self.purge()
            except StoreUnavailable as error:
                log.warning("events cannot be purged now", error=str(error))

    async def purge(self) -> int:
        """Delete every Event whose time is over, and the oldest beyond the most that are kept; return how many.

        Raises:
            StoreUnavailable: the database refused; the rest waits for the next purge.
        """
        now = self._clock()
        surplus = len(self._deadlines) - self._most
        expired = []
        for number, (key, deadline) in enumerate(self._deadlines.items()):  # the oldest come first
            if number >= surplus and deadline > now:
                break
            expired.append(key)
        for at in range(0, len(expired), BATCH):
            await asyncio.gather(*(self._delete(key) for key in expired[at : at + BATCH]))
        return len(expired)

    def _observe(self, event: Event) -> None:
        key = event.entry.key
        self._deadlines.pop(key, None)
        if event.type is not EventType.DELETED:
            self._deadlines[key] = self._clock() + self._ttl

    async def _delete(self, key: ObjectKey) -> None:
        entry = self._store.get(key)
        if entry is None:
            return
        body = encode_body(decode(entry))
        try:
            await self._store.write([Mutation(key, Op.DELETE, entry.rv, entry.uid, body, actor=ACTOR)])
        except StaleWrite:
            # It was written or deleted just now; its new deadline is known.
            return
