"""An adopted installation as kubectl sees it; the old server read live; and an adoption that is killed."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from git_server import GitServer
from kube_stand_in import kubeconfig, stand_in
from kubectl import Kubectl
from old_installation import ADDRESS, NAMESPACE, OldInstallation, make_remotes, metadata_of
from porch_process import PorchProcess

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

    before = old.held() if (old.data / "porch.db").exists() else {}
    assert len(before) in (0, 10), "a namespace, Secret, owner and Repository, and six package revisions; or none"
    assert old.adopt(apply=True).written
    assert len(old.held()) == 10
    assert old.adopt(apply=True).written


class Upstream:
    """Answers as upstream does: its lists have no resourceVersion, come whole, and can be narrowed to a Repository."""

    def __init__(self, old: OldInstallation) -> None:
        self._old = old
        self.asked: list[str] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(str(request.rel_url))
        *_, plural = request.path.split("/")
        if plural == "repositories":
            return web.json_response({"metadata": {"resourceVersion": "1"}, "items": self._old.repositories})
        if plural == "packagerevisions":
            wanted = request.query["fieldSelector"].removeprefix("spec.repository=")
            items = [item for item in self._old.revisions if item["spec"]["repository"] == wanted]
            return web.json_response({"metadata": {}, "items": items})
        if plural in ("configmaps", "secrets"):
            return web.json_response({"metadata": {}, "items": []})
        if request.path == "/api/v1":
            kinds = {"configmaps": "ConfigMap", "secrets": "Secret"}
            resources = [{"name": name, "kind": kind, "namespaced": True} for name, kind in kinds.items()]
            return web.json_response({"groupVersion": "v1", "resources": resources})
        found = [
            one
            for one in self._old.others
            if request.path.endswith(f"{one['kind'].lower()}s/{one['metadata']['name']}")
        ]
        if found:
            return web.json_response(found[0])
        status = {"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404, "message": "not here"}
        return web.json_response(status, status=404)


async def adopt_live(old: OldInstallation) -> str:
    upstream = Upstream(old)
    async with stand_in(upstream.answer) as url:
        arguments = command(old.data, old.remotes, "--from-kubeconfig", str(kubeconfig(old.folder, url)), "--apply")
        process = await asyncio.create_subprocess_exec(
            *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        async with asyncio.timeout(TIMEOUT):
            said, _ = await process.communicate()
    assert process.returncode == 0, said.decode()
    assert not any("watch" in one for one in upstream.asked)
    return said.decode()


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
