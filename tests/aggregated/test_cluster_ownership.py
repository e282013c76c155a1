"""The cluster's own controllers work on package revisions: its garbage collector, and who empties its namespaces.

Source: ``kube-api.md`` 1.10, ``decisions.md`` 4; issue 9 part 1.
"""

from typing import Any

import pytest
from eventually import eventually
from kubectl import Kubectl
from manifests import Register, repository
from porch_client import CONFIG, PorchClient
from remotes import Remote, refs

PATIENCE = 120.0
"""Seconds for the cluster's controllers, which look around every half minute at worst."""


@pytest.fixture
def deployments(register: Register, empty_remote: Remote) -> Remote:
    register(deployments=empty_remote)
    return empty_remote


def draft(porch: PorchClient, package: str) -> Any:
    """Create a draft and return it."""
    answer = porch.create_revision("deployments", package)
    assert answer.code == 201, answer.body
    return answer.object


def published(porch: PorchClient, package: str) -> Any:
    """Create and publish a revision."""
    name = draft(porch, package)["metadata"]["name"]
    assert porch.propose(name).code == 200
    answer = porch.approve(name)
    assert answer.code == 200, answer.body
    return answer.object


def config_map(name: str, *owners: dict[str, Any]) -> dict[str, Any]:
    """Build a ConfigMap that belongs to others."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "ownerReferences": list(owners)}}


def owner(body: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a reference to an owner."""
    meta = body["metadata"]
    return {
        "apiVersion": body["apiVersion"],
        "kind": body["kind"],
        "name": meta["name"],
        "uid": meta["uid"],
        **more,
    }


def is_gone(kubectl: Kubectl, kind: str, name: str) -> None:
    done = kubectl("get", kind, name)
    assert done.returncode == 1, done.stdout
    assert "not found" in done.stderr


def test_what_a_revision_owns_goes_with_it(kubectl: Kubectl, porch: PorchClient, deployments: Remote) -> None:
    revision = draft(porch, "app")
    kubectl.create(config_map("owned", owner(revision)))

    kubectl.ok("delete", "packagerevision", revision["metadata"]["name"])

    eventually(lambda: is_gone(kubectl, "configmap", "owned"), timeout=PATIENCE)


def test_a_draft_goes_with_what_owns_it(kubectl: Kubectl, porch: PorchClient, deployments: Remote) -> None:
    owning = kubectl.create(config_map("owning"))
    name = draft(porch, "app")["metadata"]["name"]
    reference = {"metadata": {"ownerReferences": [owner({"apiVersion": "v1", "kind": "ConfigMap", **owning})]}}
    patched = porch.request(
        "PATCH", porch.path("packagerevisions", name), reference, content_type="application/merge-patch+json"
    )
    assert patched.code == 200, patched.body

    kubectl.ok("delete", "configmap", "owning")

    eventually(lambda: is_gone(kubectl, "packagerevision", name), timeout=PATIENCE)


def test_a_deletion_in_the_foreground_waits_for_what_is_owned(
    kubectl: Kubectl, porch: PorchClient, deployments: Remote
) -> None:
    revision = draft(porch, "app")
    name = revision["metadata"]["name"]
    blocking = config_map("blocking", owner(revision, blockOwnerDeletion=True))
    blocking["metadata"]["finalizers"] = ["porch.test/wait"]
    kubectl.create(blocking)

    kubectl.ok("delete", "packagerevision", name, "--cascade=foreground", "--wait=false")

    def marked() -> None:
        assert kubectl.json("get", "configmap", "blocking")["metadata"].get("deletionTimestamp")
        assert porch.revision(name).object["metadata"]["finalizers"] == ["foregroundDeletion"]

    eventually(marked, timeout=PATIENCE)
    kubectl.ok("patch", "configmap", "blocking", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    eventually(lambda: is_gone(kubectl, "packagerevision", name), timeout=PATIENCE)


def test_a_delete_of_another_uid_is_refused(porch: PorchClient, deployments: Remote) -> None:
    path = porch.path("packagerevisions", draft(porch, "app")["metadata"]["name"])

    answer = porch.request("DELETE", path, {"preconditions": {"uid": "11111111-1111-1111-1111-111111111111"}})

    assert (answer.code, answer.reason) == (409, "Conflict")
    assert porch.request("GET", path).code == 200


def test_metadata_alone_can_be_listed_through_the_aggregator(porch: PorchClient, deployments: Remote) -> None:
    name = draft(porch, "app")["metadata"]["name"]
    accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

    listed = porch.request("GET", porch.path("packagerevisions"), accept=accept).object

    assert listed["kind"] == "PartialObjectMetadataList"
    assert [item["metadata"]["name"] for item in listed["items"]] == [name]
    assert "spec" not in listed["items"][0]


def test_a_namespace_goes_with_its_revisions_and_git_stays_as_it_is(
    kubectl: Kubectl, porch: PorchClient, deployments: Remote
) -> None:
    published(porch, "kept")
    name = draft(porch, "draft")["metadata"]["name"]
    branch = "refs/heads/drafts/draft/v1"
    eventually(lambda: _has(deployments, branch))
    before = refs(deployments.path)

    kubectl.ok("delete", "namespace", porch.namespace, "--wait=false")

    eventually(lambda: is_gone(kubectl, "namespace", porch.namespace), timeout=PATIENCE)
    assert porch.revision(name).code == 404
    assert refs(deployments.path) == before


def test_a_repository_goes_with_its_revisions_and_git_stays_as_it_is(
    kubectl: Kubectl, porch: PorchClient, deployments: Remote
) -> None:
    published(porch, "kept")
    before = refs(deployments.path)
    assert kubectl.json("get", "repository", "deployments")["metadata"]["finalizers"]

    kubectl.ok("delete", "repository", "deployments", timeout=PATIENCE)

    assert porch.revisions() == []
    assert refs(deployments.path) == before
    # The same again finds what was published.
    path = f"{CONFIG}/namespaces/{porch.namespace}/repositories"
    assert porch.request("POST", path, repository("deployments", deployments.url)).code == 201

    def found() -> None:
        assert "deployments.kept.v1" in {one["metadata"]["name"] for one in porch.revisions()}

    eventually(found, timeout=PATIENCE)


def test_nothing_is_created_in_a_namespace_that_is_not_there(porch: PorchClient) -> None:
    porch.namespace = "no-such-namespace"

    answer = porch.create_revision("deployments", "app")

    assert (answer.code, answer.message) == (404, 'namespaces "no-such-namespace" not found')


def _has(remote: Remote, ref: str) -> None:
    assert ref in refs(remote.path)
