"""Controllers that die, servers that die, answers that are lost: whatever happens, the same package is completed.

Source: ``variants.md`` I2, I3, I8, G-F13, G-F14, 2.11. Each story is told once undisturbed; then again for every write of
it, disturbed at that write. All tellings must end alike, but for the name of their package.
"""

import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

import pytest
from cutting_proxy import cutting_proxy
from drafts import accepted
from git_server import GitServer
from golden import golden
from porch_client import CONFIG
from porch_process import PorchProcess
from recording_client import Fault, Killed, Write, recording_client
from variant_fixture import ListedViews, Rig, variant_rig
from variant_place import (
    GATE,
    SET_LABELS,
    SET_NAMESPACE,
    Json,
    blueprint,
    condition_of,
    downstream,
    kubeconfig_for,
    upstream,
    variant,
    with_blueprint,
)

from controllers.packagevariant.reconciler import PackageVariantReconciler
from krm.client.errors import Unanswered, Unreachable
from krm.meta.errors import Conflict, InternalError, ServiceUnavailable

LABELS, NAMESPACE = {"mutators": [SET_LABELS]}, {"mutators": [SET_NAMESPACE]}
POINT = (
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: point\n  annotations:\n    kpt.dev/config-injection: required\n"
    "data: {}\n"
)
READY = ("True", "NoErrors", "successfully ensured downstream package variant")


@dataclass(frozen=True)
class Story:
    """Something that happens to one variant: what was before, and what changes."""

    before: Callable[[Rig, str], Awaitable[None]]
    change: Callable[[Rig, str], None]


@pytest.fixture
async def rig(porch_server: PorchProcess, git_http: GitServer, namespace: str) -> AsyncIterator[Rig]:
    """A place with the two repositories, two revisions of a blueprint, and a controller."""
    async with variant_rig(porch_server, git_http, namespace) as made:
        with_blueprint(made, blueprint(point_yaml=POINT))
        made.new_upstream(2)
        made.create("/api/v1", "configmaps", {"metadata": {"name": "source"}, "data": {"key": "value"}})
        yield made


# --- stories: a variant and its package both have the name of the telling ---------------------------


def make(rig: Rig, name: str, **spec: object) -> None:
    rig.add_variant(variant(name, **{"downstream": downstream(name), "injectors": [{"name": "source"}], **spec}))


async def nothing(rig: Rig, name: str) -> None:
    """Nothing was before."""


async def a_draft(rig: Rig, name: str) -> None:
    make(rig, name)
    await rig.settle(name)


async def a_published_revision(rig: Rig, name: str) -> None:
    await a_draft(rig, name)
    rig.approve(f"deployments.{name}.packagevariant-1")
    await rig.settle(name)


async def a_published_revision_and_a_draft(rig: Rig, name: str) -> None:
    await a_published_revision(rig, name)
    rig.change_variant(name, pipeline=LABELS)
    await rig.settle(name)


async def a_draft_by_hand(rig: Rig, name: str) -> None:
    rig.new_draft(name)


def created(rig: Rig, name: str) -> None:
    make(rig, name, pipeline=LABELS, packageContext={"data": {"a": "b"}})


def adopted(rig: Rig, name: str) -> None:
    make(rig, name, pipeline=LABELS, adoptionPolicy="adoptExisting")


def upgraded(rig: Rig, name: str) -> None:
    rig.change_variant(name, upstream=upstream(revision=2), pipeline=LABELS)


def edited(rig: Rig, name: str) -> None:
    rig.change_variant(name, pipeline=NAMESPACE)


def pointed_elsewhere(rig: Rig, name: str) -> None:
    rig.change_variant(name, downstream=downstream(f"{name}-new"))


def deleted(rig: Rig, name: str) -> None:
    accepted(rig.delete(CONFIG, "packagevariants", name))


def deleted_as_orphans(rig: Rig, name: str) -> None:
    rig.change_variant(name, deletionPolicy="orphan")
    deleted(rig, name)


STORIES = {
    "created": Story(nothing, created),
    "adopted": Story(a_draft_by_hand, adopted),
    "edited draft": Story(a_draft, edited),
    "upgraded draft": Story(a_draft, upgraded),
    "edit of a published revision": Story(a_published_revision, edited),
    "upgrade of a published revision": Story(a_published_revision, upgraded),
    "another target": Story(a_published_revision, pointed_elsewhere),
    "deleted": Story(a_published_revision_and_a_draft, deleted),
    "deleted, orphans": Story(a_published_revision_and_a_draft, deleted_as_orphans),
}


