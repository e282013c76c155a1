"""What a variant's Events tell of its work, and that its own writes are known before their events arrive."""

from collections.abc import Iterator
from typing import Any

import pytest
from spec_scene import DRAFT, PV, SECOND, Scene
from variant_model.client import Fault
from variant_model.people import NAMESPACE, variant_body
from variant_model.porch import REVISIONS, VARIANTS

from krm.meta.errors import Conflict
from krm.variants.vocabulary import FINALIZER

Json = dict[str, Any]
KEY = (NAMESPACE, PV)
EDIT = {"packageContext": {"data": {"a": "b"}}}


@pytest.fixture
def scene() -> Iterator[Scene]:
    made = Scene()
    yield made
    made.close()


def news(scene: Scene) -> list[str]:
    """Return the reasons of what was told since the last time."""
    reasons = [reason for _, reason, _ in scene.world.notes.taken]
    scene.world.notes.taken.clear()
    return reasons


def reconcile(scene: Scene) -> None:
    scene.world._loop.run_until_complete(scene.world.reconciler.reconcile(KEY))


def test_each_thing_that_is_done_is_told_once(scene: Scene) -> None:
    scene.create({"revision": 1})
    assert news(scene) == ["DraftCreated", "DraftUpdated"]
    scene.edit(**EDIT)
    assert news(scene) == ["DraftUpdated"]
    scene.release()
    scene.edit(upstream={"repo": "blueprints", "package": "base", "revision": 2})
    assert news(scene)[0] == "DraftUpgraded"
    scene.publish()
    assert news(scene) == []
    scene.edit(packageContext={"data": {"a": "c"}})
    assert news(scene) == ["DraftCreated", "DraftUpdated"]
    scene.again()
    assert news(scene) == []
    scene.edit(downstream={"repo": "deployments", "package": "other"})
    assert sorted(news(scene)) == ["DeletionProposed", "DraftCreated", "DraftDeleted", "DraftUpdated"]


def test_what_is_taken_over_and_let_go_is_told(scene: Scene) -> None:
    scene.make("mine")
    scene.create(adoptionPolicy="adoptExisting", deletionPolicy="orphan")
    assert news(scene)[0] == "RevisionAdopted"

    scene.delete()

    assert news(scene) == ["RevisionReleased"]


def test_an_event_names_the_draft_and_why(scene: Scene) -> None:
    scene.create()
    scene.publish()
    scene.edit(**EDIT)

    messages = [message for _, reason, message in scene.world.notes.taken if reason == "DraftCreated"]
    assert messages[0] == f'created draft "{DRAFT}", a clone of "blueprints.base.w1"'
    assert messages[1] == f'created draft "{SECOND}": SpecChanged: generation 2'


def test_own_writes_are_known_before_their_events(scene: Scene) -> None:
    scene.porch.create(VARIANTS, NAMESPACE, variant_body(PV, {"repo": "blueprints", "package": "base"}, "app"))
    scene.world.views.deliver_all()

    reconcile(scene)

    known = scene.world.views.variant(NAMESPACE, PV)
    assert known is not None
    assert known == scene.body
    assert known["status"]["downstreamTargets"][0]["name"] == DRAFT
    draft = scene.world.views.revision(NAMESPACE, DRAFT)
    assert draft is not None
    assert draft.resource_version == scene.revision(DRAFT)["metadata"]["resourceVersion"]
    before = len(scene.porch.writes)
    reconcile(scene)
    assert len(scene.porch.writes) == before


def held(scene: Scene) -> None:
    """Let somebody else hold the variant, too, and delete it."""
    scene.create()
    body = scene.porch.get(VARIANTS, NAMESPACE, PV)
    body["metadata"]["finalizers"].append("acme.com/mine")
    scene.porch.update(VARIANTS, body)
    scene.porch.delete(VARIANTS, NAMESPACE, PV)
    scene.world.views.deliver_all()


def test_a_variant_that_somebody_else_holds_is_let_go_once(scene: Scene) -> None:
    held(scene)

    reconcile(scene)

    assert scene.body["metadata"]["finalizers"] == ["acme.com/mine"]
    known = scene.world.views.variant(NAMESPACE, PV)
    assert known is not None
    assert FINALIZER not in known["metadata"]["finalizers"]
    before = len(scene.world.client.requests)
    reconcile(scene)
    assert scene.world.client.requests[before:] == []
    assert scene.porch.find(REVISIONS, DRAFT) is None


def test_a_variant_that_others_write_all_the_time_is_let_go_later(scene: Scene) -> None:
    held(scene)
    scene.world.faults.asked = 0
    # delete the draft, look for an unseen one, then update and read in turn
    scene.world.faults.plan = dict.fromkeys((2, 4, 6), Fault.CONFLICT)

    with pytest.raises(Conflict):
        reconcile(scene)

    assert FINALIZER in scene.body["metadata"]["finalizers"]
    scene.world.faults.plan.clear()
    reconcile(scene)
    assert FINALIZER not in scene.body["metadata"]["finalizers"]
