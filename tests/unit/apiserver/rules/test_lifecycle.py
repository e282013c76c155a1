"""The transition table of ``porch-api.md`` 4.2, whole, for both doors."""

import itertools

import pytest

from apiserver.rules.lifecycle import ALLOWED, Door, Lifecycle, check_transition, parse_lifecycle
from krm.meta.errors import Invalid

D, P, U, X = Lifecycle.DRAFT, Lifecycle.PROPOSED, Lifecycle.PUBLISHED, Lifecycle.DELETION_PROPOSED

MAIN = {(D, D), (D, P), (P, D), (P, P), (U, U), (U, X), (X, U), (X, X)}
APPROVAL = {(P, U), (P, D), (U, X), (X, U)}


@pytest.mark.parametrize("door", list(Door))
@pytest.mark.parametrize(("current", "desired"), list(itertools.product(Lifecycle, Lifecycle)))
def test_a_door_offers_exactly_the_transitions_of_the_table(current: Lifecycle, desired: Lifecycle, door: Door) -> None:
    allowed = (current, desired) in (MAIN if door is Door.MAIN else APPROVAL)

    if allowed:
        check_transition(current, desired, door, "repo.pkg.v1")
        return
    with pytest.raises(Invalid) as refused:
        check_transition(current, desired, door, "repo.pkg.v1")
    assert refused.value.causes[0].field == "spec.lifecycle"


def test_publishing_goes_through_the_approval_door_only() -> None:
    assert U not in ALLOWED[Door.MAIN][P]
    assert U in ALLOWED[Door.APPROVAL][P]


@pytest.mark.parametrize(
    ("current", "desired", "sentence"),
    [
        (U, P, "package with Published lifecycle value can only be updated to 'ProposeDeletion'"),
        (X, D, "package with DeletionProposed lifecycle value can only be updated to 'Published'"),
        (D, U, "cannot approve package with Draft lifecycle value; only Proposed packages can be approved"),
        (P, X, "cannot update lifecycle DeletionProposed; only Published packages require approval for deletion"),
        (P, P, "value for approval can be only one of Draft,Published"),
    ],
)
def test_a_refused_approval_says_what_upstreams_clients_show(
    current: Lifecycle, desired: Lifecycle, sentence: str
) -> None:
    with pytest.raises(Invalid) as refused:
        check_transition(current, desired, Door.APPROVAL, "repo.pkg.v1")

    assert sentence in refused.value.message


def test_an_update_without_lifecycle_leaves_a_proposal_proposed() -> None:
    """Upstream takes it for Draft and so rejects by accident ([QUIRK][BEAT] of 4.2)."""
    assert parse_lifecycle("", P, "repo.pkg.v1") is P


def test_an_unknown_lifecycle_is_refused() -> None:
    with pytest.raises(Invalid, match="value can be only updated to Draft,Proposed,Published,DeletionProposed"):
        parse_lifecycle("Done", D, "repo.pkg.v1")
