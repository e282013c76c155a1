"""The server's end of the child process that runs scripts: started when needed, replaced when it dies.

Source: ``decisions.md`` 12, ``users.md`` 7.3 number 7.
"""

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO, Any

from krm.functions.catalog.starlark.frames import READY, BrokenFrame, read_frame, write_frame

_GRACE = 5.0
"""Seconds over the time limit after which a worker that has not ended by itself is killed."""
_START = 30.0
"""Seconds that the start of a worker may take on a busy machine; 0.1 on an idle one."""
_MAX_FRAME = 128 << 20
"""Bytes of a request."""
_MAX_ANSWER = 2 * _MAX_FRAME + (16 << 20)


@dataclass(frozen=True, slots=True)
class Limits:
    """What one script may take."""

    seconds: float = 10.0
    memory: int = 512 << 20
    """Bytes of address space of the whole worker; an idle one takes about 40 MiB of it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a script."""

    items: str
    """As JSON; without meaning when there is an ``error``."""
    numbers: list[tuple[list[Any], str]]
    """Floats that JSON cannot hold: the path to each in ``items``, and its text."""
    error: str
    printed: str
    last: bool
    """The process has grown and ends itself."""


class WorkerDied(Exception):
    """The script took too much of something and its process ended with it; the text says of what."""


class WorkerNotStarted(Exception):
    """No child process could be started: this installation is at fault, not the script."""


class WorkerProcess:
    """Runs scripts in one child process, one at a time; safe to share between threads."""

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._turn = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def evaluate(self, about: dict[str, Any], document: str) -> Answer:
        """Run the script that ``about`` describes on the resource list ``document``, JSON both.

        Raises:
            WorkerDied: see there; the next call gets a new process.
            WorkerNotStarted: see there.
        """
        head, body = json.dumps(about).encode(), document.encode()
        if max(len(head), len(body)) > _MAX_FRAME:
            raise WorkerDied(f"the resources are larger than {_MAX_FRAME >> 20} MiB")
        with self._turn:
            process = self._running()
            began = time.monotonic()
            try:
                with _killed_after(process, self._limits.seconds + _GRACE):
                    answer = _exchange(process, head, body)
            except (BrokenFrame, OSError):
                self._end()
                late = process.returncode == -signal.SIGALRM or time.monotonic() - began >= self._limits.seconds
                raise WorkerDied(self._cause_of_death(late=late)) from None
            if answer.last:
                self._end()
            return answer

    def close(self) -> None:
        """End the child process; a later call starts another."""
        with self._turn:
            self._end()

    def disown(self) -> None:
        """Leave the process to the parent this one was forked from; a later call starts an own one."""
        self._turn = threading.Lock()
        if self._process is not None:
            self._process.returncode = 0  # nothing here waits for it, and nothing shall complain of that
            self._process = None

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is not None:
            if self._process.poll() is None:
                return self._process
            self._end()
        # Isolated (-I): neither the environment nor the working directory decides what code it runs.
        command = [sys.executable, "-I", "-m", "krm.functions.catalog.starlark.worker"]
        limits = [str(self._limits.memory), str(self._limits.seconds)]
        try:
            process = self._process = subprocess.Popen(
                command + limits,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={},
                start_new_session=True,
            )
            with _killed_after(process, _START):
                ready = read_frame(_pipes(process)[1], len(READY))
        except (BrokenFrame, OSError) as error:
            self._end()
            raise WorkerNotStarted(f"the interpreter for scripts does not start: {error}") from None
        if ready != READY:
            self._end()
            raise WorkerNotStarted(f"the interpreter for scripts does not start: it ended with {process.returncode}")
        return process

    def _end(self) -> None:
        """Kill the process, if there is one, and release what belongs to it."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):  # what it still held was for a reader that is gone
                    pipe.close()

    def _cause_of_death(self, *, late: bool) -> str:
        if late:
            return f"the script ran for more than {self._limits.seconds:g} seconds"
        memory = self._limits.memory >> 20
        return f"the script ended its interpreter: it needs more than {memory} MiB of memory, or nests too deeply"


@contextmanager
def _killed_after(process: subprocess.Popen[bytes], seconds: float) -> Iterator[None]:
    """Kill ``process`` when what is done meanwhile takes longer: reading from it then ends."""
    killer = threading.Timer(seconds, process.kill)
    killer.start()
    try:
        yield
    finally:
        killer.cancel()


def _pipes(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    if process.stdin is None or process.stdout is None:
        raise BrokenFrame("no pipes")
    return process.stdin, process.stdout


def _exchange(process: subprocess.Popen[bytes], head: bytes, body: bytes) -> Answer:
    requests, answers = _pipes(process)
    write_frame(requests, head)
    write_frame(requests, body)
    requests.flush()
    about, items = read_frame(answers, _MAX_ANSWER), read_frame(answers, _MAX_ANSWER)
    if about is None or items is None:
        raise BrokenFrame("ended before it answered")
    return Answer(items.decode(), **json.loads(about))