def outcome(rig: Rig, name: str) -> Json:
    """Return everything that counts about a telling's end, the same for all tellings that went well."""
    packages = [name, f"{name}-new"]
    found: Json = {package: {} for package in packages}
    for package in packages:
        for workspace in rig.revisions_of(package):
            found[package][workspace] = look(rig, f"deployments.{package}.{workspace}")
    if rig.has_variant(name):
        found["variant"] = [rig.condition("Ready", name), rig.condition("Stalled", name), rig.targets(name)]
    replaced: Json = json.loads(json.dumps(found).replace(name, "NAME"))
    return replaced


def look(rig: Rig, name: str) -> Json:
    revision = rig.revision(name)
    return {
        "lifecycle": revision["spec"]["lifecycle"],
        "task": revision["spec"]["tasks"],
        "gate": condition_of(revision, GATE),
        "passed": condition_of(revision, "PackagePipelinePassed").get("status"),
        "owners": len(revision["metadata"].get("ownerReferences") or []),
        "labels": sorted(revision["metadata"].get("labels") or {}),
        "files": rig.files(name),
    }


async def undisturbed(rig: Rig, story: Story) -> tuple[Json, int]:
    """Tell a story; return its outcome and how many writes its change takes."""
    await story.before(rig, "whole")
    story.change(rig, "whole")
    first = len(rig.recording.writes)
    await rig.settle("whole")
    count = len(rig.recording.writes) - first
    assert count >= 1
    return outcome(rig, "whole"), count


def at_write(rig: Rig, number: int, then: Callable[[], None], *, done: bool) -> None:
    """Call ``then`` at the ``number``-th write from now on, and at all that follow: before it is sent, or when it is done."""
    first = len(rig.recording.writes)

    def before(now: int, write: Write) -> None:
        if now - first > number or (now - first == number and not done):
            then()

    def after(now: int, write: Write) -> None:
        if now - first == number and done:
            then()

    rig.recording.before_each, rig.recording.after_each = before, after


def undo_hooks(rig: Rig) -> None:
    rig.recording.before_each = rig.recording.after_each = lambda *_: None


def die() -> None:
    raise Killed


@golden("G-F13", "I3", "I8")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("told", STORIES)
async def test_a_controller_that_dies_at_any_write_is_followed_by_one_that_completes(rig: Rig, told: str) -> None:
    story = STORIES[told]
    expected, count = await undisturbed(rig, story)
    for number in range(1, count + 1):
        for done in (False, True):
            name = f"telling-k{number}{'after' if done else 'before'}"
            await story.before(rig, name)
            story.change(rig, name)

            at_write(rig, number, die, done=done)
            with pytest.raises(Killed):
                await rig.settle(name)
            undo_hooks(rig)
            rig.restart_controller()
            await rig.settle(name)

            assert outcome(rig, name) == expected, (number, done)
            if rig.has_variant(name):
                await rig.quiet(name)


ERRORS: dict[str, tuple[Callable[[], Exception], bool]] = {
    "500": (lambda: InternalError("the disk is full"), False),
    "503": (lambda: ServiceUnavailable("starting"), False),
    "conflict": (lambda: Conflict("the object has been modified"), False),
    "unreachable": (lambda: Unreachable("no route"), False),
    "lost request": (lambda: Unanswered("no answer within 30 s"), False),
    "lost answer": (lambda: Unanswered("no answer within 30 s"), True),
}


@golden("I3", "I8", "G-F14")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("told", STORIES)
async def test_a_write_that_fails_is_made_up_for(rig: Rig, told: str) -> None:
    story = STORIES[told]
    expected, count = await undisturbed(rig, story)
    for number, error in itertools.product(range(1, count + 1), ERRORS):
        name = f"telling-{number}-{error.replace(' ', '-')}"
        fail, done = ERRORS[error]
        await story.before(rig, name)
        story.change(rig, name)
        first = len(rig.recording.writes)

        rig.recording.faults = [Fault(nth(rig, first + number), fail, done=done)]
        await rig.settle_all(name)
        rig.recording.faults = []

        assert outcome(rig, name) == expected, (number, error)
        if rig.has_variant(name):
            await rig.quiet(name)


