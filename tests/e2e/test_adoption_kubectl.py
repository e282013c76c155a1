"""An adopted installation as kubectl sees it; the old server read live; and an adoption that is killed."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from git_server import GitServer
from kube_stand_in import kubeconfig, stand_in
from kubectl import Kubectl
from old_installation import ADDRESS, NAMESPACE, OldInstallation, make_remotes, metadata_of
from porch_process import PorchProcess
from upstream_stand_in import Upstream

from apiserver.engine.package_index import RESOURCE
from storage.sql.migrate import current_revision
from storage.sql.schema import REVISION

pytestmark = pytest.mark.timeout(600)  # commands and servers start one after the other
Json = dict[str, Any]
TIMEOUT = 180.0
"""Seconds for one command; alone it takes three."""


def command(data: Path, address: str, *arguments: str) -> list[str]:
    start = [sys.executable, "-m", "apiserver", "adopt", "--data", str(data)]
    return [*start, "--rewrite-address", f"{ADDRESS}={address}", *arguments]


@pytest.fixture
def old(tmp_path: Path, git_http: GitServer) -> OldInstallation:
    """The recorded installation, its remotes behind the password that its Secrets hold."""
    make_remotes(git_http.root)
    return OldInstallation(tmp_path, git_http.url)


def test_a_killed_adoption_leaves_all_or_nothing(tmp_path: Path) -> None:
    root = tmp_path / "remotes"
    root.mkdir()
    make_remotes(root)
    old = OldInstallation(tmp_path, root.as_uri())
    old.without_blueprints()
    old.write()
    arguments = command(old.data, old.remotes, "--from", str(old.files), "--apply")

    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert any(line.startswith("Writing ") for line in process.stdout)
        process.kill()

    # The database is made after that line is printed: it may not be there yet, or be without tables.
    before = old.held() if current_revision(old.data / "porch.db") == REVISION else {}
    assert len(before) in (0, 10), "a namespace, Secret, owner and Repository, and six package revisions; or none"
    assert old.adopt(apply=True).written
    assert len(old.held()) == 10
    assert old.adopt(apply=True).written


async def adopt_live(old: OldInstallation) -> str:
    upstream = Upstream(old)
    code, said = await _adopt(old, upstream)
    assert code == 0, said
    assert not any("watch" in one for one in upstream.asked)
    return said


async def _adopt(old: OldInstallation, upstream: Upstream) -> tuple[int | None, str]:
    async with stand_in(upstream.answer) as url:
        arguments = command(old.data, old.remotes, "--from-kubeconfig", str(kubeconfig(old.folder, url)), "--apply")
        process = await asyncio.create_subprocess_exec(
            *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        async with asyncio.timeout(TIMEOUT):
            said, _ = await process.communicate()
    return process.returncode, said.decode()


def test_an_old_server_that_is_still_written_to_is_not_taken_over(old: OldInstallation) -> None:
    upstream = Upstream(old)

    def label() -> None:
        old.revision("edge.ns-a.v1")["metadata"]["labels"]["added"] = "meanwhile"

    upstream.meanwhile = label
    code, said = asyncio.run(_adopt(old, upstream))

    assert code == 3
    assert "package revisions of sites/" in said
    assert "Stop its controllers" in said
    assert not old.data.exists()
    assert asyncio.run(_adopt(old, upstream))[0] == 0
    assert old.held()[RESOURCE, "edge.ns-a.v1"]["metadata"]["labels"]["added"] == "meanwhile"


@pytest.fixture
def adopted(old: OldInstallation) -> Iterator[PorchProcess]:
    """A server that was started on what was adopted from a live server."""
    assert "22 package revisions, 2 Repositories" in asyncio.run(adopt_live(old))
    server = PorchProcess(old.data)
    server.start()
    yield server
    server.stop()


def test_kubectl_sees_the_same_objects_before_and_after_the_first_sync(
    adopted: PorchProcess, old: OldInstallation
) -> None:
    kubectl = Kubectl(adopted.kubeconfig, NAMESPACE)
    kubectl.ok("wait", "--for=condition=Ready", "repository", "--all", "--timeout=120s", timeout=150)

    shown = {item["metadata"]["name"]: item for item in kubectl.json("get", "packagerevisions")["items"]}
    assert shown.keys() == {item["metadata"]["name"] for item in old.revisions}
    for item in old.revisions:
        ours = shown[item["metadata"]["name"]]
        assert metadata_of(ours) == metadata_of(item)
        assert ours["spec"]["lifecycle"] == item["spec"]["lifecycle"]
        assert ours["spec"].get("revision") == item["spec"].get("revision")
    repositories = {
        item["metadata"]["name"]: item["metadata"]["uid"] for item in kubectl.json("get", "repositories")["items"]
    }
    assert repositories == {item["metadata"]["name"]: item["metadata"]["uid"] for item in old.repositories}
    draft = kubectl.json("get", "packagerevisionresources", "edge.ns-a.v2")
    assert "Kptfile" in draft["spec"]["resources"]

    # The owner is the one it was: when it goes, its draft waits for the finalizer that it came with.
    kubectl.ok("delete", "configmap", "owner")
    kubectl.ok(
        "wait",
        "--for=jsonpath={.metadata.deletionTimestamp}",
        "packagerevision/edge.ns-a.v2",
        "--timeout=60s",
        timeout=90,
    )
    assert json.loads(kubectl.ok("get", "packagerevision", "edge.ns-a.v2", "-o", "json"))["metadata"]["finalizers"] == [
        "example.com/hold"
    ]
