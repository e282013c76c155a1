"""Which revision an upstream stands for (5.7, 2.3, 2.4; C-01, C-02, C-10, C-18, C-21, C-22, C-45)."""

import json
from typing import Any

import pytest
from case_tables import cases, lock, revision, variant
from hypothesis import given
from hypothesis import strategies as st

from krm.variants.revision_choice import InvalidRevision, revision_choice
from krm.variants.revisions import Lock, Revision
from krm.variants.upstream import (
    Resolution,
    UpstreamError,
    UpstreamNotFound,
    UpstreamNotPublished,
    falls_below,
    git_address,
    pinned,
    resolve,
    seen,
)

Json = dict[str, Any]


def of_upstream(case: Any) -> Revision:
    return revision(case, repository="blueprints", package="foo")


def resolution(case: Json) -> Resolution:
    spec = variant(upstream={"repo": "blueprints", "package": "foo", **case["upstream"]}).upstream
    revisions = [of_upstream(one) for one in case["revisions"]]
    return resolve(spec, revisions, case.get("branch", "main"), previous=case.get("previous"))


@pytest.mark.parametrize("case", [one for one in cases("upstream") if "finds" in one.values[0]])
def test_finds(case: Json) -> None:
    found = resolution(case)

    assert found.revision.workspace == case["finds"]
    assert [reason for reason, _ in found.warnings] == case.get("warns", [])
    assert found.went_backwards is case.get("backwards", False)


@pytest.mark.parametrize("case", [one for one in cases("upstream") if "finds" not in one.values[0]])
def test_finds_nothing_usable(case: Json) -> None:
    with pytest.raises(UpstreamError) as caught:
        resolution(case)

    if "error" in case:
        assert (type(caught.value), caught.value.reason) == (UpstreamNotFound, "UpstreamNotFound")
        assert str(caught.value) == case["error"]
        assert str(caught.value).startswith("could not find upstream package revision")
    else:
        assert (type(caught.value), caught.value.reason) == (UpstreamNotPublished, "UpstreamNotPublished")
        assert str(caught.value) == case["unpublished"]


def test_a_tag_of_git_that_moved_has_another_commit() -> None:
    first, second = [resolution(one.values[0]) for one in cases("upstream") if one.id == "G-U09"]

    assert seen(first.revision, "beta")["commit"] == "c1"
    assert seen(second.revision, "beta")["commit"] == "c2"


def test_what_went_backwards_stays_recorded_until_the_spec_allows_it() -> None:
    """Else the second pass would take the lower revision for what there always was, and follow it (2.4)."""
    case = next(one.values[0] for one in cases("upstream") if one.id == "latest-went-backwards")
    first = resolution(case)
    second = resolution({**case, "previous": first.seen()})

    assert first.seen() == case["previous"]
    assert (second.went_backwards, second.seen()) == (True, case["previous"])


def test_a_new_latest_ends_it() -> None:
    case = next(one.values[0] for one in cases("upstream") if one.id == "latest-went-backwards")
    found = resolution({**case, "revisions": [["v2", 2], ["v4", 4]]})

    assert (found.went_backwards, found.seen()["revision"]) == (False, 4)


def test_status_names_what_was_found_and_its_tag() -> None:
    found = resolution(
        {"upstream": {"tag": "latest"}, "revisions": [{"workspace": "v2", "revision": 2, "commit": "c2"}]}
    )

    wanted = {"name": "blueprints.foo.v2", "revision": 2, "workspaceName": "v2", "tag": "latest", "commit": "c2"}
    assert found.seen("latest") == wanted
    assert "tag" not in found.seen()


@pytest.mark.parametrize(
    ("upstream", "upstream_lock", "falls"),
    [
        ({}, "https://x/b.git|foo|foo/v3|c3", True),
        ({"tag": "latest"}, "https://x/b.git|foo|foo/v3|c3", True),
        ({}, "https://x/b.git|foo|foo/v2|c3", False),
        ({}, "https://x/b.git|other|other/v3|c3", False),
        ({}, "none", False),
        ({"allowDowngrade": True}, "https://x/b.git|foo|foo/v3|c3", False),
        ({"revision": "v2"}, "https://x/b.git|foo|foo/v3|c3", False),
    ],
)
def test_the_lock_tells_of_a_fall_when_the_status_is_lost(upstream: Json, upstream_lock: str, falls: bool) -> None:
    revisions = [{"workspace": "v2", "revision": 2, "lock": "https://x/b|foo|foo/v2|c2"}]
    found = resolution({"upstream": upstream, "revisions": revisions})

    assert falls_below(revision({"upstreamLock": upstream_lock}), found) is falls


def test_a_placeholder_is_pinned_to_its_commit() -> None:
    branch = of_upstream({"workspace": "main", "revision": -1, "lock": "https://x/b|foo|main|c7"})

    assert pinned(branch, "main") == {"repo": "https://x/b", "ref": "c7", "directory": "foo"}
    assert pinned(branch, "main", "key") == {
        "repo": "https://x/b",
        "ref": "c7",
        "directory": "foo",
        "secretRef": {"name": "key"},
    }
    assert pinned(branch, "trunk") is None
    assert pinned(of_upstream(["v1", 1]), "main") is None


def test_a_placeholder_without_a_commit_cannot_be_used() -> None:
    with pytest.raises(UpstreamNotFound, match=r"^could not find upstream package revision"):
        pinned(of_upstream(["main", -1]), "main")


def test_a_place_without_commit_is_read_by_its_ref() -> None:
    found = Lock.of(lock("https://x/b|foo|foo/v1|"))

    assert found is not None
    assert git_address(found)["ref"] == "foo/v1"


@pytest.mark.hypothesis
@given(st.integers(min_value=1, max_value=10**17))
def test_a_number_is_the_same_in_every_spelling(number: int) -> None:
    """C-21."""
    assert revision_choice(number) == revision_choice(str(number)) == revision_choice(f"v{number}")


@pytest.mark.hypothesis
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists))
def test_any_json_chooses_something_or_is_refused(written: Any) -> None:
    try:
        choice = revision_choice(written)
    except InvalidRevision:
        assert not isinstance(written, str) or json.loads(written) < -1
    else:
        assert revision_choice(written) == choice


@pytest.mark.hypothesis
@given(st.data())
def test_the_order_of_events_does_not_decide(data: st.DataObject) -> None:
    """I8."""
    row = st.tuples(
        st.sampled_from(["v1", "v2", "main", "beta"]),
        st.integers(-1, 3),
        st.sampled_from(["Draft", "Proposed", "Published", "DeletionProposed"]),
    )
    rows = data.draw(st.lists(row, unique_by=lambda one: one[0]))
    upstream: Json = data.draw(
        st.sampled_from([{}, {"revision": 1}, {"revision": "latest"}, {"revision": -1}, {"tag": "beta"}])
    )
    shuffled = data.draw(st.permutations(rows))

    assert _outcome(upstream, rows) == _outcome(upstream, shuffled)


def _outcome(upstream: Json, rows: list[Any]) -> str:
    try:
        return resolution({"upstream": upstream, "revisions": [list(row) for row in rows]}).revision.name
    except UpstreamError as error:
        return str(error)
