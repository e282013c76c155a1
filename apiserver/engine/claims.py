"""Claims on single package revisions: the second of two overlapping writes fails at once.

Source: ``porch-api.md`` 8.2 and ``decisions.md`` 8. A claim is held in this process and, where there are replicas, among all of
them; should a replica lose its claims because it was paused, the log's compare-and-swap decides, and nothing is pushed.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

from krm.meta.errors import Conflict, ResourceName, ServiceUnavailable
from storage.interfaces import StoreUnavailable
from storage.turns import Claim, unclaimed

BUSY = "another request is already in progress"
"""The words that upstream's clients and suites look for."""
LAST_LOOKS = 4
"""Rounds of the event loop before a claim is given up, enough for a request that has arrived to be read, understood and
refused; an idle loop needs some 10 µs for one."""
UNCHANGED_SECONDS = 0.01
"""How long a write that changes nothing stays; one that does change something takes about as long."""


def claim_on(namespace: str, name: str) -> str:
    """Return the name of the claim on a revision among the replicas."""
    return f"revision {namespace}/{name}"


class Claims:
    """Who is being written right now; entries live only as long as their write."""

    def __init__(
        self, refused: Callable[[], None] = lambda: None, among_replicas: Callable[[str], Claim] = unclaimed
    ) -> None:
        """``refused`` is told of each claim that is not given; ``among_replicas`` takes one from the other replicas."""
        self._refused = refused
        self._among_replicas = among_replicas
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
            ServiceUnavailable: the replicas' database cannot be asked.
        """
        key = (namespace, name)
        what = doing or f'on package revision "{namespace}/{name}"'
        busy = Conflict.of(resource, shown_as or name, f"{BUSY} {what}")
        if key in self._held:
            self._refused()
            raise busy
        self._held.add(key)
        try:
            async with AsyncExitStack() as stack:
                if not await self._claimed(stack, key):
                    self._refused()
                    raise busy
                yield
                for _ in range(LAST_LOOKS):
                    await asyncio.sleep(0)
        finally:
            self._held.discard(key)

    async def _claimed(self, stack: AsyncExitStack, key: tuple[str, str]) -> bool:
        """Claim a revision among the replicas, until ``stack`` ends."""
        try:
            return await stack.enter_async_context(self._among_replicas(claim_on(*key)))
        except StoreUnavailable as error:
            why = f"the database cannot be used ({error}); nothing was changed, try again"
            raise ServiceUnavailable(why, retry_after=1) from error

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
