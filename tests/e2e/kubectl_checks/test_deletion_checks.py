"""Deletion with real kubectl: rows 77 to 83 of ``kube-api.md`` 7.2."""

import json
import subprocess
import time
from pathlib import Path

import pytest
from eventually import eventually
from kubectl import Kubectl, needs_kubectl
from manifests import Register
from porch_client import PorchClient
from porch_process import PorchProcess
from remotes import Remote

HOLD = ["example.com/hold"]
COLLECTED = 90.0
"""Seconds for a garbage collector; a cluster's looks only every half minute whether there are new kinds."""
FOREGROUND = {"propagationPolicy": "Foreground"}


def config_map(name: str, *, owner: str = "", uid: str = "", finalizers: list[str] | None = None) -> dict[str, object]:
    metadata: dict[str, object] = {"name": name}
    if owner:
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": owner, "uid": uid, "blockOwnerDeletion": True}
        metadata["ownerReferences"] = [reference]
    if finalizers:
        metadata["finalizers"] = finalizers
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def names(kubectl: Kubectl) -> list[str]:
    """Return the ConfigMaps that tests made: a cluster puts one of its own into every namespace."""
    found = kubectl.ok("get", "configmaps", "-o=name").replace("configmap/", "").split()
    return [name for name in found if name != "kube-root-ca.crt"]


