"""What a namespace that is being deleted says about what is left in it: five conditions, in Kubernetes' words.

Source: ``kube-api.md`` 2.14.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

from krm.meta.conditions import Condition, set_condition

Json = dict[str, Any]

_FINE: Final = {
    "NamespaceDeletionDiscoveryFailure": ("ResourcesDiscovered", "All resources successfully discovered"),
    "NamespaceDeletionGroupVersionParsingFailure": (
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    "NamespaceDeletionContentFailure": (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    "NamespaceContentRemaining": ("ContentRemoved", "All content successfully removed"),
    "NamespaceFinalizersRemaining": ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}
_FAILURES_SHOWN: Final = 5
"""Refusals that a condition quotes."""


@dataclass(slots=True)
class Remaining:
    """What is left in a namespace: objects by resource (``plural.group``), by finalizer, and why deletes were refused."""

    resources: Counter[str] = field(default_factory=Counter)
    finalizers: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        """Tell whether anything is left."""
        return bool(self.resources)

    def add(self, other: "Remaining") -> None:
        """Take in what is left of other kinds."""
        self.resources.update(other.resources)
        self.finalizers.update(other.finalizers)
        self.failures += other.failures


def with_conditions(namespace: Json, left: Remaining) -> Json:
    """Return the namespace with conditions that tell what is left; the same object if they do already."""
    status = namespace.get("status") or {}
    conditions = [dict(condition) for condition in status.get("conditions") or ()]
    problems = _problems(left)
    changed = False
    for type_, fine in _FINE.items():
        reason, message = problems.get(type_, fine)
        wanted = Condition(type=type_, status="True" if type_ in problems else "False", reason=reason, message=message)
        changed |= set_condition(conditions, wanted)
    return {**namespace, "status": {**status, "conditions": conditions}} if changed else namespace


def _problems(left: Remaining) -> dict[str, tuple[str, str]]:
    """Return reason and message of the conditions that are True."""
    found = {}
    if left.failures:
        shown = ", ".join(sorted(left.failures)[:_FAILURES_SHOWN])
        message = f"Failed to delete all resource types, {len(left.failures)} remaining: {shown}"
        found["NamespaceDeletionContentFailure"] = ("ContentDeletionFailed", message)
    if left.resources:
        # The core group has an empty name, so its resources end with the dot.
        counts = {name if "." in name else f"{name}.": number for name, number in left.resources.items()}
        shown = ", ".join(f"{name} has {counts[name]} resource instances" for name in sorted(counts))
        found["NamespaceContentRemaining"] = ("SomeResourcesRemain", f"Some resources are remaining: {shown}")
    if left.finalizers:
        shown = ", ".join(f"{name} in {left.finalizers[name]} resource instances" for name in sorted(left.finalizers))
        message = f"Some content in the namespace has finalizers remaining: {shown}"
        found["NamespaceFinalizersRemaining"] = ("SomeFinalizersRemain", message)
    return found
