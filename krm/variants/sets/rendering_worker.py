"""A process that renders, seen from the event loop of its owner: deadlines, cancellation, restarts.

Source: ``variants.md`` 3.4, 6.9 and 6.12.
"""

import asyncio
import contextlib
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, Final

import orjson

from krm.variants.revisions import Revision
from krm.variants.sets.rendering import Rendered, upstream_view
from krm.variants.sets.rendering_frames import (
    END,
    LENGTH,
    MAX_FRAME,
    READY,
    FrameError,
    about,
    context_parts,
    framed,
    needed_repositories,
    rendered_from_json,
    repository_parts,
)
from krm.variants.sets.rendering_process import OUT_OF_MEMORY, TOO_LARGE
from krm.variants.sets.targets import Context, SelectedObject

Json = dict[str, Any]

MEMORY: Final = 1 << 30
"""Bytes of address space of a process: the interpreter has about 60 MiB, ten thousand targets need a tenth of the rest."""
MAX_ANSWER: Final = 256 << 20
"""Bytes of all that a set comes to."""
START_SECONDS: Final = 30.0
"""Seconds until a process must be ready; half a second does it on an idle machine."""
_SHORT_OF_MEMORY: Final = (OUT_OF_MEMORY, -signal.SIGSEGV, -signal.SIGABRT)
"""Exit codes; libraries in C do not survive an allocation that fails."""
_EXIT_SECONDS: Final = 2.0
"""Seconds that a process has to end after its last answer."""


class RenderingError(Exception):
    """Nothing was rendered; the text says why."""


class RenderingTimeout(RenderingError):
    """It took longer than its deadline; the process was killed."""


class RenderingTooLarge(RenderingError):
    """The set, or what it comes to, needs more memory than there may be: it will the next time, too."""


class RenderingUnavailable(RenderingError):
    """The process could not be started, or was ended by someone: trying again helps."""


class RenderingWorker:
    """One process, which works on one set at a time; it starts with the first of them, and again after it has ended.

    ``memory`` is in bytes of address space; ``upstream_identity`` as of ``rendering.render``.
    """

    def __init__(self, *, memory: int = MEMORY, upstream_identity: bool = False) -> None:
        self._memory = memory
        self._identity = upstream_identity
        self._process: Process | None = None
        self._turn = asyncio.Lock()

    @property
    def pid(self) -> int | None:
        """The process, while there is one."""
        return None if self._process is None else self._process.pid

    async def render(
        self,
        set_body: Json,
        upstream: Revision,
        contexts: Sequence[Context],
        repositories: Mapping[str, SelectedObject],
        *,
        seconds: float,
    ) -> list[Rendered]:
        """Do what ``rendering.render`` does. Cancellation kills the process; a second call waits for the first.

        Raises:
            RenderingTimeout: it took more than ``seconds``; waiting for others and the start of the process do not count.
            RenderingTooLarge: see there.
            RenderingUnavailable: the process does not start, or ended.
        """
        async with self._turn:
            process = await self._running()
            view = upstream_view(upstream, identity=self._identity)
            request = _request(set_body, view, contexts, repositories, seconds)
            try:
                async with asyncio.timeout(seconds):
                    found, last = await _exchange(process, request)
            except TimeoutError:
                await self._end()
                raise RenderingTimeout(f"rendering took more than {seconds:g} s") from None
            except FrameError as error:
                await self._end()
                raise RenderingTooLarge(f"the package variants cannot be rendered: {error}") from error
            except (asyncio.IncompleteReadError, ConnectionError) as error:
                raise await self._cause_of_death() from error
            except BaseException:
                await self._end()
                raise
            if last:
                await self._end()
            return found

    async def close(self) -> None:
        """End the process; what is being rendered fails. Repeating it changes nothing."""
        await self._end()

    async def _running(self) -> Process:
        if self._process is not None and self._process.returncode is None:
            return self._process
        await self._end()
        # Isolated (-I): neither the environment nor the working directory decides what code it runs.
        command = [sys.executable, "-I", "-m", "krm.variants.sets.rendering_process", str(self._memory)]
        try:
            async with asyncio.timeout(START_SECONDS):
                self._process = await asyncio.create_subprocess_exec(
                    *command, stdin=PIPE, stdout=PIPE, env={}, start_new_session=True
                )
                ready = await _frame(self._process)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, FrameError) as error:
            await self._end()
            raise RenderingUnavailable(
                f"the rendering process does not start: {type(error).__name__} {error}"
            ) from error
        except BaseException:
            await self._end()
            raise
        if ready != READY:
            await self._end()
            raise RenderingUnavailable("the rendering process does not start: it says something else")
        return self._process

    async def _cause_of_death(self) -> RenderingError:
        code = await self._end()
        if code in _SHORT_OF_MEMORY:
            return RenderingTooLarge(
                f"rendering the package variants needs more than {self._memory >> 20} MiB of memory"
            )
        if code == TOO_LARGE:
            return RenderingTooLarge("the rendered package variants are too large")
        return RenderingUnavailable(f"the rendering process ended (exit code {code})")

    async def _end(self) -> int | None:
        """Kill the process if it has not ended by itself; return its exit code."""
        process, self._process = self._process, None
        if process is None:
            return None
        if process.stdout is not None and not process.stdout.at_eof():
            _kill(process)
        try:
            async with asyncio.timeout(_EXIT_SECONDS):
                await process.wait()
        except TimeoutError:
            _kill(process)
        await _drained(process)
        return await process.wait()


