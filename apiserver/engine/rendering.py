"""The render port: package contents in, package contents out, off the event loop.

The pipeline itself is ``krm.functions.pipeline``; this module knows only how long it may take and where it runs:
what takes milliseconds in a thread of this process, all else in the worker processes of ``render_pool``.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from krm.functions.builtins import BUILTINS, PREFIXES
from krm.functions.images import is_reference, parse_image
from krm.functions.pipeline import Rendered, render
from krm.functions.render_cache import RenderCache
from krm.functions.runner import FunctionRunner
from krm.package.contents import Contents
from krm.package.kptfile import Function, KptfileError, parse_kptfile


class Renderer(Protocol):
    """Runs the function pipeline of a package."""

    async def render(self, contents: Contents) -> Rendered:
        """Render; failure is part of the result, not an exception.

        Raises:
            TooManyRequests: too many renders are waiting already.
        """
        ...


RENDER_SECONDS = 30.0
"""How long one render may take; a package of thousands of resources takes a few seconds."""
RENDER_CACHE = 32 << 20
"""Bytes of remembered renders of one server."""
WAITING_RENDERS = 256
"""Large renders that may wait for a worker; further ones are refused, and clients try again."""
TOO_LONG = "the pipeline took longer than {:.0f} s; split the package or its pipeline"
_SLOW = frozenset(("starlark",))
"""Built-in functions that run foreign code. Scripts that never end must not take the threads that Git works in."""
_KPTFILE = "Kptfile"
_RESOURCES = (_KPTFILE, ".yaml", ".yml", ".json")
_SMALL = 24 << 10
"""Bytes of a package that renders in a few milliseconds, which other threads hardly notice."""
_SMALL_WITHOUT_PIPELINE = 96 << 10
"""The same, when its files are only read."""


def failure(contents: Contents, why: str) -> Rendered:
    """Return the outcome of a render that could not be finished."""
    return Rendered(dict(contents), {}, why, failed=True)


class ThreadRenderer:
    """Renders in a thread pool with the functions of this process."""

    def __init__(self, pool: ThreadPoolExecutor, runner: FunctionRunner) -> None:
        self._pool = pool
        self._runner = runner

    async def render(self, contents: Contents) -> Rendered:
        """Render in the pool; one that takes too long fails, and is left to end by itself."""
        try:
            async with asyncio.timeout(RENDER_SECONDS):
                return await asyncio.get_running_loop().run_in_executor(self._pool, render, contents, self._runner)
        except TimeoutError:
            return failure(contents, TOO_LONG.format(RENDER_SECONDS))


class CachedRenderer:
    """Asks another renderer only for what it has not rendered before."""

    def __init__(
        self, pool: ThreadPoolExecutor, renderer: Renderer, cache: RenderCache, looked_up: Callable[[bool], None]
    ) -> None:
        """``pool`` is where packages are compared, which for large ones takes milliseconds.

        ``looked_up`` is told of each render whether it was remembered.
        """
        self._pool = pool
        self._renderer = renderer
        self._cache = cache
        self._looked_up = looked_up

    async def render(self, contents: Contents) -> Rendered:
        """Render, or remember; see the port."""
        loop = asyncio.get_running_loop()
        remembered = await loop.run_in_executor(self._pool, self._cache.find, contents)
        self._looked_up(remembered is not None)
        if remembered is not None:
            return remembered
        rendered = await self._renderer.render(contents)
        await loop.run_in_executor(self._pool, self._cache.add, contents, rendered)
        return rendered


class RendererByWork:
    """Renders what takes milliseconds with one renderer, everything else with another."""

    def __init__(self, quick: Renderer, slow: Renderer) -> None:
        self._quick = quick
        self._slow = slow

    async def render(self, contents: Contents) -> Rendered:
        """Render; see the port."""
        return await (self._quick if is_quick(contents) else self._slow).render(contents)


def is_quick(contents: Contents) -> bool:
    """Say whether a package is small and has no function that may take long: a script, a program, a container."""
    resources = {path: file.data for path, file in contents.items() if path.endswith(_RESOURCES)}
    kptfiles = [data for path, data in resources.items() if path.endswith(_KPTFILE) and b"pipeline" in data]
    size = sum(map(len, resources.values()))
    return size <= (_SMALL if kptfiles else _SMALL_WITHOUT_PIPELINE) and all(map(_has_quick_functions, kptfiles))


def _has_quick_functions(kptfile: bytes) -> bool:
    try:
        parsed = parse_kptfile(kptfile)
    except KptfileError:
        return True  # it fails at once
    return all(_is_quick_function(function) for function in (*parsed.mutators, *parsed.validators))


def _is_quick_function(function: Function) -> bool:
    if function.exec or not is_reference(function.image):
        return True  # refused at once
    image = parse_image(function.image)
    return image.prefix in PREFIXES and image.base in BUILTINS and image.base not in _SLOW
