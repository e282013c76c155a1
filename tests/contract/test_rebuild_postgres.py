"""The database compared with Git, and taken back to a backup, on PostgreSQL: what the guide tells to type there."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import remotes
import typed_guide
from drafts import accepted, draft, published
from embedded_postgres import new_postgres
from eventually import eventually
from porch_client import CONFIG, PorchClient
from porch_process import PorchProcess
from remotes import Remote

PATIENCE = 90.0
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
def url(postgres_server: str) -> str:
    return new_postgres(postgres_server)


@pytest.fixture
def server(tmp_path: Path, url: str) -> Iterator[PorchProcess]:
    server = PorchProcess(tmp_path / "data", environment={"PORCH_DATABASE_URL": url, "PORCH_SYNC_INTERVAL": "2"})
    server.start()
    yield server
    server.stop()


def run_check(server: PorchProcess, url: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "apiserver", "rebuild", "--check", "--data", str(server.data)]
    environment = {**os.environ, "PORCH_DATABASE_URL": url}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout + done.stderr


def typed(name: str, server: PorchProcess, url: str) -> "subprocess.CompletedProcess[str]":
    """Type a block of the guide, beside the data folder of the server."""
    environment = {"PORCH_DATABASE_URL": url, "PORCH_DATA": str(server.data)}
    return typed_guide.typed("back-up-and-restore", name, server.data.parent, environment)


def register(porch: PorchClient, path: Path) -> None:
    body = {
        "apiVersion": "config.porch.kpt.dev/v1alpha1",
        "kind": "Repository",
        "metadata": {"name": "repo"},
        "spec": {"type": "git", "git": {"repo": path.as_uri()}},
    }
    at = f"{CONFIG}/namespaces/default/repositories"
    assert porch.request("POST", at, body).code == 201

    def ready() -> None:
        status = porch.request("GET", f"{at}/repo").object.get("status") or {}
        assert [one["status"] for one in status.get("conditions") or []] == ["True"]

    eventually(ready, PATIENCE)


def config_map(name: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


def test_the_check_reads_a_database_in_use(server: PorchProcess, url: str, tmp_path: Path) -> None:
    remote = remotes.blueprints_remote(tmp_path / "remote.git")
    porch = server.client()
    register(porch, remote)
    porch.close()

    assert run_check(server, url) == (0, "default/repo: 16 revisions: all as in Git\n")


@pytest.mark.timeout(600)
def test_a_dump_that_is_put_back_loses_nothing_of_before_and_git_tells_what_came_after(
    server: PorchProcess, url: str, tmp_path: Path
) -> None:
    path = tmp_path / "remote.git"
    remotes.empty_remote(path)
    remote = Remote(path, path.as_uri())
    porch = server.client()
    register(porch, path)
    early = draft(porch, "repo", remote, "early")
    labelled = porch.revision(early.name).object
    labelled["metadata"]["labels"] = {"kept": "yes"}
    accepted(porch.request("PUT", porch.path("packagerevisions", early.name), labelled))
    accepted(porch.request("POST", CONFIG_MAPS, config_map("before")))
    early.wait_until_pushed()
    done = typed("postgres-backup", server, url)
    assert done.returncode == 0, done.stderr
    published(porch, "repo", remote, "late")
    lost = accepted(porch.request("POST", CONFIG_MAPS, config_map("lost")))["metadata"]["resourceVersion"]
    porch.close()

    running = typed("postgres-restore", server, url)
    assert running.returncode == 3, "the database is back by then, and porch restore sees that a server is connected"
    assert "stop them first" in running.stderr
    server.stop()
    (server.data / "secret.key").unlink()
    done = typed("postgres-restore", server, url)
    assert done.returncode == 0, done.stdout + done.stderr
    server.start()  # on the clones that have seen everything, and their notes

    porch = server.client()

    def back() -> None:
        assert porch.revision("repo.late.v1").code == 200

    eventually(back, PATIENCE)
    assert porch.revision("repo.late.v1").object["spec"]["lifecycle"] == "Published"
    assert porch.revision(early.name).object["metadata"]["labels"] == {"kept": "yes"}
    assert porch.request("GET", f"{CONFIG_MAPS}/before").code == 200
    assert porch.request("GET", f"{CONFIG_MAPS}/lost").code == 404
    watched = porch.request("GET", f"{CONFIG_MAPS}?watch=true&resourceVersion={lost}&timeoutSeconds=5")
    assert watched.code == 410 or b'"code":410' in watched.body
    made = accepted(porch.request("POST", CONFIG_MAPS, config_map("after")))
    assert int(made["metadata"]["resourceVersion"]) > int(lost) + 999_000_000
    assert run_check(server, url) == (0, "default/repo: 3 revisions: all as in Git\n")
    porch.close()