def _request(
    set_body: Json,
    upstream: Json,
    contexts: Sequence[Context],
    repositories: Mapping[str, SelectedObject],
    seconds: float,
) -> Iterator[bytes]:
    yield about(set_body, upstream, seconds)
    needed = needed_repositories(set_body, contexts, repositories)
    yield from repository_parts(needed.values())
    yield from context_parts(contexts, needed)
    yield framed(END)


async def _exchange(process: Process, request: Iterator[bytes]) -> tuple[list[Rendered], bool]:
    """Send a request while its answers arrive; return what there is, and whether the process ends now."""
    sending, reading = asyncio.create_task(_send(process, request)), asyncio.create_task(_read(process))
    try:
        await asyncio.wait({sending, reading}, return_when=asyncio.FIRST_EXCEPTION)
        if sending.done() and isinstance(error := sending.exception(), FrameError):
            raise error
        return await reading
    finally:
        sending.cancel()
        reading.cancel()
        await asyncio.gather(sending, reading, return_exceptions=True)


async def _read(process: Process) -> tuple[list[Rendered], bool]:
    found: list[Rendered] = []
    async for answer in _answers(process):
        if isinstance(answer, dict):
            return found, answer["last"]
        found += rendered_from_json(answer)
    raise ConnectionError  # pragma: no cover - answers end with an error or with what is returned


async def _answers(process: Process) -> AsyncIterator[Any]:
    size = 0
    while True:
        data = await _frame(process)
        size += len(data)
        if size > MAX_ANSWER:
            raise FrameError(f"they are more than {MAX_ANSWER >> 20} MiB")
        yield orjson.loads(data)


async def _send(process: Process, request: Iterator[bytes]) -> None:
    if process.stdin is None:
        raise ConnectionError
    for frame in request:
        process.stdin.write(frame)
        await process.stdin.drain()


async def _frame(process: Process) -> bytes:
    if process.stdout is None:
        raise ConnectionError
    (length,) = LENGTH.unpack(await process.stdout.readexactly(LENGTH.size))
    if length > MAX_FRAME:
        raise FrameError(f"a part of {length} bytes is over the limit of {MAX_FRAME}")
    return await process.stdout.readexactly(length)


def _kill(process: Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.kill()


async def _drained(process: Process) -> None:
    """Read what a process that has ended left in its pipe, so that the pipe is closed."""
    if process.stdin is not None:
        process.stdin.close()
    if process.stdout is not None:
        while await process.stdout.read(1 << 16):
            pass
