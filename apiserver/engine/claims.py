"""Claims on single package revisions: the second of two overlapping writes fails at once.

Source: ``porch-api.md`` 8.2 and ``decisions.md`` 8. A claim is held in this process; between replicas the log's
compare-and-swap decides.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from krm.meta.errors import Conflict, ResourceName

BUSY = "another request is already in progress"
"""The words that upstream's clients and suites look for."""
LAST_LOOKS = 4
"""Rounds of the event loop before a claim is given up, enough for a request that has arrived to be read, understood and
refused; an idle loop needs some 10 µs for one."""
UNCHANGED_SECONDS = 0.01
"""How long a write that changes nothing stays; one that does change something takes about as long."""


class Claims:
    """Who is being written right now; entries live only as long as their write."""

    def __init__(self, refused: Callable[[], None] = lambda: None) -> None:
        """``refused`` is told of each claim that is not given."""
        self._refused = refused
        self._held: set[tuple[str, str]] = set()

    @asynccontextmanager
    async def claim(
        self, resource: ResourceName, namespace: str, name: str, *, shown_as: str = "", doing: str = ""
    ) -> AsyncIterator[None]:
        """Hold the revision ``namespace/name`` for the length of the block.

        Whoever arrives while the block runs overlaps with it. The loop reads what has arrived only between two steps, so
        a block that succeeded is not over before the loop has looked once more.

        Raises:
            Conflict: somebody holds it; the sentence carries upstream's words.
        """
        key = (namespace, name)
        if key in self._held:
            self._refused()
            what = doing or f'on package revision "{namespace}/{name}"'
            raise Conflict.of(resource, shown_as or name, f"{BUSY} {what}")
        self._held.add(key)
        try:
            yield
            for _ in range(LAST_LOOKS):
                await asyncio.sleep(0)
        finally:
            self._held.discard(key)

    def count(self) -> int:
        """Return how many revisions are being written."""
        return len(self._held)

    def held(self, namespace: str, name: str) -> bool:
        """Tell whether a write of this revision is under way."""
        return (namespace, name) in self._held


async def stay_unchanged() -> None:
    """Stay a moment in a claim whose write found nothing to change.

    Without a database to wait for it would be over before its twin, sent together with it, has arrived. Both would
    succeed, where upstream's clients expect that one is told of the other (``porch-api.md`` 11.1, scenario 16).
    """
    await asyncio.sleep(UNCHANGED_SECONDS)
