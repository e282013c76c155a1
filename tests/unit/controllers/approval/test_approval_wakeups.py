"""Whom an event wakes, and whose a package revision was. Source: ``variants.md`` 6.3 and 6.10."""

from typing import Any

import pytest
from approval_scene import BOTH, edited, package_revision, package_variant, published

from controllers.approval import wakeups
from controllers.approval.released import ReleasedRevisions
from krm.variants.approval import ApprovingVariant, Candidate
from krm.variants.revisions import Revision

Json = dict[str, Any]
DRAFT = package_revision()
KEY = ("ns", "deployments.bar.packagevariant-1")


def woken(old: Json | None, new: Json | None, *, beside: tuple[Json, ...] = (), policy: bool = True) -> set[str]:
    before, after = (Candidate.of(one) if one else None for one in (old, new))
    keys = wakeups.by_revision(before, after, lambda _: policy, lambda _: [*map(Revision.of, beside)])
    return {name for _, name in keys}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec/lifecycle", "Proposed"),
        ("spec/lifecycle", "DeletionProposed"),
        ("status/conditions/0/status", "False"),
        ("spec/readinessGates", []),
        ("status/upstreamLock/git/commit", "c3"),
        ("metadata/ownerReferences", []),
        ("metadata/annotations", {"approval.nephio.org/policy": "initial"}),
        ("metadata/annotations", {"approval.nephio.org/delay": "5s"}),
        ("metadata/uid", "another"),
    ],
)
def test_what_decides_wakes(path: str, value: Any) -> None:
    assert woken(DRAFT, edited(DRAFT, path, value)) == {KEY[1]}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata/resourceVersion", "6"),
        ("metadata/labels", {"mine": "x"}),
        ("metadata/annotations", {"other": "x"}),
        ("status/conditions/0/reason", "Other"),
        ("status/selfLock", {"git": {"repo": "x", "directory": "bar", "ref": "r", "commit": "new"}}),
        ("spec/lifecycle", "Published"),
        ("metadata/deletionTimestamp", "2026-01-01T00:00:00Z"),
    ],
)
def test_what_decides_nothing_wakes_nobody(path: str, value: Any) -> None:
    assert woken(DRAFT, edited(DRAFT, path, value)) == set()


def test_a_new_one_wakes_itself_if_it_has_a_policy() -> None:
    assert woken(None, DRAFT) == {KEY[1]}
    assert woken(None, DRAFT, policy=False) == set()
    assert woken(DRAFT, None) == set()


def test_when_the_last_published_one_goes_the_others_may_be_the_first() -> None:
    first = published("bar", 1, repository="deployments")
    assert woken(first, None, beside=(DRAFT,)) == {KEY[1]}
    assert woken(first, None, beside=(DRAFT, published("bar", 2, repository="deployments"))) == set()
    assert woken(first, edited(first, "spec/lifecycle", "DeletionProposed"), beside=(DRAFT,), policy=False) == set()


def woken_by_variant(old: Json | None, new: Json | None, owned: Json = DRAFT) -> set[wakeups.Key]:
    before, after = (ApprovingVariant.of(one) if one else None for one in (old, new))
    return wakeups.by_variant(before, after, lambda _: [Candidate.of(owned)])


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata/generation", 3),
        ("status/observedGeneration", 1),
        ("status/conditions/0/status", "False"),
        ("metadata/annotations", {"config.porch.kpt.dev/paused": "true"}),
        ("metadata/deletionTimestamp", "2026-01-01T00:00:00Z"),
        ("status/upstream/name", "blueprints.foo.v3"),
        ("status/upstream/commit", "moved"),
    ],
)
def test_a_variant_wakes_what_it_owns_when_that_may_be_approved_now(path: str, value: Any) -> None:
    variant = package_variant(BOTH)
    assert woken_by_variant(variant, edited(variant, path, value)) == {KEY}
    assert woken_by_variant(variant, edited(variant, path, value), package_revision("Published")) == set()


