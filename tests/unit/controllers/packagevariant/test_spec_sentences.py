"""``variants.md`` 2, sentence by sentence, on the model of the server: what is written in which order, and what is told.

The server's own side is in ``tests/e2e/variants``. Each scene ends with a pass in which nothing is left to do (I1, G-F09).
"""

from collections.abc import Iterator
from typing import Any

import pytest
from spec_scene import DRAFT, GATE, PV, SECOND, Scene
from variant_model.client import Fault
from variant_model.people import NAMESPACE, Step
from variant_model.porch import CONFIG_MAPS, REPOSITORIES, REVISIONS, VARIANTS, copied

Json = dict[str, Any]
STATUS = f"update packagevariants/{PV} status"
FINALIZER = f"update packagevariants/{PV} "
CREATE, UPDATE, SAVE = (
    f"create packagerevisions/{DRAFT} ",
    f"update packagerevisions/{DRAFT} ",
    f"update packagerevisionresources/{DRAFT} ",
)
LABELS: Json = {
    "pipeline": {"mutators": [{"image": "set-labels:v0.2.0", "name": "stamp", "configMap": {"app": "one"}}]}
}
OTHER_LABELS: Json = {
    "pipeline": {"mutators": [{"image": "set-labels:v0.2.0", "name": "stamp", "configMap": {"app": "two"}}]}
}
NO_ERRORS = ("True", "NoErrors", "successfully ensured downstream package variant")
VALID = ("False", "Valid", "all validation checks passed")


@pytest.fixture
def scene() -> Iterator[Scene]:
    made = Scene()
    yield made
    if made.exists:
        made.settle()
        assert made.again() == []
    made.close()


def revisions(writes: list[str]) -> list[str]:
    """Leave out what is written about the variant itself."""
    return [one for one in writes if "packagevariants/" not in one]


# --- 2.1 the main loop ---------------------------------------------------------------------------------


def test_a_variant_that_is_not_there_needs_nothing(scene: Scene) -> None:
    scene.world.wake((NAMESPACE, "gone"))

    assert scene.settle() == []


def test_the_first_pass_writes_finalizer_draft_gate_and_status(scene: Scene) -> None:
    """G-F01: without mutations nothing is saved, but the injection point of the blueprint has its condition."""
    scene.broken_upstream({"point.yaml": ""})

    assert scene.create() == [FINALIZER, CREATE, UPDATE, STATUS]
    assert scene.condition("Stalled") == VALID
    assert scene.condition("Ready") == NO_ERRORS
    assert scene.targets == [DRAFT]
    assert scene.gate() == ("True", "PVOperationsSucceeded")
    assert scene.status["downstreamTargets"][0]["operation"] == "clone"
    assert scene.status["downstreamTargets"][0]["renderStatus"] == {"error": "", "result": {"exitCode": 0}}


def test_mutations_are_saved_behind_a_closed_gate(scene: Scene) -> None:
    """G-F02."""
    assert scene.create(**LABELS) == [FINALIZER, CREATE, SAVE, UPDATE, STATUS]
    assert scene.ready == ("True", "NoErrors")


def test_defaults_are_not_written_into_the_spec(scene: Scene) -> None:
    """G-V03, 1.1."""
    scene.create()

    assert set(scene.body["spec"]) == {"upstream", "downstream"}


def test_an_invalid_variant_is_told_of_and_not_worked_on(scene: Scene) -> None:
    writes = scene.create(adoptionPolicy="invalid", deletionPolicy="invalid")

    message = (
        'spec.adoptionPolicy field can only be "adoptNone" or "adoptExisting"; '
        'spec.deletionPolicy can only be "orphan" or "delete"'
    )
    assert revisions(writes) == []
    assert scene.condition("Stalled") == ("True", "ValidationError", message)
    assert scene.condition("Ready") == ("False", "Error", "invalid packagevariant object")


def test_an_upstream_that_appears_later_is_cloned_then(scene: Scene) -> None:
    """G-F18, C-18."""
    scene.create({"revision": "v2"})

    assert scene.condition("Stalled") == (
        "True",
        "UpstreamNotFound",
        "could not find upstream package revision blueprints/base@v2",
    )
    assert scene.condition("Ready") == ("False", "Error", "invalid packagevariant object")
    assert scene.again() == []

    assert CREATE in scene.release()
    assert scene.condition("Stalled") == VALID
    assert scene.ready == ("True", "NoErrors")


def test_an_upstream_that_is_a_draft_is_not_used(scene: Scene) -> None:
    """C-45."""
    scene.make("w9", "other")

    writes = scene.create({"repo": "deployments", "package": "other", "workspaceName": "w9"})

    assert revisions(writes) == []
    assert scene.condition("Stalled") == (
        "True",
        "UpstreamNotPublished",
        'upstream package revision "deployments.other.w9" is not published',
    )


def test_conditions_carry_the_generation_and_the_time_of_their_last_change(scene: Scene) -> None:
    """2.13."""
    scene.create()
    before = {one["type"]: one["lastTransitionTime"] for one in scene.status["conditions"]}

    scene.edit(**LABELS)

    after = scene.status["conditions"]
    assert {one["type"]: one["lastTransitionTime"] for one in after} == before
    assert {one["observedGeneration"] for one in after} == {2}
    assert scene.status["observedGeneration"] == 2


# --- 2.3 and 2.4: what the upstream stands for ----------------------------------------------------------


def test_a_workspace_wins_over_a_revision_and_says_so_once(scene: Scene) -> None:
    """C-02."""
    scene.release()
    scene.create({"workspaceName": "w1", "revision": 2})
    scene.again()

    assert scene.status["upstream"]["name"] == "blueprints.base.w1"
    assert scene.events.count("UpstreamRevisionIgnored") == 1


