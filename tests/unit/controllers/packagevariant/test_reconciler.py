"""When a variant is looked at again, what is told of a failure, and what a pass costs. Source: ``variants.md`` 2.1, 2.14."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from spec_scene import DRAFT, PV, Scene
from variant_model.client import Fault
from variant_model.people import NAMESPACE, variant_body
from variant_model.porch import RESOURCES, REVISIONS, VARIANTS

from controllers.packagevariant.reconciler import AT_ONCE, MOST_BACK_OFF, ROUNDS
from controllers.runtime.controller import Result
from krm.client.errors import Unanswered, Unreachable
from krm.meta.errors import Conflict, InternalError, Invalid, TooManyRequests

Json = dict[str, Any]
KEY = (NAMESPACE, PV)
BAD_POINT = (
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: p\n  annotations:\n    kpt.dev/config-injection: perhaps\n"
)
EDIT = {"packageContext": {"data": {"a": "b"}}}


@pytest.fixture
def scene() -> Iterator[Scene]:
    made = Scene()
    yield made
    made.close()


def create_only(scene: Scene, upstream: Json | None = None, **spec: Any) -> None:
    body = variant_body(PV, {"repo": "blueprints", "package": "base", **(upstream or {})}, "app")
    body["spec"] |= spec
    scene.porch.create(VARIANTS, NAMESPACE, body)
    scene.world.views.deliver_all()


def reconcile(scene: Scene, *, at: int = -1, fault: Fault = Fault.INTERNAL, times: int = 1) -> Result:
    """Make one pass, in which ``times`` requests from number ``at`` on meet a fault."""
    scene.world.views.deliver_all()
    scene.world.faults.asked = 0
    scene.world.faults.plan = {at + more: fault for more in range(times)}
    try:
        done: Result = scene.world._loop.run_until_complete(scene.world.reconciler.reconcile(KEY))
    finally:
        scene.world.faults.plan.clear()
    return done


def _ignore(_: Result) -> None:
    pass


def test_a_variant_that_is_done_is_not_looked_at_again(scene: Scene) -> None:
    create_only(scene)

    assert reconcile(scene) == Result()
    assert scene.ready == ("True", "NoErrors")


def test_an_invalid_variant_waits_for_its_author(scene: Scene) -> None:
    create_only(scene, deletionPolicy="perhaps")

    assert reconcile(scene) == Result()
    assert scene.condition("Stalled")[:2] == ("True", "ValidationError")


def test_an_upstream_that_is_missing_is_looked_for_again_but_not_all_the_time(scene: Scene) -> None:
    create_only(scene, {"package": "none"})

    assert reconcile(scene).back_off == MOST_BACK_OFF


@pytest.mark.parametrize(
    ("spec", "reason"),
    [({}, "DownstreamExists"), ({"adoptionPolicy": "adoptExisting"}, "AdoptionConflict")],
    ids=["somebody else's", "somebody else's to adopt"],
)
def test_what_only_an_event_changes_waits_for_it(scene: Scene, spec: Json, reason: str) -> None:
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "u", "controller": True}
    scene.make("mine", ownerReferences=[owner])
    create_only(scene, **spec)

    assert reconcile(scene) == Result()
    assert scene.ready == ("False", reason)


def test_a_repository_that_is_missing_is_told(scene: Scene) -> None:
    body = variant_body(PV, {"repo": "blueprints", "package": "base"}, "app")
    body["spec"]["downstream"]["repo"] = "nowhere"
    scene.porch.create(VARIANTS, NAMESPACE, body)

    assert reconcile(scene).back_off == MOST_BACK_OFF
    assert scene.condition("Ready") == ("False", "Error", 'repository "nowhere" does not exist')


@pytest.mark.parametrize(
    ("fault", "error"),
    [(Fault.INTERNAL, InternalError), (Fault.LOST_BEFORE, Unanswered)],
    ids=["500", "no answer"],
)
def test_a_request_that_fails_is_told_and_raised(scene: Scene, fault: Fault, error: type[Exception]) -> None:
    """The controller's loop then tries again, later each time."""
    create_only(scene)

    with pytest.raises(error):
        reconcile(scene, at=2, fault=fault)

    assert scene.ready == ("False", "Error")
    assert scene.events == ["Error"]
    scene.settle()
    assert scene.ready == ("True", "NoErrors")


