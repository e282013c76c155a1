"""A full disk below the clones, and a database that somebody else holds: refused, explained, nothing lost."""

import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from drafts import Revision, accepted, draft, proposal, refused
from git_server import GitServer
from kubectl import Kubectl
from manifests import credentials, repository
from porch_process import PorchProcess
from remotes import Remote, files_at, refs

CLONES = "clones"
"""The folder below DATA with the bare clones."""
MOUNT = 'mount -t tmpfs -o size=16m tmpfs "$0" && exec "$@"'
NAMESPACES = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", MOUNT]
FULL_DISK = """\
\"\"\"Injected into the server under test: no space is left below one folder while a flag file exists.\"\"\"
import builtins, errno, os
FOLDER, FLAG = {folder!r}, {flag!r}
_open, _os_open, _mkdir = builtins.open, os.open, os.mkdir
def _full(path, writes):
    if writes and isinstance(path, (str, bytes, os.PathLike)) and os.path.exists(FLAG):
        if os.path.abspath(os.fsdecode(path)).startswith(FOLDER):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
def _checked_open(path, mode="r", *a, **k):
    _full(path, set(mode) & set("wax+"))
    return _open(path, mode, *a, **k)
def _checked_os_open(path, flags, *a, **k):
    _full(path, flags & (os.O_WRONLY | os.O_RDWR))
    return _os_open(path, flags, *a, **k)
def _checked_mkdir(path, *a, **k):
    _full(path, True)
    return _mkdir(path, *a, **k)
import io
builtins.open = io.open = _checked_open
os.open, os.mkdir = _checked_os_open, _checked_mkdir
"""


class TightDisk:
    """The disk below the clones of one server, which can be filled and emptied."""

    def __init__(self, server: PorchProcess, filler: Path | None, flag: Path) -> None:
        self.server = server
        self._filler = filler
        self._flag = flag

    def fill(self) -> None:
        """Leave no space."""
        if self._filler is None:
            self._flag.touch()
            return
        with self._seen_by_server(self._filler).open("wb", buffering=0) as file:
            for size in (1024 * 1024, 4096, 1):
                _write_until_full(file, size)

    def empty(self) -> None:
        """Give the space back."""
        if self._filler is None:
            self._flag.unlink()
        else:
            self._seen_by_server(self._filler).unlink()

    def _seen_by_server(self, path: Path) -> Path:
        return Path(f"/proc/{self.server.pid}/root") / path.relative_to("/")


def _write_until_full(file: object, size: int) -> None:
    try:
        while file.write(b"x" * size):  # type: ignore[attr-defined]
            pass
    except OSError:
        return


def can_mount(folder: Path) -> bool:
    """Tell whether a tmpfs can be mounted in namespaces of one's own here."""
    return subprocess.run([*NAMESPACES, str(folder), "true"], capture_output=True, check=False).returncode == 0