def test_an_upstream_whose_deletion_is_proposed_can_be_used(scene: Scene) -> None:
    scene.move("DeletionProposed", "blueprints.base.w1")
    scene.create({"revision": 1})

    assert scene.names() == ["packagevariant-1"]
    assert "UpstreamDeletionProposed" in scene.events


def test_the_latest_is_followed_up_and_not_down(scene: Scene) -> None:
    """2.4: also in the passes after the first."""
    scene.release()
    scene.create()
    scene.publish()
    scene.move("DeletionProposed", "blueprints.base.w2")

    assert revisions(scene.settle()) == []
    assert revisions(scene.again()) == []
    assert scene.ready == ("True", "NoErrors")
    assert scene.events.count("UpstreamWentBackwards") == 1


def test_the_latest_is_not_followed_down_by_a_new_process_either(scene: Scene) -> None:
    scene.release()
    scene.create()
    scene.publish()
    scene.move("DeletionProposed", "blueprints.base.w2")
    scene.settle()
    body = copied(scene.body)
    body.pop("status")
    scene.porch.update(VARIANTS, body, "status")
    scene.world.start()

    scene.settle()

    assert scene.names() == ["packagevariant-1"]


def test_the_latest_is_followed_down_where_that_is_allowed(scene: Scene) -> None:
    scene.release()
    scene.create({"allowDowngrade": True})
    scene.publish()
    scene.move("DeletionProposed", "blueprints.base.w2")
    scene.settle()

    assert scene.names() == ["packagevariant-1", "packagevariant-2"]
    assert scene.task(SECOND)["upgrade"]["newUpstreamRef"] == {"name": "blueprints.base.w1"}


def test_a_tag_that_moves_makes_one_draft_and_moves_it(scene: Scene) -> None:
    """2.4, debounce; G-U08."""
    scene.release()
    scene.release()
    scene.tag(1)
    scene.create({"tag": "stable"})
    scene.publish()

    for number in (2, 3, 1, 3):
        scene.tag(number)

    assert scene.names() == ["packagevariant-1", "packagevariant-2"]
    assert scene.status["upstream"]["name"] == "blueprints.base.w3"
    assert scene.status["upstream"]["tag"] == "stable"
    assert scene.files(SECOND)["settings.yaml"].count("v3") == 1


def test_a_tag_that_is_moved_back_is_followed(scene: Scene) -> None:
    scene.release()
    scene.tag(2)
    scene.create({"tag": "stable"})
    scene.publish()

    scene.tag(1)

    upgrade = scene.task(SECOND)["upgrade"]
    assert upgrade["oldUpstreamRef"] == {"name": "blueprints.base.w2"}
    assert upgrade["newUpstreamRef"] == {"name": "blueprints.base.w1"}


# --- 2.5 discovery and adoption ----------------------------------------------------------------------------


def test_a_package_of_somebody_else_is_left_alone_and_told_of(scene: Scene) -> None:
    """G-D09; decisions.md 16."""
    scene.make("mine")

    writes = scene.create()

    assert revisions(writes) == []
    status, reason, message = scene.condition("Ready")
    assert (status, reason) == ("False", "DownstreamExists")
    assert "adoptExisting" in message


def test_a_draft_is_adopted_and_gets_the_gate(scene: Scene) -> None:
    """G-D06, G-D08, 2.11: adopted drafts get the gate."""
    name = scene.make("mine", labels={"a": "x", "c": "d"})

    scene.create(adoptionPolicy="adoptExisting", labels={"a": "b"}, annotations={"e": "f"})

    metadata = scene.revision(name)["metadata"]
    assert scene.owners(name) == [PV]
    assert {key: metadata["labels"][key] for key in ("a", "c")} == {"a": "b", "c": "d"}
    assert metadata["annotations"]["e"] == "f"
    assert scene.gate(name) == ("True", "PVOperationsSucceeded")
    assert scene.targets == [name]
    assert scene.status["downstreamTargets"][0]["operation"] == "adopted"


def test_what_somebody_else_controls_is_not_adopted(scene: Scene) -> None:
    other = {"apiVersion": "v1", "kind": "ConfigMap", "name": "theirs", "uid": "u", "controller": True}
    name = scene.make("mine", ownerReferences=[other])

    writes = scene.create(adoptionPolicy="adoptExisting")

    assert revisions(writes) == []
    status, reason, message = scene.condition("Ready")
    assert (status, reason) == ("False", "AdoptionConflict")
    assert "theirs" in message
    assert scene.owners(name) == ["theirs"]


def test_a_variant_that_was_made_again_owns_its_revisions_again(scene: Scene) -> None:
    """G-F15."""
    scene.create()
    scene.publish()
    scene.world.user(Step("restore_variant", PV))
    writes = scene.settle()

    assert scene.names() == ["packagevariant-1"]
    assert revisions(writes) == [UPDATE]
    (owner,) = scene.revision(DRAFT)["metadata"]["ownerReferences"]
    assert owner["uid"] == scene.body["metadata"]["uid"]


def test_revisions_that_a_rebuilt_database_forgot_are_owned_again(scene: Scene) -> None:
    """decisions.md 16."""
    scene.create()
    scene.publish()
    bare = copied(scene.revision(DRAFT))
    for part in ("ownerReferences", "labels", "annotations"):
        bare["metadata"].pop(part, None)
    scene.porch.forge(REVISIONS, bare)

    scene.settle()

    assert scene.owners() == [PV]
    assert scene.ready == ("True", "NoErrors")
    assert scene.names() == ["packagevariant-1"]


