"""What a remote's answer about one ref of a push means for whoever wants to try again.

A remote answers ``ok`` or ``ng`` and a few words for each ref; Git has no codes for them, so those that its
``receive-pack`` uses are listed here, and nowhere else. Source: gitprotocol-pack (report-status); porch-api.md 6.5.
"""

from enum import StrEnum
from typing import Final


class RefStatus(StrEnum):
    """Why a ref was not changed."""

    DECLINED = "declined"
    """A hook, a rule of the host or its configuration says no; it will say so again."""
    TRANSIENT = "transient"
    """The remote could not do it just now: a lock, its disk, another writer."""
    COLLATERAL = "collateral"
    """Nothing is wrong with this ref, the push was all or nothing; said of every ref, the remote could not do it just now."""


_COLLATERAL: Final = frozenset({"atomic push failure", "atomic transaction failed", "transaction failed"})
_TRANSIENT: Final = frozenset(
    {
        "failed to update ref",
        "failed to delete",
        "failed to lock",
        "failed to start transaction",
        "transaction failed to start",
        "transaction commit failed",
        "incorrect old value provided",
        "reference already exists",
        "missing necessary objects",
        "unable to migrate objects to permanent storage",
        "stale file handle",
    }
)


def ref_status(words: str) -> RefStatus:
    """Return what the words behind ``ng <ref>`` mean; words that are not Git's own are a refusal of the host's."""
    said = words.strip().lower()
    if said in _COLLATERAL:
        return RefStatus.COLLATERAL
    return RefStatus.TRANSIENT if said in _TRANSIENT else RefStatus.DECLINED