@pytest.mark.parametrize(
    ("fault", "error"),
    [(Fault.CONFLICT, Conflict), (Fault.BUSY, TooManyRequests), (Fault.NOT_SENT, Unreachable)],
    ids=["409", "429", "no connection"],
)
def test_a_request_that_was_surely_not_done_is_nobodys_news(scene: Scene, fault: Fault, error: type[Exception]) -> None:
    create_only(scene)

    with pytest.raises(error):
        reconcile(scene, at=2, fault=fault)

    assert (scene.status, scene.events) == ({}, [])


@pytest.mark.parametrize(("fault", "error"), [(Fault.CONFLICT, Conflict), (Fault.LOST_BEFORE, Unanswered)], ids=str)
def test_a_draft_that_others_hold_is_left_for_later(scene: Scene, fault: Fault, error: type[Exception]) -> None:
    """Read again and tried again, three times in all."""
    scene.create()
    scene.edit_only(**EDIT)
    scene.world.views.deliver_all()
    scene.world.faults.plan = {2: fault, 4: fault, 6: fault}
    scene.world.faults.asked = 0
    before = len(scene.world.client.requests)

    with pytest.raises(error):
        scene.world._loop.run_until_complete(scene.world.reconciler.reconcile(KEY))

    tries = [one for one in scene.world.client.requests[before:] if one.startswith(f"update {REVISIONS}")]
    assert len(tries) == 3
    assert scene.gate() == ("True", "PVOperationsSucceeded"), "nothing was begun"
    scene.world.wake(KEY)
    scene.settle()
    assert scene.ready == ("True", "NoErrors")


def test_a_failure_that_stays_is_one_event_and_one_status(scene: Scene) -> None:
    scene.broken_upstream({"point.yaml": BAD_POINT})
    create_only(scene)

    writes = [scene.world.writes_of(lambda: _ignore(reconcile(scene))) for _ in range(3)]

    assert scene.ready == ("False", "MutationFailed")
    assert scene.events == ["MutationFailed"]
    assert writes[1:] == [[], []]


def test_a_failure_in_a_draft_is_written_into_it_once(scene: Scene) -> None:
    scene.create()
    scene.save(DRAFT, {"broken.yaml": BAD_POINT})
    scene.edit_only(**EDIT)

    writes = [scene.world.writes_of(lambda: _ignore(reconcile(scene))) for _ in range(3)]

    assert scene.gate() == ("False", "PVOperationsFailed")
    assert writes[1:] == [[], []]
    scene.save(DRAFT, {"broken.yaml": BAD_POINT.replace("perhaps", "optional")})
    scene.settle()
    assert scene.gate() == ("True", "PVOperationsSucceeded")
    assert scene.ready == ("True", "NoErrors")


def test_a_warning_about_the_upstream_is_told_once(scene: Scene) -> None:
    scene.create({"workspaceName": "w1", "revision": 2})
    for _ in range(3):
        reconcile(scene)

    assert scene.events == ["UpstreamRevisionIgnored"]


def test_a_user_who_saves_all_the_time_is_not_overwritten(scene: Scene) -> None:
    """I7: each save is read again; after some rounds the pass gives way and comes back."""
    scene.create()
    scene.edit_only(**EDIT)
    scene.world.views.deliver_all()
    saved = iter(range(1000))

    def save() -> None:
        scene.save(DRAFT, {f"note-{next(saved)}.txt": "mine\n"})

    client = scene.world.client
    update = client.update

    async def interrupted(resource: Any, body: Json, *, subresource: str = "") -> Json:
        if resource.plural == RESOURCES:
            save()
        return await update(resource, body, subresource=subresource)

    client.update = interrupted  # type: ignore[method-assign]  # the user is quicker every time
    result = reconcile(scene)
    client.update = update  # type: ignore[method-assign]

    assert result.requeue_after is not None
    assert next(saved) == ROUNDS
    scene.settle()
    assert {f"note-{number}.txt" for number in range(ROUNDS)} <= scene.files(DRAFT).keys()
    assert scene.ready == ("True", "NoErrors")


@pytest.mark.parametrize("number", range(7))
def test_a_draft_that_is_deleted_at_any_moment_is_no_error(scene: Scene, number: int) -> None:
    """The pass notices, and gives way until the cache has noticed, too."""
    scene.create()
    scene.edit_only(**EDIT)
    scene.world.faults.meanwhile = {number: lambda: _deleted(scene)}

    result = reconcile(scene)

    assert scene.names() == []
    assert result == Result(requeue_after=AT_ONCE)
    scene.world.wake(KEY)
    scene.settle()
    assert scene.names() == ["packagevariant-1"]
    assert scene.ready == ("True", "NoErrors")