@pytest.mark.parametrize(
    ("path", "value"),
    [("metadata/resourceVersion", "9"), ("metadata/labels", {"a": "b"}), ("status/pendingChange", {"draft": "x"})],
)
def test_other_news_of_a_variant_wake_nobody(path: str, value: Any) -> None:
    variant = package_variant(BOTH)
    assert woken_by_variant(variant, edited(variant, path, value)) == set()


def test_a_variant_that_appears_wakes_what_it_owns_and_one_that_goes_does_not() -> None:
    assert woken_by_variant(None, package_variant(BOTH)) == {KEY}
    assert woken_by_variant(package_variant(BOTH), None) == set()


# --- whose it was ------------------------------------------------------------------------------------

OWNED = package_revision("Published")
LET_GO = edited(edited(package_revision("DeletionProposed"), "metadata/ownerReferences", []), "metadata/labels", {})
GOING = edited(package_variant({"approveDeletion": "Always"}), "metadata/deletionTimestamp", "2026-01-01T00:00:00Z")


def former_owner(released: ReleasedRevisions, body: Json = LET_GO) -> str:
    owner = released.owner(Candidate.of(body))
    return owner.name if owner else ""


def test_who_let_go_is_known_whatever_is_heard_first() -> None:
    cached: dict[str, ApprovingVariant] = {"uid-v": ApprovingVariant.of(package_variant({"approveDeletion": "Always"}))}
    released = ReleasedRevisions(lambda _, uid: cached.get(uid))
    released.revision_changed(Candidate.of(OWNED), Candidate.of(LET_GO))
    assert former_owner(released) == ""
    assert released.of("uid-v") == {KEY}
    cached["uid-v"] = ApprovingVariant.of(GOING)
    assert former_owner(released) == "v"
    released.variant_gone(cached.pop("uid-v"))
    assert former_owner(released) == "v"

    later = ReleasedRevisions(lambda _, uid: cached.get(uid))
    later.variant_gone(ApprovingVariant.of(GOING))
    later.revision_changed(Candidate.of(OWNED), Candidate.of(LET_GO))
    assert former_owner(later) == "v"


def test_a_variant_without_a_policy_is_not_remembered() -> None:
    released = ReleasedRevisions(lambda *_: None)
    released.variant_gone(ApprovingVariant.of(package_variant()))
    released.revision_changed(Candidate.of(OWNED), Candidate.of(LET_GO))
    assert former_owner(released) == ""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (None, LET_GO),
        (OWNED, edited(LET_GO, "spec/lifecycle", "Published")),
        (OWNED, package_revision("DeletionProposed")),
        (edited(OWNED, "metadata/ownerReferences", []), LET_GO),
    ],
    ids=["seen for the first time", "orphaned", "still owned", "owned by nobody before"],
)
def test_nobody_let_go(old: Json | None, new: Json) -> None:
    released = ReleasedRevisions(lambda *_: ApprovingVariant.of(GOING))
    released.revision_changed(Candidate.of(old) if old else None, Candidate.of(new))
    assert former_owner(released, new) == ""


def test_a_proposal_that_is_taken_back_is_forgotten() -> None:
    released = ReleasedRevisions(lambda *_: ApprovingVariant.of(GOING))
    released.revision_changed(Candidate.of(OWNED), Candidate.of(LET_GO))
    published_again = edited(LET_GO, "spec/lifecycle", "Published")
    released.revision_changed(Candidate.of(LET_GO), Candidate.of(published_again))
    released.revision_changed(Candidate.of(published_again), Candidate.of(LET_GO))
    assert former_owner(released) == ""
    released.revision_changed(Candidate.of(OWNED), Candidate.of(LET_GO))
    released.revision_changed(Candidate.of(LET_GO), None)
    assert released.of("uid-v") == set()
