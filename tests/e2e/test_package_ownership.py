"""Who manages the fields of package revisions and of their files, and applying both on the server."""

from typing import Any

from drafts import CONFIG_MAP, accepted, refused
from eventually import eventually
from manifests import Register
from porch_client import Answer, PorchClient
from porch_process import PorchProcess
from remotes import Remote, refs

Object = dict[str, Any]
VERSION = "porch.kpt.dev/v1alpha1"


def apply(porch: PorchClient, resource: str, name: str, wanted: Object, query: str, subresource: str = "") -> Answer:
    """Apply a configuration on the server."""
    kind = {"packagerevisions": "PackageRevision", "packagerevisionresources": "PackageRevisionResources"}[resource]
    body = {"apiVersion": VERSION, "kind": kind, "metadata": {"name": name, **wanted.pop("metadata", {})}, **wanted}
    path = f"{porch.path(resource, name, subresource)}?{query}"
    return porch.request("PATCH", path, body, content_type="application/apply-patch+yaml")


def merge(porch: PorchClient, path: str, patch: Object) -> Any:
    """Merge a patch in."""
    return accepted(porch.request("PATCH", path, patch, content_type="application/merge-patch+json"))


def managers(obj: Object) -> dict[tuple[str, str], Object]:
    """Return managed fields by manager and subresource."""
    entries = obj["metadata"].get("managedFields", [])
    return {(entry["manager"], entry.get("subresource", "")): entry["fieldsV1"] for entry in entries}


def draft(porch: PorchClient, package: str = "app") -> str:
    """Create a draft by applying it; return its name."""
    name = f"deployments.{package}.v1"
    spec = {"repository": "deployments", "packageName": package, "workspaceName": "v1", "lifecycle": "Draft"}
    made = apply(porch, "packagerevisions", name, {"spec": spec}, "fieldManager=maker")
    assert made.code == 201, made.body
    return name


def test_a_draft_is_created_proposed_and_approved_by_managers_that_stay_known(
    porch: PorchClient, porch_server: PorchProcess, register: Register, empty_remote: Remote
) -> None:
    register(deployments=empty_remote, deployment=("deployments",))
    name = draft(porch)
    path = porch.path("packagerevisions", name)
    merge(porch, f"{path}?fieldManager=labeller", {"metadata": {"labels": {"team": "a"}}})
    merge(porch, f"{path}?fieldManager=proposer", {"spec": {"lifecycle": "Proposed"}})
    merge(porch, f"{path}/approval?fieldManager=approver", {"spec": {"lifecycle": "Published"}})
    eventually(lambda: "refs/tags/app/v1" in refs(empty_remote.path))

    porch_server.restart()
    client = porch_server.client(porch.namespace)
    found = managers(client.revision(name).object)
    client.close()

    assert found == {
        ("maker", ""): {"f:spec": {"f:packageName": {}, "f:repository": {}, "f:workspaceName": {}}},
        ("labeller", ""): {"f:metadata": {"f:labels": {".": {}, "f:team": {}}}},
        ("approver", "approval"): {"f:spec": {"f:lifecycle": {}}},
    }


def test_what_changes_nothing_writes_nothing_and_records_nobody(
    porch: PorchClient, register: Register, empty_remote: Remote
) -> None:
    register(deployments=empty_remote, deployment=("deployments",))
    name = draft(porch)
    accepted(porch.save(name, {"settings.yaml": CONFIG_MAP}))
    before = porch.revision(name).object
    path = porch.path("packagerevisions", name)
    same = {**before, "status": {}, "spec": {**before["spec"], "tasks": []}}
    after = accepted(porch.request("PUT", f"{path}?fieldManager=other", same))
    spec = {"repository": "deployments", "packageName": "app", "workspaceName": "v1", "lifecycle": "Draft"}
    applied = accepted(apply(porch, "packagerevisions", name, {"spec": spec}, "fieldManager=maker"))
    accepted(porch.save(name, {"settings.yaml": CONFIG_MAP}))

    assert after["metadata"] == applied["metadata"] == before["metadata"]
    assert porch.revision(name).object["metadata"] == before["metadata"]


