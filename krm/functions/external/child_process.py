"""One child process with bytes in, bytes out, and limits on time and output that it cannot get around.

It leads a process group of its own, which is killed as a whole when a limit is reached, when the caller is
interrupted or killed, and for what is left of it when it ends. Source: ``kpt.md`` 2.13 and 2.15.
"""

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from krm.package.yaml_reader import MAX_BYTES

_CHUNK = 1 << 16
_POLL_SECONDS = 0.05
"""How soon the end of a child is noticed whose pipes somebody else keeps open."""
_END_SECONDS = 0.002
"""The same for one that has closed its pipes: it is about to end."""
_LINGER_SECONDS = 0.5
"""How long what a child left in its pipes may take to arrive after its end."""
_REAP_SECONDS = 5.0
"""How long a killed child may take to be gone."""
_SHELL = "/bin/sh"
_GUARD = 'read -r _; kill -s KILL -- "-$1"; shift; [ $# -eq 0 ] || exec "$@"'
"""Reads from a pipe that only the caller can write to, which ends when the caller does, however that is."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one call may take."""

    seconds: float = 300.0
    stdout_bytes: int = MAX_BYTES
    stderr_bytes: int = 1 << 20


DEFAULT_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Finished:
    """How a child ended."""

    exit_code: int
    """As the shell counts: 128 + N after signal N."""
    stdout: bytes
    stderr: bytes
    problem: str = ""
    """The limit that was reached; empty when the child ended by itself."""


class CannotStart(Exception):
    """A program cannot be started: it does not exist, or may not be executed."""


def run_child(
    arguments: Sequence[str],
    stdin: bytes,
    *,
    environment: Mapping[str, str],
    directory: Path | None = None,
    limits: Limits = DEFAULT_LIMITS,
    when_abandoned: Sequence[str] = (),
) -> Finished:
    """Run a program to its end, or to its limits; blocking.

    ``directory`` is the working directory, that of this process when None. ``when_abandoned`` is a command that
    is run, after the child was killed, when this process has died before the child's end.

    Raises:
        CannotStart: the program is not there or is no program; nothing ran.
    """
    try:
        child = subprocess.Popen(
            list(arguments),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(environment),
            cwd=directory,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise CannotStart(f"cannot start {arguments[0]!r}: {reason}") from None
    guard = None
    try:
        guard = _guard(child.pid, when_abandoned, environment)
        exchange = _Exchange(child, stdin, limits)
        problem = exchange.run()
    finally:
        # First the guard: once the child is collected, its group's number may become somebody else's.
        _dismiss(guard)
        _kill_group(child)
        with suppress(subprocess.TimeoutExpired):  # one that runs as another user cannot be killed
            child.wait(_REAP_SECONDS)
        for stream in (child.stdin, child.stdout, child.stderr):
            if stream is not None:
                with suppress(OSError):  # closing flushes nothing here, but a broken pipe still complains
                    stream.close()
    code = child.returncode
    if code is None or code < 0:
        code = 128 - (code or -signal.SIGKILL)
    return Finished(code, bytes(exchange.stdout), bytes(exchange.stderr), problem)


@dataclass(slots=True)
class _Exchange:
    """Feeds one child and collects what it says, in the calling thread."""

    child: subprocess.Popen[bytes]
    stdin: bytes
    limits: Limits
    stdout: bytearray = field(default_factory=bytearray)
    stderr: bytearray = field(default_factory=bytearray)
    _written: int = 0
    _ended: float | None = None

    def run(self) -> str:
        """Return which limit was reached, empty when none was."""
        deadline = time.monotonic() + self.limits.seconds
        with selectors.DefaultSelector() as selector:
            for stream, events in (
                (self.child.stdin, selectors.EVENT_WRITE),
                (self.child.stdout, selectors.EVENT_READ),
                (self.child.stderr, selectors.EVENT_READ),
            ):
                if stream is not None:
                    os.set_blocking(stream.fileno(), False)
                    selector.register(stream, events)
            while not self._is_over(selector):
                left = deadline - time.monotonic()
                if left <= 0:
                    return f"ran longer than {self.limits.seconds:g} seconds and was stopped"
                pause = _POLL_SECONDS if selector.get_map() else _END_SECONDS
                for key, _ in selector.select(min(left, pause)):
                    if problem := self._move(selector, key.fileobj):
                        return problem
        return ""

    def _is_over(self, selector: selectors.BaseSelector) -> bool:
        if not _has_ended(self.child):
            return False
        # Somebody the child started may hold its pipes; what the child itself wrote is in them already.
        now = time.monotonic()
        self._ended = self._ended or now
        reading = [key for key in selector.get_map().values() if key.events == selectors.EVENT_READ]
        return not reading or now - self._ended > _LINGER_SECONDS

    def _move(self, selector: selectors.BaseSelector, stream: object) -> str:
        if stream is self.child.stdin and self.child.stdin is not None:
            self._feed(selector, self.child.stdin)
            return ""
        if stream is self.child.stdout and self.child.stdout is not None:
            return _collect(selector, self.child.stdout, self.stdout, self.limits.stdout_bytes, "output")
        assert self.child.stderr is not None  # noqa: S101 - opened with a pipe
        return _collect(selector, self.child.stderr, self.stderr, self.limits.stderr_bytes, "error output")

    def _feed(self, selector: selectors.BaseSelector, pipe: IO[bytes]) -> None:
        try:
            self._written += os.write(pipe.fileno(), self.stdin[self._written : self._written + _CHUNK])
        except BlockingIOError:
            return
        except OSError:  # it does not want to read on, which is its right
            self._written = len(self.stdin)
        if self._written >= len(self.stdin):
            selector.unregister(pipe)
            pipe.close()


def _collect(selector: selectors.BaseSelector, pipe: IO[bytes], to: bytearray, most: int, title: str) -> str:
    """Read what is there; say so when it is more than allowed."""
    try:
        data = os.read(pipe.fileno(), _CHUNK)
    except BlockingIOError:
        return ""
    if not data:
        selector.unregister(pipe)
    to += data[: most - len(to)]
    return f"wrote more than {most} bytes of {title} and was stopped" if len(data) and len(to) >= most else ""


def _has_ended(child: subprocess.Popen[bytes]) -> bool:
    """Look without collecting the child: as long as it is not collected, its group's number stays its own."""
    if child.returncode is not None:
        return True
    return os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _guard(group: int, when_abandoned: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[bytes] | None:
    """Start what kills the child's group when this process dies; None on a machine without a shell."""
    try:
        return subprocess.Popen(
            [_SHELL, "-c", _GUARD, _SHELL, str(group), *when_abandoned],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=dict(environment),
            start_new_session=True,
        )
    except OSError:
        return None


def _dismiss(guard: subprocess.Popen[bytes] | None) -> None:
    if guard is not None:
        guard.kill()
        guard.wait()
        if guard.stdin is not None:
            guard.stdin.close()


def _kill_group(child: subprocess.Popen[bytes]) -> None:
    if child.returncode is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
