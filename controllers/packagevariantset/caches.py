"""The informers of the controller, and what is asked of them by index; nothing here makes a request.

Source: ``variants.md`` 3.7, 6.10.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from controllers.packagevariantset.cached_values import (
    DEFAULT_BRANCH,
    CachedRepository,
    CachedSet,
    Key,
    Member,
    ServedKind,
    revision_of,
)
from krm.client.client import KubeClient
from krm.client.informer import Informer
from krm.client.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    PACKAGE_REVISIONS,
    PACKAGE_VARIANT_SETS,
    PACKAGE_VARIANTS,
    REPOSITORIES,
)
from krm.variants.revisions import Revision
from krm.variants.sets.targets import SelectedObject

Package = tuple[str, str, str]
"""Namespace, repository and package."""

_UID: Final = "uid"
_SET: Final = "set"
_TARGET: Final = "target"
_PACKAGE: Final = "package"
_NAMESPACE: Final = "namespace"


class Caches:
    """Sets, PackageVariants, PackageRevisions, Repositories and definitions of kinds, of one namespace or (None) of all."""

    def __init__(self, client: KubeClient, namespace: str | None) -> None:
        self.sets: Informer[CachedSet] = Informer(
            client,
            PACKAGE_VARIANT_SETS,
            namespace,
            CachedSet.of,
            indexes={_UID: lambda one: ((one.namespace, one.uid),)},
        )
        self.variants: Informer[Member] = Informer(
            client,
            PACKAGE_VARIANTS,
            namespace,
            Member.of,
            indexes={
                _SET: lambda one: ((one.namespace, one.set_uid),) if one.set_uid else (),
                _TARGET: lambda one: ((one.namespace, *one.existing.pair),) if one.set_uid else (),
            },
        )
        self.revisions: Informer[Revision] = Informer(
            client,
            PACKAGE_REVISIONS,
            namespace,
            revision_of,
            indexes={_PACKAGE: lambda one: ((one.namespace, one.repository, one.package),)},
        )
        self.repositories: Informer[CachedRepository] = Informer(
            client, REPOSITORIES, namespace, CachedRepository.of, indexes={_NAMESPACE: lambda one: (one.namespace,)}
        )
        self.definitions: Informer[ServedKind] = Informer(client, CUSTOM_RESOURCE_DEFINITIONS, None, ServedKind.of)

    @property
    def _needed(self) -> Sequence[Informer[Any]]:
        return self.sets, self.variants, self.revisions, self.repositories

    @property
    def synced(self) -> bool:
        """Whether all that a reconcile needs was read once; definitions are not needed, and may be forbidden."""
        return all(informer.synced for informer in self._needed)

    async def wait_synced(self) -> None:
        """Wait until all that a reconcile needs was read; the caller sets the deadline."""
        for informer in self._needed:
            await informer.wait_synced()

    async def run(self) -> None:
        """Keep the caches true until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for informer in (*self._needed, self.definitions):
                tasks.create_task(informer.run(), name=f"informer of {informer.resource.plural} for sets")

    # --- what is asked ------------------------------------------------------------------------------

    def one(self, key: Key) -> CachedSet | None:
        """Return a set."""
        return self.sets.get(*key)

    def set_keys(self) -> list[Key]:
        """Return the keys of all sets."""
        return [one.key for one in self.sets.values()]

    def with_uid(self, namespace: str, uid: str) -> Sequence[CachedSet]:
        """Return the set with this UID."""
        return self.sets.by_index(_UID, (namespace, uid)) if uid else ()

    def members(self, namespace: str, uid: str) -> Sequence[Member]:
        """Return the variants that a set made."""
        return self.variants.by_index(_SET, (namespace, uid))

    def targeting(self, package: Package) -> Sequence[Member]:
        """Return the variants of sets whose target the package is."""
        return self.variants.by_index(_TARGET, package)

    def of_package(self, package: Package) -> Sequence[Revision]:
        """Return the revisions of a package."""
        return self.revisions.by_index(_PACKAGE, package)

    def repositories_of(self, namespace: str) -> Mapping[str, SelectedObject]:
        """Return the Repositories of a namespace by name."""
        return {one.name: one.metadata for one in self.repositories.by_index(_NAMESPACE, namespace)}

    def branch(self, namespace: str, repository: str) -> str:
        """Return the branch that a repository publishes to."""
        known = self.repositories.get(namespace, repository)
        return known.branch if known else DEFAULT_BRANCH
