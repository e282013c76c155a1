"""Where the owners that references name are, and whether they still exist.

Source: ``kube-api.md`` 2.11.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from apiserver.machinery.definition import Definition
from apiserver.resources.owner_index import OwnerIndex, OwnerReference
from storage.interfaces import ObjectKey, ObjectStore

NAMESPACES = "namespaces"


class Fate(Enum):
    """What is known of an owner."""

    PRESENT = "present"
    WAITING = "waiting for its dependents to go"
    ABSENT = "absent"
    MISPLACED = "in another namespace"
    """It exists and cannot own this object, which counts as absent."""
    UNREACHABLE = "namespaced, named by an object of the cluster"
    """Such a reference says nothing; the object is left alone."""
    UNKNOWN = "of a kind that is not served"
    """It may exist somewhere; the object is left alone until the kind is served."""


@dataclass(frozen=True, slots=True)
class _Kind:
    resource: str
    namespaced: bool


class OwnerLookup:
    """Finds owners by kind and name; remembers who waits for a kind to be served."""

    def __init__(self, store: ObjectStore, index: OwnerIndex) -> None:
        self._store = store
        self._index = index
        self._kinds: dict[tuple[str, str], _Kind] = {}
        self._unknown: dict[tuple[str, str], set[ObjectKey]] = {}

    def learn(self, resource: str, definitions: Iterable[Definition]) -> Sequence[ObjectKey]:
        """Know the versions of a kind from now on; return the objects that waited for that."""
        self.forget(resource)
        waited: list[ObjectKey] = []
        for definition in definitions:
            kind = (definition.api_version, definition.kind)
            self._kinds[kind] = _Kind(resource, definition.namespaced)
            waited += self._unknown.pop(kind, ())
        return waited

    def forget_waiting(self) -> None:
        """Forget who waits for a kind, before everything that has owners is looked at again."""
        self._unknown.clear()

    def forget(self, resource: str) -> None:
        """No longer know a kind."""
        self._kinds = {kind: known for kind, known in self._kinds.items() if known.resource != resource}

    def is_there(self, dependent: ObjectKey, owner: OwnerReference) -> bool:
        """Tell whether the owner is in memory, where the dependent's reference says."""
        kind = self._kinds.get((owner.api_version, owner.kind))
        if kind is None or not (dependent.namespace or not kind.namespaced):
            return False
        entry = self._store.get(_place(kind, dependent.namespace, owner))
        return entry is not None and entry.uid == owner.uid

    async def fate(self, dependent: ObjectKey, owner: OwnerReference) -> Fate:
        """Find out what became of an owner, as of every write committed before the call."""
        name = (owner.api_version, owner.kind)
        kind = self._kinds.get(name)
        if kind is not None and kind.namespaced and not dependent.namespace:
            return Fate.UNREACHABLE
        if self._index.departed(owner.uid, dependent):
            return Fate.ABSENT
        if kind is None:
            self._unknown.setdefault(name, set()).add(dependent)
            return Fate.UNKNOWN
        entry = await self._store.get_fresh(_place(kind, dependent.namespace, owner))
        if entry is not None and entry.uid == owner.uid:
            return Fate.PRESENT
        return Fate.MISPLACED if kind.namespaced and self._is_elsewhere(kind, owner) else Fate.ABSENT

    def _is_elsewhere(self, kind: _Kind, owner: OwnerReference) -> bool:
        """Look for the owner in every namespace; only for owners that were not seen to go."""
        for namespace in self._store.snapshot(NAMESPACES):
            entry = self._store.get(_place(kind, namespace.name, owner))
            if entry is not None and entry.uid == owner.uid:
                return True
        return False


def _place(kind: _Kind, namespace: str, owner: OwnerReference) -> ObjectKey:
    return ObjectKey(kind.resource, namespace if kind.namespaced else "", owner.name)
