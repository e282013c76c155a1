"""Labels, annotations, finalizers and owners of revisions: they live beside Git and survive whatever happens to it.

Source: ``porch-api.md`` 2.4, 2.5 and 4.7; issue 6 part 1.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from eventually import eventually
from kubectl import Kubectl
from lifecycles import move
from manifests import Register, clone_git_task, clone_task, edit_task, init_task, package_revision
from open_watch import has_open_watches
from porch_client import PorchClient
from porch_process import PorchProcess
from remotes import Remote, commit_files, git

Json = dict[str, Any]
LATEST = "kpt.dev/latest-revision"
NAME = "repo.app.v1"
KPTFILE = "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: {name}\n"


@pytest.fixture
def owner(kubectl: Kubectl) -> Json:
    """A ConfigMap that owns revisions."""
    config: Json = kubectl.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owner"}})
    return config


def reference(owner: Json) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}


def metadata_of(kubectl: Kubectl, name: str) -> Json:
    metadata = kubectl.json("get", "packagerevision", name)["metadata"]
    kept = {key: metadata.get(key) for key in ("labels", "annotations", "finalizers", "ownerReferences")}
    if kept["labels"]:
        kept["labels"].pop(LATEST, None)
    return kept


def make(kubectl: Kubectl, **metadata: Any) -> Json:
    wanted = package_revision("repo", "app", "v1", init_task())
    return kubectl.create({**wanted, "metadata": metadata})


def test_what_a_create_says_survives_every_step_of_a_life_and_a_restart(
    kubectl: Kubectl, register: Register, empty_remote: Remote, owner: Json, porch_server: PorchProcess
) -> None:
    register(repo=empty_remote)
    given = {
        "labels": {"team": "edge"},
        "annotations": {"example.com/note": "a note"},
        "finalizers": ["example.com/hold"],
        "ownerReferences": [reference(owner)],
    }
    created = make(kubectl, **given)["metadata"]
    for step in ("Proposed", "Draft", "Proposed", "Published", "DeletionProposed", "Published"):
        move(kubectl, NAME, step)
        assert metadata_of(kubectl, NAME) == given, step

    porch_server.restart()

    assert metadata_of(kubectl, NAME) == given
    now = kubectl.json("get", "packagerevision", NAME)["metadata"]
    for key in ("uid", "creationTimestamp"):
        assert now[key] == created[key]
    assert metadata_of(kubectl, "repo.app.main") == dict.fromkeys(given)
    kubectl.ok("patch", "packagerevision", NAME, "--type=merge", "-p", '{"metadata":{"finalizers":null}}')


def test_metadata_of_discovered_revisions_survives_pushes_of_others(
    kubectl: Kubectl, register: Register, empty_remote: Remote
) -> None:
    commit_files(empty_remote.path, {"found/Kptfile": KPTFILE.format(name="found")}, "Add found", tag="found/v1")
    register(repo=empty_remote)
    for name in ("repo.found.v1", "repo.found.main"):
        kubectl.ok("label", "packagerevision", name, "team=edge")
        kubectl.ok("annotate", "packagerevision", name, "example.com/note=kept")
    before = {name: metadata_of(kubectl, name) for name in ("repo.found.v1", "repo.found.main")}

    rewritten = rewrite_main(empty_remote, "found")

    def synced() -> Json:
        found: Json = kubectl.json("get", "packagerevision", "repo.found.main")
        assert found["status"]["selfLock"]["git"]["commit"] == rewritten
        return found

    eventually(synced)
    assert {name: metadata_of(kubectl, name) for name in before} == before


def rewrite_main(remote: Remote, package: str) -> str:
    """Force main to a history without a past in which the package is another one; the tag stays."""
    git("update-ref", "-d", "refs/heads/main", cwd=remote.path)
    files = {f"{package}/Kptfile": KPTFILE.format(name=package), f"{package}/README.md": "rewritten\n"}
    return commit_files(remote.path, files, "Rewritten")


def test_neither_clones_nor_copies_inherit_metadata(
    kubectl: Kubectl, register: Register, empty_remote: Remote, owner: Json
) -> None:
    register(repo=empty_remote)
    make(
        kubectl,
        labels={"team": "edge"},
        annotations={"example.com/note": "x"},
        ownerReferences=[reference(owner)],
    )
    move(kubectl, NAME, "Proposed", "Published")

    kubectl.create(package_revision("repo", "other", "v1", clone_task(NAME)))
    kubectl.create(package_revision("repo", "app", "v2", edit_task(NAME)))

    for name in ("repo.other.v1", "repo.app.v2"):
        assert metadata_of(kubectl, name) == dict.fromkeys(("labels", "annotations", "finalizers", "ownerReferences"))


def test_the_latest_label_is_the_servers_whoever_sends_it(
    kubectl: Kubectl, register: Register, empty_remote: Remote
) -> None:
    register(repo=empty_remote)
    labelled = {**package_revision("repo", "x", "v1", init_task()), "metadata": {"labels": {LATEST: "true"}}}
    refused = kubectl("create", "-f", "-", stdin=labelled)
    assert "label is managed by porch and cannot be set by users" in refused.stderr
    make(kubectl)
    move(kubectl, NAME, "Proposed", "Published")
    for value in ("false", "yes"):
        changed = kubectl("label", "--overwrite", "packagerevision", NAME, f"{LATEST}={value}")
        assert "label is managed by porch and cannot be modified by users" in changed.stderr

    first = kubectl.json("get", "packagerevision", NAME)
    assert first["metadata"]["labels"] == {LATEST: "true"}
    kubectl.create(package_revision("repo", "app", "v2", edit_task(NAME)))
    move(kubectl, "repo.app.v2", "Proposed", "Published")
    again = kubectl.json("get", "packagerevision", NAME)
    again["metadata"]["labels"] = {"team": "edge"}
    kubectl.replace(again)

    # What was read while it was the latest, labels and all, is stored without the label.
    assert kubectl.json("get", "packagerevision", NAME)["metadata"]["labels"] == {"team": "edge"}
    kubectl.ok("label", "packagerevision", "repo.app.v2", "team=edge")
    labels = kubectl.json("get", "packagerevision", "repo.app.v2")["metadata"]["labels"]
    assert labels == {LATEST: "true", "team": "edge"}


def test_the_latest_label_moves_with_an_event_on_both_revisions_when_published_and_when_deleted(
    kubectl: Kubectl, register: Register, empty_remote: Remote, porch_server: PorchProcess
) -> None:
    register(repo=empty_remote)
    make(kubectl)
    move(kubectl, NAME, "Proposed", "Published")
    kubectl.create(package_revision("repo", "app", "v2", edit_task(NAME)))
    eventually(lambda: has_open_watches(porch_server, 0))
    columns = "custom-columns=TYPE:.type,NAME:.object.metadata.name,LATEST:.object.metadata.labels"
    with kubectl.watch("get", "packagerevisions", "--watch-only", "--output-watch-events", "-o", columns) as window:
        eventually(lambda: has_open_watches(porch_server, 1))
        move(kubectl, "repo.app.v2", "Proposed", "Published")
        window.wait_for(lambda lines: ["MODIFIED", NAME, "<none>"] in [line.split() for line in lines])
        window.wait_for(lambda lines: any(f"repo.app.v2  map[{LATEST}:true]" in squeezed(line) for line in lines))
        move(kubectl, "repo.app.v2", "DeletionProposed")
        kubectl.ok("delete", "packagerevision", "repo.app.v2")
        window.wait_for(lambda lines: any(f"{NAME}  map[{LATEST}:true]" in squeezed(line) for line in lines))

    assert f"{LATEST}" not in json.dumps(kubectl.json("get", "packagerevision", "repo.app.main")["metadata"])


def squeezed(line: str) -> str:
    return "  ".join(line.split())


def test_a_finalizer_holds_a_proposed_deletion_and_nothing_is_published_meanwhile(
    kubectl: Kubectl, register: Register, empty_remote: Remote
) -> None:
    register(repo=empty_remote)
    make(kubectl, finalizers=["example.com/hold"])
    move(kubectl, NAME, "Proposed", "Published", "DeletionProposed")
    kubectl.ok("delete", "packagerevision", NAME, "--wait=false")
    assert kubectl.json("get", "packagerevision", NAME)["metadata"]["deletionTimestamp"]

    undone = kubectl("patch", "packagerevision", NAME, "--type=merge", "-p", '{"spec":{"lifecycle":"Published"}}')
    assert "is being deleted and only waits for its finalizers" in undone.stderr
    added = kubectl(
        "patch", "packagerevision", NAME, "--type=merge", "-p", '{"metadata":{"finalizers":["example.com/other"]}}'
    )
    assert "no new finalizers can be added if the object is being deleted" in added.stderr
    assert git("tag", "--list", "app/v1", cwd=empty_remote.path) == "app/v1"

    kubectl.ok("patch", "packagerevision", NAME, "--type=merge", "-p", '{"metadata":{"finalizers":null}}')

    assert "not found" in kubectl("get", "packagerevision", NAME).stderr
    assert git("tag", "--list", "app/v1", cwd=empty_remote.path) == ""


def test_an_owner_takes_its_revisions_along_and_an_orphan_stays(
    kubectl: Kubectl, register: Register, empty_remote: Remote, owner: Json
) -> None:
    register(repo=empty_remote)
    make(kubectl, ownerReferences=[reference(owner)])
    kubectl.ok("delete", "configmap", "owner", "--cascade=orphan")
    assert metadata_of(kubectl, NAME)["ownerReferences"] is None

    second = kubectl.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owner"}})
    patch = json.dumps({"metadata": {"ownerReferences": [reference(second)]}})
    kubectl.ok("patch", "packagerevision", NAME, "--type=merge", "-p", patch)
    kubectl.ok("delete", "configmap", "owner")

    def gone() -> None:
        assert kubectl("get", "packagerevision", NAME).returncode != 0

    eventually(gone)


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"labels": {"team": "not a value"}}, "metadata.labels: Invalid value"),
        ({"labels": {"-key": "x"}}, "metadata.labels: Invalid value"),
        ({"annotations": {"not a key": "x"}}, "metadata.annotations: Invalid value"),
        ({"annotations": {"example.com/long": "x" * 262_145}}, "Too long: may not be more than 262144 bytes"),
        ({"finalizers": ["not/a/finalizer"]}, "metadata.finalizers: Invalid value"),
        ({"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "x"}]}, "uid"),
    ],
)
def test_metadata_that_no_object_may_have_is_refused_at_every_door_and_changes_nothing(
    porch: PorchClient, kubectl: Kubectl, register: Register, empty_remote: Remote, metadata: Json, message: str
) -> None:
    register(repo=empty_remote)
    wanted = package_revision("repo", "bad", "v1", init_task())
    created = porch.request("POST", porch.path("packagerevisions"), {**wanted, "metadata": metadata})
    make(kubectl, labels={"team": "edge"})
    before = kubectl.json("get", "packagerevision", NAME)
    changed = {**before, "metadata": {**before["metadata"], **metadata}}
    updated = porch.request("PUT", porch.path("packagerevisions", NAME), changed)
    patched = porch.request(
        "PATCH",
        porch.path("packagerevisions", NAME),
        {"metadata": metadata},
        content_type="application/merge-patch+json",
    )

    for answer in (created, updated, patched):
        assert (answer.code, answer.reason) == (422, "Invalid")
        assert message in answer.message
    assert kubectl.json("get", "packagerevision", NAME) == before
    assert "not found" in kubectl("get", "packagerevision", "repo.bad.v1").stderr


def test_the_list_of_binary_files_is_the_servers(
    kubectl: Kubectl, register: Register, empty_remote: Remote, tmp_path: Path
) -> None:
    add_binary(empty_remote, tmp_path)
    register(repo=empty_remote)
    kubectl.create(package_revision("repo", "copy", "v1", clone_git_task(empty_remote.url, "main", "app")))
    named = {"porch.kpt.dev/binary-files": '["logo.png"]'}
    assert metadata_of(kubectl, "repo.copy.v1")["annotations"] == named

    kubectl.ok("annotate", "packagerevision", "repo.copy.v1", "porch.kpt.dev/binary-files-")
    kubectl.ok("annotate", "packagerevision", "repo.copy.v1", "example.com/note=x")

    assert metadata_of(kubectl, "repo.copy.v1")["annotations"] == {**named, "example.com/note": "x"}


def add_binary(remote: Remote, folder: Path) -> None:
    """Push a package with a file that is no text."""
    clone = folder / "clone"
    git("clone", "--quiet", str(remote.path), str(clone))
    (clone / "app").mkdir()
    (clone / "app" / "Kptfile").write_text(KPTFILE.format(name="app"))
    (clone / "app" / "logo.png").write_bytes(b"\x89PNG\xff\x00")
    git("add", ".", cwd=clone)
    git("commit", "--quiet", "-m", "A picture", cwd=clone)
    git("push", "--quiet", "origin", "HEAD:main", cwd=clone)


def test_the_same_metadata_in_another_order_writes_nothing(
    porch: PorchClient, kubectl: Kubectl, register: Register, empty_remote: Remote
) -> None:
    register(repo=empty_remote)
    made = make(kubectl, labels={"a": "1", "b": "2"})
    again = json.loads(json.dumps(made))
    again["metadata"]["labels"] = {"b": "2", "a": "1"}

    answer = porch.request("PUT", porch.path("packagerevisions", NAME), again)

    assert answer.object["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


def test_the_latest_label_follows_tags_that_others_push_and_delete(
    kubectl: Kubectl, register: Register, empty_remote: Remote
) -> None:
    files = {"found/Kptfile": KPTFILE.format(name="found")}
    first = commit_files(empty_remote.path, files, "Add found", tag="found/v1")
    register(repo=empty_remote)
    assert latest(kubectl) == ["repo.found.v1"]
    kubectl.ok("label", "packagerevision", "repo.found.v1", "team=edge")

    for tag in ("v9", "v10", "vNext"):
        git("update-ref", f"refs/tags/found/{tag}", first, cwd=empty_remote.path)
    eventually(lambda: one_latest(kubectl, "repo.found.v10"))
    git("update-ref", "-d", "refs/tags/found/v10", cwd=empty_remote.path)
    eventually(lambda: one_latest(kubectl, "repo.found.v9"))
    move(kubectl, "repo.found.v9", "DeletionProposed")
    assert latest(kubectl) == ["repo.found.v9"]
    kubectl.ok("delete", "packagerevision", "repo.found.v9")

    assert latest(kubectl) == ["repo.found.v1"]
    assert metadata_of(kubectl, "repo.found.v1")["labels"] == {"team": "edge"}


def latest(kubectl: Kubectl) -> list[str]:
    items = kubectl.json("get", "packagerevisions", "-l", f"{LATEST}=true")["items"]
    return [item["metadata"]["name"] for item in items]


def one_latest(kubectl: Kubectl, name: str) -> None:
    assert latest(kubectl) == [name]


def test_metadata_of_a_draft_survives_a_push_of_somebody_else_to_its_branch(
    kubectl: Kubectl, register: Register, empty_remote: Remote
) -> None:
    register(repo=empty_remote)
    make(kubectl, labels={"team": "edge"}, annotations={"example.com/note": "x"})
    before = metadata_of(kubectl, NAME)

    def pushed() -> None:
        assert "refs/heads/drafts/app/v1" in git("for-each-ref", cwd=empty_remote.path)

    eventually(pushed)
    commit = commit_files(empty_remote.path, {"app/by-hand.txt": "x\n"}, "By hand", branch="drafts/app/v1")

    def found() -> None:
        assert kubectl.json("get", "packagerevision", NAME)["status"]["selfLock"]["git"]["commit"] == commit

    eventually(found)
    assert metadata_of(kubectl, NAME) == before
