"""Work that one replica does for all of them, until it dies, hangs or stops; then another one does it.

What is led here is safe to be done twice, because every write compares and swaps: a leader that is paused for longer than its
lease and wakes does no harm until it notices, within a second. Alone with its database, a process leads from the start, and
nothing is asked. Source: ``kube-api.md`` 5.4; ADR 0037.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import structlog

from storage.interfaces import StoreUnavailable
from storage.turns import Replicated

AGAIN_SECONDS = 1.0
"""Before the next attempt, when the database is away or what is led has failed."""

log = structlog.get_logger(__name__)

Work = Callable[[], Awaitable[None]]
"""Runs until it is cancelled; may be begun again."""


def _untold(_leads: bool) -> None:
    """Tell nobody."""


class Leader:
    """Candidate for ``name`` among all replicas; ``told`` hears whether it leads, whenever that changes."""

    def __init__(
        self, among: Replicated, name: str, work: Sequence[Work], told: Callable[[bool], None] = _untold
    ) -> None:
        self._among = among
        self._name = name
        self._work = tuple(work)
        self._told = told

    async def run(self) -> None:
        """Stand by or lead, until cancelled."""
        while True:
            try:
                await self._lead_once()
            except StoreUnavailable as error:
                log.debug("nobody can be elected", what=self._name, problem=str(error))
            except Exception:  # what is led must go on, whatever trips one of its rounds
                log.exception("what this replica leads has failed and begins again", what=self._name)
            await asyncio.sleep(AGAIN_SECONDS)

    async def _lead_once(self) -> None:
        """Wait to be elected, and work until that is over. Raises what the work raises, and StoreUnavailable."""
        async with self._among.elect(self._name) as leadership:
            self._told(True)
            if self._among.shared:
                log.info("this replica leads", what=self._name)
            tasks = [asyncio.ensure_future(one()) for one in (leadership.lost, *self._work)]
            try:
                done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                if tasks[0] in done:
                    log.warning("this replica leads no longer", what=self._name)
            finally:
                self._told(False)
                for task in tasks:
                    task.cancel()
                outcomes = await asyncio.gather(*tasks, return_exceptions=True)
            for outcome in outcomes:
                if isinstance(outcome, Exception):
                    raise outcome
