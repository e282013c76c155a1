"""What happens to package revisions when their PackageVariant goes.

Source: ``variants.md`` 2.12, 5.6 (G-X), C-07. "Deleted" is a DELETE of the variant; the pass after it does the work.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from drafts import accepted
from eventually import eventually
from git_server import GitServer
from golden import golden
from porch_client import CONFIG
from porch_process import PorchProcess
from recording_client import Fault, Write
from variant_fixture import Rig, variant_rig
from variant_place import SET_LABELS, Json, downstream, owners_of, variant, with_blueprint

from krm.meta.errors import InternalError

FIRST, SECOND = "deployments.bar.packagevariant-1", "deployments.bar.packagevariant-2"
MARKER = "config.porch.kpt.dev/packagevariant-uid"
DELETED = ["DELETE PR bar.packagevariant-1"]


@pytest.fixture
async def rig(porch_server: PorchProcess, git_http: GitServer, namespace: str) -> AsyncIterator[Rig]:
    """A place with the two repositories and a controller."""
    async with variant_rig(porch_server, git_http, namespace) as made:
        with_blueprint(made)
        yield made


async def with_draft(rig: Rig, lifecycle: str = "Draft", **spec: Any) -> None:
    """Have a variant whose only revision has the lifecycle."""
    rig.add_variant(variant(**spec))
    await rig.settle()
    if lifecycle == "Proposed":
        accepted(rig.porch.propose(FIRST))
    if lifecycle in {"Published", "DeletionProposed"}:
        rig.approve(FIRST)
    if lifecycle == "DeletionProposed":
        rig.edit(FIRST, lambda body: body["spec"].update(lifecycle="DeletionProposed"))
    await rig.settle()


def delete_variant(rig: Rig, **query: str) -> None:
    """DELETE the variant; it waits for its finalizer."""
    answer = rig.delete(CONFIG, "packagevariants", "my-pv", **query)
    assert answer.code in {200, 202}, answer.body
    assert rig.variant()["metadata"]["deletionTimestamp"]


def uid_of(rig: Rig) -> str:
    return str(rig.variant()["metadata"]["uid"])


@golden("G-X01", "G-X02")
@pytest.mark.parametrize("lifecycle", ["Draft", "Proposed"])
async def test_an_unpublished_revision_is_deleted_with_its_variant(rig: Rig, lifecycle: str) -> None:
    await with_draft(rig, lifecycle)
    eventually(lambda: rig.pushed("bar", "packagevariant-1") if lifecycle == "Draft" else None)
    delete_variant(rig)

    assert await rig.settle() == DELETED

    assert rig.revisions_of("bar") == {}
    assert not rig.has_variant()
    await rig.quiet()

    def gone() -> None:
        assert not [ref for ref in rig.refs() if "bar" in ref]

    eventually(gone)


@golden("G-X03")
async def test_a_published_revision_of_an_old_target_keeps_all_its_owners(rig: Rig) -> None:
    await with_draft(rig, "Published")
    other = rig.stranger()
    rig.own(FIRST, other)
    before = owners_of(rig.revision(FIRST))
    rig.change_variant(downstream=downstream("new"))

    assert "PUT PR bar.packagevariant-1 DeletionProposed" in await rig.settle()

    assert rig.revision(FIRST)["spec"]["lifecycle"] == "DeletionProposed"
    assert owners_of(rig.revision(FIRST)) == before == [uid_of(rig), other["uid"]]
    await rig.quiet()


@golden("G-X04")
async def test_one_that_is_proposed_for_deletion_already_is_not_written_again(rig: Rig) -> None:
    await with_draft(rig, "DeletionProposed")
    rig.change_variant(downstream=downstream("new"))

    assert [line for line in await rig.settle() if " bar." in line] == []

    await rig.quiet()


@golden("G-X05")
async def test_an_orphaned_draft_of_an_old_target_loses_our_reference_only(rig: Rig) -> None:
    await with_draft(rig, deletionPolicy="orphan")
    other = rig.stranger()
    rig.own(FIRST, other)
    rig.change_variant(downstream=downstream("new"))

    assert [line for line in await rig.settle() if " bar." in line] == ["PUT PR bar.packagevariant-1 True"]

    left = rig.revision(FIRST)
    assert owners_of(left) == [other["uid"]]
    assert MARKER not in left["metadata"].get("labels", {})
    assert left["spec"]["lifecycle"] == "Draft"
    await rig.quiet()


@golden("G-X05")
@pytest.mark.parametrize("lifecycle", ["Draft", "Proposed", "Published", "DeletionProposed"])
async def test_orphans_stay_as_they_are_without_our_reference(rig: Rig, lifecycle: str) -> None:
    await with_draft(rig, lifecycle, deletionPolicy="orphan")
    delete_variant(rig)

    written = await rig.settle()

    assert len(written) == 1
    assert written[0].startswith("PUT PR bar.packagevariant-1")
    assert not rig.has_variant()
    left = rig.revision(FIRST)
    assert left["spec"]["lifecycle"] == lifecycle
    assert owners_of(left) == []
    await rig.quiet()


@golden("G-X06", "C-07")
async def test_a_published_revision_is_proposed_for_deletion_and_let_go_by_one_put(rig: Rig) -> None:
    await with_draft(rig, "Published")
    delete_variant(rig)

    done = await rig.reconcile()

    assert done.packages == ["PUT PR bar.packagevariant-1 DeletionProposed"]
    assert done.lines[-1].split()[1:3] == ["PV", "my-pv"], "then the finalizer"
    left = rig.revision(FIRST)
    assert (left["spec"]["lifecycle"], owners_of(left)) == ("DeletionProposed", [])
    assert not rig.has_variant()
    await rig.quiet()


@golden("G-X06")
async def test_everything_owned_goes_of_whatever_package(rig: Rig) -> None:
    await with_draft(rig, "Published")
    rig.change_variant(pipeline={"mutators": [SET_LABELS]})
    await rig.settle()
    other = rig.new_draft("elsewhere")
    rig.own(other, rig.revision(FIRST)["metadata"]["ownerReferences"][0])
    delete_variant(rig)

    assert sorted(await rig.settle()) == [
        "DELETE PR bar.packagevariant-2",
        "DELETE PR elsewhere.ws-1",
        "PUT PR bar.packagevariant-1 DeletionProposed",
    ]
    assert not rig.has_variant()


@golden("G-X07")
async def test_a_delete_that_fails_keeps_the_variant_until_it_succeeds(rig: Rig) -> None:
    await with_draft(rig)
    delete_variant(rig)
    rig.recording.faults.append(Fault(is_delete, lambda: InternalError("the disk is full")))

    done = await rig.reconcile()

    assert done.wants_retry
    assert rig.variant()["metadata"]["finalizers"] == ["config.porch.kpt.dev/packagevariants"]
    ready = rig.condition("Ready")
    assert ready[:2] == ("False", "DeletionBlocked")
    assert rig.exists(FIRST)
    assert await rig.settle() == DELETED
    assert not rig.has_variant()


def is_delete(write: Write) -> bool:
    return write.verb == "DELETE"


@golden("G-X07")
async def test_one_that_somebody_else_deleted_counts_as_done(rig: Rig) -> None:
    await with_draft(rig)
    delete_variant(rig)
    uid = uid_of(rig)
    assert rig.views is not None
    rig.views.look()
    accepted(rig.porch.delete_revision(FIRST))

    await rig.reconciler.reconcile((rig.namespace, "my-pv"))  # with views that still show it

    await rig.settle()
    assert not rig.has_variant(), uid


@golden("G-X08")
async def test_an_invalid_variant_goes_like_any_other(rig: Rig) -> None:
    await with_draft(rig)
    rig.change_variant(adoptionPolicy="nonsense", upstream={})
    await rig.settle()
    assert rig.condition("Stalled")[:2] == ("True", "ValidationError")
    delete_variant(rig)

    assert await rig.settle() == DELETED
    assert not rig.has_variant()


@golden("2.12")
async def test_an_unknown_policy_keeps_everything(rig: Rig) -> None:
    await with_draft(rig)
    rig.change_variant(deletionPolicy="burn")
    delete_variant(rig)

    await rig.settle()

    assert not rig.has_variant()
    assert rig.revisions_of("bar") == {"packagevariant-1": "Draft"}


@golden("2.12")
async def test_foreign_owners_stay(rig: Rig) -> None:
    await with_draft(rig, "Published")
    other = rig.stranger()
    rig.own(FIRST, other)
    delete_variant(rig)

    assert await rig.settle() == ["PUT PR bar.packagevariant-1 DeletionProposed"]

    assert owners_of(rig.revision(FIRST)) == [other["uid"]]


@golden("2.12", "6.7")
async def test_a_paused_variant_is_deleted_all_the_same(rig: Rig) -> None:
    await with_draft(rig)
    rig.change_variant(suspend=True)
    await rig.settle()
    delete_variant(rig)

    assert await rig.settle() == DELETED
    assert not rig.has_variant()


@golden("2.12")
async def test_a_variant_that_never_made_anything_goes_without_a_write_of_packages(rig: Rig) -> None:
    rig.add_variant(variant(upstream={"repo": "blueprints", "package": "nowhere", "revision": 1}))
    await rig.settle()
    delete_variant(rig)

    assert await rig.settle() == []
    assert not rig.has_variant()


@golden("2.12")
async def test_a_draft_that_is_upstream_of_another_is_reported_and_tried_again(rig: Rig) -> None:
    """A published one that is referenced is proposed for deletion and let go; it is never in the way."""
    await with_draft(rig, "Published")
    rig.add_variant(other_variant())
    await rig.settle("second")
    delete_variant(rig)

    assert await rig.settle() == ["PUT PR bar.packagevariant-1 DeletionProposed"]

    assert not rig.has_variant()
    assert rig.revision(FIRST)["spec"]["lifecycle"] == "DeletionProposed"


def other_variant() -> Json:
    source = {"repo": "deployments", "package": "bar", "revision": 1}
    return variant("second", upstream=source, downstream=downstream("next"))


@golden("2.12")
@pytest.mark.parametrize("policy", ["delete", "orphan"])
@pytest.mark.parametrize("propagation", ["Background", "Foreground", "Orphan"])
async def test_how_the_variant_is_deleted_decides_nothing(rig: Rig, policy: str, propagation: str) -> None:
    """The garbage collector is quick with ``--cascade=foreground``; the policy holds as far as it can.

    With ``orphan`` it races with the controller, see docs/how-to; what the controller had let go in time stays.
    """
    await with_draft(rig, "Published", deletionPolicy=policy)
    answer = rig.delete(CONFIG, "packagevariants", "my-pv", propagationPolicy=propagation)
    assert answer.code in {200, 202}, answer.body

    async with asyncio.timeout(60):
        await rig.settle()
        while rig.has_variant():  # the collector has a part in it, before the controller's or after it
            await asyncio.sleep(0.2)
            await rig.settle()
    left = rig.revision(FIRST)
    assert left["spec"]["lifecycle"] == (
        "Published" if policy == "orphan" or propagation == "Orphan" else "DeletionProposed"
    )
    assert owners_of(left) == []