def test_a_target_that_changes_and_changes_back(scene: Scene) -> None:
    """G-D11, C-14."""
    scene.create(package="foo")
    foo = "deployments.foo.packagevariant-1"
    scene.publish(foo)

    scene.edit(downstream={"repo": "deployments", "package": "app"})
    assert (scene.lifecycle(foo), scene.owners(foo)) == ("DeletionProposed", [PV])
    assert scene.targets == [DRAFT]

    scene.edit(downstream={"repo": "deployments", "package": "foo"})
    assert scene.lifecycle(foo) == "Published"
    assert scene.names() == []
    assert scene.targets == [foo]
    assert scene.ready == ("True", "NoErrors")


def test_a_deletion_that_somebody_else_proposes_is_left_alone(scene: Scene) -> None:
    """C-14."""
    scene.create()
    scene.publish()
    scene.move("DeletionProposed")

    writes = scene.settle()

    assert revisions(writes) == []
    assert scene.ready == ("False", "DownstreamDeletionProposed")
    scene.move("Published")
    scene.settle()
    assert scene.ready == ("True", "NoErrors")


def test_a_newer_revision_of_somebody_else_stops_new_drafts(scene: Scene) -> None:
    """C-11."""
    scene.create()
    scene.publish()
    mine = scene.make("mine")
    scene.publish(mine)
    assert scene.ready == ("True", "NoErrors")  # nothing is to be changed
    assert scene.targets == [DRAFT]

    assert revisions(scene.release()) == []
    assert scene.ready == ("False", "DownstreamDiverged")
    assert "adoptExisting" in scene.condition("Ready")[2]

    scene.edit(adoptionPolicy="adoptExisting")
    assert scene.ready == ("True", "NoErrors")
    task = scene.task(scene.targets[0])
    assert task["upgrade"]["localPackageRevisionRef"] == {"name": mine}


def test_a_repository_that_does_not_exist_gets_nothing(scene: Scene) -> None:
    """decisions.md 16."""
    writes = scene.create(downstream={"repo": "nowhere", "package": "app"})

    assert revisions(writes) == []
    assert scene.ready == ("False", "Error")
    assert "nowhere" in scene.condition("Ready")[2]
    spec = {"type": "git", "git": {"repo": "https://git.example/nowhere", "branch": "main"}}
    scene.porch.create(REPOSITORIES, NAMESPACE, {"metadata": {"name": "nowhere"}, "spec": spec})
    assert "create packagerevisions/nowhere.app.packagevariant-1 " in scene.settle()


# --- 2.6 to 2.8: what is made --------------------------------------------------------------------------------


def test_an_upgrade_is_a_new_draft_of_what_is_published(scene: Scene) -> None:
    """G-F05, C-40."""
    scene.create(labels={"a": "1"}, annotations={"n": "1"})
    scene.publish()
    scene.patch(DRAFT, {"metadata": {"labels": {"theirs": "x"}}})
    scene.edit(labels={"a": "2"}, annotations={"n": "2"})

    writes = scene.release()

    assert [one for one in writes if one.startswith("create")] == [f"create packagerevisions/{SECOND} "]
    assert scene.task(SECOND) == {
        "type": "upgrade",
        "upgrade": {
            "oldUpstreamRef": {"name": "blueprints.base.w1"},
            "newUpstreamRef": {"name": "blueprints.base.w2"},
            "localPackageRevisionRef": {"name": DRAFT},
            "strategy": "resource-merge",
        },
    }
    metadata = scene.revision(SECOND)["metadata"]
    assert metadata["labels"]["a"] == "2"
    assert "theirs" not in metadata["labels"]
    assert metadata["annotations"]["n"] == "2"
    assert scene.revision(DRAFT)["metadata"]["labels"]["a"] == "1"
    assert scene.targets == [SECOND]


def test_another_pipeline_is_a_new_draft_of_what_is_published(scene: Scene) -> None:
    """G-F06."""
    scene.create(**LABELS)
    scene.publish()

    writes = scene.edit(**OTHER_LABELS)

    second = [one.replace(DRAFT, SECOND) for one in (CREATE, SAVE, UPDATE)]
    assert revisions(writes) == second
    assert scene.task(SECOND) == {"type": "edit", "edit": {"sourceRef": {"name": DRAFT}}}
    assert scene.lifecycle() == "Published"
    assert scene.status["downstreamTargets"][0]["operation"] == "edit"


def test_another_pipeline_changes_a_draft_in_place(scene: Scene) -> None:
    """G-F04."""
    scene.create(**LABELS)

    writes = scene.edit(**OTHER_LABELS)

    assert revisions(writes) == [UPDATE, SAVE, UPDATE]
    assert scene.names() == ["packagevariant-1"]


def test_an_upgrade_of_a_draft_is_in_place_and_keeps_edits(scene: Scene) -> None:
    """G-F07, C-08."""
    scene.create()
    scene.save(DRAFT, {"note.txt": "mine\n"})
    scene.settle()

    scene.release()

    assert scene.names() == ["packagevariant-1"]
    assert scene.files(DRAFT)["note.txt"] == "mine\n"
    assert "v2" in scene.files(DRAFT)["settings.yaml"]
    assert scene.gate() == ("True", "PVOperationsSucceeded")
    assert scene.status["downstreamTargets"][0]["operation"] == "upgrade"


