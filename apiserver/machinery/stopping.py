"""How a server that was told to stop looks to its clients: unready first, then its watches end, each at a moment of its own.

Source: ``kube-api.md`` 1.4 (readyz) and 4 (shutdown).
"""

import asyncio
import random

SPREAD_SECONDS = 0.5
"""Over which the watches end where nobody waits for it; clients come back as they end, so never all at once."""


class Stopping:
    """What a server was told of its end. Nothing is taken back; saying it again changes nothing."""

    def __init__(self) -> None:
        self._unready = asyncio.Event()
        self._watches_end = asyncio.Event()
        self._spread = SPREAD_SECONDS

    def tell(self) -> None:
        """Fail ``/readyz`` from now on; everything else is served as before."""
        self._unready.set()

    def set(self, spread: float = SPREAD_SECONDS) -> None:
        """End the watches within ``spread`` seconds, and fail ``/readyz``."""
        if not self._watches_end.is_set():
            self._spread = spread
        self.tell()
        self._watches_end.set()

    def is_set(self) -> bool:
        """Whether the server was told to stop, though its watches may go on for some time."""
        return self._unready.is_set()

    async def wait(self) -> None:
        """Return at the moment at which one watch shall end; each caller's is another."""
        await self._watches_end.wait()
        await asyncio.sleep(random.uniform(0, self._spread))  # noqa: S311 - spreads load, keeps no secret
