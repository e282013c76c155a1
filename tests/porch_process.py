"""The server under test as a process of its own: ``python -m apiserver serve`` on a temporary data folder.

It can be stopped, killed with SIGKILL and started again on the same folder; everything it needs to be spoken to is
read from the files it writes there.
"""

import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

from porch_client import PorchClient

START_SECONDS = 180.0
"""A start takes about one second; the rest is for a busy machine."""
STOP_SECONDS = 60.0
"""A stop takes about one second; the rest is for a busy machine, too."""
PORTS = range(10_000, 30_000)
"""Ports that the kernel gives nobody who asks for any port, nor a connection (Linux: ``ip_local_port_range``)."""
_dice = random.SystemRandom()  # tests seed the other one, and two runs side by side must differ


class ServerDied(AssertionError):
    """The process ended, or never became ready; carries the end of its log."""


def free_port() -> int:
    """Return a TCP port that nobody uses right now.

    One of the kernel's choice could be given to any connection before the server listens there, or while it is started
    anew; those outside of its range are taken only by who names them.
    """
    while True:
        port = _dice.choice(PORTS)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


class PorchProcess:
    """One standalone server. ``data`` survives restarts; so does the port, which the kubeconfig names."""

    def __init__(
        self, data: Path, *, arguments: Sequence[str] = (), environment: Mapping[str, str] | None = None
    ) -> None:
        self.data = data
        self.port = free_port()
        self.log = data.parent / f"{data.name}.log"
        self.wrapper: list[str] = []
        """A command to run the server under, such as unshare."""
        self._arguments = list(arguments)
        self._environment = dict(environment or {})
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The server's address."""
        return f"https://127.0.0.1:{self.port}"

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig that the server wrote."""
        return self.data / "kubeconfig"

    @property
    def own_kubeconfig(self) -> Path:
        """A kubeconfig for the server itself, whatever may stand before it."""
        return self.kubeconfig

    def kubeconfig_of(self, user: str, groups: Sequence[str] = ()) -> Path:
        """Write a kubeconfig for a user with a certificate of their own; the server must have been started."""
        from apiserver.auth.issuing import user_kubeconfig  # not for those who only start a server

        path = self.data.parent / f"{user}.kubeconfig"
        path.write_bytes(user_kubeconfig(self.data, user, groups))
        return path

    def own_client(self) -> PorchClient:
        """Return a client of the server itself, whatever may stand before it, with the administrator's certificate."""
        return self.client()

    def metrics(self) -> str:
        """Return what the server counts, as Prometheus reads it."""
        with closing(self.own_client()) as client:
            return client.request("GET", "/metrics").body.decode()

    @property
    def pid(self) -> int:
        """The process id."""
        assert self._process is not None
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the process is alive."""
        return self._process is not None and self._process.poll() is None

    def ended_within(self, seconds: float) -> bool:
        """Wait so long for somebody else to end the server; tell whether it has ended."""
        assert self._process is not None
        try:
            self._process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def start(self) -> None:
        """Start the server and return when it says that it is ready."""
        self.data.mkdir(parents=True, exist_ok=True)
        command = [*self.wrapper, sys.executable, "-m", "apiserver", "serve"]
        command += ["--data", str(self.data), "--port", str(self.port), *self._arguments]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env={**os.environ, **self._environment}
            )
        self._wait_until_ready()

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            assert self._process is not None
            if self._process.poll() is not None:
                raise ServerDied(f"the server exited with {self._process.returncode}:\n{self.log_tail()}")
            if self._is_ready():
                return
            time.sleep(0.05)
        self.kill()
        raise ServerDied(f"the server was not ready after {START_SECONDS} s:\n{self.log_tail()}")

    def _is_ready(self) -> bool:
        if not (self.data / "admin.key").exists():
            return False
        try:
            client = self.client(timeout=10)
        except OSError:  # the certificates are being written
            return False
        try:
            return client.request("GET", "/readyz").code == 200
        except OSError:
            return False
        finally:
            client.close()

    def client(self, namespace: str = "default", *, timeout: float = 60.0, anonymous: bool = False) -> PorchClient:
        """Return an HTTPS client with the administrator's certificate, or with none."""
        certificate = None if anonymous else (self.data / "admin.crt", self.data / "admin.key")
        return PorchClient(
            self.url, ca=self.data / "ca.crt", certificate=certificate, namespace=namespace, timeout=timeout
        )

    def stop(self) -> float:
        """Ask the server to stop as Ctrl-C does; return the seconds it took. Does nothing when it is not running."""
        if self._process is None or self._process.poll() is not None:
            return 0.0
        started = time.monotonic()
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(timeout=STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise ServerDied(f"the server did not stop within {STOP_SECONDS} s:\n{self.log_tail()}") from None
        return time.monotonic() - started

    def kill(self) -> None:
        """End the server at once with SIGKILL, and whatever it started."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(timeout=STOP_SECONDS)

    def restart(self) -> None:
        """Start again on the same data; kills what still runs."""
        if self._process is not None and self._process.poll() is None:
            self.kill()
        self.start()

    def log_tail(self, size: int = 4000) -> str:
        """Return the last ``size`` bytes that the server printed."""
        return self.log.read_bytes()[-size:].decode(errors="replace") if self.log.exists() else ""
