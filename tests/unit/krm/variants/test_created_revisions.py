"""What a variant sends: new revisions, upgrades in place, adoption and release (2.5, 2.6, 2.11, 2.12, R4; C-10, C-40)."""

from copy import deepcopy
from typing import Any

import pytest
from case_tables import DEAD, FRIEND, ME, OTHER, lock, owner, revision, variant
from hypothesis import given
from hypothesis import strategies as st

from apiserver.rules.gate_fields import check_gate_fields
from apiserver.rules.revision_changes import check_new
from apiserver.rules.task_changes import appended_upgrade
from krm.api.porch import PackageRevision
from krm.variants.creation import clone_body, edit_body, in_place_upgrade, reference, upgrade_body
from krm.variants.operations import MOST_MESSAGE, failed, pending, succeeded, with_operations
from krm.variants.ownership import adopted, owner_reference, rewritten
from krm.variants.retirement import Rewrite
from krm.variants.revisions import Lock, Revision

Json = dict[str, Any]
GATE, PIPELINE = "PVOperationsComplete", "PackagePipelinePassed"
MARKER = "config.porch.kpt.dev/packagevariant-uid"
OWN = {
    "apiVersion": "config.porch.kpt.dev/v1alpha1",
    "kind": "PackageVariant",
    "name": "my-pv",
    "uid": ME,
    "controller": True,
}
PENDING = {
    "type": GATE,
    "status": "False",
    "reason": "PVOperationsPending",
    "message": 'waiting for package variant "my-pv" to finish its operations',
}
KEEPER = variant(labels={"org": "hr"}, annotations={"note": "n"})
PUBLISHED: Json = {
    "metadata": {
        "namespace": "default",
        "name": "deployments.a.b.packagevariant-1",
        "labels": {"kpt.dev/latest-revision": "true", "theirs": "x"},
        "annotations": {"config.porch.kpt.dev/applied-inputs": "sha256:0"},
    },
    "spec": {
        "repository": "deployments",
        "packageName": "a/b",
        "workspaceName": "packagevariant-1",
        "revision": 1,
        "lifecycle": "Published",
        "readinessGates": [{"conditionType": PIPELINE}, {"conditionType": "mine"}, {"conditionType": GATE}],
        "packageMetadata": {"labels": {"in": "kptfile"}},
        "tasks": [{"type": "clone"}],
    },
    "status": {"conditions": [{"type": GATE, "status": "True"}, {"type": "mine", "status": "True"}]},
}
DRAFT: Json = {
    "metadata": {"namespace": "default", "name": "deployments.bar.packagevariant-1", "resourceVersion": "7"},
    "spec": {
        "repository": "deployments",
        "packageName": "bar",
        "workspaceName": "packagevariant-1",
        "lifecycle": "Draft",
        "readinessGates": [{"conditionType": PIPELINE}, {"conditionType": GATE}],
        "tasks": [{"type": "clone", "clone": {"upstreamRef": {"upstreamRef": {"name": "blueprints.foo.v1"}}}}],
    },
    "status": {"conditions": [{"type": PIPELINE, "status": "True"}, {"type": GATE, "status": "True"}]},
}
OLD, NEW = {"name": "blueprints.foo.v1"}, {"name": "blueprints.foo.v2"}


def upstream(number: int = 1) -> Revision:
    return revision([f"v{number}", number], repository="blueprints", package="foo")


def every_body() -> list[Json]:
    return [
        clone_body(KEEPER, upstream(), "packagevariant-1"),
        edit_body(KEEPER, PUBLISHED, "packagevariant-2"),
        upgrade_body(KEEPER, PUBLISHED, OLD, NEW, "packagevariant-2"),
    ]


def test_a_clone() -> None:
    body = clone_body(KEEPER, upstream(), "packagevariant-1")

    assert body["metadata"] == {
        "name": "deployments.bar.packagevariant-1",
        "namespace": "default",
        "ownerReferences": [OWN],
        "labels": {"org": "hr", MARKER: ME},
        "annotations": {"note": "n"},
    }
    assert body["spec"] == {
        "repository": "deployments",
        "packageName": "bar",
        "workspaceName": "packagevariant-1",
        "lifecycle": "Draft",
        "tasks": [{"type": "clone", "clone": {"upstreamRef": {"upstreamRef": {"name": "blueprints.foo.v1"}}}}],
        "readinessGates": [{"conditionType": GATE}],
    }
    assert body["status"] == {"conditions": [PENDING]}


