"""Which package revisions a PackageVariant takes for its own, and which it leaves alone.

Source: ``variants.md`` 2.5, 5.6 (G-D), C-06, C-11, C-14; ``decisions.md`` 16. Repository deployments, package bar.
"""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from git_server import GitServer
from golden import golden
from porch_client import CONFIG
from porch_process import PorchProcess
from variant_fixture import Rig, variant_rig
from variant_place import (
    CONFIG_MAP,
    GATE,
    SET_LABELS,
    blueprint,
    condition_of,
    downstream,
    owners_of,
    upstream,
    variant,
    with_blueprint,
)

FIRST, SECOND = "deployments.bar.packagevariant-1", "deployments.bar.packagevariant-2"
MARKER = "config.porch.kpt.dev/packagevariant-uid"
LABELS = {"mutators": [SET_LABELS]}
CLONED = ["POST PR bar.packagevariant-1 False", "PUT PR bar.packagevariant-1 True"]
READY = ("True", "NoErrors", "successfully ensured downstream package variant")


@pytest.fixture
async def rig(porch_server: PorchProcess, git_http: GitServer, namespace: str) -> AsyncIterator[Rig]:
    """A place with the two repositories and a controller."""
    async with variant_rig(porch_server, git_http, namespace) as made:
        with_blueprint(made)
        yield made


async def published(rig: Rig, **spec: Any) -> str:
    """Have a variant made, and its first revision approved; return the variant's UID."""
    made = rig.add_variant(variant(**spec))
    await rig.settle()
    rig.approve(FIRST)
    assert await rig.settle() == []
    return str(made["metadata"]["uid"])


def owner(rig: Rig, *, controller: bool = True) -> dict[str, object]:
    """Return the owner reference that the controller writes."""
    uid = rig.variant()["metadata"]["uid"]
    head = {"apiVersion": "config.porch.kpt.dev/v1alpha1", "kind": "PackageVariant", "name": "my-pv"}
    return {**head, "uid": uid, "controller": controller}


@golden("G-D02")
async def test_without_adoption_only_owned_drafts_are_targets(rig: Rig) -> None:
    await published(rig)
    rig.change_variant(pipeline=LABELS)
    await rig.settle()
    other = rig.draft_of(FIRST, "ws-2")
    before = rig.revision(other)

    assert await rig.settle() == []

    assert rig.targets() == [SECOND]
    assert rig.revision(other) == before
    await rig.quiet()


@golden("G-D03")
async def test_all_owned_drafts_are_targets_and_the_published_one_is_not(rig: Rig) -> None:
    await published(rig)
    for workspace in ("ws-2", "ws-3"):
        rig.own(rig.draft_of(FIRST, workspace), owner(rig))

    await rig.settle()

    assert sorted(rig.targets()) == ["deployments.bar.ws-2", "deployments.bar.ws-3"]
    assert rig.revision(FIRST)["spec"]["lifecycle"] == "Published"
    assert rig.condition("Ready") == READY
    await rig.quiet()


@golden("G-D04", "C-11")
async def test_the_newest_owned_revision_is_the_target_also_below_one_of_somebody_else(rig: Rig) -> None:
    await published(rig)
    rig.change_variant(pipeline=LABELS)
    await rig.settle()
    rig.approve(SECOND)
    third = rig.draft_of(SECOND, "ws-3")
    rig.own(third, {**rig.stranger(), "controller": True})
    rig.approve_open(third)

    assert await rig.settle() == []

    assert rig.targets() == [SECOND]
    assert rig.condition("Ready") == READY
    await rig.quiet()


@golden("G-D05")
async def test_owned_drafts_of_another_package_are_deleted(rig: Rig) -> None:
    await published(rig)
    for package in ("foo", "foo2"):
        rig.own(rig.new_draft(package), owner(rig))

    assert sorted(await rig.settle()) == ["DELETE PR foo.ws-1", "DELETE PR foo2.ws-1"]

    assert rig.revisions_of("foo") == {}
    assert rig.targets() == [FIRST]
    assert rig.condition("Ready") == READY
    await rig.quiet()