@pytest.mark.parametrize("change", ["upstream", "pipeline"])
def test_what_is_proposed_is_not_touched(scene: Scene, change: str) -> None:
    """G-F08, C-09."""
    scene.create(**LABELS)
    scene.fulfil(DRAFT)
    scene.settle()
    scene.move("Proposed")
    scene.settle()

    writes = scene.release() if change == "upstream" else scene.edit(**OTHER_LABELS)

    assert revisions(writes) == []
    assert scene.ready == ("False", "DownstreamProposed")
    assert scene.targets == [DRAFT]
    scene.move("Draft")
    scene.settle()
    assert scene.ready == ("True", "NoErrors")


def test_labels_and_annotations_change_nothing_that_exists(scene: Scene) -> None:
    """G-F11."""
    scene.create(labels={"a": "1"})

    assert revisions(scene.edit(labels={"a": "2"}, annotations={"b": "3"})) == []
    scene.publish()
    assert revisions(scene.edit(labels={"a": "4"})) == []


def test_the_next_number_is_taken_when_somebody_has_this_one(scene: Scene) -> None:
    """2.6: anybody's workspace counts that has such a name."""
    scene.create()
    scene.publish()
    scene.make("packagevariant-2")
    scene.release()

    assert "packagevariant-3" in scene.names()
    assert scene.owners(SECOND) == []


def test_a_package_that_says_nothing_of_its_upstream_is_up_to_date(scene: Scene) -> None:
    """2.7 rule 1, G-L01."""
    name = scene.make("mine")
    scene.create(adoptionPolicy="adoptExisting")

    assert revisions(scene.release()) == []
    assert scene.ready == ("True", "NoErrors")
    assert scene.lifecycle(name) == "Draft"


def test_another_upstream_package_of_the_same_number_is_another_upstream(scene: Scene) -> None:
    """2.6 and 2.7 rule 4: the spec was pointed elsewhere."""
    other = scene.make("w1", "template")
    scene.move("Proposed", other)
    scene.move("Published", other)
    scene.create({"revision": 1})
    scene.publish()

    scene.edit(upstream={"repo": "deployments", "package": "template", "revision": 1})

    upgrade = scene.task(SECOND)["upgrade"]
    assert upgrade["oldUpstreamRef"] == {"name": "blueprints.base.w1"}
    assert upgrade["newUpstreamRef"] == {"name": other}


def test_an_old_upstream_that_is_gone_is_named_by_its_commit(scene: Scene) -> None:
    """2.6: upstream fails for ever here."""
    scene.release()
    scene.create({"revision": 1})
    scene.publish()
    lock = copied(scene.revision("blueprints.base.w1"))["status"]["selfLock"]["git"]
    moved = copied(scene.revision("blueprints.base.w1"))
    moved["spec"]["revision"] = 0
    moved["spec"]["lifecycle"] = "Draft"
    scene.porch.forge(REVISIONS, moved)

    scene.edit(upstream={"repo": "blueprints", "package": "base", "revision": 2})

    old = scene.task(SECOND)["upgrade"]["oldUpstreamRef"]
    assert (old["git"]["ref"], old["git"]["directory"]) == (lock["commit"], lock["directory"])


def test_a_mistake_in_the_upstream_keeps_the_draft_from_being_made(scene: Scene) -> None:
    """G-F17, C-30."""
    bad = (
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: p\n  annotations:\n    kpt.dev/config-injection: perhaps\n"
    )
    scene.broken_upstream({"bad.yaml": bad})

    writes = scene.create()

    assert revisions(writes) == []
    assert scene.ready == ("False", "MutationFailed")
    assert 'invalid "kpt.dev/config-injection" annotation value of "perhaps"' in scene.condition("Ready")[2]


# --- 2.10 and 2.11: writes and the gate ------------------------------------------------------------------------


def test_a_render_that_fails_leaves_the_draft_closed_and_goes_on_with_it(scene: Scene) -> None:
    """G-F03, 2.13."""
    bad: Json = {"pipeline": {"mutators": [{"image": "nobody.example/unknown:v1"}]}}

    writes = scene.create(**bad)

    assert revisions(writes)[:1] == [CREATE]
    assert scene.ready == ("False", "RenderFailed")
    assert scene.gate() == ("False", "PVOperationsFailed")
    (target,) = scene.status["downstreamTargets"]
    assert target["name"] == DRAFT
    assert target["renderStatus"]["error"]
    assert scene.names() == ["packagevariant-1"]

    scene.edit(**LABELS)
    assert scene.gate() == ("True", "PVOperationsSucceeded")
    assert scene.ready == ("True", "NoErrors")
    assert scene.names() == ["packagevariant-1"]
    assert scene.status["downstreamTargets"][0]["renderStatus"]["error"] == ""


def test_a_function_that_rewrites_what_was_injected_is_not_fought(scene: Scene) -> None:
    """G-F12: the fingerprint breaks the loop."""
    rewriting = {"image": "set-labels:v0.2.0", "configMap": {"a": "b"}}
    writes = scene.create(injectors=[{"name": "east"}], pipeline={"mutators": [rewriting]})

    assert revisions(writes) == [CREATE, SAVE, UPDATE]
    assert scene.again() == []


def test_an_edit_of_what_was_applied_is_reported_and_kept(scene: Scene) -> None:
    """2.10 rule 4 and 6.4."""
    scene.create(**LABELS)
    files = scene.files(DRAFT)
    scene.save(DRAFT, {"Kptfile": files["Kptfile"].replace("app: one", "app: changed")})

    writes = scene.settle()

    assert revisions(writes) == []
    assert scene.condition("Drifted")[:2] == ("True", "ContentDrift")
    assert scene.status["drift"]["files"] == ["Kptfile"]
    assert "app: changed" in scene.files(DRAFT)["Kptfile"]
    assert scene.ready == ("True", "NoErrors")


