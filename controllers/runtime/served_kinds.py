"""The kinds that CustomResourceDefinitions add, for controllers that watch objects of whatever kind a user names."""

from dataclasses import dataclass
from typing import Any

from krm.meta.conditions import find_condition

Json = dict[str, Any]
ObjectType = tuple[str, str]
"""apiVersion and kind."""


@dataclass(frozen=True, slots=True)
class ServedKind:
    """The kind that one CustomResourceDefinition adds."""

    namespace: str
    """Always empty: definitions are cluster-scoped."""
    name: str
    resource_version: str
    types: frozenset[ObjectType]
    """Those that are served; none while it is not established."""

    @classmethod
    def of(cls, body: Json) -> "ServedKind":
        """Read a CustomResourceDefinition as it is on the wire."""
        meta, spec = body["metadata"], body.get("spec") or {}
        established = find_condition((body.get("status") or {}).get("conditions"), "Established") or {}
        versions = spec.get("versions") or () if established.get("status") == "True" else ()
        group, kind = spec.get("group") or "", (spec.get("names") or {}).get("kind") or ""
        served = frozenset((f"{group}/{one['name']}", kind) for one in versions if one.get("served"))
        return cls("", meta["name"], meta.get("resourceVersion", ""), served)


def came_or_went(old: ServedKind | None, new: ServedKind | None) -> frozenset[ObjectType]:
    """Return the types that are served since a definition changed, or no longer are."""
    return (old.types if old else frozenset()) ^ (new.types if new else frozenset())
