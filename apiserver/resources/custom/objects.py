"""Objects of a custom resource in one of its versions: stored objects, shared with the other versions.

Source: ``kube-api.md`` 2.15.
"""

from collections.abc import Callable

from apiserver.machinery.definition import Definition, Json
from apiserver.machinery.rest import (
    Change,
    DeleteOptions,
    GetOptions,
    ItemList,
    ItemWatch,
    ListOptions,
    Scope,
    WatchOptions,
    WriteOptions,
)
from apiserver.resources.custom.versions import VersionView, VersionWatch
from apiserver.resources.objects import NamespaceCheck, StoredObjects
from krm.meta.errors import Forbidden
from storage.bodies import encode_body
from storage.interfaces import Entry, ObjectStore


class CustomObjects(StoredObjects):
    """All verbs of one version of a custom resource.

    ``terminating`` tells whether the definition is being deleted: then nothing new is created.
    """

    def __init__(
        self,
        definition: Definition,
        store: ObjectStore,
        *,
        namespace_check: NamespaceCheck | None,
        terminating: Callable[[], bool],
    ) -> None:
        super().__init__(definition, store, namespace_check=namespace_check)
        self._terminating = terminating
        self._stored_as = f"{definition.group}/{definition.stored_version}"
        same = self._stored_as == definition.api_version
        self._view = None if same else VersionView(self._stored_as, definition.api_version)

    async def get(self, scope: Scope, name: str, options: GetOptions) -> Entry:
        return self._shown(await super().get(scope, name, options))

    async def list(self, scope: Scope, options: ListOptions) -> ItemList:
        page = await super().list(scope, options)
        return page if self._view is None else self._view.page(page)

    async def watch(self, scope: Scope, options: WatchOptions) -> ItemWatch:
        source = await super().watch(scope, options)
        return source if self._view is None else VersionWatch(source, self._view)

    async def create(self, scope: Scope, wanted: Json, options: WriteOptions) -> Entry:
        """Create an object.

        Raises:
            Forbidden: the definition is being deleted.
        """
        if self._terminating():
            why = "create not allowed while custom resource definition is terminating"
            raise Forbidden.of(self.definition.resource, wanted["metadata"].get("name") or "", why)
        return self._shown(await super().create(scope, wanted, options))

    async def update_part(
        self, scope: Scope, name: str, change: Change, options: WriteOptions, subresource: str = ""
    ) -> tuple[Entry, bool]:
        entry, created = await super().update_part(scope, name, change, options, subresource)
        return self._shown(entry), created

    async def delete(self, scope: Scope, name: str, options: DeleteOptions) -> tuple[Entry, bool]:
        entry, gone = await super().delete(scope, name, options)
        return self._shown(entry), gone

    def _shown(self, entry: Entry) -> Entry:
        return entry if self._view is None else self._view.entry(entry)

    def _decoded(self, entry: Entry) -> Json:
        return {**super()._decoded(entry), "apiVersion": self.definition.api_version}

    def _encoded(self, obj: Json) -> bytes:
        return encode_body({**obj, "apiVersion": self._stored_as})