def test_an_injected_object_that_changes_is_a_new_draft(scene: Scene) -> None:
    """G-F10, published."""
    scene.create(injectors=[{"name": "east"}])
    scene.publish()

    scene.world.user(Step("config_map", PV, 2))
    scene.settle()

    assert scene.names() == ["packagevariant-1", "packagevariant-2"]
    assert "east-2.example" in scene.files(SECOND)["point.yaml"]
    assert scene.task(SECOND)["type"] == "edit"


def test_an_injected_object_that_changes_changes_a_draft(scene: Scene) -> None:
    """G-F10, draft."""
    scene.create(injectors=[{"name": "east"}])

    scene.world.user(Step("config_map", PV, 2))
    scene.settle()

    assert scene.names() == ["packagevariant-1"]
    assert "east-2.example" in scene.files(DRAFT)["point.yaml"]


def test_an_injected_object_that_goes_makes_no_draft(scene: Scene) -> None:
    """2.9.3 item 7, 2.10 rule 3."""
    scene.create(injectors=[{"name": "east"}])
    scene.publish()

    scene.world.user(Step("drop_object", PV, 0))
    scene.settle()

    assert scene.names() == ["packagevariant-1"]
    assert scene.ready == ("True", "NoErrors")


def test_a_required_point_that_gets_nothing_holds_the_package_and_not_the_variant(scene: Scene) -> None:
    """G-F16."""
    scene.create(injectors=[{"name": "nowhere"}])

    assert scene.ready == ("True", "NoErrors")
    with pytest.raises(Exception, match=r"config\.injection\.ConfigMap\.endpoints"):
        scene.move("Proposed")


def test_the_condition_of_what_is_published_is_never_touched(scene: Scene) -> None:
    scene.create(**LABELS)
    scene.publish()
    before = copied(scene.revision(DRAFT))["status"]["conditions"]

    scene.edit(**OTHER_LABELS)
    scene.release()

    assert scene.revision(DRAFT)["status"]["conditions"] == before


def test_a_process_that_dies_after_the_create_is_followed_by_one_that_finishes(scene: Scene) -> None:
    """G-F13, I3."""
    scene.porch.create(VARIANTS, NAMESPACE, {**_body(**LABELS), "metadata": {"name": PV}})
    scene.fault(n2=Fault.CRASH_AFTER)
    scene.settle()

    assert scene.names() == ["packagevariant-1"]
    assert scene.gate() == ("True", "PVOperationsSucceeded")


@pytest.mark.parametrize("number", range(8))
@pytest.mark.parametrize("fault", [fault for fault in Fault if fault is not Fault.BUSY])
def test_whatever_becomes_of_any_request_there_is_one_draft_in_the_end(scene: Scene, number: int, fault: Fault) -> None:
    """G-F13, G-F14, I3; a status that cannot be written undoes nothing (2.1 step 11)."""
    scene.porch.create(VARIANTS, NAMESPACE, {**_body(**LABELS), "metadata": {"name": PV}})
    scene.fault(**{f"n{number}": fault})
    scene.settle()

    assert scene.names() == ["packagevariant-1"]
    assert scene.gate() == ("True", "PVOperationsSucceeded")
    assert scene.ready == ("True", "NoErrors")


# --- 2.12 deletion ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["delete", "", "orphan"])
@pytest.mark.parametrize("lifecycle", ["Draft", "Proposed", "Published", "DeletionProposed"])
def test_what_becomes_of_revisions_with_their_variant(scene: Scene, policy: str, lifecycle: str) -> None:
    """G-X01 to G-X06 with the variant gone."""
    scene.create(deletionPolicy=policy)
    if lifecycle != "Draft":
        scene.fulfil(DRAFT)
        scene.settle()
        scene.move("Proposed")
    if lifecycle in ("Published", "DeletionProposed"):
        scene.move("Published")
        scene.settle()
    if lifecycle == "DeletionProposed":
        scene.move("DeletionProposed")
    scene.settle()

    writes = scene.delete()

    assert not scene.exists
    if policy != "orphan" and lifecycle in ("Draft", "Proposed"):
        assert scene.names() == []
        assert revisions(writes) == [f"delete packagerevisions/{DRAFT} "]
        return
    kept = lifecycle if policy == "orphan" or lifecycle == "DeletionProposed" else "DeletionProposed"
    assert scene.lifecycle() == kept
    assert scene.owners() == []
    assert revisions(writes) == [UPDATE]
    assert writes[-1] == FINALIZER


def test_a_foreign_owner_is_never_removed(scene: Scene) -> None:
    """G-X05."""
    scene.create(deletionPolicy="orphan")
    body = copied(scene.revision(DRAFT))
    friend = {"apiVersion": "v1", "kind": "ConfigMap", "name": "friend", "uid": "u"}
    owners = [*body["metadata"]["ownerReferences"], friend]
    scene.patch(DRAFT, {"metadata": {"ownerReferences": owners}})
    scene.settle()

    scene.delete()

    assert scene.owners() == ["friend"]
    assert GATE in str(scene.revision(DRAFT)["spec"]["readinessGates"])


def test_an_invalid_variant_can_be_deleted(scene: Scene) -> None:
    """G-X08; unknown policies keep what there is."""
    scene.create()
    scene.edit(deletionPolicy="shred", injectors=7, downstream={"repo": 3})
    assert scene.condition("Stalled")[0] == "True"

    scene.delete()

    assert not scene.exists
    assert (scene.lifecycle(), scene.owners()) == ("Draft", [])


