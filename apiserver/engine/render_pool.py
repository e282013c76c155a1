"""A pool of render workers: child processes that keep CPU-heavy rendering off the event loop and its lock.

The pool is bounded in workers and in renders that wait. Workers start when first needed; one that dies, hangs or
grows too large is replaced, and a render whose worker died is tried once more in a fresh one.
"""

import asyncio
import pickle
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress

import structlog

from apiserver.engine.function_options import FunctionOptions
from apiserver.engine.render_frames import HEADER, Answer, frame
from apiserver.engine.rendering import TOO_LONG, failure
from krm.functions.pipeline import Rendered
from krm.functions.step_cache import Lookup
from krm.meta.errors import TooManyRequests
from krm.package.contents import Contents

_STOP_SECONDS = 5.0
_RETRY_SECONDS = 2
"""Told to clients that are refused: most renders take less."""
_LARGEST_ANSWER = 256 << 20
"""Bytes; several times the largest package."""

log = structlog.get_logger(__name__)


class _WorkerDied(Exception):
    """A worker's process ended while it was rendering; the text says how."""


class _Worker:
    """One child process; not used by two renders at once."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, options: FunctionOptions) -> "_Worker":
        """Start a worker that may run what ``options`` allows."""
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-m", "apiserver.engine.render_worker", stdin=pipe, stdout=pipe
        )
        worker = cls(process)
        with suppress(BrokenPipeError):  # one that has ended already is found out when it is to render
            worker._send(frame(options))
        return worker

    async def render(self, contents: Contents) -> Answer:
        """Render one package.

        Raises:
            _WorkerDied: the process ended before it answered.
        """
        stdout = self._process.stdout
        assert stdout is not None  # noqa: S101 - it was asked for
        try:
            self._send(frame(dict(contents)))
            (size,) = HEADER.unpack(await stdout.readexactly(HEADER.size))
            if size > _LARGEST_ANSWER:
                raise _WorkerDied(f"its answer of {size} bytes is too large")
            found: Answer = pickle.loads(await stdout.readexactly(size))  # noqa: S301 - our own worker's bytes
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise _WorkerDied(await self._ending()) from error
        return found

    async def _ending(self) -> str:
        """Say how a process that closed its pipe ended."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_STOP_SECONDS):
                code = await self._process.wait()
                return signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return "it closed its output"

    def _send(self, data: bytes) -> None:
        stdin = self._process.stdin
        assert stdin is not None  # noqa: S101 - it was asked for
        if stdin.is_closing():  # uvloop would raise a RuntimeError
            raise BrokenPipeError
        # No drain: the worker reads ahead, and a render that is answered has been read.
        stdin.write(data)

    async def end(self) -> None:
        """End the process, whatever it is doing."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.kill()
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await self._process.wait()
        except TimeoutError:
            log.warning("render worker does not end", pid=self.pid)

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid


class RenderPool:
    """Renders in up to ``size`` child processes; see the module."""

    def __init__(
        self,
        options: FunctionOptions,
        *,
        size: int,
        waiting: int,
        seconds: float,
        looked_up: Callable[[Mapping[Lookup, int]], None] = lambda _: None,
    ) -> None:
        """``looked_up`` is told how often the workers looked for outputs of single functions that they remember."""
        self._options = options
        self._looked_up = looked_up
        self._size = size
        self._free = asyncio.Semaphore(size)
        self._idle: list[_Worker] = []
        self._busy: set[_Worker] = set()
        self._waiting = 0
        self._most_waiting = waiting
        self._seconds = seconds
        self._closed = False

    @property
    def pids(self) -> list[int]:
        """The process ids of all workers there are."""
        return [worker.pid for worker in (*self._idle, *self._busy)]

    async def render(self, contents: Contents) -> Rendered:
        """Render in a worker; failure is part of the result.

        Cancelling ends the render's worker.

        Raises:
            TooManyRequests: too many renders are waiting, or none of those before this one ended in time.
        """
        if self._waiting >= self._most_waiting:
            message = f"{self._waiting} packages are waiting to be rendered; try again later"
            raise TooManyRequests(message, retry_after=_RETRY_SECONDS)
        await self._turn()
        try:
            return await self._render(contents)
        finally:
            self._free.release()

    async def close(self) -> None:
        """End all workers; renders that are under way fail."""
        self._closed = True
        workers = [*self._idle, *self._busy]
        self._idle.clear()
        await asyncio.gather(*(worker.end() for worker in workers))

    async def _turn(self) -> None:
        self._waiting += 1
        try:
            async with asyncio.timeout(self._seconds):
                await self._free.acquire()
        except TimeoutError:
            message = f"no render worker was free within {self._seconds:.0f} s; try again later"
            raise TooManyRequests(message, retry_after=_RETRY_SECONDS) from None
        finally:
            self._waiting -= 1

    async def _render(self, contents: Contents) -> Rendered:
        try:
            died = ""
            async with asyncio.timeout(self._seconds):
                # An idle worker may have been killed since its last render; a fresh one was not.
                for fresh in (False, True):
                    try:
                        return await self._render_in_worker(contents, fresh=fresh)
                    except _WorkerDied as error:
                        died = str(error)
        except TimeoutError:
            return failure(contents, TOO_LONG.format(self._seconds))
        return failure(
            contents, f"two workers ended while rendering it ({died}); make the package or its pipeline smaller"
        )

    async def _render_in_worker(self, contents: Contents, *, fresh: bool) -> Rendered:
        if self._closed:
            raise _WorkerDied("the server is stopping")
        worker = self._idle.pop() if self._idle and not fresh else await _Worker.start(self._options)
        self._busy.add(worker)
        reusable = False
        try:
            answer = await worker.render(contents)
            reusable = not (answer.retire or self._closed)
            self._looked_up(answer.lookups)
            return answer.complete(contents)
        except _WorkerDied as error:
            log.warning("render worker died", pid=worker.pid, how=str(error))
            raise
        finally:
            self._busy.discard(worker)
            # A fresh worker may have been started beside idle ones.
            if reusable and len(self._idle) + len(self._busy) < self._size:
                self._idle.append(worker)
            else:
                await worker.end()
