"""Which package revisions an event concerns: those with a policy, when something changed that a decision reads.

Everything here is pure. Source: ``variants.md`` 6.3 and 6.10.
"""

from collections.abc import Callable, Iterable
from typing import Final

from krm.variants.approval import DELAY_ANNOTATION, POLICY_ANNOTATION, ApprovingVariant, Candidate
from krm.variants.revisions import DELETION_PROPOSED, DRAFT, PROPOSED, Revision

Key = tuple[str, str]
"""Namespace and name."""

OPEN: Final = ("", DRAFT, PROPOSED, DELETION_PROPOSED)
"""Lifecycles in which a policy may ask for something."""


def is_open(candidate: Candidate | None) -> bool:
    """Tell whether a policy may ask for something."""
    return candidate is not None and candidate.revision.lifecycle in OPEN and not candidate.revision.deleting


def by_revision(
    old: Candidate | None,
    new: Candidate | None,
    has_policy: Callable[[Candidate], bool],
    of_package: Callable[[Revision], Iterable[Revision]],
) -> set[Key]:
    """Wake a package revision that changed; when it was the package's last published one, also those that wait beside it."""
    woken: set[Key] = set()
    if new is not None and is_open(new) and _reading(old) != _reading(new) and has_policy(new):
        woken.add((new.namespace, new.name))
    if old is not None and old.revision.is_published and not (new is not None and new.revision.is_published):
        beside = [one for one in of_package(old.revision) if one.name != old.name]
        if not any(one.is_published for one in beside):
            woken |= {(one.namespace, one.name) for one in beside}
    return woken


def by_variant(
    old: ApprovingVariant | None, new: ApprovingVariant | None, owned: Callable[[ApprovingVariant], Iterable[Candidate]]
) -> set[Key]:
    """Wake what a variant owns when its policy changes, or when it is ready and was not, or for something else."""
    if new is None or _facts(old) == _facts(new):
        return set()
    return {(one.namespace, one.name) for one in owned(new) if is_open(one)}


def _reading(candidate: Candidate | None) -> object:
    if candidate is None:
        return None
    one = candidate.revision
    return (
        one.uid,
        one.lifecycle,
        one.deleting,
        one.owners,
        one.upstream_lock,
        candidate.gates,
        candidate.unmet,
        one.annotations.get(POLICY_ANNOTATION),
        one.annotations.get(DELAY_ANNOTATION),
    )


def _facts(variant: ApprovingVariant | None) -> object:
    if variant is None:
        return None
    return (
        variant.uid,
        variant.generation,
        variant.observed_generation,
        variant.ready,
        variant.deleting,
        variant.variant.paused,
        variant.seen,
    )
