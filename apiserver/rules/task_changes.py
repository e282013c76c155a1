"""The one change of tasks that an update may make: a draft that is to be upgraded in place.

Pure functions over decoded objects. Source: ``variants.md`` R4 and C-35; ``decisions.md`` 16.
"""

from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class AppendedUpgrade:
    """A task that an update appends to a draft's."""

    task: Json
    place: int
    """Its index in the request's list."""

    @property
    def block(self) -> Json:
        """What the task says of the upgrade."""
        block: Json = self.task["upgrade"]
        return block


def appended_upgrade(stored: Json, wanted: Json) -> AppendedUpgrade | None:
    """Return the upgrade of itself that an update of a draft asks for, or None.

    It is the stored tasks followed by exactly one of type ``upgrade`` whose ``localPackageRevisionRef`` names the revision
    itself. Every other change of tasks is ignored, as upstream ignores them all (``porch-api.md`` 4.3).
    """
    before = stored["spec"].get("tasks") or []
    after = (wanted.get("spec") or {}).get("tasks") or []
    if len(after) != len(before) + 1 or _comparable(after[:-1]) != _comparable(before):
        return None
    last = after[-1]
    block = last.get("upgrade")
    if last.get("type") != "upgrade" or not isinstance(block, dict):
        return None
    local = (block.get("localPackageRevisionRef") or {}).get("name")
    return AppendedUpgrade(last, len(before)) if local == stored["metadata"]["name"] else None


def _comparable(value: Any) -> Any:
    """Drop what typed clients add when they send back what they read: empty values."""
    if isinstance(value, dict):
        parts = {key: _comparable(part) for key, part in value.items()}
        return {key: part for key, part in parts.items() if part not in ({}, [], None, "")}
    if isinstance(value, list):
        return [_comparable(part) for part in value]
    return value
