"""Which revisions a variant keeps, takes over and lets go (5.6, 2.5; decisions.md 16; C-06, C-11)."""

from typing import Any

import pytest
from case_tables import DEAD, ME, cases, revision, variant
from hypothesis import given
from hypothesis import strategies as st

from krm.variants.downstream import Discovery, discover, stale_owners
from krm.variants.revisions import Owner, Revision
from krm.variants.variant import Variant

Json = dict[str, Any]
LIFECYCLES = {0: ["Draft", "Proposed"], 1: ["Published", "DeletionProposed"], -1: ["Published"]}


def alive(owner: Owner) -> bool:
    return owner.uid != DEAD


def of_case(case: Json) -> tuple[Variant, Discovery]:
    policy = "adoptExisting" if case.get("adopts") else "adoptNone"
    downstream = {"repo": "deployments", "package": case.get("downstream", "bar")}
    keeper = variant(downstream=downstream, adoptionPolicy=policy, targets=case.get("known", ()))
    revisions = [revision(one) for one in case["revisions"]]
    return keeper, discover(keeper, revisions, {"deployments": case.get("branch", "main")}, alive)


@pytest.mark.parametrize("case", cases("downstream"))
def test_discover(case: Json) -> None:
    _, found = of_case(case)

    assert [one.workspace for one in found.targets] == case["targets"]
    assert [one.workspace for one in found.retire] == case.get("retire", [])
    assert [one.workspace for one in found.adopt] == case.get("adopt", [])
    assert found.exists_unowned is case.get("exists", False)
    assert (found.newest_published.workspace if found.newest_published else None) == case.get("newest")
    assert (found.conflict.revision.workspace if found.conflict else None) == case.get("conflict")


def test_a_conflict_names_who_has_it() -> None:
    _, found = of_case({"adopts": True, "revisions": [["a", 0, "Draft", ["other"]]]})

    assert found.conflict is not None
    assert 'PackageVariant "other-pv"' in found.conflict.message
    assert '"deployments.bar.a"' in found.conflict.message


@pytest.mark.parametrize("case", [one for one in cases("downstream") if one.values[0].get("newest")])
def test_a_draft_of_what_is_not_the_newest_would_lose_edits(case: Json) -> None:
    """C-11."""
    _, found = of_case(case)
    published = [one for one in found.targets if one.is_published]

    for one in published:
        diverged = found.diverged_from(one)
        assert (diverged is not None) is case.get("diverged", False)


def test_only_references_to_a_former_self_are_stale() -> None:
    keeper = variant()
    one = revision(["a", 0, "Draft", ["dead", "other", "friend", "me"]])

    assert [owner.uid for owner in stale_owners(keeper, one, alive)] == [DEAD]
    assert stale_owners(keeper, one, lambda _: True) == ()
    assert [owner.uid for owner in stale_owners(keeper, one, lambda _: False)] == [DEAD]


rows = st.tuples(
    st.sampled_from(["bar", "foo"]),
    st.sampled_from(["packagevariant-1", "packagevariant-2", "packagevariant-10", "main", "x"]),
    st.sampled_from([0, 1, 2, -1]),
    st.lists(st.sampled_from(["me", "dead", "other", "friend"]), max_size=2, unique=True),
    st.booleans(),
)


def made(row: tuple[str, str, int, list[str], bool]) -> Revision:
    package, workspace, number, owners, last = row
    lifecycle = LIFECYCLES[min(number, 1)][last and number != -1]
    return revision(
        {"package": package, "workspace": workspace, "revision": number, "lifecycle": lifecycle, "owners": owners}
    )


@pytest.mark.hypothesis
@given(st.lists(rows, unique_by=lambda one: one[:2]), st.booleans(), st.randoms(use_true_random=False))
def test_laws(listed: list[Any], adopts: bool, random: Any) -> None:
    keeper = variant(adoptionPolicy="adoptExisting" if adopts else "adoptNone")
    revisions = [made(row) for row in listed]
    found = discover(keeper, revisions, {}, alive)
    random.shuffle(revisions)

    assert discover(keeper, revisions, {}, alive) == found  # I8
    assert all(one.owned_by(ME) and one.package == "foo" for one in found.retire)
    assert all(not one.owned_by(ME) and one.package == "bar" for one in found.adopt)
    assert all(one.owned_by(ME) or one in found.adopt for one in found.targets)
    assert not any(one.is_placeholder("main") for one in (*found.retire, *found.adopt, *found.targets))
    published = [one for one in found.targets if one.is_published]
    assert not published or len(found.targets) == 1
    of_package = [one for one in revisions if one.package == "bar"]
    assert bool(found.targets) or found.exists_unowned or not of_package  # a clone is tried only where none exists
    if found.conflict is not None:
        assert adopts
        assert found.conflict.revision not in found.targets
