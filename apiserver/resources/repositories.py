"""``repositories``: stored objects with a finalizer, so that their package revisions go before they do.

Source: ``porch-api.md`` 1.9 and 7.3; issue 3 part 4.
"""

from typing import Any

from apiserver.engine.repositories import FINALIZER
from apiserver.machinery.rest import (
    Change,
    DeleteOptions,
    GetOptions,
    Item,
    ItemList,
    ItemWatch,
    ListOptions,
    Scope,
    WatchOptions,
    WriteOptions,
)
from apiserver.resources.objects import StoredObjects

Json = dict[str, Any]


class RegisteredRepositories:
    """The ``repositories`` resource."""

    def __init__(self, stored: StoredObjects) -> None:
        self.definition = stored.definition
        self.stored = stored

    async def get(self, scope: Scope, name: str, options: GetOptions) -> Item:
        return await self.stored.get(scope, name, options)

    async def list(self, scope: Scope, options: ListOptions) -> ItemList:
        return await self.stored.list(scope, options)

    async def watch(self, scope: Scope, options: WatchOptions) -> ItemWatch:
        return await self.stored.watch(scope, options)

    async def create(self, scope: Scope, wanted: Json, options: WriteOptions) -> Item:
        """Create a Repository; the finalizer is there from the first moment."""
        metadata = wanted["metadata"]
        finalizers = metadata.get("finalizers") or []
        if FINALIZER not in finalizers:
            metadata["finalizers"] = [*finalizers, FINALIZER]
        return await self.stored.create(scope, wanted, options)

    async def update(self, scope: Scope, name: str, change: Change, options: WriteOptions) -> tuple[Item, bool]:
        return await self.stored.update(scope, name, change, options)

    async def delete(self, scope: Scope, name: str, options: DeleteOptions) -> tuple[Item, bool]:
        return await self.stored.delete(scope, name, options)
