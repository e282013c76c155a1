"""Empties a namespace of every kind that has no place of its own in the order, custom resources above all."""

from collections.abc import Collection, Sequence

from apiserver.machinery.rest import Served
from apiserver.resources.namespace_conditions import Remaining
from apiserver.resources.namespace_deletion import ContentsOf, NamespacedObjects
from apiserver.resources.served_kinds import ServedKinds
from krm.meta.errors import ResourceName


class EveryOtherKind:
    """Deletes the objects of all kinds served at that moment, but for ``besides``; one of the ``Contents``."""

    def __init__(self, kinds: ServedKinds, besides: Collection[ResourceName]) -> None:
        self._besides = frozenset(besides)
        self._contents: dict[ResourceName, ContentsOf] = {}
        kinds.observe(self._changed)

    async def __call__(self, namespace: str) -> Remaining:
        """Delete every object once, and count those that are left afterwards."""
        left = Remaining()
        for contents in list(self._contents.values()):
            left.add(await contents(namespace))
        return left

    def _changed(self, resource: ResourceName, versions: Sequence[Served]) -> None:
        self._contents.pop(resource, None)
        if not versions or resource in self._besides:
            return
        found = versions[0].resource
        definition = found.definition
        # What shows objects of another kind in a form of its own is emptied with that one.
        if definition.namespaced and definition.stored_as is None and isinstance(found, NamespacedObjects):
            self._contents[resource] = ContentsOf(found)
