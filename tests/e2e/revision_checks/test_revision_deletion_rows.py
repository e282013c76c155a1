# ruff: noqa: F811 # fixtures are imported and then named as parameters
"""Rows 77 to 83 of ``kube-api.md`` 7.2 on package revisions: finalizers, owners, preconditions and collections."""

import subprocess

import pytest
from checked_draft import KIND, CheckedDraft, Drafts
from eventually import eventually
from revision_fixtures import draft, drafts, drafts_of_module  # noqa: F401 # found by name

HOLD = '{"metadata":{"finalizers":["example.com/hold"]}}'
LET_GO = '{"metadata":{"finalizers":null}}'
PATIENCE = 90.0
"""Seconds for a garbage collector; a cluster's looks only every half minute whether there are new kinds."""


def is_marked(draft: CheckedDraft) -> None:
    assert draft.metadata().get("deletionTimestamp")


def is_gone(draft: CheckedDraft) -> None:
    assert draft.porch.revision(draft.name).code == 404


def test_row_77_a_finalizer_holds_what_is_deleted_and_none_is_added_then(draft: CheckedDraft) -> None:
    draft.create()
    assert draft.patch(HOLD).returncode == 0
    command = draft.kubectl.command("delete", KIND, draft.name, "--timeout=60s")
    waiting = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    eventually(lambda: is_marked(draft), timeout=PATIENCE)

    added = draft.patch('{"metadata":{"finalizers":["example.com/hold","example.com/more"]}}')
    hanging = waiting.poll() is None
    freed = draft.patch(LET_GO)
    out, _ = waiting.communicate(timeout=PATIENCE)

    assert hanging
    assert added.returncode == 1
    assert "no new finalizers can be added if the object is being deleted" in added.stderr
    assert freed.returncode == 0, freed.stderr
    assert waiting.returncode == 0
    assert f'"{draft.name}" deleted' in out
    is_gone(draft)


@pytest.mark.parametrize("cascade", ["foreground", "background", "orphan"])
def test_row_78_what_a_revision_owns_goes_or_stays_by_the_cascade(drafts: Drafts, cascade: str) -> None:
    owner, owned = drafts.of("owner"), drafts.of("owned")
    reference = {
        "apiVersion": "porch.kpt.dev/v1alpha1",
        "kind": "PackageRevision",
        "name": owner.name,
        "uid": owner.create()["metadata"]["uid"],
        "blockOwnerDeletion": True,
    }
    owned.kubectl.create(owned.body(ownerReferences=[reference]))

    drafts.kubectl.ok(
        "delete", KIND, owner.name, f"--cascade={cascade}", f"--timeout={PATIENCE:.0f}s", timeout=2 * PATIENCE
    )

    is_gone(owner)
    if cascade == "orphan":
        assert "ownerReferences" not in owned.metadata()
    elif cascade == "foreground":
        is_gone(owned)
    else:
        eventually(lambda: is_gone(owned), timeout=PATIENCE)


def test_row_79_deletes_may_wait_or_not_and_be_forced(drafts: Drafts) -> None:
    held, now, forced = (drafts.of(package) for package in ("held", "now", "forced"))
    for one in (held, now, forced):
        one.create()
    assert held.patch(HOLD).returncode == 0

    drafts.kubectl.ok("delete", KIND, held.name, "--wait=false")
    drafts.kubectl.ok("delete", KIND, now.name, "--now")
    done = drafts.kubectl("delete", KIND, forced.name, "--grace-period=0", "--force")

    assert done.returncode == 0
    assert "Immediate deletion does not wait" in done.stderr
    assert drafts.packages() == ["held"]
    assert held.patch(LET_GO).returncode == 0


def test_row_80_a_delete_of_another_object_is_a_conflict(draft: CheckedDraft) -> None:
    metadata = draft.create()["metadata"]

    def deleted_with(**preconditions: str) -> tuple[int, str]:
        answer = draft.porch.request("DELETE", draft.path, {"preconditions": preconditions})
        return answer.code, answer.body.decode()

    uid = deleted_with(uid="another")
    revision = deleted_with(resourceVersion="1")
    right = deleted_with(uid=metadata["uid"])

    assert (uid[0], revision[0], right[0]) == (409, 409, 200)
    assert "the UID in the precondition (another) does not match" in uid[1]
    assert "the ResourceVersion in the precondition (1) does not match" in revision[1]


def test_row_83_a_collection_is_deleted_by_its_labels(drafts: Drafts) -> None:
    for package, color in (("a", "red"), ("b", "blue"), ("c", "red")):
        drafts.of(package).create(color=color)

    answer = drafts.porch.request("DELETE", drafts.path("labelSelector=color%3Dred"))

    assert (answer.code, answer.object["kind"]) == (200, "PackageRevisionList")
    assert [item["spec"]["packageName"] for item in answer.object["items"]] == ["a", "c"]
    assert drafts.packages() == ["b"]