@pytest.fixture(params=["tmpfs", "injected"])
def tight(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[TightDisk]:
    """A server whose clones lie on a small disk: a real one where that is allowed, and an imitation everywhere."""
    data, flag = tmp_path / "data", tmp_path / "full"
    clones = data / CLONES
    clones.mkdir(parents=True)
    if request.param == "tmpfs":
        if not can_mount(clones):
            pytest.skip("mounting in a user namespace is not allowed here; the imitation is tested instead")
        server = PorchProcess(data)
        server.wrapper = [*NAMESPACES, str(clones)]
        disk = TightDisk(server, clones / "filler", flag)
    else:
        site = tmp_path / "site"
        site.mkdir()
        (site / "sitecustomize.py").write_text(FULL_DISK.format(folder=str(clones), flag=str(flag)))
        server = PorchProcess(data, environment={"PYTHONPATH": f"{site}:{Path(__file__).parents[2]}"})
        disk = TightDisk(server, None, flag)
    server.start()
    yield disk
    server.stop()


def registered(server: PorchProcess, remote: Remote) -> None:
    kubectl = Kubectl(server.kubeconfig)
    kubectl.apply(credentials(), repository("deployments", remote.url))
    kubectl.ok("wait", "--for=condition=Ready", "repository/deployments", "--timeout=60s")


def test_a_full_disk_below_the_clones_loses_nothing_and_leaves_nothing_half_done(
    tight: TightDisk, git_http: GitServer, empty_remote: Remote
) -> None:
    registered(tight.server, empty_remote)
    porch = tight.server.client()
    saved = draft(porch, "deployments", empty_remote, "saved")
    waiting = proposal(porch, "deployments", empty_remote, "waiting")
    before = saved.snapshot(), waiting.snapshot()
    tight.fill()

    save = porch.save(saved.name, {"more.txt": "x\n"})
    approval = porch.approve(waiting.name)

    if save.code == 200:  # a draft is kept in the database, which has space
        assert saved.files["more.txt"] == "x\n"
    else:
        refused(save, 503, "ServiceUnavailable", "disk", "full")
        assert saved.look().files == before[0].files
    if approval.code == 200:
        check_published(waiting)
    else:
        refused(approval, 503, "ServiceUnavailable", "disk", "full")
        assert waiting.look() == before[1]
    assert porch.request("GET", "/readyz").code == 200
    tight.empty()
    if approval.code != 200:
        accepted(porch.approve(waiting.name))
    check_published(waiting)
    accepted(porch.save(saved.name, {"again.txt": "y\n"}))
    tight.server.restart()
    Kubectl(tight.server.kubeconfig).ok("wait", "--for=condition=Ready", "repository/deployments", "--timeout=60s")
    again = tight.server.client()
    check_published(Revision(again, empty_remote, waiting.name, waiting.package))
    assert again.resources(saved.name).object["spec"]["resources"]["again.txt"] == "y\n"
    porch.close()
    again.close()


def check_published(app: Revision) -> None:
    assert app.lifecycle == "Published"
    assert files_at(app.remote.path, f"refs/tags/{app.package}/v1", app.package) == app.files
    assert app.proposed_ref not in refs(app.remote.path)


def test_a_repository_registered_on_a_full_disk_says_so_and_recovers(
    tight: TightDisk, git_http: GitServer, test_blueprints_remote: Remote
) -> None:
    tight.fill()
    kubectl = Kubectl(tight.server.kubeconfig)
    kubectl.apply(repository("blueprints", test_blueprints_remote.url, login=""))
    kubectl.ok("wait", "--for=jsonpath={.status.conditions[0].reason}=Error", "repository/blueprints", "--timeout=60s")
    message = kubectl.json("get", "repository", "blueprints")["status"]["conditions"][0]["message"]
    assert "full" in message

    tight.empty()

    kubectl.ok("wait", "--for=condition=Ready", "repository/blueprints", "--timeout=60s")
    assert len(kubectl.ok("get", "packagerevisions", "-o", "name").split()) == 16


def test_a_locked_database_is_reported_and_nothing_is_lost(
    tmp_path: Path, git_http: GitServer, empty_remote: Remote
) -> None:
    server = PorchProcess(tmp_path / "data")
    server.start()
    try:
        registered(server, empty_remote)
        porch = server.client()
        app = draft(porch, "deployments", empty_remote)
        before = app.snapshot()
        holder = sqlite3.connect(server.data / "porch.db", isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        started = time.monotonic()

        save = porch.save(app.name, {"blocked.txt": "x\n"})
        waited = time.monotonic() - started
        reading = porch.revision(app.name)
        seen = app.look()

        holder.execute("ROLLBACK")
        holder.close()
        refused(save, 503, "ServiceUnavailable", "database", "again")
        assert waited < 30
        assert reading.code == 200, "reading needs no lock"
        assert seen == before
        accepted(porch.save(app.name, {"free.txt": "x\n"}))
        assert "blocked.txt" not in app.files
        porch.close()
    finally:
        server.stop()


def test_a_start_on_a_damaged_database_says_which_file(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "porch.db").write_bytes(b"this is no database" * 100)
    command = [sys.executable, "-m", "apiserver", "serve", "--data", str(data), "--port", "0"]

    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    assert done.returncode != 0
    assert "porch.db" in done.stderr
    assert "Traceback" not in done.stderr
