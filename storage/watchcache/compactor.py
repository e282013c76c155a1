"""When to compact: every five minutes, to where the log was at the time before.

At least the newest 1000 revisions are kept. One replica does it for all; were it two, the database would let one through.
Source: ``kube-api.md`` 5.1 and 5.4.
"""

import asyncio
from collections.abc import Awaitable, Callable
from random import uniform

import structlog

from storage.interfaces import StoreUnavailable

INTERVAL = 300.0
"""Seconds, ±10 %."""
KEEP_NEWEST = 1000
"""Revisions."""

log = structlog.get_logger(__name__)


class Compactor:
    """Runs the policy. ``head`` tells the newest revision, ``compact`` does the work."""

    def __init__(self, head: Callable[[], int], compact: Callable[[int], Awaitable[None]]) -> None:
        self._head = head
        self._compact = compact

    async def run(self) -> None:
        """Compact until cancelled."""
        previous = 0
        while True:
            await asyncio.sleep(INTERVAL * uniform(0.9, 1.1))  # noqa: S311 # spreads replicas, guards no secret
            target, previous = target_of(previous, self._head()), self._head()
            if target > 0:
                try:
                    await self._compact(target)
                except StoreUnavailable as error:
                    log.warning("compaction put off", target=target, error=str(error))


def target_of(interval_ago: int, head: int) -> int:
    """Return the revision to compact to, given the newest one now and an interval ago; 0 for not at all."""
    return max(0, min(interval_ago, head - KEEP_NEWEST))
