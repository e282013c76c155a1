"""Letting go of package revisions while others write them, and while requests fail. Source: ``variants.md`` 2.12."""

from collections.abc import Callable, Iterator, Mapping

import pytest
from spec_scene import DRAFT, PV, SECOND, Scene
from variant_model.client import Fault
from variant_model.people import NAMESPACE
from variant_model.porch import REVISIONS, VARIANTS

EDIT = {"packageContext": {"data": {"a": "b"}}}


@pytest.fixture
def scene() -> Iterator[Scene]:
    made = Scene()
    yield made
    made.close()


def delete(
    scene: Scene,
    *,
    meanwhile: Callable[[], object] = lambda: None,
    at: int = 0,
    faults: Mapping[int, Fault] | None = None,
) -> list[str]:
    """Delete the variant and work on it once; ``meanwhile`` happens before request number ``at``. Return the requests."""
    scene.porch.delete(VARIANTS, NAMESPACE, PV)
    scene.world.views.deliver_all()
    scene.world.faults.asked = 0
    scene.world.faults.plan = dict(faults or {})
    scene.world.faults.meanwhile = {at: lambda: _ignore(meanwhile())}
    before = len(scene.world.client.requests)
    scene.world.reconcile((NAMESPACE, PV))
    scene.world.faults.plan.clear()
    return scene.world.client.requests[before:]


def _ignore(_: object) -> None:
    pass


def test_a_draft_that_is_edited_meanwhile_is_deleted_all_the_same(scene: Scene) -> None:
    scene.create()

    requests = delete(scene, meanwhile=lambda: scene.save(DRAFT, {"note.txt": "mine\n"}))

    assert [one for one in requests if one.startswith("delete")] == [f"delete {REVISIONS} {DRAFT}"] * 2
    assert (scene.exists, scene.names()) == (False, [])


def test_a_draft_that_is_approved_meanwhile_is_proposed_for_deletion(scene: Scene) -> None:
    scene.create()
    scene.fulfil(DRAFT)
    scene.move("Proposed")

    delete(scene, meanwhile=lambda: scene.move("Published"))

    assert not scene.exists
    assert (scene.lifecycle(), scene.owners()) == ("DeletionProposed", [])


def test_a_draft_that_somebody_deletes_first_is_as_good(scene: Scene) -> None:
    scene.create()

    delete(scene, meanwhile=lambda: scene.porch.delete(REVISIONS, NAMESPACE, DRAFT))

    assert (scene.exists, scene.names()) == (False, [])


def test_a_published_revision_that_goes_meanwhile_is_as_good(scene: Scene) -> None:
    scene.create()
    scene.publish()

    delete(scene, meanwhile=lambda: scene.porch.vanish(REVISIONS, DRAFT))

    assert not scene.exists


@pytest.mark.parametrize("policy", ["delete", "orphan"])
@pytest.mark.parametrize("number", range(6))
@pytest.mark.parametrize(
    "fault", [Fault.CONFLICT, Fault.INTERNAL, Fault.LOST_BEFORE, Fault.LOST_AFTER, Fault.CRASH_AFTER], ids=str
)
def test_whatever_fails_the_variant_goes_last(scene: Scene, policy: str, number: int, fault: Fault) -> None:
    scene.create(deletionPolicy=policy)
    scene.publish()
    scene.edit(**EDIT)

    def gone_last() -> None:
        owners = [owner for name in (DRAFT, SECOND) for owner in _owners(scene, name)]
        assert scene.exists or not owners, "the garbage collector would take what is left"

    scene.world.check = gone_last
    delete(scene, faults={number: fault})
    scene.settle()

    assert not scene.exists
    assert scene.owners() == []
    assert scene.lifecycle() == ("Published" if policy == "orphan" else "DeletionProposed")
    assert scene.names() == (["packagevariant-1", "packagevariant-2"] if policy == "orphan" else ["packagevariant-1"])


def _owners(scene: Scene, name: str) -> list[str]:
    return scene.owners(name) if scene.porch.find(REVISIONS, name) is not None else []


def test_a_delete_whose_answer_is_lost_is_known_to_be_done_before_its_event(scene: Scene) -> None:
    scene.create()

    delete(scene, faults={0: Fault.LOST_AFTER})

    assert scene.world.views.revision(NAMESPACE, DRAFT) is None
    assert not scene.exists


def test_a_failure_is_told_and_the_others_are_dealt_with(scene: Scene) -> None:
    scene.create()
    scene.publish()
    scene.edit(**EDIT)
    requests = delete(scene, faults={0: Fault.UNAVAILABLE, 1: Fault.UNAVAILABLE})

    assert sum(str(Fault.UNAVAILABLE) in one for one in requests) == 2
    assert scene.ready == ("False", "DeletionBlocked")
    assert DRAFT in scene.condition("Ready")[2] or SECOND in scene.condition("Ready")[2]
    scene.settle()
    assert not scene.exists


def test_a_revision_that_others_hold_is_nobodys_news(scene: Scene) -> None:
    scene.create()

    requests = delete(scene, faults={0: Fault.CONFLICT, 2: Fault.CONFLICT, 4: Fault.CONFLICT})

    assert sum(one.startswith("delete") for one in requests) == 3
    assert scene.ready == ("True", "NoErrors"), "it is tried again, and not told"
    scene.settle()
    assert not scene.exists


def test_a_draft_that_no_event_has_told_of_does_not_stay_behind(scene: Scene) -> None:
    """Its create was lost, and the variant deleted before anybody saw it; with orphan it would be collected."""
    scene.create(deletionPolicy="orphan")
    scene.publish()
    scene.edit_only(**EDIT)
    scene.world.views.deliver_all()
    held = dict(scene.world.views._held[REVISIONS])
    scene.world.faults.asked = 0
    scene.world.faults.plan = {3: Fault.CRASH_AFTER}
    scene.world.reconcile((NAMESPACE, PV))
    assert scene.owners(SECOND) == [PV]
    scene.porch.delete(VARIANTS, NAMESPACE, PV)
    scene.world.views.relist(VARIANTS)
    scene.world.views._held[REVISIONS] = held

    scene.world.reconcile((NAMESPACE, PV))

    assert not scene.exists
    assert scene.owners(SECOND) == []


def test_a_variant_that_came_again_under_its_name_is_not_let_go(scene: Scene) -> None:
    scene.create()
    scene.porch.delete(VARIANTS, NAMESPACE, PV)
    scene.world.views.deliver_all()

    def replaced() -> None:
        body = scene.body
        scene.porch.vanish(VARIANTS, PV)
        scene.porch.create(VARIANTS, NAMESPACE, {"metadata": {"name": PV}, "spec": body["spec"]})

    scene.world.faults.asked = 0
    scene.world.faults.meanwhile = {2: replaced}
    scene.world.reconcile((NAMESPACE, PV))
    scene.settle()

    assert scene.exists
    assert scene.targets == [DRAFT]
