"""``porch rebuild``: the database compared with Git beside a running server, and read again by the next start."""

import contextlib
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import remotes
from drafts import accepted, draft, proposal, published
from eventually import eventually
from kubectl import Kubectl
from manifests import credentials, repository
from porch_client import PorchClient
from porch_process import PorchProcess
from remotes import Remote, git, refs


def porch_rebuild(server: PorchProcess, *arguments: str) -> tuple[int, str]:
    """Run the command; return its exit code and what it printed."""
    command = [sys.executable, "-m", "apiserver", "rebuild", *arguments, "--data", str(server.data)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def server(tmp_path: Path) -> Iterator[PorchProcess]:
    server = PorchProcess(tmp_path / "data", environment={"PORCH_SYNC_INTERVAL": "3600"})
    server.start()
    yield server
    server.stop()


@pytest.fixture
def filled(server: PorchProcess, empty_remote: Remote) -> Iterator[PorchClient]:
    """A draft, a proposal and a published package in a repository that is not looked at again by itself."""
    kubectl = Kubectl(server.kubeconfig)
    kubectl.apply(credentials(), repository("deployments", empty_remote.url))
    kubectl.ok("wait", "--for=condition=Ready", "repository/deployments", "--timeout=60s")
    porch = server.client()
    draft(porch, "deployments", empty_remote, "drafted").wait_until_pushed()
    proposal(porch, "deployments", empty_remote, "proposed").wait_until_pushed()
    published(porch, "deployments", empty_remote, "released")
    yield porch
    porch.close()


def test_what_agrees_is_said_while_the_server_runs(server: PorchProcess, filled: PorchClient) -> None:
    assert porch_rebuild(server, "--check") == (0, "default/deployments: 4 revisions: all as in Git\n")

    assert filled.create_revision("deployments", "later").code == 201, "and the server works on"


def test_each_difference_is_named_and_the_exit_code_tells_that_there_are_some(
    server: PorchProcess, filled: PorchClient, empty_remote: Remote
) -> None:
    path = empty_remote.path
    kptfile = {"theirs/Kptfile": "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: theirs\n"}
    theirs = remotes.commit_files(path, kptfile, "Theirs", branch="drafts/theirs/v1")
    git("update-ref", "-d", "refs/heads/drafts/drafted/v1", cwd=path)
    moved = refs(path)["refs/heads/proposed/proposed/v1"]
    git("update-ref", "refs/heads/drafts/proposed/v1", moved, cwd=path)
    git("update-ref", "-d", "refs/heads/proposed/proposed/v1", cwd=path)

    code, said = porch_rebuild(server, "--check")

    assert code == 1
    assert "default/deployments: 4 revisions: 3 differ\n" in said
    assert "deployments.drafted.v1 is in the database and not in Git\n" in said
    assert f"deployments.theirs.v1 is in Git (refs/heads/drafts/theirs/v1 at {theirs}) and not in the database" in said
    assert 'deployments.proposed.v1 spec.lifecycle: the database has "Proposed", Git has "Draft"' in said


def test_a_remote_that_cannot_be_read_is_named(server: PorchProcess, filled: PorchClient, empty_remote: Remote) -> None:
    empty_remote.path.rename(empty_remote.path.with_suffix(".gone"))

    code, said = porch_rebuild(server, "--check")

    assert code == 3
    assert said.startswith("default/deployments: cannot be compared: ")


def _tamper(database: Path, name: str, old: bytes, new: bytes) -> None:
    with contextlib.closing(sqlite3.connect(database)) as connection:
        rows = connection.execute("SELECT rv, body FROM k_log WHERE name = ?", (name,)).fetchall()
        connection.executemany("UPDATE k_log SET body = ? WHERE rv = ?", [(b.replace(old, new), rv) for rv, b in rows])
        connection.commit()


def test_a_database_that_was_tampered_with_is_repaired_by_the_start_after_a_rebuild(
    server: PorchProcess, filled: PorchClient
) -> None:
    before = filled.revision("deployments.released.v1").object
    server.stop()
    _tamper(server.data / "porch.db", "deployments.released.v1", b'"publishedBy":"admin"', b'"publishedBy":"mallory"')
    code, said = porch_rebuild(server, "--check")
    assert code == 1
    assert 'status.publishedBy: the database has "mallory", Git has "admin"' in said

    assert porch_rebuild(server) == (0, "The next start reads 1 repositories from Git in full.\n")
    server.start()

    def repaired() -> None:
        porch = server.client()
        after = porch.revision("deployments.released.v1").object
        porch.close()
        assert after["status"] == before["status"]

    eventually(repaired)
    assert porch_rebuild(server, "--check")[0] == 0


def test_only_the_check_may_be_made_while_the_server_runs(server: PorchProcess, filled: PorchClient) -> None:
    code, said = porch_rebuild(server)

    assert code == 3
    assert "in use by another process" in said


def test_a_draft_that_is_not_pushed_yet_is_no_difference(
    server: PorchProcess, filled: PorchClient, empty_remote: Remote
) -> None:
    hook = empty_remote.path / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    accepted(filled.create_revision("deployments", "waiting"))

    code, said = porch_rebuild(server, "--check")

    assert (code, said) == (0, "default/deployments: 5 revisions, 1 of them not pushed yet: all as in Git\n")
