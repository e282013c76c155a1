"""One draft for one reason, whatever becomes of the requests that make it. Source: ``variants.md`` I2 and I3, 2.6."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from spec_scene import DRAFT, PV, SECOND, Scene
from variant_model.caches import KINDS
from variant_model.client import Fault
from variant_model.people import NAMESPACE, variant_body
from variant_model.porch import REVISIONS, VARIANTS

Json = dict[str, Any]
EDIT = {"packageContext": {"data": {"a": "b"}}}


@pytest.fixture
def scene() -> Iterator[Scene]:
    made = Scene()
    yield made
    made.close()


def create_only(scene: Scene) -> None:
    """Create the variant, and let the controller know of it."""
    body = variant_body(PV, {"repo": "blueprints", "package": "base"}, "app")
    scene.porch.create(VARIANTS, NAMESPACE, body)
    scene.world.views.deliver_all()


def requests_of(scene: Scene, work: Callable[[], object]) -> list[str]:
    before = len(scene.world.client.requests)
    work()
    return scene.world.client.requests[before:]


def creates(requests: list[str]) -> list[str]:
    return [one.split()[2] for one in requests if one.startswith("create packagerevisions")]


def foreign(workspace: str) -> Json:
    spec = {
        "repository": "deployments",
        "packageName": "app",
        "workspaceName": workspace,
        "lifecycle": "Draft",
        "tasks": [{"type": "edit", "edit": {"sourceRef": {"name": DRAFT}}}],
    }
    return {"metadata": {}, "spec": spec}


def test_a_create_is_not_preceded_by_a_look(scene: Scene) -> None:
    create_only(scene)

    requests = requests_of(scene, lambda: scene.world.reconcile((NAMESPACE, PV)))

    assert f"get {REVISIONS} {DRAFT}" not in requests[: requests.index(f"create {REVISIONS} {DRAFT}")]


def test_a_create_whose_answer_is_lost_is_looked_for_and_continued(scene: Scene) -> None:
    create_only(scene)
    scene.world.faults.asked = 0
    scene.world.faults.plan = {2: Fault.LOST_AFTER}

    requests = requests_of(scene, lambda: scene.world.reconcile((NAMESPACE, PV)))
    scene.settle()

    assert creates(requests) == [DRAFT]
    assert (
        requests[requests.index(f"create {REVISIONS} {DRAFT} ({Fault.LOST_AFTER})") + 1] == f"get {REVISIONS} {DRAFT}"
    )
    assert scene.names() == ["packagevariant-1"]
    assert scene.gate() == ("True", "PVOperationsSucceeded")


def test_a_create_that_is_done_after_we_looked_is_met_by_the_next(scene: Scene) -> None:
    """The server was still busy with it: the next pass asks for the same name, and is told that it exists."""
    create_only(scene)
    scene.world.faults.asked = 0
    scene.world.faults.plan = {2: Fault.LOST_LATE}
    scene.world.reconcile((NAMESPACE, PV))
    scene.world.faults.finish()

    requests = requests_of(scene, lambda: scene.world.reconcile((NAMESPACE, PV)))
    scene.settle()

    assert creates(requests) == [DRAFT]
    assert scene.names() == ["packagevariant-1"]
    assert scene.ready == ("True", "NoErrors")


def test_a_draft_that_the_cache_does_not_show_is_continued(scene: Scene) -> None:
    """A new process whose list is older than the draft that the last one made."""
    scene.create()
    scene.publish()
    scene.edit_only(**EDIT)
    scene.world.views.deliver_all()
    scene.world.faults.asked = 0
    scene.world.faults.plan = {3: Fault.CRASH_AFTER}
    held = dict(scene.world.views._held[REVISIONS])
    scene.world.reconcile((NAMESPACE, PV))  # and a new process is there
    assert scene.names() == ["packagevariant-1", "packagevariant-2"]
    scene.world.views._held[REVISIONS] = held

    requests = requests_of(scene, lambda: scene.world.reconcile((NAMESPACE, PV)))
    scene.settle()

    assert creates(requests) == [SECOND]
    assert scene.names() == ["packagevariant-1", "packagevariant-2"]
    assert scene.gate(SECOND) == ("True", "PVOperationsSucceeded")


def test_numbers_that_others_have_taken_unseen_are_passed_over(scene: Scene) -> None:
    scene.create()
    scene.publish()
    for number in (2, 3):
        scene.porch.create(REVISIONS, NAMESPACE, foreign(f"packagevariant-{number}"))
    scene.edit_only(**EDIT)
    for kind in KINDS:
        if kind == VARIANTS:
            scene.world.views.relist(kind)

    requests = requests_of(scene, lambda: scene.world.reconcile((NAMESPACE, PV)))

    assert creates(requests) == [f"deployments.app.packagevariant-{number}" for number in (2, 3, 4)]
    assert scene.targets == ["deployments.app.packagevariant-4"]


def test_names_are_not_tried_for_ever(scene: Scene) -> None:
    scene.create()
    scene.publish()
    for number in range(2, 10):
        scene.porch.create(REVISIONS, NAMESPACE, foreign(f"packagevariant-{number}"))
    scene.edit_only(**EDIT)
    scene.world.views.relist(VARIANTS)

    requests = requests_of(scene, lambda: scene.world.reconcile((NAMESPACE, PV)))

    assert len(creates(requests)) == 5
    assert scene.ready == ("False", "Error")
    scene.settle()
    assert scene.targets == ["deployments.app.packagevariant-10"], "once the events are there"


def test_a_package_that_appears_unseen_is_not_cloned_into(scene: Scene) -> None:
    create_only(scene)
    spec = {"repository": "deployments", "packageName": "app", "workspaceName": "mine", "lifecycle": "Draft"}
    scene.porch.create(
        REVISIONS, NAMESPACE, {"metadata": {}, "spec": {**spec, "tasks": [{"type": "init", "init": {}}]}}
    )

    requests = requests_of(scene, lambda: scene.world.reconcile((NAMESPACE, PV)))

    assert creates(requests) == [DRAFT]
    assert scene.ready == ("False", "DownstreamExists")
    assert scene.names() == ["mine"]


@pytest.mark.parametrize("fault", [Fault.LOST_AFTER, Fault.LOST_BEFORE, Fault.CONFLICT, Fault.INTERNAL], ids=str)
def test_an_upgrade_in_place_is_done_once(scene: Scene, fault: Fault) -> None:
    scene.create()
    scene.save(DRAFT, {"note.txt": "mine\n"})
    scene.settle()
    scene.release_only()
    scene.world.views.deliver_all()
    scene.world.faults.asked = 0
    requests = scene.world.client.requests
    begun = len(requests)
    # get files of the upstream, get the draft, update it
    scene.world.faults.plan = {2: fault}
    scene.world.reconcile((NAMESPACE, PV))
    assert any(str(fault) in one and "update" in one for one in requests[begun:]), requests[begun:]
    scene.settle()

    assert scene.task(DRAFT)["type"] == "upgrade"
    assert scene.names() == ["packagevariant-1"]
    assert "note.txt" in scene.files(DRAFT)
    assert scene.ready == ("True", "NoErrors")
    assert scene.again() == []
