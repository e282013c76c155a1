"""How kustomize names resources, and how its selectors choose among them.

A resource goes by the identity it has now and by those that earlier steps recorded in its annotations.
Source: ``kpt.md`` 4.7.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from krm.functions.resource import Resource
from krm.package.resource_identity import annotations_of, identity_of

_PREVIOUS = "internal.config.kubernetes.io/previous"
_DEFAULT_NAMESPACE = "default"
_MOST_PREVIOUS = 100
"""Former identities of one resource that count; real packages have a few."""


@dataclass(frozen=True, slots=True)
class ResourceId:
    """Group, version, kind, name and namespace; in a selector, empty fields match everything."""

    group: str = ""
    version: str = ""
    kind: str = ""
    name: str = ""
    namespace: str = ""

    def selects(self, other: "ResourceId") -> bool:
        """Compare the fields that are given; no namespace and ``default`` are the same."""
        return (
            self.kind in ("", other.kind)
            and self.name in ("", other.name)
            and self.group in ("", other.group)
            and self.version in ("", other.version)
            and (not self.namespace or self.namespace == (other.namespace or _DEFAULT_NAMESPACE))
        )

    def __str__(self) -> str:
        kind = f"{self.kind or '[noKind]'}.{self.version or '[noVer]'}.{self.group or '[noGrp]'}"
        return f"{kind}/{self.name or '[noName]'}.{self.namespace or '[noNs]'}"


@dataclass(frozen=True, slots=True)
class ResourceSelector:
    """Chooses resources by identity, labels and annotations."""

    resource_id: ResourceId
    labels: Callable[[Mapping[str, str]], bool] | None = None
    annotations: Callable[[Mapping[str, str]], bool] | None = None

    @property
    def empty(self) -> bool:
        """Whether nothing is asked for."""
        return self.resource_id == ResourceId() and self.labels is None and self.annotations is None

    def accepts_metadata(self, data: dict[str, Any]) -> bool:
        """Say whether labels and annotations are as asked for."""
        if self.labels is None and self.annotations is None:
            return True
        metadata = data.get("metadata")
        labels = metadata.get("labels") if isinstance(metadata, dict) else None
        return (self.labels is None or self.labels(_texts(labels))) and (
            self.annotations is None or self.annotations(_texts(annotations_of(data)))
        )


def current_id(data: dict[str, Any]) -> ResourceId:
    """Return the identity a resource has now."""
    now = identity_of(data)
    version = str(data.get("apiVersion") or "").rpartition("/")[2]
    return ResourceId(now.group, version, now.kind, now.name, now.namespace)


def resource_ids(data: dict[str, Any]) -> tuple[ResourceId, ...]:
    """Return the identities a resource goes by, the current one first."""
    now = current_id(data)
    annotations = annotations_of(data)
    fields = [annotations.get(_PREVIOUS + field) for field in ("Names", "Namespaces", "Kinds")]
    names, namespaces, kinds = (
        field.split(",", _MOST_PREVIOUS)[:_MOST_PREVIOUS] if isinstance(field, str) else [] for field in fields
    )
    previous = (
        ResourceId(now.group, now.version, kind, name, namespace)
        for name, namespace, kind in zip(names, namespaces, kinds, strict=False)
    )
    return now, *previous


@dataclass(slots=True, eq=False)
class IndexedResource:
    """A resource, its place in the index, and the identities it went by when it was last looked at."""

    resource: Resource
    place: int
    ids: tuple[ResourceId, ...]


class ResourceIndex:
    """Finds resources by name or kind without looking at the others."""

    def __init__(self, items: Iterable[Resource]) -> None:
        self._entries = [IndexedResource(item, place, resource_ids(item.data)) for place, item in enumerate(items)]
        self._by_name: dict[str, set[int]] = {}
        self._by_kind: dict[str, set[int]] = {}
        for entry in self._entries:
            self._enter(entry)

    def candidates(self, wanted: ResourceId) -> Iterator[IndexedResource]:
        """Yield, in order, the resources one of whose identities ``wanted`` selects."""
        for place in sorted(self._places(wanted)):
            entry = self._entries[place]
            if wanted.selects(entry.ids[0]) or any(wanted.selects(former) for former in entry.ids[1:]):
                yield entry

    def effort(self, wanted: ResourceId) -> int:
        """Return how many resources must be looked at to find the candidates."""
        return len(self._places(wanted))

    def refresh(self, entry: IndexedResource) -> None:
        """Take notice that the resource may go by other identities now."""
        ids = resource_ids(entry.resource.data)
        if ids == entry.ids:
            return
        for known in entry.ids:
            self._by_name[known.name].discard(entry.place)
            self._by_kind[known.kind].discard(entry.place)
        entry.ids = ids
        self._enter(entry)

    def _places(self, wanted: ResourceId) -> Collection[int]:
        if wanted.name:
            return self._by_name.get(wanted.name, ())
        if wanted.kind:
            return self._by_kind.get(wanted.kind, ())
        return range(len(self._entries))

    def _enter(self, entry: IndexedResource) -> None:
        for known in entry.ids:
            self._by_name.setdefault(known.name, set()).add(entry.place)
            self._by_kind.setdefault(known.kind, set()).add(entry.place)


def _texts(values: Any) -> dict[str, str]:
    return {key: str(value) for key, value in values.items()} if isinstance(values, dict) else {}
