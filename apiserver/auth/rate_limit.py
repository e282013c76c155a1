"""A limit on how often somebody else is asked: so many times a second, and so many at once after a rest."""

import asyncio
import time
from collections.abc import Callable


class RateLimit:
    """A bucket of ``burst`` turns that fills with ``rate`` a second. For one event loop; ``clock`` tells seconds."""

    def __init__(self, rate: float, burst: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._free = float(burst)
        self._filled = clock()

    async def turn(self) -> None:
        """Return when it is the caller's turn; whoever came before has had theirs. Who is cancelled gives it back."""
        now = self._clock()
        self._free = min(self._burst, self._free + (now - self._filled) * self._rate) - 1
        self._filled = now
        if self._free >= 0:
            return
        try:
            await asyncio.sleep(-self._free / self._rate)
        except asyncio.CancelledError:
            self._free += 1
            raise