@golden("G-D06", "G-D08")
async def test_a_draft_that_nobody_owns_is_adopted_by_one_put(rig: Rig) -> None:
    uid = await published(rig, adoptionPolicy="adoptExisting", labels={"a": "b"}, annotations={"note": "n"})
    other = rig.draft_of(FIRST, "ws-2")
    rig.edit(other, lambda body: body["metadata"].setdefault("labels", {}).update(a="x", c="d"))

    written = await rig.settle()

    assert written[0].startswith("PUT PR bar.ws-2")
    assert written[-1] in {"PUT PR bar.ws-2 True", written[0]}
    adopted = rig.revision(other)
    assert adopted["metadata"]["labels"] == {"a": "b", "c": "d", MARKER: uid}
    assert adopted["metadata"]["annotations"]["note"] == "n"
    assert adopted["metadata"]["ownerReferences"] == [owner(rig)]
    assert condition_of(adopted, GATE).get("status") == "True"
    assert rig.targets() == [other]
    assert rig.condition("Ready") == READY
    await rig.quiet()


@golden("G-D06", "2.11")
async def test_an_adopted_draft_is_changed_in_a_gate_cycle(rig: Rig) -> None:
    hand = rig.new_draft("bar")
    rig.save(hand, package__context_yaml=None, note_txt="mine\n")
    rig.add_variant(variant(adoptionPolicy="adoptExisting", pipeline=LABELS))

    written = await rig.settle()

    assert "POST PR bar.packagevariant-1 False" not in written
    assert written[-3:] == ["PUT PR bar.ws-1 False", "PUT PRR bar.ws-1", "PUT PR bar.ws-1 True"]
    assert rig.files(hand)["note.txt"] == "mine\n"
    assert rig.targets() == [hand]
    await rig.quiet()


@golden("C-06")
async def test_a_published_revision_is_adopted_and_what_follows_is_based_on_it(rig: Rig) -> None:
    rig.porch.create_revision("deployments", "bar", "ws-1", tasks=[clone("blueprints.foo.v1")])
    hand = "deployments.bar.ws-1"
    rig.approve(hand)
    rig.add_variant(variant(adoptionPolicy="adoptExisting"))

    written = await rig.settle()

    assert set(written) == {"PUT PR bar.ws-1 Published"}
    assert rig.targets() == [hand]
    assert owners_of(rig.revision(hand)) == [rig.variant()["metadata"]["uid"]]
    await rig.quiet()
    rig.new_upstream(2)
    rig.change_variant(upstream=upstream(revision=2))
    assert await rig.settle() == ["POST PR bar.packagevariant-1 False", "PUT PR bar.packagevariant-1 True"]
    assert rig.revision(FIRST)["spec"]["tasks"][0]["upgrade"]["localPackageRevisionRef"]["name"] == hand
    await rig.quiet()


def clone(name: str) -> dict[str, object]:
    return {"type": "clone", "clone": {"upstreamRef": {"upstreamRef": {"name": name}}}}


@golden("G-D07")
async def test_a_draft_of_another_package_is_not_adopted(rig: Rig) -> None:
    other = rig.new_draft("foo")
    before = rig.revision(other)
    rig.add_variant(variant(adoptionPolicy="adoptExisting"))

    assert await rig.settle() == CLONED

    assert rig.revision(other) == before
    await rig.quiet()


@golden("G-D09")
@pytest.mark.parametrize("lifecycle", ["Draft", "Published"])
async def test_a_package_that_exists_is_not_cloned_over(rig: Rig, lifecycle: str) -> None:
    other = rig.new_draft("bar")
    if lifecycle == "Published":
        rig.approve(other)
    before = rig.revision(other)
    rig.add_variant(variant())

    assert await rig.settle() == []

    ready = rig.condition("Ready")
    assert ready[:2] == ("False", "DownstreamExists")
    assert "adoptExisting" in ready[2]
    assert rig.revision(other) == before
    await rig.quiet()
    rig.change_variant(adoptionPolicy="adoptExisting")
    assert (await rig.settle())[0].startswith("PUT PR bar.ws-1")
    assert rig.condition("Ready") == READY
    await rig.quiet()


@golden("G-D10", "C-06")
async def test_the_placeholder_is_never_adopted_or_retired(rig: Rig) -> None:
    rig.push("deployments", {"bar": blueprint("bar")})
    rig.sync("deployments")
    before = rig.revision("deployments.bar.main")
    rig.add_variant(variant(adoptionPolicy="adoptExisting"))

    written = await rig.settle()

    assert [line for line in written if ".main" in line] == []
    assert rig.revision("deployments.bar.main")["metadata"].get("ownerReferences") == before["metadata"].get(
        "ownerReferences"
    )
    rig.change_variant(downstream=downstream("other"))
    written = await rig.settle()
    assert [line for line in written if ".main" in line] == []
    await rig.quiet()