def test_a_pinned_clone_names_a_commit() -> None:
    """C-10."""
    pinned = {"repo": "https://x/b", "ref": "c1", "directory": "foo"}

    (task,) = clone_body(KEEPER, upstream(), "packagevariant-1", pinned)["spec"]["tasks"]

    assert task == {"type": "clone", "clone": {"upstreamRef": {"type": "git", "git": pinned}}}


def test_an_edit_takes_gates_and_package_metadata_along_and_no_metadata() -> None:
    """2.6 and C-40."""
    body = edit_body(KEEPER, PUBLISHED, "packagevariant-2")

    assert body["metadata"]["name"] == "deployments.a.b.packagevariant-2"
    assert body["metadata"]["labels"] == {"org": "hr", MARKER: ME}
    assert body["metadata"]["annotations"] == {"note": "n"}
    assert body["spec"]["tasks"] == [{"type": "edit", "edit": {"sourceRef": {"name": PUBLISHED["metadata"]["name"]}}}]
    assert body["spec"]["readinessGates"] == [{"conditionType": "mine"}, {"conditionType": GATE}]
    assert body["spec"]["packageMetadata"] == {"labels": {"in": "kptfile"}}
    assert (body["spec"]["packageName"], body["spec"]["lifecycle"]) == ("a/b", "Draft")
    assert "revision" not in body["spec"]
    assert body["status"] == {"conditions": [PENDING]}


def test_an_upgrade() -> None:
    """G-F05."""
    (task,) = upgrade_body(KEEPER, PUBLISHED, OLD, NEW, "packagevariant-2")["spec"]["tasks"]

    assert task == {
        "type": "upgrade",
        "upgrade": {
            "oldUpstreamRef": OLD,
            "newUpstreamRef": NEW,
            "localPackageRevisionRef": {"name": PUBLISHED["metadata"]["name"]},
            "strategy": "resource-merge",
        },
    }


def test_upstreams_are_named_or_addressed() -> None:
    place = Lock.of(lock("https://x/b|foo|foo/v1|c1"))
    assert place is not None
    address = {"repo": "https://x/b", "ref": "c1", "directory": "foo"}

    assert reference(upstream()) == {"name": "blueprints.foo.v1"}
    assert reference(place) == {"git": address}
    assert reference(place, "key") == {"git": {**address, "secretRef": {"name": "key"}}}
    assert reference(address) == {"git": address}


@pytest.mark.parametrize("body", every_body(), ids=["clone", "edit", "upgrade"])
def test_the_server_takes_what_is_created(body: Json) -> None:
    check_new(body)
    assert check_gate_fields(body, {}) == []
    PackageRevision.model_validate(body)


def test_labels_cannot_take_the_place_of_the_marker() -> None:
    body = clone_body(variant(labels={MARKER: "x"}), upstream(), "packagevariant-1")

    assert body["metadata"]["labels"] == {MARKER: ME}
    assert "annotations" not in body["metadata"]


def test_an_upgrade_in_place_appends_one_task_and_closes_the_gate() -> None:
    """R4, C-08 and C-35: the server has to recognise it."""
    before = deepcopy(DRAFT)

    body = in_place_upgrade(DRAFT, OLD, NEW, "my-pv")

    found = appended_upgrade(DRAFT, body)
    assert before == DRAFT
    assert found is not None
    assert found.block["localPackageRevisionRef"] == {"name": "deployments.bar.packagevariant-1"}
    assert found.block["newUpstreamRef"] == NEW
    assert body["metadata"] == DRAFT["metadata"]
    assert body["status"]["conditions"] == [{"type": PIPELINE, "status": "True"}, PENDING]


def test_a_draft_of_unknown_tasks_can_be_upgraded_in_place() -> None:
    bare = {**DRAFT, "spec": {key: value for key, value in DRAFT["spec"].items() if key != "tasks"}}

    assert appended_upgrade(bare, in_place_upgrade(bare, OLD, NEW, "my-pv")) is not None


# --- the gate --------------------------------------------------------------------------------------


def test_the_gate_is_added_once_and_its_condition_replaced() -> None:
    bare: Json = {"metadata": {"name": "x"}, "spec": {}}

    gated = with_operations(bare, pending("my-pv"))
    done = with_operations(gated, succeeded())

    assert bare == {"metadata": {"name": "x"}, "spec": {}}
    assert gated["spec"]["readinessGates"] == [{"conditionType": GATE}]
    assert gated["status"]["conditions"] == [PENDING]
    assert [one["status"] for one in done["status"]["conditions"]] == ["True"]
    assert done["status"]["conditions"][0]["reason"] == "PVOperationsSucceeded"
    assert with_operations(done, succeeded()) == done