def test_a_delete_that_fails_keeps_the_variant(scene: Scene) -> None:
    """G-X07."""
    scene.create()
    scene.porch.delete(VARIANTS, NAMESPACE, PV)
    scene.fault(n0=Fault.INTERNAL)

    assert scene.exists
    assert scene.ready == ("False", "DeletionBlocked")
    scene.settle()
    assert not scene.exists
    assert scene.names() == []


def test_a_draft_that_is_somebodys_upstream_keeps_the_variant(scene: Scene) -> None:
    """2.12: refused with 403, reported and tried again."""
    scene.create()
    user = {
        "repository": "deployments",
        "packageName": "user",
        "workspaceName": "w",
        "lifecycle": "Draft",
        "tasks": [{"type": "clone", "clone": {"upstreamRef": {"upstreamRef": {"name": DRAFT}}}}],
    }
    scene.porch.create(REVISIONS, NAMESPACE, {"metadata": {}, "spec": user})
    scene.settle()

    scene.delete()

    assert scene.exists
    assert scene.ready == ("False", "DeletionBlocked")
    scene.porch.delete(REVISIONS, NAMESPACE, "deployments.user.w")
    scene.world.wake((NAMESPACE, PV))
    scene.settle()
    assert not scene.exists


# --- 6.7 pausing, 6.8 summaries --------------------------------------------------------------------------------------


def test_a_paused_variant_writes_nothing_but_its_status(scene: Scene) -> None:
    scene.create(**LABELS)
    scene.publish()
    before = scene.condition("Ready")

    writes = scene.edit(suspend=True, **OTHER_LABELS)
    writes += scene.release()

    assert set(writes) <= {STATUS}
    assert scene.condition("Paused")[:2] == ("True", "PausedByUser")
    assert scene.condition("Ready") == before
    assert scene.status["observedGeneration"] == 1
    assert scene.status["pendingChange"]["trigger"] in ("UpstreamChanged", "SpecChanged")
    assert scene.names() == ["packagevariant-1"]

    scene.edit(suspend=None)
    assert scene.condition("Paused")[0] != "True"
    assert scene.names() == ["packagevariant-1", "packagevariant-2"]


def test_a_new_variant_that_is_paused_writes_nothing_but_its_status(scene: Scene) -> None:
    assert set(scene.create(suspend=True)) == {STATUS}
    assert scene.status["pendingChange"]["trigger"] == "Initial"

    scene.delete()
    assert not scene.exists


def test_a_paused_variant_can_be_deleted(scene: Scene) -> None:
    scene.create()
    scene.edit(suspend=True)

    scene.delete()

    assert not scene.exists
    assert scene.names() == []


def test_the_status_says_why_there_is_a_draft(scene: Scene) -> None:
    scene.create(**LABELS)
    assert scene.status["pendingChange"]["trigger"] == "Initial"
    scene.publish()
    assert "pendingChange" not in scene.status

    scene.edit(**OTHER_LABELS)
    told = scene.status["pendingChange"]
    assert (told["trigger"], told["draft"], told["base"]) == ("SpecChanged", SECOND, DRAFT)
    scene.release()
    assert scene.status["pendingChange"]["trigger"] == "UpstreamChanged"


def test_drift_is_reported_for_a_pinned_upstream(scene: Scene) -> None:
    scene.create({"revision": 1}, injectors=[{"name": "east"}])
    assert scene.condition("Drifted") == ("", "", "")
    scene.release()

    assert scene.condition("Drifted")[:2] == ("True", "UpstreamBehind")
    assert scene.status["drift"]["upstreamBehind"] == 1
    assert scene.status["drift"]["newestUpstream"] == "blueprints.base.w2"


# --- several drafts -------------------------------------------------------------------------------------------------


def test_all_drafts_are_targets_and_are_kept(scene: Scene) -> None:
    """G-D03, G-D06."""
    scene.create()
    scene.publish()
    for workspace in ("one", "two"):
        scene.make(workspace)

    scene.edit(adoptionPolicy="adoptExisting", **LABELS)

    names = ["deployments.app.one", "deployments.app.two"]
    assert scene.targets == names
    assert all("app: one" in scene.files(name)["Kptfile"] for name in names)
    assert scene.names() == ["one", "packagevariant-1", "two"]


def test_what_cannot_be_done_about_one_draft_is_done_about_the_others(scene: Scene) -> None:
    scene.create()
    scene.publish()
    first, second = scene.make("one"), scene.make("two")
    scene.edit(adoptionPolicy="adoptExisting")
    scene.fulfil(first)
    scene.settle()
    scene.move("Proposed", first)

    scene.edit(**LABELS)

    assert scene.ready == ("False", "DownstreamProposed")
    assert "app: one" in scene.files(second)["Kptfile"]
    assert "app: one" not in scene.files(first)["Kptfile"]


def test_more_than_three_drafts_in_ten_minutes_are_churn(scene: Scene) -> None:
    """I4: something deletes what the variant makes."""
    scene.create()
    for _ in range(6):
        if scene.names():
            scene.porch.delete(REVISIONS, NAMESPACE, DRAFT)
        scene.settle()

    assert scene.names() == []
    assert scene.ready == ("False", "DraftChurn")
    scene.edit(labels={"a": "b"})
    assert scene.names() == ["packagevariant-1"]
    assert scene.ready == ("True", "NoErrors")


# --- what people do meanwhile ------------------------------------------------------------------------------------------