@golden("G-D11", "G-X03", "C-14")
async def test_a_new_target_retires_the_old_one_and_the_way_back_restores_it(rig: Rig) -> None:
    rig.add_variant(variant(downstream=downstream("foo")))
    await rig.settle()
    old = "deployments.foo.packagevariant-1"
    rig.approve(old)
    await rig.settle()
    uid = rig.variant()["metadata"]["uid"]

    rig.change_variant(downstream=downstream("bar"))
    assert sorted(await rig.settle()) == sorted([*CLONED, "PUT PR foo.packagevariant-1 DeletionProposed"])

    assert rig.revision(old)["spec"]["lifecycle"] == "DeletionProposed"
    assert uid in owners_of(rig.revision(old)), "still owned"
    assert rig.targets() == [FIRST]
    await rig.quiet()

    rig.change_variant(downstream=downstream("foo"))
    assert sorted(await rig.settle()) == ["DELETE PR bar.packagevariant-1", "PUT PR foo.packagevariant-1 Published"]
    assert rig.revisions_of("bar") == {}
    assert rig.targets() == [old]
    assert rig.condition("Ready") == READY
    await rig.quiet()


@golden("C-14")
async def test_a_target_that_somebody_else_proposed_for_deletion_is_left_so(rig: Rig) -> None:
    await published(rig)
    rig.edit(FIRST, lambda body: body["spec"].update(lifecycle="DeletionProposed"))

    assert await rig.settle() == []

    assert rig.condition("Ready")[:2] == ("False", "DownstreamDeletionProposed")
    assert rig.revision(FIRST)["spec"]["lifecycle"] == "DeletionProposed"
    await rig.quiet()


@golden("G-D06", "2.5.3")
async def test_what_another_controller_owns_is_not_adopted(rig: Rig) -> None:
    hand = rig.new_draft("bar")
    rig.own(hand, {**rig.stranger(), "controller": True})
    rig.add_variant(variant(adoptionPolicy="adoptExisting"))

    assert await rig.settle() == []

    ready = rig.condition("Ready")
    assert ready[:2] == ("False", "AdoptionConflict")
    assert "stranger" in ready[2]
    await rig.quiet()


@golden("G-F15")
async def test_a_variant_made_anew_owns_what_its_dead_namesake_owned(rig: Rig) -> None:
    """A restore without UIDs: the finalizer of the old variant is taken off by hand, as no controller ran."""
    old = await published(rig)
    rig.delete(CONFIG, "packagevariants", "my-pv")
    rig.patch_variant({"metadata": {"finalizers": None}})
    assert not rig.has_variant()
    rig.restart_controller()
    new = rig.add_variant(variant())["metadata"]["uid"]

    written = await rig.settle()

    assert written == ["PUT PR bar.packagevariant-1 Published"]
    assert owners_of(rig.revision(FIRST)) == [new]
    assert new != old
    assert rig.revision(FIRST)["metadata"]["labels"][MARKER] == new
    assert rig.condition("Ready") == READY
    await rig.quiet()


@golden("decisions.16")
async def test_a_revision_that_lost_its_owner_and_is_a_target_is_owned_again(rig: Rig) -> None:
    """After a lost database revisions have no metadata; the variant's status still names them."""
    await published(rig)
    rig.edit(FIRST, lambda body: body["metadata"].update(ownerReferences=[], labels={}))
    rig.restart_controller()

    assert await rig.settle() == ["PUT PR bar.packagevariant-1 Published"]

    assert rig.revision(FIRST)["metadata"]["ownerReferences"] == [owner(rig)]
    assert rig.condition("Ready") == READY
    await rig.quiet()


@golden("2.6")
async def test_workspaces_of_others_are_counted_too(rig: Rig) -> None:
    """``packagevariant-7`` of somebody's hand: the next number is 8, and what is no number counts as 0."""
    await published(rig)
    rig.draft_of(FIRST, "packagevariant-7")
    rig.draft_of(FIRST, "packagevariant-x")
    rig.change_variant(pipeline=LABELS)

    assert (await rig.settle())[0] == "POST PR bar.packagevariant-8 False"
    await rig.quiet()


@golden("G-L01")
async def test_an_adopted_package_that_was_cloned_from_nothing_is_taken_as_up_to_date(rig: Rig) -> None:
    hand = rig.new_draft("bar")
    rig.save(hand, settings_yaml=CONFIG_MAP)
    rig.add_variant(variant(adoptionPolicy="adoptExisting"))

    await rig.settle()

    assert rig.condition("Ready") == READY
    assert rig.revisions_of("bar") == {"ws-1": "Draft"}
    await rig.quiet()
