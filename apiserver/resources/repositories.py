"""``repositories``: stored objects with a finalizer, so that their package revisions go before they do.

Source: ``porch-api.md`` 1.9, 7.3 and 9.
"""

import asyncio
import copy
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from apiserver.engine.repository_claims import RepositoryClaims
from apiserver.engine.repository_status import FINALIZER
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
from apiserver.resources.reading import storage_errors
from apiserver.rules.repository_location import claim_of
from storage.interfaces import ObjectStore

Json = dict[str, Any]


class RegisteredRepositories:
    """The ``repositories`` resource; no two of its objects may have packages in common."""

    def __init__(self, stored: StoredObjects, claims: RepositoryClaims, store: ObjectStore) -> None:
        self.definition = stored.definition
        self._store = store
        self.stored = stored
        self._claims = claims
        self._writing = asyncio.Lock()
        """Between the check of a claim and its write nobody else's is written."""

    async def get(self, scope: Scope, name: str, options: GetOptions) -> Item:
        return await self.stored.get(scope, name, options)

    async def list(self, scope: Scope, options: ListOptions) -> ItemList:
        return await self.stored.list(scope, options)

    async def watch(self, scope: Scope, options: WatchOptions) -> ItemWatch:
        return await self.stored.watch(scope, options)

    async def create(self, scope: Scope, wanted: Json, options: WriteOptions) -> Item:
        """Create a Repository; the finalizer is there from the first moment.

        Raises:
            RepositoryConflict: another one has the same packages, or some of them.
        """
        _hold(wanted)
        async with self._alone("create"):
            self._check(scope, str(wanted["metadata"].get("name") or ""), wanted, {})
            return await self.stored.create(scope, wanted, options)

    async def update(self, scope: Scope, name: str, change: Change, options: WriteOptions) -> tuple[Item, bool]:
        """Change a Repository, or create it by an apply.

        Raises:
            RepositoryConflict: another one has the same packages, or some of them.
        """

        def admitted(current: Json) -> Json:
            old = copy.deepcopy(current)
            wanted = change(current)
            if not old:
                _hold(wanted)
            self._check(scope, name, wanted, old)
            return wanted

        async with self._alone("update"):
            return await self.stored.update(scope, name, admitted, options)

    @asynccontextmanager
    async def _alone(self, verb: str) -> AsyncIterator[None]:
        """Write while nobody else does, on this or another replica: the check and the write belong together.

        Raises:
            ServiceUnavailable: the database cannot be used.
        """
        async with self._writing, AsyncExitStack() as held:
            with storage_errors(self.definition, verb):
                await held.enter_async_context(self._store.turn("repositories"))
            yield

    async def delete(self, scope: Scope, name: str, options: DeleteOptions) -> tuple[Item, bool]:
        return await self.stored.delete(scope, name, options)

    def _check(self, scope: Scope, name: str, wanted: Json, old: Json) -> None:
        """Refuse a new claim that cannot stand beside others; one that is there already is let be."""
        metadata = {"namespace": scope.namespace, "name": name}
        claim = claim_of({**wanted, "metadata": metadata})
        if claim is not None and claim != claim_of({**old, "metadata": metadata}):
            self._claims.check(claim)


def _hold(wanted: Json) -> None:
    """Add the finalizer under which the revisions go first, in place."""
    finalizers = wanted["metadata"].get("finalizers") or []
    if FINALIZER not in finalizers:
        wanted["metadata"]["finalizers"] = [*finalizers, FINALIZER]
