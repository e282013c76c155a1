"""What keeps a set from deleting many variants by mistake. Source: ``variants.md`` 6.11."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from krm.variants.sets.amounts import Amount
from krm.variants.sets.vocabulary import ALLOW_DELETIONS

Json = dict[str, Any]

KEEP: Final = "Keep"
DELETE: Final = "Delete"
MOST_NAMED: Final = 20
"""Variants that a message names."""


@dataclass(frozen=True, slots=True)
class GuardDefaults:
    """What holds for sets that say nothing; the defaults of the defaults guard nothing, as upstream does."""

    max_deletions: int | str = "100%"
    on_empty_selection: str = DELETE

    @classmethod
    def of(cls, guards: Json | None) -> "GuardDefaults":
        """Read valid guards as a set's spec has them; what they leave out is the default of the defaults."""
        given, usual = guards or {}, cls()
        most = given.get("maxDeletions")
        return cls(
            usual.max_deletions if most is None else most, given.get("onEmptySelection") or usual.on_empty_selection
        )


def keeps_all(set_body: Json, empty: Sequence[int], defaults: GuardDefaults) -> bool:
    """Tell whether no variant may be deleted because a target selects nothing.

    A variant does not say which target it came from, and a changed selector is the very mistake that this guards
    against: so all of them stay.
    """
    return bool(empty) and (_guards(set_body).get("onEmptySelection") or defaults.on_empty_selection) == KEEP


def refusal(set_body: Json, names: Sequence[str], total: int, defaults: GuardDefaults) -> str:
    """Return why the variants with ``names``, of ``total`` that there are, must not be deleted; empty if they may."""
    written = _guards(set_body).get("maxDeletions")
    most = Amount.of(defaults.max_deletions if written is None else written).most(total)
    meta = set_body["metadata"]
    generation = str(meta.get("generation") or 0)
    if len(names) <= most or (meta.get("annotations") or {}).get(ALLOW_DELETIONS) == generation:
        return ""
    named = ", ".join(sorted(names)[:MOST_NAMED]) + (", …" if len(names) > MOST_NAMED else "")
    return (
        f"{len(names)} of {total} package variants would be deleted, more than spec.guards.maxDeletions allows ({most}): "
        f"{named}; annotate the set with {ALLOW_DELETIONS}={generation} to delete them"
    )


def _guards(set_body: Json) -> Json:
    return (set_body.get("spec") or {}).get("guards") or {}
