"""A Git host that can be killed: ``git http-backend`` over HTTP in a process group of its own, with traps.

A trap kills somebody, the server under test or this host, at a chosen moment of the next push: before git is asked,
some milliseconds into its work, or when the refs have moved and nobody has been told.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Literal

sys.path.append(str(Path(__file__).resolve().parents[1]))

import git_server
from porch_process import free_port
from remotes import PUSHER, Remote, empty_remote, git

Moment = Literal["before", "during", "after"]
START_SECONDS = 60.0
TRAP = "trap.json"


@dataclass(frozen=True)
class Trap:
    """Whom to kill at the next push, and when; ``victim`` 0 is the host itself, ``delay`` is in seconds."""

    victim: int
    moment: Moment
    delay: float = 0.0


class GitHost:
    """The host as its keeper sees it: repositories below ``root``, one port through all restarts."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def create(self, name: str) -> Remote:
        """Make a repository with one commit on main."""
        return Remote(empty_remote(self.root / f"{name}.git"), f"http://127.0.0.1:{self.port}/{name}.git")

    @property
    def running(self) -> bool:
        """Whether the process is alive."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start, having cleaned up as whoever keeps a Git host does after a crash; does nothing while it runs."""
        if self.running:
            return
        for path in self.root.glob("*.git"):
            _remove_leftovers(path)
        command = [sys.executable, __file__, str(self.root), str(self.port)]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,  # its end is the host's end, should the keeper be killed
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        deadline = time.monotonic() + START_SECONDS
        while not _listens(self.port):
            assert time.monotonic() < deadline, "the Git host did not start"
            time.sleep(0.02)

    def kill(self) -> None:
        """Kill the host and the git processes that serve its requests, at once."""
        if self._process is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(timeout=START_SECONDS)
        if self._process.stdin is not None:
            self._process.stdin.close()

    def arm(self, trap: Trap) -> None:
        """Have the next push meet a trap."""
        draft = self.root / f"{TRAP}.new"
        draft.write_text(json.dumps(asdict(trap)))
        draft.replace(self.root / TRAP)

    def disarm(self) -> None:
        """Take back a trap that nobody met."""
        (self.root / TRAP).unlink(missing_ok=True)

    def fsck(self) -> None:
        """Check every repository."""
        for path in self.root.glob("*.git"):
            git("fsck", "--full", "--strict", "--no-dangling", cwd=path)


def _remove_leftovers(path: Path) -> None:
    """Remove the locks that git removes itself unless it is killed with SIGKILL; they would refuse pushes for ever."""
    for lock in path.rglob("*.lock"):
        lock.unlink()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


# --- the program ------------------------------------------------------------------------------------


class _Handler(git_server._GitHandler):
    def _backend(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        trap = self._trap() if self.command == "POST" and "git-receive-pack" in self.path else None
        if trap is None:
            return super()._backend(body)
        if trap.moment == "before":
            _spring(trap)
        elif trap.moment == "during":
            threading.Timer(trap.delay, _spring, [trap]).start()
        answer = super()._backend(body)
        if trap.moment == "after":
            _spring(trap)
        return answer

    def _trap(self) -> Trap | None:
        taken = self.git.root / f"{TRAP}.{threading.get_ident()}"
        try:
            (self.git.root / TRAP).rename(taken)
        except FileNotFoundError:
            return None
        trap = Trap(**json.loads(taken.read_text()))
        taken.unlink()
        return trap


def _spring(trap: Trap) -> None:
    if trap.victim:
        with suppress(ProcessLookupError):
            os.kill(trap.victim, signal.SIGKILL)
    else:
        os.killpg(0, signal.SIGKILL)


def _end_with_keeper() -> None:
    sys.stdin.buffer.read()
    os.killpg(0, signal.SIGKILL)


def main() -> None:
    """Serve ``ROOT`` on ``PORT`` until killed, or until whoever started it is gone."""
    threading.Thread(target=_end_with_keeper, daemon=True).start()
    root, port = Path(sys.argv[1]), int(sys.argv[2])
    _Handler.git = git_server.GitServer(root, port, ":".join(PUSHER))
    ThreadingHTTPServer.request_queue_size = 256
    ThreadingHTTPServer(("127.0.0.1", port), _Handler).serve_forever()


if __name__ == "__main__":
    main()