def test_two_variants_of_one_target(scene: Scene) -> None:
    """2.5: the second waits until the first lets go."""
    scene.create(deletionPolicy="orphan")
    scene.porch.create(VARIANTS, NAMESPACE, {**_body(adoptionPolicy="adoptExisting"), "metadata": {"name": "other"}})
    scene.settle()

    other = scene.porch.find(VARIANTS, "other")
    assert other is not None
    assert [one["reason"] for one in other["status"]["conditions"]] == ["Valid", "AdoptionConflict"]
    assert scene.owners() == [PV]
    assert scene.again() == []

    scene.delete()
    assert scene.owners() == ["other"]


def test_a_finalizer_that_somebody_removes_comes_back(scene: Scene) -> None:
    scene.create()
    body = copied(scene.body)
    body["metadata"]["finalizers"] = []
    scene.porch.update(VARIANTS, body)

    assert scene.settle() == [FINALIZER]
    assert scene.body["metadata"]["finalizers"] == ["config.porch.kpt.dev/packagevariants"]


def test_an_upstream_that_is_gone_changes_nothing_downstream(scene: Scene) -> None:
    scene.create({"revision": 1})
    scene.porch.vanish(REVISIONS, "blueprints.base.w1")

    assert revisions(scene.settle()) == []
    assert scene.condition("Stalled")[:2] == ("True", "UpstreamNotFound")
    assert scene.targets == [DRAFT]


@pytest.mark.parametrize("patch", [{"spec": {"readinessGates": []}}, {"status": {"conditions": []}}])
def test_a_gate_that_somebody_removes_from_a_draft_comes_back(scene: Scene, patch: Json) -> None:
    """2.8 step e."""
    scene.create(**LABELS)
    scene.patch(DRAFT, patch)

    assert revisions(scene.settle()) == [UPDATE]
    assert scene.gate() == ("True", "PVOperationsSucceeded")
    assert {"conditionType": GATE} in scene.revision(DRAFT)["spec"]["readinessGates"]


def test_a_gate_that_somebody_opens_too_early_is_closed_again(scene: Scene) -> None:
    """2.11: never carry a stale True into a save."""
    scene.create(pipeline={"mutators": [{"image": "nobody.example/unknown:v1"}]})
    conditions = copied(scene.revision(DRAFT))["status"]["conditions"]
    for one in conditions:
        if one["type"] == GATE:
            one["status"] = "True"
    scene.patch(DRAFT, {"status": {"conditions": conditions}})

    scene.settle()

    assert scene.gate() == ("False", "PVOperationsFailed")
    assert scene.ready == ("False", "RenderFailed")


def test_the_annotation_pauses_like_the_field(scene: Scene) -> None:
    scene.create(**LABELS)
    paused = "config.porch.kpt.dev/paused"
    scene.porch.patch(VARIANTS, NAMESPACE, PV, {"metadata": {"annotations": {paused: "true"}}})
    scene.settle()

    assert scene.condition("Paused")[0] == "True"
    assert revisions(scene.edit(**OTHER_LABELS)) == []
    assert scene.status["pendingChange"]["trigger"] == "SpecChanged"

    scene.porch.patch(VARIANTS, NAMESPACE, PV, {"metadata": {"annotations": {paused: None}}})
    scene.settle()
    assert scene.condition("Paused")[0] == "False"
    assert "app: two" in scene.files(DRAFT)["Kptfile"]


def test_a_spec_that_is_changed_back_changes_its_draft_back(scene: Scene) -> None:
    """2.10 rule 4: the fingerprint is of what the draft has, not of what was ever applied."""
    scene.create(**LABELS)
    scene.publish()
    scene.edit(**OTHER_LABELS)
    assert "app: two" in scene.files(SECOND)["Kptfile"]

    scene.edit(**LABELS)

    assert scene.names() == ["packagevariant-1", "packagevariant-2"]
    assert "app: one" in scene.files(SECOND)["Kptfile"]


def test_a_draft_that_somebody_deletes_after_the_spec_went_back_stays_deleted(scene: Scene) -> None:
    scene.create(**LABELS)
    scene.publish()
    scene.edit(**OTHER_LABELS)
    scene.porch.delete(REVISIONS, NAMESPACE, SECOND)

    scene.edit(**LABELS)

    assert scene.names() == ["packagevariant-1"]
    assert scene.targets == [DRAFT]
    assert "pendingChange" not in scene.status


def test_a_pipeline_that_goes_from_the_spec_goes_from_the_package(scene: Scene) -> None:
    """2.9.2: applies also without spec.pipeline."""
    scene.create(**LABELS)
    scene.publish()

    scene.edit(pipeline=None)

    assert "pipeline" not in scene.files(SECOND)["Kptfile"]


def test_what_went_backwards_is_mutated_where_it_is(scene: Scene) -> None:
    scene.release()
    scene.create(**LABELS)
    scene.publish()
    scene.move("DeletionProposed", "blueprints.base.w2")
    scene.settle()

    scene.edit(**OTHER_LABELS)

    assert scene.task(SECOND)["type"] == "edit"
    assert "v2" in scene.files(SECOND)["settings.yaml"]
    scene.release()
    assert scene.status["upstream"]["name"] == "blueprints.base.w3"
    assert scene.task(SECOND)["upgrade"]["oldUpstreamRef"] == {"name": "blueprints.base.w2"}


def test_a_revision_that_is_lowered_by_hand_is_followed(scene: Scene) -> None:
    scene.release()
    scene.create({"revision": 2})
    scene.publish()

    scene.edit(upstream={"repo": "blueprints", "package": "base", "revision": 1})

    assert scene.task(SECOND)["upgrade"]["newUpstreamRef"] == {"name": "blueprints.base.w1"}


