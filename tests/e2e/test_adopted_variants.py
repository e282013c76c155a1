"""PackageVariants that come along in an adoption: the controllers find the packages as they should be, and write nothing to them.

The packages are those that a live upstream made (``tests/data/porch-adopt``). Source: issue 9 part 5.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from eventually import eventually
from git_server import GitServer
from kubectl import Kubectl
from live_controller import live_controller
from old_installation import ADDRESS, NAMESPACE, OldInstallation, make_remotes, thing
from porch_process import PorchProcess
from remotes import refs
from variants_kubectl import ready_target

pytestmark = pytest.mark.timeout(600)  # a command and a server start one after the other
Json = dict[str, Any]
CONFIG = "config.porch.kpt.dev/v1alpha1"
PATIENCE = 120.0


def variant(name: str, uid: str, package: str, revision: int) -> Json:
    """Return a PackageVariant of blueprint basens in edge, as it was at the old server."""
    upstream = {"repo": "blueprints", "package": "basens", "revision": revision}
    made = thing(
        "PackageVariant",
        name,
        uid,
        CONFIG,
        spec={"upstream": upstream, "downstream": {"repo": "edge", "package": package}},
    )
    made["metadata"]["finalizers"] = ["config.porch.kpt.dev/packagevariants"]
    return made


def owned(item: Json, by: Json) -> None:
    """Have a package revision be a variant's, as upstream's controller leaves it."""
    metadata = by["metadata"]
    reference = {"apiVersion": CONFIG, "kind": "PackageVariant", "name": metadata["name"], "uid": metadata["uid"]}
    item["metadata"].setdefault("ownerReferences", []).append(
        reference | {"controller": True, "blockOwnerDeletion": True}
    )


@pytest.fixture
def adopted(tmp_path: Path, git_http: GitServer) -> Iterator[PorchProcess]:
    """A server that took over an installation in which a variant owns a published package."""
    make_remotes(git_http.root)
    old = OldInstallation(tmp_path, git_http.url)
    web = variant("web", "0d5e7f0c-6f7e-4a53-8f1a-6f3c3b8f7a01", "ns-a", 1)
    owned(old.revision("edge.ns-a.v1"), web)
    old.others.append(web)
    old.write()
    command = [sys.executable, "-m", "apiserver", "adopt", "--data", str(old.data), "--from", str(old.files), "--apply"]
    command += ["--rewrite-address", f"{ADDRESS}={git_http.url}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    server = PorchProcess(old.data)
    server.start()
    yield server
    server.stop()


def packages(kubectl: Kubectl) -> dict[str, Any]:
    """Return what package revisions are, but for annotations, in which controllers note what they have looked at."""
    found = kubectl.json("get", "packagerevisions")["items"]
    return {item["metadata"]["name"]: (item["metadata"]["uid"], item["spec"], item["status"]) for item in found}


def test_controllers_make_nothing_of_what_is_as_it_should_be_and_go_on_from_there(
    adopted: PorchProcess, git_http: GitServer
) -> None:
    kubectl = Kubectl(adopted.kubeconfig, NAMESPACE)
    kubectl.ok("wait", "--for=condition=Ready", "repository", "--all", "--timeout=120s", timeout=150)
    before, in_git = packages(kubectl), refs(git_http.root / "edge")

    with live_controller(adopted.kubeconfig, NAMESPACE) as controller:
        assert ready_target(kubectl, "web") == "edge.ns-a.v1"
        controller.settle()
        assert packages(kubectl) == before
        assert refs(git_http.root / "edge") == in_git
        assert controller.count("drafts") == 0

        kubectl.ok("patch", "packagevariant", "web", "--type=merge", "-p", '{"spec":{"upstream":{"revision":2}}}')
        eventually(lambda: _no_longer(ready_target(kubectl, "web"), "edge.ns-a.v1"), timeout=PATIENCE)
        draft = ready_target(kubectl, "web")

    made = kubectl.json("get", "packagerevision", draft)
    assert made["spec"]["lifecycle"] == "Draft"
    assert made["status"]["upstreamLock"]["git"]["ref"] == "basens/v2"
    assert made["status"]["upstreamLock"]["git"]["repo"].startswith(git_http.url)


def _no_longer(name: str, former: str) -> None:
    assert name != former
