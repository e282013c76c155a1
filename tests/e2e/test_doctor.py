"""``porch doctor`` against a real server that is broken in one way after the other, and on the files of one that was.

Source: issue 9, part 6.
"""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from drafts import accepted
from embedded_postgres import new_postgres
from eventually import eventually
from kubectl import Kubectl
from manifests import Register, repository
from porch_client import PorchClient
from porch_process import PorchProcess
from remotes import Remote

Object = dict[str, Any]
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def porch_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PorchProcess]:
    """A server that starts its controllers."""
    data = tmp_path_factory.mktemp("doctor") / "data"
    data.mkdir(mode=0o700)  # as the server makes it
    server = PorchProcess(data, arguments=["--controllers"])
    server.start()
    yield server
    server.stop()


def doctor(*arguments: str, home: Path, **settings: str) -> "subprocess.CompletedProcess[str]":
    """Run the command as a user would who has set nothing but these variables."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PORCH_", "KUBE"))}
    command = [sys.executable, "-m", "apiserver", "doctor", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, env={**kept, "HOME": str(home), **settings}
    )


def worse_than_notes(done: "subprocess.CompletedProcess[str]") -> list[str]:
    """Return the lines, without what is only good to know (of the kubectl of this machine, say)."""
    return [line for line in done.stdout.splitlines() if not line.startswith("NOTE")]


def test_nothing_is_wrong_with_a_new_server(porch_server: PorchProcess, tmp_path: Path) -> None:
    def check() -> None:
        done = doctor("--data", str(porch_server.data), home=tmp_path)
        assert (worse_than_notes(done), done.returncode) == (["Nothing is wrong."], 0), done.stderr

    eventually(check, timeout=90)


def variant(name: str, **spec: Any) -> Object:
    upstream = {"repo": "deployments", "package": "missing", "revision": 1}
    downstream = {"repo": "deployments", "package": name}
    return {
        "apiVersion": "config.porch.kpt.dev/v1alpha1",
        "kind": "PackageVariant",
        "metadata": {"name": name},
        "spec": {"upstream": upstream, "downstream": downstream, **spec},
    }


SET: Object = {
    "apiVersion": "config.porch.kpt.dev/v1alpha2",
    "kind": "PackageVariantSet",
    "metadata": {"name": "lost"},
    "spec": {
        "upstream": {"repo": "deployments", "package": "missing", "revision": 1},
        "targets": [{"repositories": [{"name": "deployments"}]}],
    },
}
LEFT_BEHIND: Object = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {"name": "porch-approval"},
    "spec": {"holderIdentity": "one-that-died", "leaseDurationSeconds": 10, "renewTime": "2020-01-01T00:00:00.000000Z"},
}


def test_each_trouble_on_a_server_is_a_line_with_what_to_do(
    porch_server: PorchProcess,
    porch: PorchClient,
    kubectl: Kubectl,
    register: Register,
    empty_remote: Remote,
    tmp_path: Path,
) -> None:
    register(deployments=empty_remote, deployment=("deployments",))
    accepted(porch.create_revision("deployments", "gated", readinessGates=[{"conditionType": "acme.com/tested"}]))
    proposed = str(accepted(porch.create_revision("deployments", "app"))["metadata"]["name"])
    accepted(porch.set_lifecycle(proposed, "Proposed"))
    hook = empty_remote.path / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\necho closed for the night >&2\nexit 1\n")
    hook.chmod(0o755)
    assert porch.set_lifecycle(proposed, "Published", "approval").code == 403
    kubectl.apply(
        repository("nowhere", f"file://{tmp_path}/nowhere.git", login=""),
        variant("orphan"),
        variant("resting", suspend=True),
        SET,
        LEFT_BEHIND,
    )
    here = kubectl.namespace
    lines = {
        f"ERROR    Repository {here}/nowhere: not Ready",
        f"ERROR    Repository {here}/deployments: takes no pushes",
        f"WARNING  PackageRevision {here}/deployments.gated.v1: waits for its readiness gate acme.com/tested",
        f"ERROR    PackageVariant {here}/orphan: Stalled",
        f"NOTE     PackageVariant {here}/resting: paused by a user",
        f"ERROR    PackageVariantSet {here}/lost: Stalled",
        f"ERROR    Lease {here}/porch-approval: one-that-died has not renewed it",
    }

    def check() -> None:
        done = doctor("--kubeconfig", str(porch_server.kubeconfig), "-n", here, "--gates", "0s", home=tmp_path)
        missing = [one for one in lines if one not in done.stdout]
        assert (missing, done.returncode) == ([], 1), done.stdout + done.stderr
        assert all("; fix: " in line for line in done.stdout.splitlines())
        assert "closed for the night" in done.stdout

    eventually(check, timeout=120)
    told = doctor("--kubeconfig", str(porch_server.kubeconfig), "-n", here, "-o", "json", home=tmp_path)
    findings = json.loads(told.stdout)["findings"]
    assert all(one["severity"] and one["object"] and one["problem"] and one["fix"] for one in findings)
    assert next(one["severity"] for one in findings) == "error"
    assert not json.loads(told.stdout)["healthy"]
    hook.unlink()


def test_who_may_not_look_is_told_so(porch_server: PorchProcess, kubectl: Kubectl, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "apiserver", "issue", "bob", "--data", str(porch_server.data)]
    made = tmp_path / "bob.kubeconfig"
    made.write_text(subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout)
    here = kubectl.namespace

    stranger = doctor("--kubeconfig", str(made), "-n", here, home=tmp_path)
    assert stranger.returncode == 2
    assert "not looked at: repositories: " in stranger.stdout
    assert f"NOTE     You: may not approve packages in namespace {here}" in stranger.stdout

    kubectl.ok("create", "rolebinding", "bob-reads", "--clusterrole=view", "--user=bob")
    reader = doctor("--kubeconfig", str(made), "-n", here, home=tmp_path)
    assert (worse_than_notes(reader), reader.returncode) == (["Nothing is wrong."], 0)
    assert "may not read packages" not in reader.stdout
    assert f"NOTE     You: may not write packages in namespace {here}" in reader.stdout


def test_a_server_that_does_not_answer_and_a_machine_without_a_kubeconfig(
    porch_server: PorchProcess, tmp_path: Path
) -> None:
    away = tmp_path / "away"
    text = porch_server.kubeconfig.read_text().replace(str(porch_server.port), "1")
    away.write_text(text)

    silent = doctor("--kubeconfig", str(away), home=tmp_path)
    assert silent.returncode == 2
    assert "ERROR    Server https://127.0.0.1:1: does not answer: " in silent.stdout

    nobody = doctor(home=tmp_path)
    assert nobody.returncode == 2
    assert "not looked at: the server: there is no kubeconfig" in nobody.stdout


# --- the host's files -------------------------------------------------------------------------------


@pytest.fixture
def files(porch_server: PorchProcess, register: Register, namespace: str, empty_remote: Remote, tmp_path: Path) -> Path:
    """What a server keeps, with a Secret and a clone in it, and no server on it."""
    register(**{namespace: empty_remote})
    folder = tmp_path / "kept"
    command = [sys.executable, "-m", "apiserver", "backup", str(folder), "--data", str(porch_server.data)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (clone,) = (porch_server.data / "clones").glob(f"{namespace}-*.git")
    shutil.copytree(clone, folder / "clones" / clone.name)
    return folder


def on_host(folder: Path) -> "subprocess.CompletedProcess[str]":
    return doctor("--host-only", "--data", str(folder), home=folder.parent)


def newer_schema(folder: Path) -> None:
    with sqlite3.connect(folder / "porch.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()


def test_each_trouble_of_a_data_directory_is_found(files: Path) -> None:
    healthy = on_host(files)
    assert (worse_than_notes(healthy), healthy.returncode) == (["Nothing is wrong."], 0)

    files.chmod(0o755)
    open_folder = on_host(files)
    assert open_folder.returncode == 1
    assert "WARNING  Data directory" in open_folder.stdout
    assert f"fix: chmod 700 {files}" in open_folder.stdout
    files.chmod(0o700)

    (clone,) = (files / "clones").iterdir()
    (clone / "HEAD").unlink()
    half_clone = on_host(files)
    assert (half_clone.returncode, f"fix: stop the server, rm -r {clone}" in half_clone.stdout) == (1, True)
    shutil.rmtree(clone)

    key = (files / "secret.key").read_bytes()
    (files / "secret.key").write_bytes(bytes(reversed(key)))
    other_key = on_host(files)
    assert other_key.returncode == 1
    assert "sealed under a key that is not configured" in other_key.stdout

    (files / "secret.key").unlink()
    no_key = on_host(files)
    assert (no_key.returncode, "the key for Secrets is missing" in no_key.stdout) == (1, True)
    assert not (files / "secret.key").exists(), "the doctor makes none"

    newer_schema(files)
    newer = on_host(files)
    assert (newer.returncode, "is at schema 9999, newer than" in newer.stdout) == (1, True)

    (files / "porch.db").write_bytes(b"no database" * 1000)
    broken = on_host(files)
    assert (broken.returncode, "cannot be read" in broken.stdout) == (2, True)
    assert "porch restore" in broken.stdout

    (files / "porch.db").unlink()
    empty = on_host(files)
    assert (empty.returncode, "holds no porch.db" in empty.stdout) == (2, True)


def test_a_database_that_is_another_process(files: Path, postgres_server: str) -> None:
    data = ["--host-only", "--data", str(files)]
    well = doctor(*data, "--database-url", new_postgres(postgres_server), home=files.parent)
    assert (worse_than_notes(well), well.returncode) == (["Nothing is wrong."], 0), well.stderr

    away = doctor(*data, "--database-url", "postgresql://porch:secret@127.0.0.1:1/porch", home=files.parent)
    assert away.returncode == 2
    assert "ERROR    Database PostgreSQL: cannot be read: " in away.stdout
    assert "see that PostgreSQL runs" in away.stdout
    assert "secret" not in away.stdout + away.stderr

    named = doctor("--data", str(files), home=files.parent, PORCH_DATABASE_URL="postgresql://127.0.0.1:1/porch")
    alone = doctor(home=files.parent, PORCH_DATABASE_URL="postgresql://127.0.0.1:1/porch")
    for one in (named, alone):
        assert "ERROR    Database PostgreSQL: cannot be read: " in one.stdout, one.stdout


def test_a_replica_whose_key_is_another_one(postgres_server: str, tmp_path: Path) -> None:
    database = new_postgres(postgres_server)
    server = PorchProcess(tmp_path / "first", environment={"PORCH_DATABASE_URL": database})
    server.start()
    Kubectl(server.kubeconfig).ok("create", "secret", "generic", "login", "--from-literal=password=x")
    server.stop()
    second = tmp_path / "second"
    second.mkdir(mode=0o700)

    keyless = doctor("--host-only", "--data", str(second), "--database-url", database, home=tmp_path)
    assert (keyless.returncode, "the key for Secrets is missing" in keyless.stdout) == (1, True), keyless.stdout

    (second / "secret.key").write_bytes(bytes(reversed((server.data / "secret.key").read_bytes())))
    (second / "secret.key").chmod(0o600)
    other = doctor("--host-only", "--data", str(second), "--database-url", database, home=tmp_path)
    assert (other.returncode, "replicas share one" in other.stdout) == (1, True), other.stdout

    (second / "secret.key").write_bytes((server.data / "secret.key").read_bytes())
    same = doctor("--host-only", "--data", str(second), "--database-url", database, home=tmp_path)
    assert (worse_than_notes(same), same.returncode) == (["Nothing is wrong."], 0), same.stderr


def test_a_database_without_secrets_needs_no_key(postgres_server: str, tmp_path: Path) -> None:
    """As that of servers in a cluster, whose Secrets are the cluster's."""
    data = tmp_path / "data"
    data.mkdir(mode=0o700)

    done = doctor("--host-only", "--data", str(data), "--database-url", new_postgres(postgres_server), home=tmp_path)

    assert (worse_than_notes(done), done.returncode) == (["Nothing is wrong."], 0), done.stdout + done.stderr
    assert not (data / "secret.key").exists(), "the doctor makes none"
