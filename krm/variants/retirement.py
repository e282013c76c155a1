"""What becomes of package revisions that a variant does not keep any more, and of proposals to delete those it keeps.

Source: ``variants.md`` 2.12 and C-14; S0, "Adoption and deletion policies".
"""

from dataclasses import dataclass

from krm.variants.revisions import DELETION_PROPOSED, PUBLISHED, Revision
from krm.variants.variant import Variant


@dataclass(frozen=True, slots=True)
class Nothing:
    """No write is needed."""


@dataclass(frozen=True, slots=True)
class Delete:
    """The package revision is deleted."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """The package revision is updated, in one write."""

    lifecycle: str | None
    """The lifecycle that it gets; None leaves it."""
    drop_owner: bool
    """Whether the variant's owner reference is removed; those of others stay."""
    drop_marker: bool
    """Whether the variant's marker label is removed."""


Retirement = Delete | Rewrite | Nothing


def retirement(revision: Revision, *, orphans: bool, variant_uid: str, variant_going: bool) -> Retirement:
    """Return what to do about ``revision``, if the variant ``variant_uid`` owns it; else nothing.

    It does not match the variant any more, or the variant itself is being deleted (``variant_going``). Then a reference to
    the variant may not stay on what is published: the garbage collector follows it, and a revision whose deletion is only
    proposed can be deleted without anybody's approval.
    """
    if not revision.owned_by(variant_uid):
        return Nothing()
    if orphans:
        return Rewrite(None, drop_owner=True, drop_marker=True)
    if not revision.is_published:
        return Nothing() if revision.deleting else Delete()
    proposed = DELETION_PROPOSED if revision.lifecycle == PUBLISHED else None
    if variant_going:
        return Rewrite(proposed, drop_owner=True, drop_marker=True)
    return Rewrite(proposed, drop_owner=False, drop_marker=False) if proposed else Nothing()


def withdraws_deletion(revision: Revision, variant: Variant) -> bool:
    """Tell whether a target whose deletion is proposed goes back to Published.

    It does if the variant proposed that itself while the revision did not match, which is the case when the variant owned
    it before this pass and did not list it among its targets. Otherwise somebody else wants it to go (C-14).
    """
    return (
        revision.lifecycle == DELETION_PROPOSED
        and revision.owned_by(variant.uid)
        and revision.name not in variant.known_targets
    )
