"""How far a variant is with what its set made it say. Pure. Source: ``variants.md`` 6.2."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final

from krm.meta.conditions import find_condition
from krm.variants.locks import up_to_date
from krm.variants.revisions import DRAFT, PROPOSED, Revision
from krm.variants.vocabulary import MARKER_LABEL, PAUSED

Json = dict[str, Any]

WAITS_FOR_PEOPLE: Final = frozenset({"DownstreamProposed", "DownstreamDeletionProposed", "DeletionBlocked"})
"""Reasons of ``Ready=False`` with which nothing has failed: somebody decides about a package revision."""


class Progress(Enum):
    """Where a variant is in a change."""

    OUTDATED = auto()
    """It does not say yet what it shall, or does not exist."""
    IN_FLIGHT = auto()
    """It says so, and its package does not follow yet."""
    SETTLED = auto()
    FAILED = auto()
    """It says so, and its controller cannot do it; that may pass."""


@dataclass(frozen=True, slots=True)
class VariantState:
    """What is known of a variant besides its spec."""

    generation: int = 0
    """0 for one whose object is not known yet."""
    observed_generation: int = 0
    """``status.observedGeneration``."""
    ready: str = ""
    """Status of the condition Ready: True, False or empty."""
    reason: str = ""
    """Reason of that condition."""
    stalled: bool = False
    """Whether the condition Stalled is True."""
    published: bool = False
    """What :func:`is_published` says; only read where changes settle with the publication."""
    paused: bool = False
    """Whether this variant alone is paused: nothing of it is changed or waited for."""

    @classmethod
    def of(cls, body: Json, *, published: bool) -> "VariantState":
        """Read a PackageVariant as it is on the wire."""
        meta, status = body["metadata"], body.get("status") or {}
        ready, stalled = (find_condition(status.get("conditions"), kind) or {} for kind in ("Ready", "Stalled"))
        return cls(
            generation=meta.get("generation") or 0,
            observed_generation=status.get("observedGeneration") or 0,
            ready=str(ready.get("status") or ""),
            reason=str(ready.get("reason") or ""),
            stalled=stalled.get("status") == "True",
            published=published,
            paused=(meta.get("annotations") or {}).get(PAUSED) == "true",
        )


def progress(state: VariantState, *, needs_publication: bool) -> Progress:
    """Tell how far a variant is whose spec is the one that its set wants."""
    if state.observed_generation < state.generation or not state.generation:
        return Progress.IN_FLIGHT
    if state.stalled or (state.ready == "False" and state.reason not in WAITS_FOR_PEOPLE):
        return Progress.FAILED
    is_settled = state.ready == "True" and (state.published or not needs_publication)
    return Progress.SETTLED if is_settled else Progress.IN_FLIGHT


def is_published(uid: str, of_package: Iterable[Revision], upstream: Revision, *, upstream_branch: str) -> bool:
    """Tell whether all that a variant made is published, and the newest of it is made of ``upstream``.

    ``uid`` is the variant's, ``of_package`` the revisions of its target, ``upstream_branch`` the branch that the
    upstream's Repository publishes to.
    """
    revisions = [one for one in of_package if not one.deleting]
    if any(one.lifecycle in ("", DRAFT, PROPOSED) and _is_of(one, uid) for one in revisions):
        return False
    published = [one for one in revisions if one.is_published and one.revision >= 1]
    newest = max(published, key=lambda one: one.revision, default=None)
    return newest is not None and up_to_date(newest, upstream, upstream_branch=upstream_branch).yes


def _is_of(revision: Revision, uid: str) -> bool:
    return revision.owned_by(uid) or revision.labels.get(MARKER_LABEL) == uid
