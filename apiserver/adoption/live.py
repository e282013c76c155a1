"""A live installation, read through its API.

Package revisions are asked for repository by repository: upstream answers a list whole, whatever page is asked for, and one
repository of it that hangs must not keep the others from being read.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from apiserver.adoption.records import RECORD, REPOSITORY_LABEL, revision_of
from apiserver.adoption.source import MAX_OBJECTS, BadSource, is_named
from krm.client.client import KubeClient, NoAnswer
from krm.client.resources import (
    PACKAGE_REVISION_RESOURCES,
    PACKAGE_REVISIONS,
    PACKAGE_VARIANT_SETS,
    PACKAGE_VARIANTS,
    REPOSITORIES,
    Resource,
)
from krm.meta.errors import Expired, Forbidden, NotFound, StatusError

Json = dict[str, Any]

RECORDS: Final = Resource("config.porch.kpt.dev", "v1alpha1", "packagerevs", RECORD)
ATTEMPTS: Final = 3
"""Times that a list is begun when its state goes away between two pages, or a read gets no answer."""
PAUSE_SECONDS: Final = 1.0


class KindMissing(BadSource):
    """The old server does not serve a kind."""


class LiveSource:
    """What the API server of ``client`` serves; nothing is kept. ``namespaces`` none: all.

    ``records`` takes metadata from PackageRevs in place of PackageRevisions, for a server that answers no more.
    """

    def __init__(
        self, client: KubeClient, shown: str, namespaces: frozenset[str] = frozenset(), *, records: bool = False
    ) -> None:
        self.shown = shown
        self._client = client
        self._namespaces: Sequence[str | None] = sorted(namespaces) or [None]
        self._records = records

    async def repositories(self) -> Sequence[Json]:
        return await self._everywhere(REPOSITORIES)

    async def variants(self) -> Sequence[Json]:
        return [*await self._everywhere(PACKAGE_VARIANTS), *await self._everywhere(PACKAGE_VARIANT_SETS)]

    async def revisions(self, namespace: str, repository: str) -> Sequence[Json]:
        if self._records:
            found = await self._list(RECORDS, namespace, label_selector=f"{REPOSITORY_LABEL}={repository}")
            return [revision_of(record) for record in found]
        return await self._list(PACKAGE_REVISIONS, namespace, field_selector=f"spec.repository={repository}")

    async def find(self, api_version: str, kind: str, namespace: str, name: str) -> Json | None:
        try:
            resource = await self._client.resource_of(api_version, kind)
            if resource is None:
                return None
            return await self._client.get(resource, namespace if resource.namespaced else None, name)
        except (NotFound, Forbidden):
            return None
        except (StatusError, NoAnswer) as error:
            raise _unread(f"{kind} {namespace}/{name}", error) from error

    async def files(self, namespace: str, name: str) -> Mapping[str, Any] | None:
        try:
            body = await self._client.get(PACKAGE_REVISION_RESOURCES, namespace, name)
        except NotFound:
            return None
        except (StatusError, NoAnswer) as error:
            raise _unread(f"the files of {namespace}/{name}", error) from error
        resources = (body.get("spec") or {}).get("resources")
        return resources if isinstance(resources, dict) else None

    async def _everywhere(self, resource: Resource) -> list[Json]:
        """Return all objects of a kind, none where the kind is not installed."""
        try:
            return [item for namespace in self._namespaces for item in await self._list(resource, namespace)]
        except KindMissing:
            if resource is REPOSITORIES:
                raise
            return []

    async def _list(
        self, resource: Resource, namespace: str | None, *, label_selector: str = "", field_selector: str = ""
    ) -> list[Json]:
        for attempt in range(1, ATTEMPTS + 1):
            found: list[Json] = []
            try:
                async for page in self._client.list(
                    resource, namespace, label_selector=label_selector, field_selector=field_selector, versioned=False
                ):
                    found += [item for item in page.items if is_named(item)]
                    if len(found) > MAX_OBJECTS:
                        raise BadSource(f"more than {MAX_OBJECTS} {resource.plural}; take them over by namespaces")
            except (Expired, NoAnswer) as error:
                if attempt == ATTEMPTS:
                    raise _unread(resource.plural, error) from error
                await asyncio.sleep(PAUSE_SECONDS)
            except NotFound as error:
                raise KindMissing(f"the old server serves no {resource.plural}: {error.message}") from error
            except StatusError as error:
                raise _unread(resource.plural, error) from error
            else:
                return [{"apiVersion": resource.api_version, "kind": resource.kind, **item} for item in found]
        raise AssertionError("unreachable")  # the last attempt returns or raises


def _unread(what: str, error: Exception) -> BadSource:
    return BadSource(f"cannot read {what} of the old server: {str(error) or type(error).__name__}")
