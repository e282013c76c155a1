"""The controllers under test as a process of their own, which can be killed and started again."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parent.parent
STOP_SECONDS = 60.0
"""A stop takes a second or two; the rest is for a busy machine."""


class ControllersProcess:
    """One process of controllers for one namespace; it works without a lease, so that the next may begin at once."""

    def __init__(
        self, kubeconfig: Path, namespace: str, log: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self.log = log
        self._environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PORCH_CONTROLLERS_KUBECONFIG": str(kubeconfig),
            "PORCH_CONTROLLERS_NAMESPACE": namespace,
            "PORCH_CONTROLLERS_LEADER_ELECTION": "false",
            **(environment or {}),
        }
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, command: Sequence[str] = ("-m", "controllers")) -> None:
        """Start it; returns at once."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._environment,
                cwd=ROOT,
            )

    @property
    def pid(self) -> int:
        """The process id."""
        assert self._process is not None
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether it is alive."""
        return self._process is not None and self._process.poll() is None

    def wait(self, seconds: float) -> int:
        """Wait until it has ended by itself; return its exit code."""
        assert self._process is not None
        try:
            return self._process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {seconds} s:\n{self.tail()}") from None

    def kill(self) -> None:
        """End it with SIGKILL."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait(timeout=STOP_SECONDS)

    def stop(self) -> int:
        """Ask it to stop as Kubernetes does; return its exit code."""
        assert self._process is not None
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        return self.wait(STOP_SECONDS)

    def tail(self, size: int = 4000) -> str:
        """Return the last bytes that it printed."""
        return self.log.read_bytes()[-size:].decode(errors="replace") if self.log.exists() else ""


@contextmanager
def controllers_process(
    kubeconfig: Path, namespace: str, log: Path, environment: Mapping[str, str] | None = None
) -> Iterator[ControllersProcess]:
    """Run the controllers until the block ends."""
    process = ControllersProcess(kubeconfig, namespace, log, environment)
    process.start()
    try:
        yield process
    finally:
        process.kill()
