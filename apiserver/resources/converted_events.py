"""Events of events.k8s.io: the core Events in their newer form, each converted once for all who read it.

Writes are checked in the newer form and stored in the old one. Source: ``kube-api.md`` 2.16.
"""

import orjson

from apiserver.machinery.definition import Json
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
from apiserver.resources.event_forms import core_form, v1_form
from apiserver.resources.event_kinds import event_v1_definition
from apiserver.resources.objects import NamespaceCheck, StoredObjects
from storage.bodies import encode_body
from storage.interfaces import Entry, ObjectStore


class EventView(VersionView):
    """Shows core Events as events.k8s.io has them."""

    def __init__(self) -> None:
        super().__init__("v1", "events.k8s.io/v1")

    def form(self, body: bytes) -> bytes:
        """Return a core Event's body in the newer form."""
        return orjson.dumps(v1_form(orjson.loads(body)))


class ConvertedEvents(StoredObjects):
    """All verbs of events.k8s.io Events, over the objects of the core resource, which must be registered too."""

    def __init__(self, store: ObjectStore, *, namespace_check: NamespaceCheck | None = None) -> None:
        super().__init__(event_v1_definition(), store, namespace_check=namespace_check)
        self._view = EventView()

    def register(self) -> None:
        """Do nothing: the core Events are registered."""

    async def get(self, scope: Scope, name: str, options: GetOptions) -> Entry:
        return self._view.entry(await super().get(scope, name, options))

    async def list(self, scope: Scope, options: ListOptions) -> ItemList:
        return self._view.page(await super().list(scope, options))

    async def watch(self, scope: Scope, options: WatchOptions) -> ItemWatch:
        return VersionWatch(await super().watch(scope, options), self._view)

    async def create(self, scope: Scope, wanted: Json, options: WriteOptions) -> Entry:
        return self._view.entry(await super().create(scope, wanted, options))

    async def update_part(
        self, scope: Scope, name: str, change: Change, options: WriteOptions, subresource: str = ""
    ) -> tuple[Entry, bool]:
        entry, created = await super().update_part(scope, name, change, options, subresource)
        # One that was created by this update is in the newer form already.
        return (entry if created else self._view.entry(entry)), created

    async def delete(self, scope: Scope, name: str, options: DeleteOptions) -> tuple[Entry, bool]:
        entry, gone = await super().delete(scope, name, options)
        return self._view.entry(entry), gone

    def _decoded(self, entry: Entry) -> Json:
        return v1_form(super()._decoded(entry))

    def _encoded(self, obj: Json) -> bytes:
        return encode_body(core_form(obj))