def test_row_77_a_finalizer_holds_what_is_deleted_and_none_is_added_then(kubectl: Kubectl) -> None:
    kubectl.create(config_map("a", finalizers=HOLD))
    command = kubectl.command("delete", "configmap", "a", "--timeout=60s")
    waiting = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    eventually(lambda: _expect_marked(kubectl, "a"))

    added = kubectl("patch", "configmap", "a", "--type=merge", "-p", '{"metadata":{"finalizers":["example.com/more"]}}')
    hanging = waiting.poll() is None
    kubectl.ok("patch", "configmap", "a", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    out, _ = waiting.communicate(timeout=90)

    assert hanging
    assert added.returncode == 1
    assert "no new finalizers can be added if the object is being deleted" in added.stderr
    assert waiting.returncode == 0
    assert 'configmap "a" deleted' in out
    assert names(kubectl) == []


@pytest.mark.parametrize("cascade", ["foreground", "background", "orphan"])
def test_row_78_dependents_go_or_stay_by_the_cascade(kubectl: Kubectl, cascade: str) -> None:
    uid = kubectl.create(config_map("owner"))["metadata"]["uid"]
    for number in range(3):
        kubectl.create(config_map(f"child-{number}", owner="owner", uid=uid))

    kubectl.ok("delete", "configmap", "owner", f"--cascade={cascade}", "--timeout=60s")

    if cascade == "foreground":
        assert names(kubectl) == [], "the owner goes last"
        return
    expected = ["child-0", "child-1", "child-2"] if cascade == "orphan" else []
    eventually(lambda: _expect(names(kubectl), expected))
    if cascade == "orphan":
        assert "ownerReferences" not in kubectl.json("get", "configmap", "child-1")["metadata"]


def _expect(found: list[str], expected: list[str]) -> None:
    assert found == expected


def test_row_79_deletes_may_wait_or_not_and_be_forced(kubectl: Kubectl) -> None:
    kubectl.create(config_map("held", finalizers=HOLD))
    for name in ("now", "forced"):
        kubectl.create(config_map(name))

    began = time.monotonic()
    kubectl.ok("delete", "configmap", "held", "--wait=false")
    took = time.monotonic() - began
    kubectl.ok("delete", "configmap", "now", "--now")
    forced = kubectl("delete", "configmap", "forced", "--grace-period=0", "--force")

    assert took < 40
    assert forced.returncode == 0
    assert "Immediate deletion does not wait" in forced.stderr
    assert names(kubectl) == ["held"]
    kubectl.ok("patch", "configmap", "held", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')


def test_row_80_a_delete_of_another_object_is_a_conflict(kubectl: Kubectl, porch: PorchClient) -> None:
    metadata = kubectl.create(config_map("a"))["metadata"]
    path = f"/api/v1/namespaces/{kubectl.namespace}/configmaps/a"

    uid = porch.request("DELETE", path, {"preconditions": {"uid": "another"}})
    revision = porch.request("DELETE", path, {"preconditions": {"resourceVersion": "1"}})
    right = porch.request("DELETE", path, {"preconditions": {"uid": metadata["uid"]}})

    assert [(one.code, one.reason) for one in (uid, revision)] == [(409, "Conflict")] * 2
    assert "the UID in the precondition (another) does not match" in uid.message
    assert "the ResourceVersion in the precondition (1) does not match" in revision.message
    assert right.code == 200


def test_row_81_a_published_revision_is_not_deleted(
    kubectl: Kubectl, porch: PorchClient, register: Register, test_blueprints_remote: Remote
) -> None:
    register(blueprints=test_blueprints_remote)
    published = next(one for one in porch.revisions() if one["spec"]["lifecycle"] == "Published")
    name = published["metadata"]["name"]
    refused = kubectl("delete", "packagerevision", name)
    collection = porch.request("DELETE", porch.path("packagerevisions"))

    assert refused.returncode == 1
    assert "Error from server (Forbidden)" in refused.stderr
    assert "must be proposed for deletion" in refused.stderr
    assert (collection.code, collection.reason) == (403, "Forbidden")
    assert porch.revision(name).code == 200


def test_row_82_a_namespace_takes_its_contents_with_it_and_some_stay_for_ever(kubectl: Kubectl) -> None:
    doomed = kubectl.within(f"{kubectl.namespace}-doomed")
    doomed.ok("create", "namespace", doomed.namespace)
    doomed.ok("create", "configmap", "a")
    doomed.ok("create", "secret", "generic", "s")
    doomed.ok("create", "serviceaccount", "robot")

    doomed.ok("delete", "namespace", doomed.namespace, "--timeout=60s")
    gone = doomed("get", "namespace", doomed.namespace)
    protected = kubectl("delete", "namespace", "default")

    assert gone.stderr == f'Error from server (NotFound): namespaces "{doomed.namespace}" not found\n'
    assert doomed.ok("get", "configmaps,secrets,serviceaccounts", "-o=name") == ""
    assert protected.returncode == 1
    assert 'Error from server (Forbidden): namespaces "default" is forbidden: this namespace may not be deleted' in (
        protected.stderr
    )


def test_row_83_a_collection_is_deleted_by_its_labels(kubectl: Kubectl, porch: PorchClient) -> None:
    for name, color in (("a", "red"), ("b", "blue"), ("c", "red")):
        kubectl.ok("create", "configmap", name)
        kubectl.ok("label", "configmap", name, f"color={color}")

    answer = porch.request("DELETE", f"/api/v1/namespaces/{kubectl.namespace}/configmaps?labelSelector=color%3Dred")

    assert (answer.code, answer.object["kind"]) == (200, "ConfigMapList")
    assert [item["metadata"]["name"] for item in answer.object["items"]] == ["a", "c"]
    assert names(kubectl) == ["b"]


def test_a_namespace_says_what_it_waits_for(kubectl: Kubectl) -> None:
    held = kubectl.within(f"{kubectl.namespace}-held")
    held.ok("create", "namespace", held.namespace)
    held.create(config_map("a", finalizers=HOLD))
    held.ok("delete", "namespace", held.namespace, "--wait=false")

    conditions = eventually(lambda: _conditions(held))
    created = held("create", "configmap", "late")
    held.ok("patch", "configmap", "a", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    held.ok("wait", "--for=delete", f"namespace/{held.namespace}", "--timeout=60s")

    assert conditions == {
        "NamespaceDeletionDiscoveryFailure": ("False", "All resources successfully discovered"),
        "NamespaceDeletionGroupVersionParsingFailure": ("False", "All legacy kube types successfully parsed"),
        "NamespaceDeletionContentFailure": (
            "False",
            "All content successfully deleted, may be waiting on finalization",
        ),
        "NamespaceContentRemaining": (
            "True",
            "Some resources are remaining: configmaps. has 1 resource instances",
        ),
        "NamespaceFinalizersRemaining": (
            "True",
            "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances",
        ),
    }
    assert created.returncode == 1
    assert f"unable to create new content in namespace {held.namespace} because it is being terminated" in (
        created.stderr
    )


def _conditions(kubectl: Kubectl) -> dict[str, tuple[str, str]]:
    namespace = kubectl.json("get", "namespace", kubectl.namespace)
    found = namespace["status"].get("conditions") or []
    assert found
    return {one["type"]: (one["status"], one["message"]) for one in found}


@pytest.mark.standalone("the garbage collector and the namespace controller are the cluster's own there")
def test_deletions_go_on_where_a_killed_server_left_them(tmp_path: Path) -> None:
    server = PorchProcess(tmp_path / "data")
    server.start()
    try:
        client = server.client("doomed")
        maps = "/api/v1/namespaces/default/configmaps"
        client.request("POST", "/api/v1/namespaces", {"metadata": {"name": "doomed"}})
        uid = client.request("POST", maps, config_map("owner")).object["metadata"]["uid"]
        for number in range(200):
            child = config_map(f"child-{number}", owner="owner", uid=uid)
            assert client.request("POST", maps, child).code == 201
            client.request("POST", "/api/v1/namespaces/doomed/configmaps", config_map(f"a-{number}"))
        client.request("DELETE", "/api/v1/namespaces/doomed")
        client.request("DELETE", f"{maps}/owner", {"propagationPolicy": "Foreground"})
        server.kill()
        client.close()

        server.restart()

        eventually(lambda: _nothing_left(server), timeout=60)
    finally:
        server.stop()


def _nothing_left(server: PorchProcess) -> None:
    client = server.client()
    try:
        maps = client.request("GET", "/api/v1/configmaps").object["items"]
        # Every namespace of a cluster has what the server publishes there; only what the test made counts.
        left = [
            one["metadata"]["name"] for one in maps if one["metadata"]["name"].startswith(("a-", "child-", "owner"))
        ]
        assert left == []
        assert client.request("GET", "/api/v1/namespaces/doomed").code == 404
    finally:
        client.close()


@pytest.mark.standalone(
    "a cluster's garbage collector tells nobody why it waits; tests/aggregated/test_cluster_ownership.py"
)
def test_a_revision_goes_with_its_owner_as_far_as_its_lifecycle_allows(
    kubectl: Kubectl, porch: PorchClient, register: Register, empty_remote: Remote
) -> None:
    needs_kubectl(32, "a subresource of any name")
    register(deployments=empty_remote)
    uid = kubectl.create(config_map("variant"))["metadata"]["uid"]
    owner = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "variant", "uid": uid}]
    owned = json.dumps({"metadata": {"ownerReferences": owner}})
    for package in ("drafted", "published"):
        assert porch.create_revision("deployments", package).code == 201
        kubectl.ok("patch", "packagerevision", f"deployments.{package}.v1", "--type=merge", "-p", owned)
    for stage in ("Proposed", "Published"):
        subresource = ["--subresource=approval"] if stage == "Published" else []
        patch = json.dumps({"spec": {"lifecycle": stage}})
        kubectl.ok("patch", "packagerevision", "deployments.published.v1", "--type=merge", "-p", patch, *subresource)

    kubectl.ok("delete", "configmap", "variant")

    eventually(lambda: _expect_gone(porch, "deployments.drafted.v1"))
    eventually(lambda: _expect_event(kubectl))
    assert porch.revision("deployments.published.v1").code == 200
    proposal = json.dumps({"spec": {"lifecycle": "DeletionProposed"}})
    kubectl.ok("patch", "packagerevision", "deployments.published.v1", "--type=merge", "-p", proposal)
    eventually(lambda: _expect_gone(porch, "deployments.published.v1"), timeout=60)


def test_a_revision_waits_for_what_it_owns_when_asked_to(
    kubectl: Kubectl, porch: PorchClient, register: Register, empty_remote: Remote
) -> None:
    register(deployments=empty_remote)
    uid = porch.create_revision("deployments", "app").object["metadata"]["uid"]
    owner = {
        "kind": "PackageRevision",
        "apiVersion": "porch.kpt.dev/v1alpha1",
        "name": "deployments.app.v1",
        "uid": uid,
    }
    child = config_map("child", finalizers=HOLD)
    child["metadata"] = {**child["metadata"], "ownerReferences": [{**owner, "blockOwnerDeletion": True}]}  # type: ignore[dict-item]
    kubectl.create(child)

    held = porch.request("DELETE", porch.path("packagerevisions", "deployments.app.v1"), FOREGROUND)
    eventually(lambda: _expect_marked(kubectl, "child"), timeout=COLLECTED)
    waiting = porch.revision("deployments.app.v1").object["metadata"]
    kubectl.ok("patch", "configmap", "child", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')

    assert held.object["metadata"]["finalizers"] == waiting["finalizers"] == ["foregroundDeletion"]
    eventually(lambda: _expect_gone(porch, "deployments.app.v1"), timeout=COLLECTED)


def _expect_marked(kubectl: Kubectl, name: str) -> None:
    assert kubectl.ok("get", "configmap", name, "-o=jsonpath={.metadata.deletionTimestamp}")


def _expect_gone(porch: PorchClient, name: str) -> None:
    assert porch.revision(name).code == 404


def _expect_event(kubectl: Kubectl) -> None:
    assert "must be proposed for deletion" in kubectl.ok("get", "events", "--field-selector=reason=FailedDelete")
