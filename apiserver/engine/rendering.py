"""The render port: package contents in, package contents out, off the event loop.

The pipeline itself is ``krm.functions.pipeline``; this module knows only how long it may take and where it runs.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from krm.functions.pipeline import Rendered
from krm.package.contents import Contents


class Renderer(Protocol):
    """Runs the function pipeline of a package."""

    async def render(self, contents: Contents) -> Rendered:
        """Render; failure is part of the result, not an exception."""
        ...


RENDER_SECONDS = 30.0
"""How long one render may take; a package of thousands of resources takes a few seconds."""


class ThreadRenderer:
    """Renders in a thread pool with the functions of this process."""

    def __init__(self, pool: ThreadPoolExecutor, render: Callable[[Contents], Rendered]) -> None:
        self._pool = pool
        self._render = render

    async def render(self, contents: Contents) -> Rendered:
        """Render in the pool; one that takes too long fails, and is left to end by itself."""
        try:
            async with asyncio.timeout(RENDER_SECONDS):
                return await asyncio.get_running_loop().run_in_executor(self._pool, self._render, contents)
        except TimeoutError:
            error = f"the pipeline took longer than {RENDER_SECONDS:.0f} s; split the package or its pipeline"
            return Rendered(dict(contents), {}, error, failed=True)
