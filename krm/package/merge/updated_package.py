"""What an update gives. Source: ``kpt.md`` 3.1."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from krm.package.contents import File
from krm.package.merge.conflicts import Conflict


@dataclass(frozen=True, slots=True)
class PendingSubpackage:
    """A remote subpackage whose upstream changed: it needs an update of its own, from its own origin."""

    directory: str
    upstream: Mapping[str, Any]
    """The section of the Kptfile in updated, scalars as text."""


@dataclass(frozen=True, slots=True)
class UpdatedPackage:
    """The package after an update."""

    contents: dict[str, File]
    conflicts: tuple[Conflict, ...] = ()
    """What both sides changed differently, by path; each says which value was kept."""
    pending: tuple[PendingSubpackage, ...] = ()
    """Remote subpackages that were left as they are and need an update of their own."""
