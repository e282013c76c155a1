"""``porch backup`` and ``porch restore``: nothing acknowledged before a backup is lost, and Git tells what came after it."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from drafts import accepted, draft, published
from eventually import eventually
from kubectl import Kubectl
from manifests import credentials, repository
from porch_client import PorchClient
from porch_process import PorchProcess
from remotes import Remote


def porch_command(server: PorchProcess, command: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    arguments = [sys.executable, "-m", "apiserver", command, str(folder), "--data", str(server.data)]
    return subprocess.run(arguments, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture
def server(tmp_path: Path, empty_remote: Remote) -> Iterator[PorchProcess]:
    """A server with the repository ``deployments``."""
    server = PorchProcess(tmp_path / "data", environment={"PORCH_SYNC_INTERVAL": "2"})
    server.start()
    kubectl = Kubectl(server.kubeconfig)
    kubectl.apply(credentials(), repository("deployments", empty_remote.url))
    kubectl.ok("wait", "--for=condition=Ready", "repository/deployments", "--timeout=60s")
    yield server
    server.stop()


def config_map(name: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"key": "value"}}


class Writer(threading.Thread):
    """Creates ConfigMaps and drafts, one after the other, and remembers what was acknowledged."""

    def __init__(self, server: PorchProcess) -> None:
        super().__init__()
        self.acknowledged: list[str] = []
        self._porch = server.client()
        self._stopped = threading.Event()

    def run(self) -> None:
        number = 0
        while not self._stopped.is_set():
            name = f"written-{number}"
            accepted(self._porch.request("POST", "/api/v1/namespaces/default/configmaps", config_map(name)))
            accepted(self._porch.create_revision("deployments", name))
            self.acknowledged.append(name)
            number += 1

    def stop(self) -> None:
        self._stopped.set()
        self.join(120)
        self._porch.close()


def names(porch: PorchClient) -> tuple[set[str], set[str]]:
    maps = porch.request("GET", "/api/v1/namespaces/default/configmaps").object["items"]
    return {item["metadata"]["name"] for item in maps}, {item["spec"]["packageName"] for item in porch.revisions()}


def test_nothing_that_was_acknowledged_before_the_backup_is_lost(server: PorchProcess, tmp_path: Path) -> None:
    writer = Writer(server)
    writer.start()
    try:
        eventually(lambda: _some(writer, 5))
        before = set(writer.acknowledged)
        done = porch_command(server, "backup", tmp_path / "backup")
        assert done.returncode == 0, done.stderr
    finally:
        writer.stop()
    server.kill()

    assert porch_command(server, "restore", tmp_path / "backup").returncode == 0
    server.start()

    porch = server.client()
    maps, packages = names(porch)
    assert before <= maps
    assert before <= packages
    porch.close()


def _some(writer: Writer, number: int) -> None:
    assert len(writer.acknowledged) >= number


def test_what_reached_git_after_the_backup_comes_back_and_secrets_can_be_read(
    server: PorchProcess, tmp_path: Path, empty_remote: Remote
) -> None:
    porch = server.client()
    early = draft(porch, "deployments", empty_remote, "early")
    early.wait_until_pushed()
    labelled = porch.revision(early.name).object
    labelled["metadata"]["labels"] = {"kept": "yes"}
    accepted(porch.request("PUT", porch.path("packagerevisions", early.name), labelled))
    assert porch_command(server, "backup", tmp_path / "backup").returncode == 0
    accepted(porch.save(early.name, {"later.txt": "x\n"}))
    early.wait_until_pushed()
    published(porch, "deployments", empty_remote, "late")
    porch.close()
    server.kill()
    for path in server.data.iterdir():
        if path.is_file():
            path.unlink()

    assert porch_command(server, "restore", tmp_path / "backup").returncode == 0
    server.start()

    porch = server.client()

    def back() -> None:
        assert porch.revision("deployments.late.v1").code == 200
        assert "later.txt" in porch.resources(early.name).object["spec"]["resources"]

    eventually(back)
    assert porch.revision("deployments.late.v1").object["spec"]["lifecycle"] == "Published"
    assert porch.revision(early.name).object["metadata"]["labels"] == {"kept": "yes"}
    again = draft(porch, "deployments", empty_remote, "again")  # the Secret opens: the remote takes it
    again.wait_until_pushed()
    porch.close()


def test_clients_that_saw_what_is_lost_begin_anew(server: PorchProcess, tmp_path: Path) -> None:
    """A revision of after the backup is not mistaken for another state that gets the same number."""
    porch = server.client()
    path = "/api/v1/namespaces/default/configmaps"
    assert porch_command(server, "backup", tmp_path / "backup").returncode == 0
    lost = accepted(porch.request("POST", path, config_map("lost")))["metadata"]["resourceVersion"]
    porch.close()
    server.stop()
    assert porch_command(server, "restore", tmp_path / "backup").returncode == 0

    server.start()

    porch = server.client()
    answer = porch.request("GET", f"{path}?watch=true&resourceVersion={lost}&timeoutSeconds=5")
    told = json.loads(answer.body.splitlines()[0])
    assert answer.code == 410 or (told["type"], told["object"]["code"]) == ("ERROR", 410)
    new = accepted(porch.request("POST", path, config_map("new")))["metadata"]["resourceVersion"]
    assert int(new) > int(lost) + 1_000_000
    porch.close()


def test_a_restore_refuses_while_the_server_runs_and_without_a_backup(server: PorchProcess, tmp_path: Path) -> None:
    assert porch_command(server, "backup", tmp_path / "backup").returncode == 0

    running = porch_command(server, "restore", tmp_path / "backup")
    empty = porch_command(server, "restore", tmp_path)

    assert (running.returncode, empty.returncode) == (3, 3)
    assert "in use by another process" in running.stderr
    assert "holds no porch.db" in empty.stderr


def test_a_backup_is_for_its_owners_eyes_only(server: PorchProcess, tmp_path: Path) -> None:
    folder = tmp_path / "backup"

    done = porch_command(server, "backup", folder)

    assert done.returncode == 0
    assert folder.stat().st_mode & 0o077 == 0
    assert {path.name for path in folder.iterdir()} >= {"porch.db", "secret.key", "ca.key", "service-account.key"}
    assert all(path.stat().st_mode & 0o077 == 0 for path in folder.iterdir())
