"""Whose package revisions were, that a variant let go when it was deleted, while their deletion waits for approval.

A variant that goes takes its name from what it publishes and proposes the deletion in one write, so that the garbage collector
does not delete without approval. Who it was is remembered here, in memory only: a process that starts later leaves such a
proposal to people. Source: ``variants.md`` 2.12 and 6.3.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeVar

from krm.variants.approval import ApprovingVariant, Candidate, belongs_to
from krm.variants.revisions import DELETION_PROPOSED
from krm.variants.vocabulary import KIND

Key = tuple[str, str]
"""Namespace and name."""
T = TypeVar("T")

MOST: Final = 10_000
"""Variants, and package revisions, that are remembered."""


class ReleasedRevisions:
    """Learns from events, in whatever order two kinds come; ``variant`` finds a variant by namespace and UID."""

    def __init__(self, variant: Callable[[str, str], ApprovingVariant | None]) -> None:
        self._variant = variant
        self._gone: OrderedDict[str, ApprovingVariant] = OrderedDict()
        self._former: OrderedDict[str, tuple[str, Key]] = OrderedDict()
        """By the UID of a package revision: the UID of the variant that let it go, and the revision's key."""

    def owner(self, candidate: Candidate) -> ApprovingVariant | None:
        """Return the variant that is gone or going, and has let go of this package revision."""
        uid, _ = self._former.get(candidate.revision.uid, ("", ()))
        found = self._gone.get(uid) or (self._variant(candidate.namespace, uid) if uid else None)
        return found if found is not None and found.deleting else None

    def of(self, uid: str) -> set[Key]:
        """Return what a variant with this UID has let go."""
        return {key for owner, key in self._former.values() if owner == uid}

    def variant_gone(self, variant: ApprovingVariant) -> None:
        """Remember a variant that is no more, since news of its package revisions may come later."""
        if variant.approval is not None:
            _put(self._gone, variant.uid, replace(variant, deleting=True))

    def revision_changed(self, old: Candidate | None, new: Candidate | None) -> None:
        """Take note when whoever owned a package revision lets go of it and its deletion is proposed."""
        if new is None or new.revision.lifecycle != DELETION_PROPOSED:
            if (one := new or old) is not None:
                self._former.pop(one.revision.uid, None)
            return
        for reference in old.revision.owners if old is not None and old.revision.is_published else ():
            if reference.kind == KIND and not belongs_to(new.revision, reference.uid):
                _put(self._former, new.revision.uid, (reference.uid, (new.namespace, new.name)))


def _put(place: OrderedDict[str, T], key: str, value: T) -> None:
    place[key] = value
    place.move_to_end(key)
    if len(place) > MOST:
        place.popitem(last=False)
