"""Where the computing of creating tasks is done: a small one in a thread, a large one in a process of its own.

A merge of thousands of resources takes seconds, and a hostile one hours: a process can be ended, and does not hold this
one's lock meanwhile. Source: ``users.md`` 7.3.
"""

import asyncio
import pickle
import sys
from contextlib import suppress
from typing import Final

import structlog

from apiserver.engine.package_work import Made, PackageWork
from apiserver.engine.work_child import TOO_LARGE
from krm.meta.errors import InternalError, TooManyRequests

log = structlog.get_logger(__name__)

SECONDS: Final = 30.0
"""How long one piece of work may take."""
AT_ONCE: Final = 2
"""Processes that work at the same time."""
MOST_WAITING: Final = 64
"""Pieces of work that wait for one; further ones are refused, and clients try again."""
_SMALL: Final = 48 << 10
"""Bytes of packages up to which the work takes milliseconds, less than a process takes to start."""
_RETRY_SECONDS: Final = 2


class WorkProcesses:
    """Does package work off the event loop. ``seconds`` bounds each, and the wait for its turn."""

    def __init__(self, *, seconds: float = SECONDS, at_once: int = AT_ONCE) -> None:
        self._seconds = seconds
        self._free = asyncio.Semaphore(at_once)
        self._waiting = 0

    async def do(self, work: PackageWork) -> Made:
        """Do the work; that it cannot be done, or took too long, is told in the outcome.

        Cancelling ends it.

        Raises:
            TooManyRequests: too much is waiting.
            InternalError: the work has a defect.
        """
        if work.size <= _SMALL:
            return await asyncio.to_thread(work.run)
        if self._waiting >= MOST_WAITING:
            raise _busy()
        self._waiting += 1
        try:
            async with asyncio.timeout(self._seconds):
                await self._free.acquire()
        except TimeoutError:
            raise _busy() from None
        finally:
            self._waiting -= 1
        try:
            return await self._in_process(work)
        finally:
            self._free.release()

    async def _in_process(self, work: PackageWork) -> Made:
        data = await asyncio.to_thread(pickle.dumps, (self._seconds, work), pickle.HIGHEST_PROTOCOL)
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-m", "apiserver.engine.work_child", stdin=pipe, stdout=pipe
        )
        try:
            async with asyncio.timeout(self._seconds):
                answer, _ = await process.communicate(data)
        except TimeoutError:
            return Made({}, problem=f"it took longer than {self._seconds:.0f} s; make the packages smaller")
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        if process.returncode:
            log.warning("package work failed", code=process.returncode, size=work.size)
            if process.returncode > 0 and process.returncode != TOO_LARGE:
                raise InternalError.because("a package could not be worked on; the server's log says why")
            return Made({}, problem="it took more memory or time than there is; make the packages smaller")
        made: Made = await asyncio.to_thread(pickle.loads, answer)  # our own process's bytes
        return made


def _busy() -> TooManyRequests:
    return TooManyRequests(
        "too many packages are being cloned and upgraded; try again later", retry_after=_RETRY_SECONDS
    )