def nth(rig: Rig, number: int) -> Callable[[Write], bool]:
    return lambda _: len(rig.recording.writes) == number


@golden("I3")
async def test_a_draft_that_the_cache_does_not_show_yet_is_continued(rig: Rig) -> None:
    """The controller made it and died; the next one's cache is behind."""
    make(rig, "bar", pipeline=LABELS)
    at_write(rig, 2, die, done=True)
    with pytest.raises(Killed):
        await rig.settle("bar")
    undo_hooks(rig)
    assert rig.revisions_of("bar") == {"packagevariant-1": "Draft"}
    behind = ListedViews(rig.porch)
    behind.look()
    behind.forget(rig.namespace, "deployments.bar.packagevariant-1")
    assert rig.client is not None
    first = len(rig.recording.writes)

    await PackageVariantReconciler(rig.client, behind, rig.events).reconcile((rig.namespace, "bar"))

    lines = [write.line for write in rig.recording.writes[first:] if write.of_packages]
    assert lines == [
        "POST PR bar.packagevariant-1 False",
        "PUT PRR bar.packagevariant-1",
        "PUT PR bar.packagevariant-1 True",
    ]
    assert rig.revisions_of("bar") == {"packagevariant-1": "Draft"}
    await rig.settle("bar")
    await rig.quiet("bar")


@golden("I3", "2.6")
async def test_a_name_that_somebody_else_took_unseen_is_left_to_them(rig: Rig) -> None:
    await a_published_revision(rig, "bar")
    rig.change_variant("bar", pipeline=LABELS)
    behind = ListedViews(rig.porch)
    behind.look()
    taken = rig.draft_of("deployments.bar.packagevariant-1", "packagevariant-2")
    before = rig.revision(taken)
    assert rig.client is not None

    await PackageVariantReconciler(rig.client, behind, rig.events).reconcile((rig.namespace, "bar"))

    await rig.settle("bar")
    assert rig.revision(taken) == before
    assert "packagevariant-3" in rig.revisions_of("bar")
    await rig.quiet("bar")


@golden("2.11", "I7")
async def test_a_save_of_a_user_between_read_and_write_is_not_overwritten(rig: Rig) -> None:
    await a_draft(rig, "bar")
    draft = "deployments.bar.packagevariant-1"
    rig.change_variant("bar", pipeline=LABELS)
    saves: list[str] = []

    def save(number: int, write: Write) -> None:
        if write.plural == "packagerevisionresources" and not saves:
            saves.append("mine")
            rig.save(draft, note_txt="mine\n")

    rig.recording.before_each = save
    await rig.settle_all("bar")
    undo_hooks(rig)

    assert saves
    files = rig.files(draft)
    assert files["note.txt"] == "mine\n"
    assert "app: foo" in files["settings.yaml"]
    assert condition_of(rig.revision(draft), GATE)["status"] == "True"
    await rig.quiet("bar")


@golden("G-F14", "I3")
@pytest.mark.parametrize("lost", ["POST PR", "PUT PRR", "PUT PR"])
async def test_an_answer_that_gets_lost_on_the_way_makes_no_second_draft(
    porch_server: PorchProcess, rig: Rig, lost: str, tmp_path: object
) -> None:
    """A proxy takes the connection away when the server's answer arrives."""
    with cutting_proxy(porch_server.port) as proxy:
        path = kubeconfig_for(porch_server, proxy.port, porch_server.data.parent / f"{rig.namespace}-proxy")
        async with recording_client(path) as client:
            rig.client = client
            rig.restart_controller()
            cut: list[Write] = []

            def lose(number: int, write: Write) -> None:
                if write.line.startswith(f"{lost} ") and not cut:
                    cut.append(write)
                    proxy.lose_next_answer()

            client.recording.before_each = lose
            make(rig, "bar", pipeline=LABELS)
            await rig.settle_all("bar")

            assert proxy.cuts == 1, "an answer was lost"
            assert rig.revisions_of("bar") == {"packagevariant-1": "Draft"}
            assert rig.condition("Ready", "bar") == READY
            assert condition_of(rig.revision("deployments.bar.packagevariant-1"), GATE)["status"] == "True"
            await rig.quiet("bar")
