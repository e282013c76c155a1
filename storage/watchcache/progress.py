"""The revision up to which the caches are complete, and those who wait for one to be reached."""

import asyncio
import heapq
from itertools import count

LONGEST_WAIT = 3.0
"""Seconds a reader waits for a revision that has not been reached (``kube-api.md`` 5.1)."""


class Progress:
    """A revision that only rises."""

    def __init__(self) -> None:
        self.rv = 0
        self.compacted = 0
        """The low-water mark as last seen."""
        self.incarnation = ""
        """Which life of the database the caches were filled from."""
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._order = count()

    def advance(self, rv: int) -> None:
        """Say that every event up to ``rv`` is applied."""
        self.rv = max(self.rv, rv)
        while self._waiting and self._waiting[0][0] <= self.rv:
            _, _, future = heapq.heappop(self._waiting)
            if not future.done():
                future.set_result(None)

    async def reached(self, rv: int, seconds: float = LONGEST_WAIT) -> bool:
        """Wait until ``rv`` is applied; return whether it was in time."""
        if self.rv >= rv:
            return True
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting = (rv, next(self._order), future)
        heapq.heappush(self._waiting, waiting)
        try:
            async with asyncio.timeout(seconds):
                await future
        except TimeoutError:
            return False
        finally:
            if self.rv < rv:  # given up; the revision may never come, and anybody may ask for any number
                self._waiting.remove(waiting)
                heapq.heapify(self._waiting)
        return True