def test_an_upstream_that_moves_while_the_first_draft_is_unfinished(scene: Scene) -> None:
    scene.porch.create(VARIANTS, NAMESPACE, {**_body(**LABELS), "metadata": {"name": PV}})
    scene.fault(n2=Fault.CRASH_AFTER)
    scene.release_only()

    scene.settle()

    assert scene.names() == ["packagevariant-1"]
    assert scene.gate() == ("True", "PVOperationsSucceeded")
    assert "app: one" in scene.files(DRAFT)["Kptfile"]
    assert "v2" in scene.files(DRAFT)["settings.yaml"]


def test_an_orphaned_target_is_somebody_elses_until_it_is_adopted(scene: Scene) -> None:
    foo = "deployments.foo.packagevariant-1"
    scene.create(package="foo", deletionPolicy="orphan")
    scene.edit(downstream={"repo": "deployments", "package": "app"})
    assert (scene.owners(foo), scene.targets) == ([], [DRAFT])

    scene.edit(downstream={"repo": "deployments", "package": "foo"})
    assert scene.ready == ("False", "DownstreamExists")
    scene.edit(adoptionPolicy="adoptExisting")
    assert scene.owners(foo) == [PV]


def test_a_draft_that_is_on_its_way_out_is_waited_for(scene: Scene) -> None:
    scene.create()
    scene.patch(DRAFT, {"metadata": {"finalizers": ["example.com/hold"]}})
    scene.porch.delete(REVISIONS, NAMESPACE, DRAFT)

    assert revisions(scene.settle()) == []
    assert scene.ready == ("False", "DownstreamExists")

    scene.patch(DRAFT, {"metadata": {"finalizers": None}})
    scene.settle()
    assert scene.names() == ["packagevariant-1"]
    assert scene.ready == ("True", "NoErrors")


def test_a_context_that_is_not_there_leaves_one_closed_draft(scene: Scene) -> None:
    """C-29: only deployment repositories give a clone its context."""
    scene.create(downstream={"repo": "blueprints", "package": "app"}, packageContext={"data": {"a": "b"}})
    name = "blueprints.app.packagevariant-1"

    assert scene.gate(name) == ("False", "PVOperationsFailed")
    assert scene.condition("Ready") == (
        "False",
        "MutationFailed",
        f"\"package-context.yaml\" not found in PackageRevisionResources 'default/{name}'",
    )
    assert len(list(scene.porch.revisions_of("blueprints", "app"))) == 1


def test_a_deletion_that_was_proposed_before_the_adoption_stays_proposed(scene: Scene) -> None:
    """C-14: it was not the variant that proposed it."""
    name = scene.make("mine")
    scene.publish(name)
    scene.move("DeletionProposed", name)

    scene.create(adoptionPolicy="adoptExisting")

    assert (scene.lifecycle(name), scene.owners(name)) == ("DeletionProposed", [PV])
    assert scene.ready == ("False", "DownstreamDeletionProposed")


def test_a_draft_that_cannot_be_let_go_does_not_keep_the_new_target_from_being_made(scene: Scene) -> None:
    """2.5 step 2: retire it, then continue; 2.12: reported and tried again."""
    scene.create(package="foo")
    foo = "deployments.foo.packagevariant-1"
    user = {
        "repository": "deployments",
        "packageName": "user",
        "workspaceName": "w",
        "lifecycle": "Draft",
        "tasks": [{"type": "clone", "clone": {"upstreamRef": {"upstreamRef": {"name": foo}}}}],
    }
    scene.porch.create(REVISIONS, NAMESPACE, {"metadata": {}, "spec": user})

    scene.edit(downstream={"repo": "deployments", "package": "app"})

    assert scene.targets == [DRAFT]
    assert scene.gate() == ("True", "PVOperationsSucceeded")
    assert scene.ready == ("False", "Error")
    assert foo in scene.condition("Ready")[2]
    scene.porch.delete(REVISIONS, NAMESPACE, "deployments.user.w")
    scene.world.wake((NAMESPACE, PV))
    scene.settle()
    assert scene.names("foo") == []
    assert scene.ready == ("True", "NoErrors")


def test_a_package_that_only_the_branch_has_cannot_be_taken_over(scene: Scene) -> None:
    """G-D10: the advice to adopt would be no help."""
    scene.create(deletionPolicy="orphan")
    scene.publish()
    scene.delete()
    scene.porch.vanish(REVISIONS, DRAFT)

    scene.create(adoptionPolicy="adoptExisting")

    status, reason, message = scene.condition("Ready")
    assert (status, reason) == ("False", "DownstreamExists")
    assert "adoptExisting" not in message


def test_a_paused_variant_is_told_to_be_so_also_when_nothing_can_be_read(scene: Scene) -> None:
    """6.7."""
    scene.create(**LABELS)
    scene.edit_only(suspend=True)
    scene.fault(n0=Fault.UNAVAILABLE)

    assert scene.condition("Paused")[:2] == ("True", "PausedByUser")


def test_a_config_map_that_nobody_asks_for_wakes_nobody(scene: Scene) -> None:
    """2.14."""
    scene.create(injectors=[{"name": "east"}])
    scene.porch.create(CONFIG_MAPS, NAMESPACE, {"metadata": {"name": "other"}, "data": {}})
    scene.world.views.deliver_all()

    assert scene.world.queue == {}


def _body(**spec: Any) -> Json:
    both = {
        "upstream": {"repo": "blueprints", "package": "base"},
        "downstream": {"repo": "deployments", "package": "app"},
    }
    return {"apiVersion": "config.porch.kpt.dev/v1alpha1", "kind": "PackageVariant", "spec": {**both, **spec}}
