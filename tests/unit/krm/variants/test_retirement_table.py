"""What becomes of revisions that a variant keeps no more (2.12, 5.6; C-07, C-14)."""

from typing import Any

import pytest
from case_tables import ME, cases, owner, revision, variant

from krm.variants.ownership import rewritten
from krm.variants.retirement import Delete, Nothing, Rewrite, retirement, withdraws_deletion
from krm.variants.revisions import Revision

Json = dict[str, Any]


@pytest.mark.parametrize("case", cases("retirement"))
def test_retirement(case: Json) -> None:
    leaver = variant(deletionPolicy=case["policy"], **case.get("spec", {}))
    owners, deleting = case.get("owners", ["me"]), case.get("deleting", False)
    kept = revision({"workspace": "ws", "lifecycle": case["lifecycle"], "owners": owners, "deleting": deleting})

    decision = retirement(kept, orphans=leaver.orphans, variant_uid=leaver.uid, variant_going=case.get("going", False))

    wanted = case["does"]
    if wanted == "delete":
        assert decision == Delete()
    elif wanted == "nothing":
        assert decision == Nothing()
    else:
        drops = wanted.get("drops", False)
        assert decision == Rewrite(wanted.get("lifecycle"), drop_owner=drops, drop_marker=drops)


@pytest.mark.parametrize("policy", ["delete", "orphan", "", "shred"])
@pytest.mark.parametrize("lifecycle", ["Draft", "Proposed", "Published", "DeletionProposed"])
def test_nothing_published_keeps_a_reference_to_a_variant_that_is_gone(policy: str, lifecycle: str) -> None:
    """The garbage collector would follow it to what may be deleted without an approval (2.12)."""
    leaver = variant(deletionPolicy=policy)
    kept = revision({"lifecycle": lifecycle, "owners": ["me", "other"]})

    decision = retirement(kept, orphans=leaver.orphans, variant_uid=ME, variant_going=True)

    assert decision == Delete() or (isinstance(decision, Rewrite) and decision.drop_owner)


@pytest.mark.parametrize(
    ("lifecycle", "owners", "known", "withdraws"),
    [
        ("DeletionProposed", ["me"], [], True),
        ("DeletionProposed", ["me"], ["deployments.bar.other"], True),
        ("DeletionProposed", ["me"], ["deployments.bar.v1"], False),
        ("DeletionProposed", [], [], False),
        ("Published", ["me"], [], False),
    ],
)
def test_only_our_own_proposal_to_delete_is_withdrawn(
    lifecycle: str, owners: list[str], known: list[str], withdraws: bool
) -> None:
    """C-14."""
    target = revision(["v1", 1, lifecycle, owners])

    assert withdraws_deletion(target, variant(targets=known)) is withdraws


@pytest.mark.parametrize("going", [True, False])
@pytest.mark.parametrize("policy", ["delete", "orphan"])
@pytest.mark.parametrize("lifecycle", ["Draft", "Proposed", "Published", "DeletionProposed"])
def test_what_was_retired_needs_nothing_more(lifecycle: str, policy: str, *, going: bool) -> None:
    """I1: the next pass finds it again, since what is proposed for deletion stays owned."""
    leaver = variant(deletionPolicy=policy)
    body = {
        "metadata": {"namespace": "default", "name": "x", "ownerReferences": [owner("other"), owner("me")]},
        "spec": {"lifecycle": lifecycle},
    }
    decide: Json = {"orphans": leaver.orphans, "variant_uid": ME, "variant_going": going}

    first = retirement(Revision.of(body), **decide)

    if isinstance(first, Rewrite):
        after = Revision.of(rewritten(body, first, ME))
        assert retirement(after, **decide) == Nothing()
        assert [one.uid for one in after.owners if one.uid != ME] == ["uid-other"]
    else:
        assert first == Delete() or lifecycle == "DeletionProposed"
