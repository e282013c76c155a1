"""From an upstream in a real cluster to a server in its place, and back: package revisions keep their UIDs, and so owners and owned stay together.

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
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml
from aggregated_process import API_SERVICE, NAME, AggregatedProcess, objects
from control_plane import ControlPlane
from drafts import CONFIG_MAP, accepted
from embedded_postgres import new_postgres
from eventually import eventually
from git_server import GitServer
from kubectl import Kubectl
from live_controller import live_controller
from manifests import deployment, namespace_object
from old_installation import ADDRESS, NAMESPACE, OldInstallation, make_remotes, metadata_of, recorded, surroundings
from porch_client import PorchClient
from remotes import files_at, refs
from typed_guide import GUIDES, typed
from upstream_reader import found_in_git, with_records
from upstream_stand_in import Upstream, serving_tls
from variants_kubectl import ready_target

pytestmark = pytest.mark.timeout(600)  # a control plane, an adoption and a server start one after the other
Json = dict[str, Any]
PATIENCE = 120.0
GUIDE = GUIDES / "move-from-upstream.md"
OURS = "porch"
"""The namespace of ours, beside upstream's."""
ACCOUNT = f"system:serviceaccount:{OURS}:porch-adopt"
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


@pytest.fixture(scope="module")
def old(cluster: ControlPlane, git_http: GitServer, tmp_path_factory: pytest.TempPathFactory) -> OldInstallation:
    """The cluster as upstream left it: its Repositories and records, and a ConfigMap and a variant that own package revisions."""
    make_remotes(git_http.root)
    old = OldInstallation(tmp_path_factory.mktemp("old"), git_http.url)
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


@pytest.fixture(scope="module")
def database(postgres_server: str) -> str:
    """The URL of the new server's database."""
    return new_postgres(postgres_server)


@pytest.fixture(scope="module")
def adopted(cluster: ControlPlane, old: OldInstallation, database: str) -> Iterator[AggregatedProcess]:
    """A server of the cluster, on what was taken over before its first start, to which the APIService was switched."""
    kubectl = Kubectl(cluster.kubeconfig, "")
    kubectl.apply(namespace_object(OURS))
    adopt = Command(cluster, old.data, database)
    with serving_tls(Upstream(old), NAME, old.folder) as (port, authority):
        kubectl.apply(*objects(port, authority))
        kubectl.ok("wait", f"apiservice/{API_SERVICE}", "--for=condition=Available", "--timeout=120s", timeout=150)
        by_records, by_api = json.loads(adopt("--from-records", "--json")), json.loads(adopt("--json"))
        assert [one["packageRevisions"] for one in by_records["repositories"]] == [
            one["packageRevisions"] for one in by_api["repositories"]
        ]
        assert "22 package revisions, 0 Repositories and 0 other objects" in adopt("--apply")
    server = AggregatedProcess(cluster, old.data, environment={"PORCH_DATABASE_URL": database})
    server.start()
    yield server
    server.stop()
    server.unregister()


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


def in_the_remotes(git_http: GitServer) -> list[Json]:
    """Return what upstream finds in the two repositories."""
    places = {"edge": git_http.root / "edge", "blueprints": git_http.root / "test-blueprints.git"}
    return [one for name, place in places.items() for one in found_in_git(place, name, NAMESPACE)]


def told(items: list[Json], *, placeholders: bool = False) -> dict[str, Json]:
    """Return by name what both servers have to tell alike; how a branch's own revisions were made ours tells besides."""
    alike = ("packageName", "repository", "workspaceName", "revision", "lifecycle")
    facts = {
        one["metadata"]["name"]: {
            "uid": one["metadata"]["uid"],
            **{name: one["spec"].get(name) for name in alike},
            "tasks": one["spec"].get("tasks"),
            "commit": one["status"]["selfLock"]["git"]["commit"],
        }
        for one in items
    }
    for fact in facts.values():
        if fact["revision"] == -1 and not placeholders:
            del fact["tasks"], fact["commit"]
    return facts


