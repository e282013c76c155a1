"""Whether a downstream package is up to date, and what it was made of (5.7, 2.6, 2.7)."""

from typing import Any

import pytest
from case_tables import cases, lock, revision

from krm.variants.locks import UpstreamNeverPublished, old_upstream, up_to_date
from krm.variants.revisions import Lock, Revision

Json = dict[str, Any]


@pytest.mark.parametrize("case", cases("locks", "up_to_date"))
def test_up_to_date(case: Json) -> None:
    downstream = revision({"upstreamLock": case["lock"]})
    upstream = revision(case["upstream"], repository="blueprints", package="foo")

    answer = up_to_date(downstream, upstream, upstream_branch="main")

    assert answer.yes is case["same"]
    assert bool(answer.warning) is case.get("warns", False)


@pytest.mark.parametrize("case", cases("locks", "old_upstream"))
def test_old_upstream(case: Json) -> None:
    downstream = revision({"upstreamLock": case["lock"]})
    revisions = [revision(one, repository="blueprints", package="foo") for one in case["revisions"]]
    if "error" in case:
        with pytest.raises(UpstreamNeverPublished) as caught:
            old_upstream(downstream, revisions)
        assert str(caught.value) == case["error"]
        return

    found = old_upstream(downstream, revisions)

    if case["finds"] is None:
        assert found == Lock.of(lock(case["lock"]))
    else:
        assert isinstance(found, Revision)
        assert found.workspace == case["finds"]


def test_what_has_no_lock_was_made_of_nothing_that_could_be_named() -> None:
    with pytest.raises(ValueError, match="no upstream lock"):
        old_upstream(revision({"upstreamLock": "none"}), [])
