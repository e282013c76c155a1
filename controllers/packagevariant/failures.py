"""Why a pass ends without a downstream that is true to its upstream. Source: ``variants.md`` 2.13."""

from enum import StrEnum


class Reason(StrEnum):
    """Reasons of the condition Ready while it is False."""

    ERROR = "Error"
    DOWNSTREAM_EXISTS = "DownstreamExists"
    DOWNSTREAM_PROPOSED = "DownstreamProposed"
    DOWNSTREAM_DIVERGED = "DownstreamDiverged"
    DOWNSTREAM_DELETION_PROPOSED = "DownstreamDeletionProposed"
    ADOPTION_CONFLICT = "AdoptionConflict"
    MUTATION_FAILED = "MutationFailed"
    RENDER_FAILED = "RenderFailed"
    DELETION_BLOCKED = "DeletionBlocked"
    DRAFT_CHURN = "DraftChurn"


WAITS_FOR_EVENTS = frozenset(
    {
        Reason.DOWNSTREAM_EXISTS,
        Reason.DOWNSTREAM_PROPOSED,
        Reason.DOWNSTREAM_DIVERGED,
        Reason.DOWNSTREAM_DELETION_PROPOSED,
        Reason.ADOPTION_CONFLICT,
        Reason.DRAFT_CHURN,
    }
)
"""Trying again does not help; what does is a change that wakes the variant by its event."""


class NotEnsured(Exception):
    """The pass did what it could; the rest cannot be done now."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message

    @property
    def waits(self) -> bool:
        """Whether only somebody else can change that, which wakes the variant."""
        return self.reason in WAITS_FOR_EVENTS


class Overtaken(Exception):
    """Somebody changed what the pass had decided on; decide anew from what is there now."""
