"""What a merge had to decide: fields and resources that upstream and the local package changed differently.

Upstream's tools decide silently; so does the merge, by the same rules, but it says what it decided.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum, StrEnum
from typing import Any, Final

MAX_CONFLICTS = 1000
"""Kept of one merge; the others are only counted."""
MAX_SHOWN = 256
"""Characters of one value in a conflict."""


class Absent(Enum):
    """Type of :data:`ABSENT`."""

    ABSENT = "absent"

    def __bool__(self) -> bool:
        return False


ABSENT: Final = Absent.ABSENT
"""Stands for a value that is not there; None is an explicit null."""


class Kept(StrEnum):
    """Whose state a conflict ended with."""

    UPDATED = "updated"
    LOCAL = "local"


@dataclass(frozen=True, slots=True)
class Conflict:
    """One place that both sides changed, and differently.

    The values are compact JSON, cut to :data:`MAX_SHOWN` characters; None where there is no value.
    """

    path: str
    """Of the field, such as ``spec.containers[name=web].image``; empty for a whole resource or file."""
    origin: str | None
    updated: str | None
    local: str | None
    kept: Kept
    resource: str = ""
    """``group|kind|namespace|name``; empty when only a field or a file is known."""
    file: str = ""

    def __str__(self) -> str:
        where = ": ".join(filter(None, (self.file, self.resource, self.path)))
        values = ", ".join(
            f"{side} {'removed' if value is None else value}"
            for side, value in (("upstream", self.updated), ("local", self.local))
        )
        return f"{where}: both sides changed it: {values}; kept {_KEPT_WORD[self.kept]}"


_KEPT_WORD = {Kept.UPDATED: "upstream's", Kept.LOCAL: "the local state"}

OnConflict = Callable[[Conflict], None]


@dataclass(slots=True)
class ConflictLog:
    """Collects conflicts, no more than :data:`MAX_CONFLICTS`; call it with each."""

    conflicts: list[Conflict] = field(default_factory=list)
    omitted: int = 0
    """How many came after the log was full."""

    def __call__(self, conflict: Conflict) -> None:
        if len(self.conflicts) < MAX_CONFLICTS:
            self.conflicts.append(conflict)
        else:
            self.omitted += 1

    def within(self, *, file: str = "", resource: str = "") -> OnConflict:
        """Return a collector that adds where the conflict was found."""
        return lambda conflict: self(replace(conflict, file=file, resource=resource))


def shown(value: Any) -> str | None:
    """Return a value as a conflict shows it.

    Large values cost no more than small ones: what is cut off is never written.
    """
    if value is ABSENT:
        return None
    pieces: list[str] = []
    length = 0
    for piece in _ENCODER.iterencode(value):
        pieces.append(piece)
        length += len(piece)
        if length > MAX_SHOWN:
            return "".join(pieces)[:MAX_SHOWN] + "…"
    return "".join(pieces)


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str)
