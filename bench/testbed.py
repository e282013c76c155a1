"""What measurements run on: the test suite's server process and Git fixtures, and a Git server in a process of its own.

The programs of the acceptance (``tools`` beside the checkout, or the folder that PORCH_YARDSTICKS names) are used where
they are at hand, and the ones of this folder with the same arguments where they are not.
"""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests"))

import remotes  # noqa: E402  (the tests' folder is on the path only now)
from control_plane import ControlPlane, NotBuilt  # noqa: E402
from manifests import credentials, repository  # noqa: E402
from porch_client import CONFIG, PorchClient  # noqa: E402
from porch_process import PorchProcess, ServerDied, free_port  # noqa: E402
from session import Session  # noqa: E402

__all__ = [
    "CONFIG",
    "Address",
    "ControlPlane",
    "PorchClient",
    "PorchProcess",
    "RemoteServer",
    "ServerDied",
    "control_plane",
    "credentials",
    "free_port",
    "remotes",
    "repository",
    "yardstick",
]

HERE = Path(__file__).resolve().parent
YARDSTICKS = Path(os.environ.get("PORCH_YARDSTICKS", ROOT.parent / "shared" / "tools"))


def yardstick(name: str, own: str) -> list[str]:
    """Return the command of an acceptance program, or of ours where that is missing."""
    found = YARDSTICKS / name
    return [sys.executable, str(found if found.exists() else HERE / own)]


def uses_acceptance_programs() -> bool:
    """Tell whether the acceptance's own programs are at hand."""
    return (YARDSTICKS / "bench_lifecycle.py").exists()


class RemoteServer:
    """Git over HTTP in a process of its own, so that its Python does not wait for the measuring one's."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.port = free_port()
        command = [*yardstick("gitserver.py", "remote_server.py"), str(root), str(self.port), ":".join(remotes.PUSHER)]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL)

    def url(self, name: str, *, user: bool = False) -> str:
        """Return the address of a repository, with the pusher's credentials if wanted."""
        who = ":".join(remotes.PUSHER) + "@" if user else ""
        return f"http://{who}127.0.0.1:{self.port}/{name}.git"

    def path(self, name: str) -> Path:
        """Return a repository's folder."""
        return self.root / f"{name}.git"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.wait(timeout=10)


@contextlib.contextmanager
def control_plane(folder: Path) -> Iterator[ControlPlane | None]:
    """Start a real kube-apiserver to compare with; None where none is built (``make controlplane``)."""
    with contextlib.ExitStack() as stack:
        real = None
        with contextlib.suppress(NotBuilt):
            real = stack.enter_context(ControlPlane(folder))
        yield real


def register(client: PorchClient, name: str, url: str) -> None:
    """Create a Repository, and the Secret it pushes with; returns at once."""
    client.request("POST", f"/api/v1/namespaces/{client.namespace}/secrets", credentials())
    path = f"{CONFIG}/namespaces/{client.namespace}/repositories"
    answer = client.request("POST", path, repository(name, url))
    if answer.code != 201:
        raise RuntimeError(answer.body.decode())


def repository_path(client: PorchClient, name: str) -> str:
    """Return the path of a Repository."""
    return f"{CONFIG}/namespaces/{client.namespace}/repositories/{name}"


@dataclass(frozen=True, slots=True)
class Address:
    """Where load goes, and whose certificate it shows."""

    url: str
    certificate: Path
    key: Path

    @property
    def identity(self) -> tuple[str, ...]:
        """The arguments with which load programs identify themselves."""
        return "--cert", str(self.certificate), "--key", str(self.key)

    def session(self) -> Session:
        """Open a connection of one's own."""
        return Session(self.url, "default", str(self.certificate), str(self.key))


def address_of(server: PorchProcess) -> Address:
    """Return the address of a standalone server, for its administrator."""
    return Address(server.url, server.data / "admin.crt", server.data / "admin.key")


def resident_megabytes(pid: int) -> float:
    """Return the resident memory of one process, its children apart."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0
