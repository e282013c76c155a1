"""What the demo plays in: the packages it brings, kubectl, and a server, found or started."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from apiserver.demo.remotes import BLUEPRINTS_BUNDLE, CATALOG_ARCHIVE
from apiserver.settings import default_data

START_SECONDS = 120.0


class CannotPlay(Exception):
    """Something the demo needs is missing; the message says what to do about it."""


def find_kubectl() -> str:
    """Return kubectl's path.

    Raises:
        CannotPlay: there is none.
    """
    found = shutil.which(os.environ.get("KUBECTL", "kubectl"))
    if found is None:
        raise CannotPlay("the demo needs kubectl: install the package kubectl (or kubernetes-client), or set KUBECTL")
    return found


def find_packages() -> Path:
    """Return the folder with the example packages, which a source checkout has.

    Raises:
        CannotPlay: this is no checkout.
    """
    folder = Path(__file__).resolve().parents[2] / "tests" / "data"
    missing = [name for name in (BLUEPRINTS_BUNDLE, CATALOG_ARCHIVE) if not (folder / name).exists()]
    if missing:
        raise CannotPlay(
            f"the demo's packages ({', '.join(missing)}) come with the source: run it in a checkout, make demo"
        )
    return folder


class Server:
    """The server the story is played on; one that the demo started can also be killed and started again."""

    def __init__(self, kubectl: str, kubeconfig: Path, *, data: Path | None = None, port: int = 0) -> None:
        self.kubeconfig = kubeconfig
        self._kubectl = kubectl
        self._data = data
        self._port = port or _free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def is_ours(self) -> bool:
        """Whether the demo started the server, and so may kill it."""
        return self._data is not None

    def start(self) -> None:
        """Start the demo's own server and wait until it is ready.

        Raises:
            CannotPlay: it does not become ready.
        """
        if self._data is None:
            return
        self._data.mkdir(parents=True, exist_ok=True)
        log = self._data / "server.log"
        command = [sys.executable, "-m", "apiserver", "serve", "--data", str(self._data), "--port", str(self._port)]
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [*command, "--sync-interval", "5"], stdout=output, stderr=output, stdin=subprocess.DEVNULL
            )
        deadline = time.monotonic() + START_SECONDS
        while not is_ready(self._kubectl, self.kubeconfig):
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise CannotPlay(f"the server did not start; its log ends:\n{log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.1)

    def kill(self) -> None:
        """End the demo's own server with SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(timeout=10)

    def stop(self) -> None:
        """Stop the demo's own server as Ctrl-C does."""
        if self._process is None or self._process.poll() is not None:
            return
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.kill()


def choose_server(kubectl: str, folder: Path, data: Path | None, port: int | None) -> Server:
    """Return the running server of ``data``, KUBECONFIG or the default data folder; else a fresh one below ``folder``.

    A KUBECONFIG counts only if its server is on this machine and serves Porch: the demo's Git remotes are here, and
    nobody wants its objects in a cluster that happens to be configured.
    """
    named = os.environ.get("KUBECONFIG", "")
    candidates = [data / "kubeconfig"] if data else [*map(Path, filter(None, [named])), default_data() / "kubeconfig"]
    for kubeconfig in candidates:
        if kubeconfig.is_file() and _is_local(kubectl, kubeconfig) and is_ready(kubectl, kubeconfig):
            return Server(kubectl, kubeconfig.absolute())
    fresh = folder / "server"
    return Server(kubectl, fresh / "kubeconfig", data=fresh, port=port or 0)


def is_ready(kubectl: str, kubeconfig: Path) -> bool:
    """Tell whether the server of a kubeconfig is ready and serves porch.kpt.dev."""
    paths = ("/readyz", "/apis/porch.kpt.dev/v1alpha1")
    return kubeconfig.is_file() and all(
        _kubectl(kubectl, kubeconfig, "get", "--raw", path).returncode == 0 for path in paths
    )


def _is_local(kubectl: str, kubeconfig: Path) -> bool:
    path = "jsonpath={.clusters[0].cluster.server}"
    address = _kubectl(kubectl, kubeconfig, "config", "view", "--minify", "-o", path).stdout
    return address.startswith(("https://127.0.0.1:", "https://localhost:", "https://[::1]:"))


def _kubectl(kubectl: str, kubeconfig: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [kubectl, f"--kubeconfig={kubeconfig}", "--request-timeout=15s", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
