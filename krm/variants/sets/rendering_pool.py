"""A few processes that render, so that a set whose expressions take long holds up no other. Source: ``variants.md`` 6.9, 6.12."""

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from krm.variants.revisions import Revision
from krm.variants.sets.rendering import Rendered
from krm.variants.sets.rendering_worker import RenderingWorker
from krm.variants.sets.targets import Context, SelectedObject

Json = dict[str, Any]

PROCESSES: Final = 3
SHARED: Final = 2000
"""Targets from which on two processes share a set."""
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
        """Do what ``rendering.render`` does, once a process is free; two of them share a large set.

        Raises:
            RenderingTimeout, RenderingTooLarge, RenderingUnavailable: see ``RenderingWorker.render``.
        """
        began = time.monotonic()
        try:
            parts = (self._part(set_body, upstream, share, repositories) for share in self._shares(contexts))
            return [one for part in await asyncio.gather(*parts) for one in part]
        finally:
            self.renderings, self.targets = self.renderings + 1, self.targets + len(contexts)
            self.seconds += time.monotonic() - began

    def _shares(self, contexts: Sequence[Context]) -> Iterator[Sequence[Context]]:
        """Return what each process renders: of a large set half of it, while one process stays free for other sets."""
        number = 2 if len(contexts) >= SHARED and len(self._idle) >= PROCESSES else 1
        size = -(-len(contexts) // number)
        return (contexts[place : place + size] for place in range(0, len(contexts), size or 1))

    async def _part(
        self,
        set_body: Json,
        upstream: Revision,
        contexts: Sequence[Context],
        repositories: Mapping[str, SelectedObject],
    ) -> list[Rendered]:
        async with self._free:
            worker = self._idle.pop()  # the one that worked last: the others may never have to start
            try:
                seconds = BASE_SECONDS + SECONDS_PER_TARGET * len(contexts)
                return await worker.render(set_body, upstream, contexts, repositories, seconds=seconds)
            finally:
                self._idle.append(worker)

    async def close(self) -> None:
        """End the processes; what is being rendered fails. Repeating it changes nothing."""
        for worker in self._workers:
            await worker.close()
