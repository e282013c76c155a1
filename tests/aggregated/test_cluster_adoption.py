"""From upstream's records in a real cluster to a server in that cluster: package revisions keep their UIDs, and so their owners.

Source: issue 9 part 5.
"""

import copy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aggregated_process import AggregatedProcess
from control_plane import ControlPlane
from eventually import eventually
from git_server import GitServer
from kubectl import Kubectl
from manifests import namespace_object
from old_installation import NAMESPACE, OldInstallation, make_remotes, metadata_of, recorded, surroundings

pytestmark = pytest.mark.timeout(600)  # a control plane, an adoption and a server start one after the other
Json = dict[str, Any]
PATIENCE = 120.0
KEPT = ("uid", "labels", "annotations", "ownerReferences", "finalizers")
RECORDS: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "packagerevs.config.porch.kpt.dev"},
    "spec": {
        "group": "config.porch.kpt.dev",
        "names": {
            "plural": "packagerevs",
            "singular": "packagerev",
            "kind": "PackageRev",
            "listKind": "PackageRevList",
        },
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                },
            }
        ],
    },
}
"""Upstream's kind in which it keeps metadata: it has nothing but that (``porch-api.md`` 2.5)."""


@pytest.fixture
def old(cluster: ControlPlane, git_http: GitServer, tmp_path: Path) -> OldInstallation:
    """The cluster as upstream left it: one repository, the metadata of its revisions, a ConfigMap that owns a draft."""
    make_remotes(git_http.root)
    old = OldInstallation(tmp_path, git_http.url)
    old.without_blueprints()
    kubectl = Kubectl(cluster.kubeconfig, NAMESPACE)
    kubectl.apply(namespace_object(NAMESPACE), RECORDS)
    kubectl.ok(
        "wait", "--for=condition=Established", "--timeout=60s", "crd/packagerevs.config.porch.kpt.dev", timeout=90
    )
    owner, *secrets = surroundings()
    uid = kubectl.create(owner)["metadata"]["uid"]
    old.revision("edge.ns-a.v2")["metadata"]["ownerReferences"][0]["uid"] = uid
    (registered,) = copy.deepcopy(old.repositories)
    registered["spec"]["git"]["repo"] = f"{git_http.url}/edge"
    kubectl.apply(*(one for one in secrets if one["metadata"]["name"] == "edge-auth"), registered)
    for record in recorded("packagerevs"):
        if record["metadata"]["name"].startswith("edge."):
            for reference in record["metadata"]["ownerReferences"]:
                if reference["kind"] == "ConfigMap":
                    reference["uid"] = uid
            record["metadata"].pop("resourceVersion")
            kubectl.create(record)
    return old


@pytest.fixture
def adopted(cluster: ControlPlane, old: OldInstallation) -> Iterator[AggregatedProcess]:
    """A server of the cluster on what was taken over before its first start."""
    arguments = ["--from-kubeconfig", str(cluster.kubeconfig), "--namespace", NAMESPACE, "--from-records"]
    command = [sys.executable, "-m", "apiserver", "adopt", *arguments, "--only-revisions", "--data", str(old.data)]
    done = subprocess.run([*command, "--apply"], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "6 package revisions, 0 Repositories and 0 other objects" in done.stdout
    server = AggregatedProcess(cluster, old.data)
    server.start()
    yield server
    server.stop()


def test_the_cluster_sees_the_same_package_revisions_and_its_collector_ends_what_is_owned(
    adopted: AggregatedProcess, old: OldInstallation
) -> None:
    kubectl = Kubectl(adopted.kubeconfig, NAMESPACE)
    kubectl.ok("wait", "--for=condition=Ready", "repository/edge", "--timeout=120s", timeout=150)

    shown = {item["metadata"]["name"]: item for item in kubectl.json("get", "packagerevisions")["items"]}
    wanted = {item["metadata"]["name"]: item for item in old.revisions if item["spec"]["repository"] == "edge"}
    assert shown.keys() == wanted.keys()
    for name, item in wanted.items():
        ours, theirs = metadata_of(shown[name]), metadata_of(item)
        assert {key: ours.get(key) for key in KEPT} == {key: theirs.get(key) for key in KEPT}
        assert shown[name]["spec"]["lifecycle"] == item["spec"]["lifecycle"]

    kubectl.ok("delete", "configmap", "owner")

    def ended() -> None:
        draft = kubectl.json("get", "packagerevision", "edge.ns-a.v2")
        assert draft["metadata"].get("deletionTimestamp"), "it waits for the finalizer that it came with"
        assert draft["metadata"]["finalizers"] == ["example.com/hold"]

    eventually(ended, timeout=PATIENCE)
    assert kubectl("get", "packagerev", "edge.ns-a.v1").returncode == 0, "its owner is there, by its UID"
