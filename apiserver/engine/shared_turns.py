"""Turns among replicas that those of one process who want the same at one time have together.

For work that this process keeps apart by itself and that only other replicas must not do meanwhile. Whoever comes while a turn is
held waits for the next one, so that the other replicas get theirs in between. Like a group commit, a lone one never waits for others.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from storage.turns import TakenTurn


@dataclass(slots=True, eq=False)
class _Together:
    """Those who have one turn: whether it has come, and how many of them still want it."""

    taken: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    over: asyncio.Event = field(default_factory=asyncio.Event)
    members: int = 0
    holding: asyncio.Task[None] | None = None


class SharedTurns:
    """Turns taken by ``take``, which waits for one. For one event loop."""

    def __init__(self, take: Callable[[str], TakenTurn]) -> None:
        self._take = take
        self._next: dict[str, _Together] = {}

    @asynccontextmanager
    async def turn(self, key: str) -> AsyncIterator[None]:
        """Wait for the turn at ``key``; it lasts until the last of those who have it together leaves.

        Whoever is cancelled while waiting leaves it to the others.

        Raises:
            Exception: what taking the turn raises, to everybody who waits for it.
        """
        together = self._next.get(key)
        if together is None:
            together = self._next[key] = _Together()
            together.holding = asyncio.create_task(self._hold(key, together), name=f"turn {key}")
        together.members += 1
        try:
            await asyncio.shield(together.taken)
            yield
        finally:
            together.members -= 1
            if not together.members:
                together.over.set()
                self._close(key, together)

    async def _hold(self, key: str, together: _Together) -> None:
        """Take the turn, let its members have it, and give it up after the last of them."""
        try:
            async with self._take(key):
                self._close(key, together)
                together.taken.set_result(None)
                await together.over.wait()
        except BaseException as error:
            self._close(key, together)
            if together.taken.done():
                raise
            together.taken.set_exception(error)
            together.taken.exception()  # nobody may be left to look at it

    def _close(self, key: str, together: _Together) -> None:
        """Have those who come from now on wait for another turn."""
        if self._next.get(key) is together:
            del self._next[key]
