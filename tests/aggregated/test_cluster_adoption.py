"""From an upstream in a real cluster to a server in its place: package revisions keep their UIDs, and so owners and owned stay together.

Upstream's API is a stand-in behind the APIService; its Repositories, records, variants and Secrets are the cluster's.

Source: issue 9 part 5.
"""

import copy
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from aggregated_process import API_SERVICE, NAME, AggregatedProcess, objects
from control_plane import ControlPlane
from embedded_postgres import new_postgres
from eventually import eventually
from git_server import GitServer
from kubectl import Kubectl
from live_controller import live_controller
from manifests import namespace_object
from old_installation import ADDRESS, NAMESPACE, OldInstallation, make_remotes, metadata_of, recorded, surroundings
from remotes import refs
from upstream_stand_in import Upstream, serving_tls
from variants_kubectl import ready_target

pytestmark = pytest.mark.timeout(600)  # a control plane, an adoption and a server start one after the other
Json = dict[str, Any]
PATIENCE = 120.0
GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "move-from-upstream.md"
ACCOUNT = "system:serviceaccount:porch-system:porch-adopt"
CONFIG = "config.porch.kpt.dev/v1alpha1"
VARIANT: Json = {
    "apiVersion": CONFIG,
    "kind": "PackageVariant",
    "metadata": {"name": "web", "namespace": NAMESPACE},
    "spec": {
        "upstream": {"repo": "blueprints", "package": "basens", "revision": 1},
        "downstream": {"repo": "edge", "package": "ns-a"},
    },
}
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
    """The cluster as upstream left it: its Repositories and records, and a ConfigMap and a variant that own package revisions."""
    make_remotes(git_http.root)
    old = OldInstallation(tmp_path, git_http.url)
    kubectl = Kubectl(cluster.kubeconfig, NAMESPACE)
    kubectl.apply(namespace_object(NAMESPACE), RECORDS)
    kubectl.ok(
        "wait", "--for=condition=Established", "--timeout=60s", "crd/packagerevs.config.porch.kpt.dev", timeout=90
    )
    owner, *secrets = surroundings()
    uid = kubectl.create(owner)["metadata"]["uid"]
    old.revision("edge.ns-a.v2")["metadata"]["ownerReferences"][0]["uid"] = uid
    variant = kubectl.create(VARIANT)["metadata"]
    controls = {
        "apiVersion": CONFIG,
        "kind": "PackageVariant",
        "name": "web",
        "uid": variant["uid"],
        "controller": True,
    }
    old.revision("edge.ns-a.v1")["metadata"]["ownerReferences"] = [controls]
    registered = copy.deepcopy(old.repositories)
    for one in registered:
        one["spec"]["git"]["repo"] = one["spec"]["git"]["repo"].replace(ADDRESS, git_http.url)
    kubectl.apply(*secrets, *registered)
    for record in recorded("packagerevs"):
        references = record["metadata"]["ownerReferences"]
        for reference in references:
            if reference["kind"] == "ConfigMap":
                reference["uid"] = uid
        if record["metadata"]["name"] == "edge.ns-a.v1":
            references.append(controls)
        record["metadata"].pop("resourceVersion")
        kubectl.create(record)
    return old


class Command:
    """``porch adopt`` as the guide's Job does it: into a PostgreSQL database, with the rights that the guide names and no others."""

    def __init__(self, cluster: ControlPlane, data: Path, url: str) -> None:
        *rights, job = yaml.safe_load_all(re.findall(r"```yaml job\n(.*?)```", GUIDE.read_text(), re.DOTALL)[0])
        kubectl = Kubectl(cluster.kubeconfig, "")
        kubectl.apply(*rights)
        kubectl.ok("create", "--dry-run=server", "--validate=strict", "-f", "-", stdin=json.dumps(job))
        (container,) = job["spec"]["template"]["spec"]["containers"]
        # Under a name without colons, which part several kubeconfigs.
        account = shutil.copy(cluster.kubeconfig_of(ACCOUNT), data.parent / "adopt.kubeconfig")
        replaced = {"--from-cluster": ["--from-kubeconfig", str(account)], "/tmp/porch": [str(data)]}  # noqa: S108 # the Pod's
        arguments = [one for argument in container["args"] for one in replaced.get(argument, [argument])]
        self._command = [sys.executable, "-m", "apiserver", *arguments, "--namespace", NAMESPACE]
        self._environment = {**os.environ, "PORCH_DATABASE_URL": url}

    def __call__(self, *arguments: str) -> str:
        command = [*self._command, *arguments]
        done = subprocess.run(
            command, env=self._environment, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture
def adopted(
    cluster: ControlPlane, old: OldInstallation, postgres_server: str, tmp_path: Path
) -> Iterator[AggregatedProcess]:
    """A server of the cluster, on what was taken over before its first start, to which the APIService was switched."""
    kubectl = Kubectl(cluster.kubeconfig, "")
    url = new_postgres(postgres_server)
    adopt = Command(cluster, old.data, url)
    kubectl.apply(namespace_object("porch-system"))
    with serving_tls(Upstream(old), NAME, tmp_path) as (port, authority):
        kubectl.apply(*objects(port, authority))
        kubectl.ok("wait", f"apiservice/{API_SERVICE}", "--for=condition=Available", "--timeout=60s", timeout=90)
        by_records, by_api = json.loads(adopt("--from-records", "--json")), json.loads(adopt("--json"))
        assert [one["packageRevisions"] for one in by_records["repositories"]] == [
            one["packageRevisions"] for one in by_api["repositories"]
        ]
        assert "22 package revisions, 0 Repositories and 0 other objects" in adopt("--apply")
    server = AggregatedProcess(cluster, old.data, environment={"PORCH_DATABASE_URL": url})
    server.start()
    yield server
    server.stop()


def test_the_cluster_goes_on_with_the_same_package_revisions(
    adopted: AggregatedProcess, old: OldInstallation, git_http: GitServer
) -> None:
    kubectl = Kubectl(adopted.kubeconfig, NAMESPACE)
    in_git = refs(git_http.root / "edge")
    kubectl.ok("wait", "--for=condition=Ready", "repository", "--all", "--timeout=120s", timeout=150)

    shown = {item["metadata"]["name"]: item for item in kubectl.json("get", "packagerevisions")["items"]}
    wanted = {item["metadata"]["name"]: item for item in old.revisions}
    assert shown.keys() == wanted.keys()
    for name, item in wanted.items():
        assert metadata_of(shown[name]) == metadata_of(item)
        assert shown[name]["spec"]["lifecycle"] == item["spec"]["lifecycle"]
        assert shown[name]["spec"].get("revision") == item["spec"].get("revision")

    # The variant finds its package as it should be.
    with live_controller(adopted.kubeconfig, NAMESPACE) as controller:
        assert ready_target(kubectl, "web") == "edge.ns-a.v1"
        controller.settle()
        assert controller.count("drafts") == 0
    assert len(kubectl.json("get", "packagerevisions")["items"]) == len(wanted)
    assert refs(git_http.root / "edge") == in_git

    # The cluster's collector finds owners and owned by their UIDs.
    kubectl.ok("delete", "configmap", "owner")

    def ended() -> None:
        draft = kubectl.json("get", "packagerevision", "edge.ns-a.v2")
        assert draft["metadata"].get("deletionTimestamp"), "it waits for the finalizer that it came with"
        assert draft["metadata"]["finalizers"] == ["example.com/hold"]

    eventually(ended, timeout=PATIENCE)
    assert kubectl("get", "packagerev", "edge.ns-a.v1").returncode == 0, "its owner is there, by its UID"
