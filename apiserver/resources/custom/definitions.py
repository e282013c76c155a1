"""``customresourcedefinitions``: stored objects whose deletion waits until everything they define is gone.

The definitions of the server's own kinds are among them (``docs/adr/0017``). Source: ``kube-api.md`` 2.15.
"""

import copy
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from apiserver.machinery.definition import Column, Definition, Json
from apiserver.machinery.rest import Change, DeleteOptions, Scope, User, WriteOptions
from apiserver.machinery.schema import structural_schema
from apiserver.resources.columns import path_value
from apiserver.resources.custom.schema_component import NAME as SCHEMA
from apiserver.resources.custom.schema_component import schema_component
from apiserver.resources.custom.validation import definition_causes
from apiserver.resources.objects import StoredObjects
from apiserver.resources.writing import has_finalizers, is_terminating
from krm.api.apiextensions import CustomResourceDefinition
from krm.meta.conditions import Condition, find_condition, set_condition
from krm.meta.errors import AlreadyExists, Forbidden
from storage.interfaces import Entry, ObjectStore

GROUP: Final = "apiextensions.k8s.io"
CLEANUP: Final = "customresourcecleanup.apiextensions.k8s.io"
"""Finalizer that holds a definition until its instances are gone."""
SERVER: Final = User("system:apiserver", ("system:masters",))
"""Who changes definitions on the server's behalf."""
FIELD_MANAGER: Final = "kube-apiserver"
"""Under this name Kubernetes' own controllers keep definitions."""


def crd_definition() -> Definition:
    """Define CustomResourceDefinition."""
    return Definition(
        group=GROUP,
        version="v1",
        kind="CustomResourceDefinition",
        plural="customresourcedefinitions",
        singular="customresourcedefinition",
        namespaced=False,
        short_names=("crd", "crds"),
        categories=("api-extensions",),
        schema=structural_schema(CustomResourceDefinition),
        columns=(
            Column(
                "Created At",
                "string",
                path_value("metadata", "creationTimestamp"),
                "When the definition was created.",
                told_type="date",
            ),
        ),
        status=True,
        strategic=True,
        # Kubernetes still keeps them in this version, and tells so by a hash in discovery.
        stored_version="v1beta1",
        documents=(("spec", "versions", "schema", "openAPIV3Schema"),),
        slow=True,  # the expressions of a schema are compiled
        initial={"spec": {"names": {}}},
        components={"spec.versions.schema.openAPIV3Schema": (SCHEMA, schema_component)},
        prepare=_prepare,
        validate=definition_causes,
    )


Settled = Callable[[str], Awaitable[None]]
"""Returns when the controller has looked at a definition, or after a second."""


class CustomResourceDefinitions(StoredObjects):
    """The ``customresourcedefinitions`` resource.

    ``own`` are definitions of the server's own kinds, by name. Clients may apply the files they come from and label
    them, but what the server serves stays what they say, and they cannot be deleted.
    """

    def __init__(self, store: ObjectStore, own: Mapping[str, Json] | None = None) -> None:
        super().__init__(crd_definition(), store, held=_is_held, marked=_mark)
        self.own: Mapping[str, Json] = own or {}
        self.settled: Settled | None = None
        """Set by the controller while it runs: answers of writes wait, for a moment, until what they say is in force."""

    async def store_own(self) -> None:
        """Create the server's own definitions, and bring those that an earlier version stored up to date."""
        scope, options = Scope(None, SERVER), WriteOptions(field_manager=FIELD_MANAGER)
        for name, crd in self.own.items():
            try:
                await self.create(scope, copy.deepcopy(crd), options)
            except AlreadyExists:
                # Whatever a change says, a definition of the server's own becomes what this version says.
                await self.update_part(scope, name, lambda current: current, options)

    async def create(self, scope: Scope, wanted: Json, options: WriteOptions) -> Entry:
        entry = await super().create(scope, wanted, options)
        await self._settle(entry.name, options)
        return entry

    async def update(self, scope: Scope, name: str, change: Change, options: WriteOptions) -> tuple[Entry, bool]:
        answer = await super().update(scope, name, change, options)
        await self._settle(name, options)
        return answer

    async def _settle(self, name: str, options: WriteOptions) -> None:
        # So that who creates a definition and then its first object, as scripts do, need not wait in between.
        if self.settled is not None and not options.dry_run:
            await self.settled(name)

    async def update_part(
        self, scope: Scope, name: str, change: Change, options: WriteOptions, subresource: str = ""
    ) -> tuple[Entry, bool]:
        if name not in self.own:
            return await super().update_part(scope, name, change, options, subresource)
        warnings: set[str] = set()

        def change_kept(current: Json) -> Json:
            before = copy.deepcopy(current.get("spec"))
            wanted = change(current)
            if wanted.get("spec") != before:
                warnings.add(f"{name} is a kind of this server: its own definition of it stays in force")
            return {**wanted, "spec": copy.deepcopy(self.own[name]["spec"])}

        answer = await super().update_part(scope, name, change_kept, options, subresource)
        options.warnings.extend(warnings)
        return answer

    async def delete(self, scope: Scope, name: str, options: DeleteOptions) -> tuple[Entry, bool]:
        """Begin to delete a definition: its instances go first.

        Raises:
            Forbidden: it is one of the server's own.
        """
        if name in self.own:
            raise Forbidden.of(self.definition.resource, name, "it defines a kind of this server")
        return await super().delete(scope, name, options)


def _is_held(crd: Json) -> bool:
    """A first delete only marks: the instances go before their definition."""
    return not is_terminating(crd) or has_finalizers(crd)


def _mark(crd: Json) -> None:
    """Let the definition wait for its instances, from the moment its deletion begins."""
    status = crd.setdefault("status", {})
    conditions = status["conditions"] = status.get("conditions") or []
    if find_condition(conditions, "Terminating") is not None:
        return
    finalizers = crd["metadata"].setdefault("finalizers", [])
    if CLEANUP not in finalizers:
        finalizers.append(CLEANUP)
    message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
    set_condition(
        conditions, Condition(type="Terminating", status="True", reason="InstanceDeletionPending", message=message)
    )


def _prepare(new: Json, _old: Json | None) -> None:
    """Fill in, in place, what follows from the rest: names, conversion, and the versions that may be stored."""
    spec = new.get("spec") or {}
    names = spec.get("names") or {}
    if kind := names.get("kind"):
        names.setdefault("singular", kind.lower())
        names["singular"] = names["singular"] or kind.lower()
        names["listKind"] = names.get("listKind") or f"{kind}List"
    if spec and not (spec.get("conversion") or {}).get("strategy"):
        spec["conversion"] = {**(spec.get("conversion") or {}), "strategy": "None"}
    status = new.setdefault("status", {})
    status.setdefault("conditions", None)
    status.setdefault("acceptedNames", {"plural": "", "kind": ""})
    stored = status.setdefault("storedVersions", [])
    storage = next((version.get("name") for version in spec.get("versions") or () if version.get("storage")), None)
    if storage and storage not in stored:
        stored.append(storage)
