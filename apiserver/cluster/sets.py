"""What previews of sets are made of where sets, variants and whatever they select are the cluster's. Source: ``variants.md`` 6.1; ADR 0036.

The server reads with its own rights, after the caller's were asked for; a kind that it may not list is told in the answer.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from apiserver.machinery.rest import User
from krm.client.client import KubeClient
from krm.client.errors import NoAnswer
from krm.client.resources import PACKAGE_VARIANT_SETS, PACKAGE_VARIANTS, REPOSITORIES, Resource
from krm.meta.errors import BadRequest, Forbidden, MethodNotAllowed, NotFound, ResourceName, ServiceUnavailable
from krm.variants.sets.targets import NEVER_SELECTED, SECRET, Kind, SelectedObject
from krm.variants.sets.vocabulary import SET_LABEL
from storage.interfaces import Entry

Json = dict[str, Any]
RevisionsOf = Callable[[str, str, str], Iterable[Entry]]
"""(namespace, repository, package) → its revisions; may be asked in any thread."""
MAX_LISTED: Final = 100_000
"""Objects of one kind that a preview reads; of what is selected only the metadata is kept."""


class ClusterSets:
    """Reads sets and what is around them by ``client``; package revisions are the server's own."""

    def __init__(self, client: KubeClient, revisions: RevisionsOf) -> None:
        self._client, self._revisions = client, revisions

    async def stored_set(self, namespace: str, name: str) -> Json | None:
        """Return a PackageVariantSet as it is on the wire.

        Raises:
            StatusError: the cluster refuses, or does not answer (ServiceUnavailable).
        """
        try:
            return await self._client.get(PACKAGE_VARIANT_SETS, namespace, name)
        except NotFound:
            return None
        except NoAnswer as error:
            raise _unavailable(error) from error

    async def resource_of(self, kind: Kind) -> tuple[ResourceName, bool] | None:
        """Return the resource of a kind and whether it is namespaced; None where it is not served.

        Raises:
            StatusError: the cluster cannot say.
        """
        try:
            found = await self._client.resource_of(*kind)
        except NoAnswer as error:
            raise _unavailable(error) from error
        return None if found is None else (ResourceName(found.plural, found.group), found.namespaced)

    async def surroundings(self, user: User, set_body: Json, kinds: Sequence[Kind]) -> "ClusterSurroundings":
        """Return what there is in the namespace of a set, as of now.

        Raises:
            StatusError: the server may not read Repositories or variants, there are more than :data:`MAX_LISTED` of them,
                or the cluster does not answer.
        """
        del user  # who was asked for already
        namespace, uid = set_body["metadata"]["namespace"], set_body["metadata"].get("uid") or ""
        try:
            repositories = await self._all(REPOSITORIES, namespace)
            ours = await self._all(PACKAGE_VARIANTS, namespace, labels=f"{SET_LABEL}={uid}") if uid else []
            names = await self._all(PACKAGE_VARIANTS, namespace, metadata=True)
            listed = {kind: found for kind in kinds if (found := await self._listed(namespace, kind)) is not None}
        except NoAnswer as error:
            raise _unavailable(error) from error
        by_name = {one["metadata"]["name"]: one for one in names}
        return ClusterSurroundings(self._revisions, namespace, repositories, ours, by_name, listed)

    async def _listed(self, namespace: str, kind: Kind) -> Sequence[SelectedObject] | str | None:
        """Return the objects of a kind, or why they are not selected; None where it is not served."""
        if kind == SECRET:
            return NEVER_SELECTED
        resource = await self._client.resource_of(*kind)
        if resource is None:
            return None
        try:
            found = await self._all(resource, namespace if resource.namespaced else None, metadata=True)
        except (BadRequest, Forbidden, NotFound, MethodNotAllowed) as error:
            return error.message
        return [SelectedObject.of(one, kind) for one in found]

    async def _all(
        self, resource: Resource, namespace: str | None, *, labels: str = "", metadata: bool = False
    ) -> list[Json]:
        client = self._client.of_metadata() if metadata else self._client
        found: list[Json] = []
        async for page in client.list(resource, namespace, label_selector=labels):
            found += page.items
            if len(found) > MAX_LISTED:
                raise BadRequest(f"there are more than {MAX_LISTED} {resource.plural} here: too many for a preview")
        return found


@dataclass(frozen=True, slots=True)
class ClusterSurroundings:
    """What there was in a namespace when it was read; of others' variants only the metadata."""

    revisions_of: RevisionsOf
    namespace: str
    listed_repositories: Sequence[Json]
    ours: Sequence[Json]
    by_name: Mapping[str, Json]
    selectable: Mapping[Kind, Sequence[SelectedObject] | str]

    def repositories(self) -> Sequence[Json]:
        """Return the Repositories."""
        return self.listed_repositories

    def revisions(self, repository: str, package: str) -> Iterator[Json]:
        """Yield the revisions of a package."""
        return (orjson.loads(entry.body) for entry in self.revisions_of(self.namespace, repository, package))

    def variants_of(self, set_uid: str) -> Sequence[Json]:
        """Return the PackageVariants with the label of the set, which is the one that was asked about."""
        del set_uid
        return self.ours

    def variant(self, name: str) -> Json | None:
        """Return the metadata of a PackageVariant."""
        return self.by_name.get(name)

    def objects(self) -> Mapping[Kind, Sequence[SelectedObject] | str]:
        """Return what there is of each kind that the targets select."""
        return self.selectable


def _unavailable(error: NoAnswer) -> ServiceUnavailable:
    return ServiceUnavailable(f"the cluster cannot be read: {error}", retry_after=1)
