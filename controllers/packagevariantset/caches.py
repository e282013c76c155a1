"""The informers of the controller, and what is asked of them by index; nothing here makes a request.

Source: ``variants.md`` 3.7, 6.10.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from controllers.packagevariantset.cached_values import DEFAULT_BRANCH, CachedRepository, CachedSet, Key, Member
from controllers.runtime.informers import Informers
from controllers.runtime.served_kinds import ServedKind
from krm.client.client import KubeClient
from krm.client.reflector import Reflectors
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


class Caches(Informers):
    """Sets, PackageVariants, PackageRevisions, Repositories and definitions of kinds, of one namespace or (None) of all."""

    def __init__(self, client: KubeClient, namespace: str | None, reflectors: Reflectors | None = None) -> None:
        super().__init__(client, reflectors)
        self.sets = self.informer(
            PACKAGE_VARIANT_SETS,
            namespace,
            CachedSet.of,
            indexes={_UID: lambda one: ((one.namespace, one.uid),)},
        )
        self.variants = self.informer(
            PACKAGE_VARIANTS,
            namespace,
            Member.of,
            indexes={
                _SET: lambda one: ((one.namespace, one.set_uid),) if one.set_uid else (),
                _TARGET: lambda one: ((one.namespace, *one.existing.pair),) if one.set_uid else (),
            },
        )
        self.revisions = self.informer(
            PACKAGE_REVISIONS,
            namespace,
            Revision.of,
            indexes={_PACKAGE: lambda one: ((one.namespace, one.repository, one.package),)},
        )
        self.repositories = self.informer(
            REPOSITORIES, namespace, CachedRepository.of, indexes={_NAMESPACE: lambda one: (one.namespace,)}
        )
        self.definitions = self.informer(CUSTOM_RESOURCE_DEFINITIONS, None, ServedKind.of, needed=False)

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