def test_the_stand_in_finds_in_git_what_a_live_upstream_found(tmp_path: Path) -> None:
    make_remotes(tmp_path)
    found = [
        *found_in_git(tmp_path / "edge", "edge", NAMESPACE),
        *found_in_git(tmp_path / "test-blueprints.git", "blueprints", NAMESPACE),
    ]

    assert told(found, placeholders=True) == told(recorded("packagerevisions"), placeholders=True)


def work_on(porch: PorchClient) -> None:
    """Use the new server for a while: new packages in each state, and new states of packages that were taken over."""
    for package in ("drawn", "offered", "sold"):
        name = accepted(porch.create_revision("edge", package))["metadata"]["name"]
        accepted(porch.save(name, {"settings.yaml": CONFIG_MAP}))
        if package != "drawn":
            accepted(porch.propose(name))
    accepted(porch.approve("edge.sold.v1"))
    accepted(porch.approve("edge.proposed-pkg.first"))
    accepted(porch.approve("edge.old-pkg.w1"))  # which had been proposed for deletion
    accepted(porch.set_lifecycle("edge.ns-a.v1", "DeletionProposed"))


def test_the_old_server_finds_in_git_what_was_done_meanwhile(
    adopted: AggregatedProcess, old: OldInstallation, database: str, git_http: GitServer, tmp_path: Path
) -> None:
    kubectl = Kubectl(adopted.kubeconfig, NAMESPACE)
    Kubectl(adopted.kubeconfig, "").apply(deployment("porch-controllers", OURS))
    kubectl.ok("wait", "--for=condition=Ready", "repository", "--all", "--timeout=120s", timeout=150)
    with closing(adopted.client(NAMESPACE)) as porch:
        work_on(porch)
        files = accepted(porch.resources("edge.drawn.v1"))["spec"]["resources"]
    environment = {"PORCH_DATABASE_URL": database, "KUBECONFIG": str(adopted.kubeconfig)}

    def type_from_guide(block: str) -> None:
        done = typed("move-from-upstream", block, tmp_path, {**environment, "PORCH_DATA": str(tmp_path / "none")})
        assert done.returncode == 0, done.stdout + done.stderr

    type_from_guide("way-back")
    ours = kubectl.json("get", "packagerevisions")["items"]
    adopted.stop()
    adopted.unregister()  # as helm uninstall does

    old.revisions = with_records(in_the_remotes(git_http), kubectl.json("get", "packagerevs")["items"])
    with serving_tls(Upstream(old), NAME, tmp_path) as (port, authority):
        (tmp_path / "upstream-porch.yaml").write_text(yaml.safe_dump_all(objects(port, authority)))
        type_from_guide("way-back-upstream")
        theirs = kubectl.json("get", "packagerevisions")["items"]

    assert told(theirs) == told(ours)
    lifecycles = {one["metadata"]["name"]: one["spec"]["lifecycle"] for one in theirs}
    changed = ("drawn.v1", "offered.v1", "sold.v1", "proposed-pkg.first", "old-pkg.w1", "ns-a.v1")
    assert [lifecycles[f"edge.{name}"] for name in changed] == [
        "Draft",
        "Proposed",
        "Published",
        "Published",
        "Published",
        "DeletionProposed",
    ]
    in_git = refs(git_http.root / "edge")["refs/heads/drafts/drawn/v1"]
    assert files_at(git_http.root / "edge", in_git, "drawn") == files
    assert "PackagePipelinePassed" not in files["Kptfile"], "upstream would take it for a gate that nobody opens"
    kept = next(one["metadata"] for one in theirs if one["metadata"]["name"] == "edge.ns-a.v1")
    before = next(one["metadata"] for one in recorded("packagerevisions") if one["metadata"]["name"] == "edge.ns-a.v1")
    assert kept["annotations"] == before["annotations"]
    assert [owner["kind"] for owner in kept["ownerReferences"]] == ["PackageVariant"]