def test_a_label_that_another_applies_is_a_conflict(
    porch: PorchClient, register: Register, empty_remote: Remote
) -> None:
    register(deployments=empty_remote, deployment=("deployments",))
    name = draft(porch)
    label = {"metadata": {"labels": {"team": "a"}}}
    accepted(apply(porch, "packagerevisions", name, dict(label), "fieldManager=first"))
    other = {"metadata": {"labels": {"team": "b"}}}
    conflict = apply(porch, "packagerevisions", name, dict(other), "fieldManager=second")
    forced = accepted(apply(porch, "packagerevisions", name, dict(other), "fieldManager=second&force=true"))

    refused(conflict, 409, "Conflict", 'Apply failed with 1 conflict: conflict with "first": .metadata.labels.team')
    assert forced["metadata"]["labels"] == {"team": "b"}
    assert ("first", "") not in managers(forced)


def test_a_draft_of_another_name_is_not_made(porch: PorchClient, register: Register, empty_remote: Remote) -> None:
    register(deployments=empty_remote, deployment=("deployments",))
    spec = {"repository": "deployments", "packageName": "app", "workspaceName": "v1", "lifecycle": "Draft"}
    answer = apply(porch, "packagerevisions", "deployments.other.v1", {"spec": spec}, "fieldManager=m")

    refused(answer, 400, "BadRequest", "deployments.app.v1", "does not match the name on the URL")
    assert porch.revisions("spec.repository=deployments") == []


def test_files_are_applied_one_by_one_and_kept_by_who_wrote_them(
    porch: PorchClient, register: Register, empty_remote: Remote
) -> None:
    register(deployments=empty_remote, deployment=("deployments",))
    name = draft(porch)
    files = "packagerevisionresources"
    first = apply(porch, files, name, {"spec": {"resources": {"a.txt": "1\n"}}}, "fieldManager=first")
    second = apply(porch, files, name, {"spec": {"resources": {"b.txt": "2\n"}}}, "fieldManager=second")
    shown = accepted(second)
    version = porch.revision(name).object["metadata"]["resourceVersion"]
    again = apply(porch, files, name, {"spec": {"resources": {"b.txt": "2\n"}}}, "fieldManager=second")
    conflict = apply(porch, files, name, {"spec": {"resources": {"a.txt": "3\n"}}}, "fieldManager=second")
    accepted(apply(porch, files, name, {"spec": {"resources": {"c.txt": "4\n"}}}, "fieldManager=first"))
    left = porch.resources(name).object

    accepted(first)
    found = managers(shown)
    assert "f:Kptfile" in found.pop(("before-first-apply", ""))["f:spec"]["f:resources"]
    assert found == {
        ("first", ""): {"f:spec": {"f:resources": {"f:a.txt": {}}}},
        ("second", ""): {"f:spec": {"f:resources": {"f:b.txt": {}}}},
    }
    assert accepted(again)["metadata"]["resourceVersion"] == version, "an apply that changes nothing writes nothing"
    refused(conflict, 409, "Conflict", ".spec.resources.a.txt")
    assert set(left["spec"]["resources"]) >= {"Kptfile", "b.txt", "c.txt"}
    assert "a.txt" not in left["spec"]["resources"]
    assert ("first", "resources") in managers(porch.revision(name).object)


def test_nobody_manages_what_a_create_says_in_vain(
    porch: PorchClient, register: Register, empty_remote: Remote
) -> None:
    register(deployments=empty_remote, deployment=("deployments",))
    body = {
        "apiVersion": VERSION,
        "kind": "PackageRevision",
        "metadata": {"generateName": "x-", "deletionTimestamp": "2001-01-01T00:00:00Z", "labels": {"team": "a"}},
        "spec": {"repository": "deployments", "packageName": "app", "workspaceName": "v1"},
    }

    made = porch.request("POST", f"{porch.path('packagerevisions')}?fieldManager=maker", body)

    assert made.code == 201, made.body
    found = managers(made.object)["maker", ""]
    assert found["f:metadata"] == {"f:labels": {".": {}, "f:team": {}}}
    assert "deletionTimestamp" not in made.object["metadata"]