def _deleted(scene: Scene) -> None:
    scene.porch.delete(REVISIONS, NAMESPACE, DRAFT)


@pytest.mark.parametrize("number", [1, 2], ids=["before its files are read", "before it is cloned"])
def test_an_upstream_that_goes_at_any_moment_makes_no_draft(scene: Scene, number: int) -> None:
    create_only(scene, {"revision": 1})
    scene.world.faults.meanwhile = {number: lambda: scene.porch.vanish(REVISIONS, "blueprints.base.w1")}
    before = len(scene.world.client.requests)

    with suppress(Invalid):
        reconcile(scene)

    creates = [one for one in scene.world.client.requests[before:] if one.startswith("create")]
    assert len(creates) == (number == 2)
    scene.world.wake(KEY)
    scene.settle()
    assert scene.names() == []


def test_an_unchanged_variant_costs_one_read_of_its_draft(scene: Scene) -> None:
    """And nothing at all where the last pass over it is remembered (``skipping.py``)."""
    scene.create()
    before = len(scene.world.client.requests)

    reconcile(scene)

    assert scene.world.client.requests[before:] == [f"get {RESOURCES} {DRAFT}"]


def test_a_published_revision_with_points_costs_one_read(scene: Scene) -> None:
    """Something may be injected into it; without points it costs nothing (``test_known_applied.py``)."""
    scene.create()
    scene.publish()
    reconcile(scene)
    before = len(scene.world.client.requests)

    reconcile(scene)

    assert scene.world.client.requests[before:] == [f"get {RESOURCES} {DRAFT}"]


@pytest.mark.parametrize("change", ["spec", "upstream"])
def test_nothing_is_based_on_what_somebody_else_has_gone_on_from(scene: Scene, change: str) -> None:
    """C-11."""
    scene.create()
    scene.publish()
    scene.publish(scene.make("hand"))

    scene.edit(**EDIT) if change == "spec" else scene.release()

    assert scene.ready == ("False", "DownstreamDiverged")
    assert scene.names() == ["hand", "packagevariant-1"]
    assert reconcile(scene) == Result()
    assert scene.targets == [DRAFT]


def test_a_new_process_does_not_start_a_variant_again_that_was_stopped(scene: Scene) -> None:
    """I4: that it makes draft after draft is in its status."""
    scene.create()
    for _ in range(6):
        if scene.names():
            scene.porch.delete(REVISIONS, NAMESPACE, DRAFT)
        scene.settle()
    assert scene.ready == ("False", "DraftChurn")

    scene.world.start()
    scene.porch.advance(3600)

    assert reconcile(scene) == Result()
    assert (scene.names(), scene.ready) == ([], ("False", "DraftChurn"))


def test_files_of_one_upstream_are_read_once_for_many_variants(scene: Scene) -> None:
    scene.create()
    for number in range(5):
        body = variant_body(f"pv-{number}", {"repo": "blueprints", "package": "base"}, f"app-{number}")
        scene.porch.create(VARIANTS, NAMESPACE, body)
    scene.settle()

    reads = [one for one in scene.world.client.requests if one == f"get {RESOURCES} blueprints.base.w1"]
    assert len(reads) == 1


def test_a_pass_that_is_cut_short_is_gone_on_with(scene: Scene) -> None:
    """Cancelled at its deadline, wherever that is."""
    create_only(scene, **EDIT)

    async def cut(after: int) -> None:
        client, left = scene.world.client, after
        update = client.update

        async def slow(resource: Any, body: Json, *, subresource: str = "") -> Json:
            nonlocal left
            left -= 1
            if left < 0:
                await asyncio.sleep(60)
            return await update(resource, body, subresource=subresource)

        client.update = slow  # type: ignore[method-assign]
        try:
            async with asyncio.timeout(0.05):
                await scene.world.reconciler.reconcile(KEY)
        except TimeoutError:
            pass
        finally:
            client.update = update  # type: ignore[method-assign]

    for after in range(3):
        scene.world._loop.run_until_complete(cut(after))
        scene.world.views.deliver_all()
    scene.world.wake(KEY)
    scene.settle()

    assert scene.names() == ["packagevariant-1"]
    assert scene.gate() == ("True", "PVOperationsSucceeded")
    assert scene.ready == ("True", "NoErrors")
