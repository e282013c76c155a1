"""The controllers as a child process of the standalone server: started with it, started again when it dies, ended with it.

The child is an ordinary client, with a kubeconfig and a user of its own. It holds the reading end of a pipe whose other
end only the server has: however the server ends, the pipe closes, and the child stops. Nothing here knows what controllers do.
"""

import asyncio
import contextlib
import sys
from pathlib import Path
from typing import Final

import structlog

from apiserver.auth.certificates import LEAF_LIFE, RENEW_AFTER, write_private
from apiserver.auth.issuing import NotIssued, user_kubeconfig
from apiserver.resources.rbac.defaults import CONTROLLERS
from apiserver.settings import Settings

FIRST_PAUSE: Final = 1.0
"""Seconds after which a child that died is started again; each time twice as long, for one that dies at once."""
LONGEST_PAUSE: Final = 30.0
STEADY: Final = 60.0
"""Seconds that a child must have run for its death to count as the first."""
HEAD_START: Final = 1.2
"""Seconds of the server's stop that the child has while the server still answers, so that it can release its Lease."""
KILL_AFTER: Final = 4.0
"""Seconds after which a child that does not stop is killed: less than the server's own stop may take."""
_RENEWED: Final = LEAF_LIFE.total_seconds() * RENEW_AFTER
"""Seconds after which a child is replaced, because its certificate will end."""

log = structlog.get_logger()


class ControllersProcess:
    """Runs the child from :meth:`server_answers` to :meth:`stop`."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def server_answers(self) -> None:
        """Start the child; it finds the server in the kubeconfig that the server wrote."""
        self._task = asyncio.create_task(self._keep_running(), name="controllers")

    async def ask_to_stop(self) -> None:
        """Tell the child to stop and wait a moment for it, so that its last requests are still answered."""
        self._stopping.set()
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=HEAD_START)

    async def stop(self) -> None:
        """Have the child stopped, or killed when it takes too long; repeating it changes nothing."""
        self._stopping.set()
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    async def _keep_running(self) -> None:
        pause = FIRST_PAUSE
        loop = asyncio.get_running_loop()
        while not self._stopping.is_set():
            began = loop.time()
            ended = await self._run_once()
            if self._stopping.is_set():
                return
            if loop.time() - began > STEADY:
                pause = FIRST_PAUSE
            log.warning("the controllers ended and are started again", reason=ended, seconds=pause)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _run_once(self) -> str:
        """Run one child until it ends, is due for a new certificate, or has to stop; return what ended it."""
        try:
            kubeconfig = self._kubeconfig()
            child = await self._start(kubeconfig)
        except (NotIssued, OSError) as error:
            return str(error)
        waiting = [asyncio.create_task(child.wait()), asyncio.create_task(self._stopping.wait())]
        try:
            await asyncio.wait(waiting, timeout=_RENEWED, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waiting:
                one.cancel()
            await _end(child)
        return f"exit code {child.returncode}"

    def _kubeconfig(self) -> Path:
        """Write a kubeconfig with a new certificate, readable by the server's user alone."""
        path = self._settings.data / "controllers.kubeconfig"
        write_private(path, user_kubeconfig(self._settings.data, CONTROLLERS, ()))
        return path

    async def _start(self, kubeconfig: Path) -> asyncio.subprocess.Process:
        settings = self._settings
        options = [
            "--kubeconfig",
            str(kubeconfig),
            "--log-level",
            settings.log_level,
            "--log-format",
            settings.log_format,
        ]
        # A session of its own: Ctrl-C is the server's, which then stops the child before itself.
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-m", "controllers", "--stop-with-stdin", *options),
            stdin=asyncio.subprocess.PIPE,
            start_new_session=True,
        )


async def _end(child: asyncio.subprocess.Process) -> None:
    """Close the pipe, and kill a child that does not heed it; one that has ended is left alone."""
    if child.returncode is not None:
        return
    if child.stdin is not None:
        child.stdin.close()
    try:
        async with asyncio.timeout(KILL_AFTER):
            await child.wait()
    except TimeoutError:
        log.warning("the controllers did not stop and are killed", seconds=KILL_AFTER)
        with contextlib.suppress(ProcessLookupError):
            child.kill()
        await child.wait()
