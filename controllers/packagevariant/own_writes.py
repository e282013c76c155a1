"""The client of the reconciler: what it writes is in the caches when it has the answer, and its event wakes it for nothing.

An event may be faster than the answer to the request that caused it, so news of an object are held back while it is written.
Source: ``variants.md`` 6.10.
"""

import asyncio
from collections import Counter
from typing import Any

from controllers.packagevariant.cached_values import Key
from controllers.packagevariant.cached_views import CachedViews, working_on
from controllers.packagevariant.caches import Caches
from krm.client.client import KubeClient
from krm.client.informer import Informer
from krm.client.resources import (
    PACKAGE_REVISION_RESOURCES,
    PACKAGE_REVISIONS,
    PACKAGE_VARIANTS,
    Resource,
)

Json = dict[str, Any]


class OwnWrites:
    """Reads and writes as ``client`` does, for one process's reconciler."""

    def __init__(self, client: KubeClient, caches: Caches, views: CachedViews) -> None:
        self._client, self._caches, self._views = client, caches, views
        self.written: Counter[Key | None] = Counter()
        """How often something was written for each variant; for None by nobody's work."""
        self.told: dict[Key, float] = {}
        """When it was begun last to write the status of each variant, in seconds of the event loop."""

    async def get(self, resource: Resource, namespace: str | None, name: str) -> Json:
        """Return one object."""
        return await self._client.get(resource, namespace, name)

    async def create(
        self, resource: Resource, namespace: str | None, body: Json, *, subresource: str = "", name: str = ""
    ) -> Json:
        """Create an object and return it as stored."""
        informer = self._informer(resource)
        if informer is None:
            return await self._client.create(resource, namespace, body, subresource=subresource, name=name)
        with informer.writing(namespace or "", body["metadata"]["name"]):
            answer = await self._client.create(resource, namespace, body, subresource=subresource, name=name)
            self._take(resource, answer)
        return answer

    async def update(self, resource: Resource, body: Json, *, subresource: str = "") -> Json:
        """Replace an object, if it still has the resourceVersion of ``body``; return it as stored."""
        informer = self._informer(resource)
        if informer is None:
            return await self._client.update(resource, body, subresource=subresource)
        meta = body["metadata"]
        if resource == PACKAGE_VARIANTS and subresource == "status":
            self.told[meta.get("namespace") or "", meta["name"]] = asyncio.get_running_loop().time()
        with informer.writing(meta.get("namespace") or "", meta["name"]):
            answer = await self._client.update(resource, body, subresource=subresource)
            self._take(resource, answer)
        return answer

    def forget(self, key: Key) -> None:
        """Drop what is known of a variant that is gone."""
        self.written.pop(key, None)
        self.told.pop(key, None)

    async def delete(
        self, resource: Resource, namespace: str | None, name: str, *, uid: str = "", resource_version: str = ""
    ) -> None:
        """Delete one object; a Conflict if it is not the one described."""
        informer = self._informer(resource)
        if informer is None:
            await self._client.delete(resource, namespace, name, uid=uid, resource_version=resource_version)
            return
        with informer.writing(namespace or "", name):
            await self._client.delete(resource, namespace, name, uid=uid, resource_version=resource_version)
            self.written[working_on.get()] += 1
            if resource == PACKAGE_REVISIONS:
                self._views.forget(namespace or "", name)

    def _informer(self, resource: Resource) -> "Informer[Any] | None":
        """Return the cache that news of such an object come to; a revision's files are news of the revision."""
        if resource in (PACKAGE_REVISIONS, PACKAGE_REVISION_RESOURCES):
            return self._caches.package_revisions
        return self._caches.variants if resource == PACKAGE_VARIANTS else None

    def _take(self, resource: Resource, answer: Json) -> None:
        self.written[working_on.get()] += 1
        if resource == PACKAGE_REVISIONS:
            self._views.wrote(answer)
        elif resource == PACKAGE_REVISION_RESOURCES:
            self._views.saved(answer)
        else:
            self._views.wrote_variant(answer)