def test_errors_are_not_carried_about_in_full() -> None:
    condition = failed("x" * 100_000)

    assert (condition["status"], condition["reason"]) == ("False", "PVOperationsFailed")
    assert len(condition["message"]) == MOST_MESSAGE
    assert failed("short")["message"] == "short"


types = st.sampled_from([GATE, PIPELINE, "mine"])


@pytest.mark.hypothesis
@given(
    st.lists(types, unique=True),
    st.lists(st.tuples(types, st.sampled_from(["True", "False"])), unique_by=lambda one: one[0]),
)
def test_what_is_others_stays_in_its_place(gates: list[str], conditions: list[tuple[str, str]]) -> None:
    body: Json = {
        "metadata": {"name": "x"},
        "spec": {"readinessGates": [{"conditionType": gate} for gate in gates]},
        "status": {"conditions": [{"type": type_, "status": status} for type_, status in conditions]},
    }

    done = with_operations(body, succeeded())

    assert [one for one in done["spec"]["readinessGates"] if one["conditionType"] != GATE] == [
        {"conditionType": gate} for gate in gates if gate != GATE
    ]
    assert [one for one in done["status"]["conditions"] if one["type"] != GATE] == [
        {"type": type_, "status": status} for type_, status in conditions if type_ != GATE
    ]
    read = Revision.of({**done, "metadata": {"name": "x"}})
    assert (read.operations_gate, read.operations_complete) == (True, True)
    assert with_operations(done, succeeded()) == done


# --- ownership ----------------------------------------------------------------------------------------


def owned_body(*owners: str, **metadata: Any) -> Json:
    return {"metadata": {"name": "x", "ownerReferences": [owner(name) for name in owners], **metadata}, "spec": {}}


def uids(body: Json) -> list[str]:
    return [one["uid"] for one in body["metadata"]["ownerReferences"]]


def test_adoption_merges_labels_and_annotations_over_those_that_are_there() -> None:
    """G-D08."""
    keeper = variant(labels={"a": "b"}, annotations={"e": "f"})

    body = adopted(owned_body(labels={"a": "x", "c": "d"}, annotations={"g": "h"}), keeper)

    assert body["metadata"]["labels"] == {"a": "b", "c": "d", MARKER: ME}
    assert body["metadata"]["annotations"] == {"e": "f", "g": "h"}
    assert body["metadata"]["ownerReferences"] == [OWN]


def test_adoption_replaces_the_dead_and_leaves_everybody_else() -> None:
    body = adopted(owned_body("friend", "dead"), variant(), {DEAD})

    assert uids(body) == [FRIEND, ME]


def test_what_is_owned_is_not_adopted_again() -> None:
    once = adopted(owned_body("friend"), variant(labels={"a": "b"}))
    theirs = {**once, "metadata": {**once["metadata"], "labels": {"a": "changed since"}}}

    assert adopted(once, variant(labels={"a": "b"})) == once
    assert adopted(theirs, variant(labels={"a": "b"})) == theirs  # C-40


def test_a_release_drops_what_is_ours_and_only_that() -> None:
    """G-X05."""
    mine = owned_body("me", "other", labels={MARKER: ME, "a": "b"})

    body = rewritten(mine, Rewrite(None, drop_owner=True, drop_marker=True), ME)

    assert uids(body) == [OTHER]
    assert body["metadata"]["labels"] == {"a": "b"}
    assert "lifecycle" not in body["spec"]
    assert uids(mine) == [ME, OTHER]


def test_a_proposal_to_delete_and_the_release_are_one_write() -> None:
    """G-X06."""
    body = rewritten(owned_body("me"), Rewrite("DeletionProposed", drop_owner=True, drop_marker=True), ME)

    assert uids(body) == []
    assert body["spec"] == {"lifecycle": "DeletionProposed"}


def test_a_proposal_to_delete_keeps_the_owners_while_the_variant_lives() -> None:
    """G-X03."""
    body = rewritten(owned_body("me", "other"), Rewrite("DeletionProposed", drop_owner=False, drop_marker=False), ME)

    assert uids(body) == [ME, OTHER]


def test_the_marker_of_another_variant_stays() -> None:
    body = rewritten(owned_body("me", labels={MARKER: OTHER}), Rewrite(None, drop_owner=True, drop_marker=True), ME)

    assert body["metadata"]["labels"] == {MARKER: OTHER}


def test_the_owner_reference_does_not_block_a_deletion_in_the_foreground() -> None:
    """2.6: blockOwnerDeletion is not set."""
    assert owner_reference(variant()) == OWN
