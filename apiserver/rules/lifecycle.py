"""The state machine of a package revision, per door: the main resource and ``approval``.

Source: ``porch-api.md`` 4.2 (its texts are what upstream's clients show).
"""

from collections.abc import Mapping
from enum import StrEnum

from krm.meta.errors import Cause, Invalid, invalid_value

GROUP = "porch.kpt.dev"
KIND = "PackageRevision"


class Lifecycle(StrEnum):
    """Where a package revision is in its life."""

    DRAFT = "Draft"
    PROPOSED = "Proposed"
    PUBLISHED = "Published"
    DELETION_PROPOSED = "DeletionProposed"

    @property
    def is_published(self) -> bool:
        """Published, also when its deletion is proposed (``porch-api.md`` head)."""
        return self in (Lifecycle.PUBLISHED, Lifecycle.DELETION_PROPOSED)


class Door(StrEnum):
    """Which endpoint a change comes through."""

    MAIN = "main"
    APPROVAL = "approval"


D, P, U, X = Lifecycle.DRAFT, Lifecycle.PROPOSED, Lifecycle.PUBLISHED, Lifecycle.DELETION_PROPOSED

ALLOWED: Mapping[Door, Mapping[Lifecycle, frozenset[Lifecycle]]] = {
    Door.MAIN: {D: frozenset({D, P}), P: frozenset({D, P}), U: frozenset({U, X}), X: frozenset({U, X})},
    Door.APPROVAL: {D: frozenset(), P: frozenset({U, D}), U: frozenset({X}), X: frozenset({U})},
}

GATED = frozenset({(D, P), (P, U)})
"""The transitions that readiness gates hold."""


def parse_lifecycle(value: str, current: Lifecycle, name: str) -> Lifecycle:
    """Read what a client sent; empty leaves the lifecycle as it is.

    Upstream takes empty for Draft, which rejects a proposal by accident ([QUIRK][BEAT] of 4.2).

    Raises:
        Invalid: the value is not a lifecycle.
    """
    if not value:
        return current
    try:
        return Lifecycle(value)
    except ValueError:
        why = "value can be only updated to Draft,Proposed,Published,DeletionProposed"
        raise _invalid(name, invalid_value("spec.lifecycle", value, why)) from None


def check_transition(current: Lifecycle, desired: Lifecycle, door: Door, name: str) -> None:
    """Refuse a transition that ``door`` does not offer.

    Raises:
        Invalid: with upstream's sentence for the case, on spec.lifecycle.
    """
    if desired in ALLOWED[door][current]:
        return
    if door is Door.APPROVAL:
        raise _invalid(name, invalid_value("spec.lifecycle", str(desired), _approval_refusal(current, desired)))
    allowed = "Published,DeletionProposed" if current.is_published else "Draft,Proposed"
    raise _invalid(name, invalid_value("spec.lifecycle", str(current), f"value can be only updated to {allowed}"))


def _approval_refusal(current: Lifecycle, desired: Lifecycle) -> str:
    if current is U:
        return "package with Published lifecycle value can only be updated to 'ProposeDeletion'"
    if current is X:
        return "package with DeletionProposed lifecycle value can only be updated to 'Published'"
    if desired is X:
        return "cannot update lifecycle DeletionProposed; only Published packages require approval for deletion"
    if current is D:
        return "cannot approve package with Draft lifecycle value; only Proposed packages can be approved"
    return "value for approval can be only one of Draft,Published"


def _invalid(name: str, cause: Cause) -> Invalid:
    return Invalid.of(KIND, GROUP, name, [cause])
