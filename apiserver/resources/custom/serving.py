"""Makes what CustomResourceDefinitions define available: registers it with the store and with what is served.

Schemas are compiled in a thread; taking a kind into service is one step in the event loop. Source: ``kube-api.md`` 2.15.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

import orjson

from apiserver.machinery.definition import Definition, Json
from apiserver.machinery.rest import Resource, Served
from apiserver.resources.custom.kinds import resource_name, scale_paths, served_definitions, storage_definition
from apiserver.resources.custom.objects import CustomObjects
from apiserver.resources.custom.scale import ScaleOf, scale_rules
from apiserver.resources.objects import NamespaceCheck, StatusOf
from apiserver.resources.reading import index_of
from apiserver.resources.served_kinds import ServedKinds
from krm.meta.errors import ResourceName
from storage.interfaces import ObjectStore, Observer


@dataclass(slots=True)
class Kind:
    """A custom resource in service.

    ``identity`` tells one state of its definition from another; ``terminating`` that nothing new is created.
    """

    resource: ResourceName
    identity: tuple[object, ...]
    objects: CustomObjects
    """Its objects in the storage version, whether that is served or not."""
    terminating: bool = False


class CustomServing:
    """The custom resources in service, by the name of their definition. ``on_event`` follows the events of all."""

    def __init__(
        self, store: ObjectStore, kinds: ServedKinds, namespace_check: NamespaceCheck | None, on_event: Observer
    ) -> None:
        self._store = store
        self._kinds = kinds
        self._namespace_check = namespace_check
        self._on_event = on_event
        self._in_service: dict[str, Kind] = {}

    def find(self, name: str) -> Kind | None:
        """Return the kind that a definition defines, if it is in service."""
        return self._in_service.get(name)

    async def serve(self, crd: Json) -> None:
        """Serve what a definition says from now on; one that says what it said before changes nothing.

        Raises:
            SchemaError: a schema cannot be compiled; what was served before still is.
        """
        name = crd["metadata"]["name"]
        known = self._in_service.get(name)
        if known is None or known.identity != _identity(crd):
            stored, served = await asyncio.to_thread(_compiled, crd)
            known = await self._replace(crd, stored, served)
        known.terminating = bool(crd["metadata"].get("deletionTimestamp"))

    def stop(self, name: str) -> None:
        """Stop serving what a definition defined; its objects, if there are any left, stay stored."""
        kind = self._in_service.pop(name, None)
        if kind is not None:
            self._kinds.remove(kind.resource)
            self._store.unregister(str(kind.resource))

    async def _replace(self, crd: Json, stored: Definition, definitions: list[Definition]) -> Kind:
        """Take a kind into service without a moment in which it is not served."""
        resource = resource_name(crd)
        if crd["metadata"]["name"] in self._in_service:
            await self._store.reindex(str(resource), index_of(stored), refresh=_refresh(stored))
        else:
            self._store.register(str(resource), index_of(stored), refresh=_refresh(stored))
        # From here to the end nothing is awaited: store and endpoints change in one step.
        self._store.observe(str(resource), self._on_event)
        name = crd["metadata"]["name"]
        kind = self._in_service[name] = Kind(resource, _identity(crd), self._objects(stored, name))
        served = [self._served(crd, definition) for definition in definitions]
        if served:
            self._kinds.add(served)
        else:
            self._kinds.remove(resource)
        return kind

    def versions(self, crd: Json) -> list[Served]:
        """Return what is served of a definition while it is in service."""
        return [self._served(crd, definition) for definition in _compiled(crd)[1]]

    def _objects(self, definition: Definition, name: str) -> CustomObjects:
        def terminating() -> bool:
            kind = self._in_service.get(name)
            return kind is None or kind.terminating

        check = self._namespace_check if definition.namespaced else None
        return CustomObjects(definition, self._store, namespace_check=check, terminating=terminating)

    def _served(self, crd: Json, definition: Definition) -> Served:
        objects = self._objects(definition, crd["metadata"]["name"])
        subresources: dict[str, Resource] = {"status": StatusOf(objects)} if definition.status else {}
        paths = scale_paths(crd, definition.version)
        if paths is not None:
            subresources["scale"] = ScaleOf(objects, paths)
        return Served(objects, subresources)


def _identity(crd: Json) -> tuple[object, ...]:
    names = (crd.get("status") or {}).get("acceptedNames")
    return crd["metadata"]["uid"], crd["metadata"].get("generation"), repr(names)


def _compiled(crd: Json) -> tuple[Definition, list[Definition]]:
    """Return the storage version's definition and those served, ready to use."""
    stored, served = storage_definition(crd), [_with_rules(crd, one) for one in served_definitions(crd)]
    for definition in (stored, *served):
        _ = definition.compiled
    return stored, served


def _with_rules(crd: Json, definition: Definition) -> Definition:
    paths = scale_paths(crd, definition.version)
    return definition if paths is None else replace(definition, validate=scale_rules(paths))


def _refresh(definition: Definition) -> Callable[[Json], bool]:
    """Return what gives an object of the log the form it would have if it were written now.

    Its apiVersion becomes the storage version, fields that the schema no longer knows go, new defaults come.
    """
    schema = definition.compiled

    def refresh(obj: Json) -> bool:
        before = orjson.dumps(obj)
        obj["apiVersion"] = definition.api_version
        schema.prune(obj)
        schema.default(obj)
        return orjson.dumps(obj) != before

    return refresh
