"""A few processes that render, so that a set whose expressions take long holds up no other. Source: ``variants.md`` 6.9, 6.12."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from krm.variants.revisions import Revision
from krm.variants.sets.rendering import Rendered
from krm.variants.sets.rendering_worker import RenderingWorker
from krm.variants.sets.targets import Context, SelectedObject

Json = dict[str, Any]

PROCESSES: Final = 2
BASE_SECONDS: Final = 15.0
SECONDS_PER_TARGET: Final = 0.02
"""Five expressions take less than 1 ms; each is ended after 100 ms by itself."""


class RenderingPool:
    """Renders sets in at most ``processes`` processes; each starts when it is needed first.

    ``upstream_identity`` as of ``rendering.render``.
    """

    def __init__(self, processes: int = PROCESSES, *, upstream_identity: bool = False) -> None:
        self.upstream_identity = upstream_identity
        self._workers = [RenderingWorker(upstream_identity=upstream_identity) for _ in range(processes)]
        self._idle = [*self._workers]
        self._free = asyncio.Semaphore(processes)
        self.renderings = self.targets = 0
        """Sets, and targets of them, that were rendered."""
        self.seconds = 0.0
        """That this took, waiting included."""

    async def render(
        self,
        set_body: Json,
        upstream: Revision,
        contexts: Sequence[Context],
        repositories: Mapping[str, SelectedObject],
    ) -> list[Rendered]:
        """Do what ``rendering.render`` does, once a process is free.

        Raises:
            RenderingTimeout, RenderingTooLarge, RenderingUnavailable: see ``RenderingWorker.render``.
        """
        began = time.monotonic()
        async with self._free:
            worker = self._idle.pop()  # the one that worked last: the other may never have to start
            try:
                seconds = BASE_SECONDS + SECONDS_PER_TARGET * len(contexts)
                return await worker.render(set_body, upstream, contexts, repositories, seconds=seconds)
            finally:
                self._idle.append(worker)
                self.renderings, self.targets = self.renderings + 1, self.targets + len(contexts)
                self.seconds += time.monotonic() - began

    async def close(self) -> None:
        """End the processes; what is being rendered fails. Repeating it changes nothing."""
        for worker in self._workers:
            await worker.close()
