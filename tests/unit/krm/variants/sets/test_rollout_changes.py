"""Pinned sources, names of changes, and when a variant is settled. Source: ``variants.md`` 2.4 and 6.2."""

from typing import Any

import pytest
from rollout_scene import BROKEN, OFF, PROPOSED, PUBLISHED, SETTLED, STALLED, WORKING, set_of

from krm.variants.revisions import DRAFT, Revision
from krm.variants.revisions import PROPOSED as IS_PROPOSED
from krm.variants.revisions import PUBLISHED as IS_PUBLISHED
from krm.variants.sets.changes import change_id, revisions_since, with_pinned_upstream
from krm.variants.sets.progress import Progress, VariantState, is_published, progress
from krm.variants.upstream import Resolution

Json = dict[str, Any]
ROLLING = {"strategy": "Rolling"}


def revision(
    package: str, number: int, lifecycle: str = IS_PUBLISHED, *, made_of: str = "", owner: str = "", **more: Any
) -> Revision:
    """Return a revision whose commit is ``<package><number>``, made of another one's commit."""
    git = {"repo": "https://git/x", "ref": f"foo/v{number}"}
    status: Json = {"selfLock": {"git": {**git, "directory": package, "commit": f"{package}{number}"}}}
    if made_of:
        status["upstreamLock"] = {"git": {**git, "directory": "foo", "commit": made_of}}
    meta: Json = {"namespace": "ns", "name": f"repo.{package}.v{number}", "labels": {}, **more}
    if owner:
        meta["ownerReferences"] = [{"uid": owner, "kind": "PackageVariant", "name": "v", "apiVersion": "x"}]
    spec = {
        "repository": "repo",
        "packageName": package,
        "workspaceName": f"v{number}" if number >= 0 else "main",
        "revision": number,
        "lifecycle": lifecycle,
    }
    return Revision.of({"metadata": meta, "spec": spec, "status": status})


# --- pinned sources ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "pinned"),
    [
        ({"tag": "stable"}, {"revision": 7}),
        ({"tag": "latest"}, {"revision": 7}),
        ({"revision": "latest", "allowDowngrade": True}, {"revision": 7}),
        ({}, {"revision": 7}),
        ({"revision": 7}, {"revision": 7}),
        ({"revision": "v7"}, {"revision": "v7"}),
        ({"workspaceName": "v7"}, {"workspaceName": "v7"}),
        ({"workspaceName": "v7", "revision": 3}, {"workspaceName": "v7", "revision": 3}),
        ({"revision": "v7.0.0"}, {"revision": "v7.0.0"}),
    ],
)
def test_what_moves_is_pinned_and_what_is_fixed_keeps_its_spelling(written: Json, pinned: Json) -> None:
    body = set_of(ROLLING)
    body["spec"]["upstream"] = {"repo": "blueprints", "package": "foo", **written}
    before = repr(body)
    found = with_pinned_upstream(body, Resolution(revision("foo", 7)))
    assert found["spec"]["upstream"] == {"repo": "blueprints", "package": "foo", **pinned}
    assert found["spec"]["rollout"] == ROLLING
    assert repr(body) == before


def test_a_branch_cannot_be_pinned() -> None:
    body = set_of(ROLLING, "latest")
    assert with_pinned_upstream(body, Resolution(revision("foo", -1))) is body


def test_a_set_without_a_rollout_leaves_its_variants_to_follow_by_themselves() -> None:
    body = set_of(None, "latest")
    assert with_pinned_upstream(body, Resolution(revision("foo", 7))) is body


def test_what_went_backwards_is_not_followed() -> None:
    """The revision that the variants have stays the one that is asked for (2.4)."""
    seen = {"name": "repo.foo.v9", "revision": 9, "workspaceName": "v9"}
    resolution = Resolution(revision("foo", 7), went_backwards=True, status=seen)
    assert with_pinned_upstream(set_of(ROLLING, "latest"), resolution)["spec"]["upstream"]["revision"] == 9


# --- names of changes ------------------------------------------------------------------------------------


def test_a_change_is_one_of_source_or_targets() -> None:
    plain = change_id(set_of(ROLLING, 1))
    other = set_of(ROLLING, 1)
    other["spec"]["targets"].append({"repositories": [{"name": "x"}]})
    assert len({plain, change_id(set_of(ROLLING, 2)), change_id(other)}) == 3
    assert plain == change_id(set_of({"strategy": "Waves"}, 1, approve="a@b"))
    assert len(plain) == 16


@pytest.mark.parametrize(
    ("name", "upstream", "expected"),
    [
        ("blueprints.foo.v3", {"revision": 2}, -1),
        ("blueprints.foo.v3", {"revision": "v4"}, 1),
        ("blueprints.foo.v3", {"revision": 3}, 0),
        ("blueprints.foobar.v3", {"revision": 2}, None),
        ("other.foo.v3", {"revision": 2}, None),
        ("blueprints.foo.v3", {"workspaceName": "v2", "revision": 2}, None),
        ("blueprints.foo.v3", {"revision": "v2.0.0"}, None),
        ("blueprints.foo.v3", {"revision": -1}, None),
        ("blueprints.a.b.v3", {"package": "a/b", "revision": 2}, -1),
    ],
)
def test_how_far_a_source_went(name: str, upstream: Json, expected: int | None) -> None:
    assert (
        revisions_since({"name": name, "revision": 3}, {"repo": "blueprints", "package": "foo", **upstream}) == expected
    )


def test_nothing_is_known_of_a_source_that_was_not_resolved() -> None:
    assert revisions_since({}, {"repo": "blueprints", "package": "foo", "revision": 2}) is None


# --- when a variant is settled -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "on_draft", "on_publication"),
    [
        (SETTLED, Progress.SETTLED, Progress.IN_FLIGHT),
        (PUBLISHED, Progress.SETTLED, Progress.SETTLED),
        (WORKING, Progress.IN_FLIGHT, Progress.IN_FLIGHT),
        (BROKEN, Progress.FAILED, Progress.FAILED),
        (STALLED, Progress.FAILED, Progress.FAILED),
        (PROPOSED, Progress.IN_FLIGHT, Progress.IN_FLIGHT),
        (OFF, Progress.SETTLED, Progress.IN_FLIGHT),
        (VariantState(), Progress.IN_FLIGHT, Progress.IN_FLIGHT),
        (VariantState(generation=1, observed_generation=1), Progress.IN_FLIGHT, Progress.IN_FLIGHT),
        (VariantState(generation=3, observed_generation=2, stalled=True), Progress.IN_FLIGHT, Progress.IN_FLIGHT),
    ],
)
def test_how_far_a_variant_is(state: VariantState, on_draft: Progress, on_publication: Progress) -> None:
    assert progress(state, needs_publication=False) is on_draft
    assert progress(state, needs_publication=True) is on_publication


UPSTREAM = revision("foo", 2)
OLD = revision("bar", 1, made_of="foo1", owner="u")
NEW = revision("bar", 2, made_of="foo2", owner="u")


@pytest.mark.parametrize(
    ("of_package", "expected"),
    [
        ([], False),
        ([OLD], False),
        ([OLD, NEW], True),
        ([NEW, OLD], True),
        ([NEW, revision("bar", 0, DRAFT, made_of="foo2", owner="u")], False),
        ([NEW, revision("bar", 0, IS_PROPOSED, made_of="foo2", owner="u")], False),
        ([NEW, revision("bar", 0, DRAFT, made_of="foo2", owner="somebody-else")], True),
        ([NEW, revision("bar", 0, DRAFT, owner="u", deletionTimestamp="2026-01-01T00:00:00Z")], True),
        ([NEW, revision("bar", 0, DRAFT, labels={"config.porch.kpt.dev/packagevariant-uid": "u"})], False),
        ([revision("bar", 0, DRAFT, made_of="foo2", owner="u")], False),
        ([revision("bar", -1, made_of="foo2", owner="u")], False),
        ([revision("bar", 2, made_of="foo1"), revision("bar", 1, made_of="foo2")], False),
    ],
)
def test_when_a_variant_is_published(of_package: list[Revision], expected: bool) -> None:  # a table
    assert is_published("u", of_package, UPSTREAM, upstream_branch="main") is expected
