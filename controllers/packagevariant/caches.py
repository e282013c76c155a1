"""The informers of the controller, and what is asked of them by index; nothing here makes a request.

Source: ``variants.md`` 6.10.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from controllers.packagevariant.cached_values import DEFAULT_BRANCH, CachedRepository, CachedVariant, Key
from controllers.runtime.informers import Informers
from controllers.runtime.served_kinds import ServedKind
from krm.client.client import KubeClient
from krm.client.reflector import Reflectors
from krm.client.resources import CUSTOM_RESOURCE_DEFINITIONS, PACKAGE_REVISIONS, PACKAGE_VARIANTS, REPOSITORIES
from krm.variants.revisions import Lock, Revision

Package = tuple[str, str, str]
"""Namespace, repository and package."""

_SOURCE: Final = "source"
_TARGET: Final = "target"
_UID: Final = "uid"
_REPOSITORY: Final = "repository"
_SELECTED: Final = "selected"
_PACKAGE: Final = "package"
_OWNER: Final = "owner"
_PLACE: Final = "place"


class Caches(Informers):
    """PackageVariants, PackageRevisions, Repositories and definitions of kinds, of one namespace or (None) of all."""

    def __init__(self, client: KubeClient, namespace: str | None, reflectors: Reflectors | None = None) -> None:
        super().__init__(client, reflectors)
        self.variants = self.informer(
            PACKAGE_VARIANTS,
            namespace,
            CachedVariant.of,
            indexes={
                _SOURCE: lambda one: (one.source_package,),
                _TARGET: lambda one: (one.target_package,),
                _UID: lambda one: ((one.namespace, one.uid),),
                _REPOSITORY: lambda one: {(one.namespace, one.upstream.repo), (one.namespace, one.downstream_repo)},
                _SELECTED: lambda one: {(one.namespace, name) for name in one.injected_names},
            },
        )
        self.package_revisions = self.informer(
            PACKAGE_REVISIONS,
            namespace,
            Revision.of,
            indexes={
                _PACKAGE: lambda one: ((one.namespace, one.repository, one.package),),
                _OWNER: lambda one: {(one.namespace, owner.uid) for owner in one.owners},
                _PLACE: lambda one: ((one.namespace, one.self_lock.place),) if one.self_lock else (),
            },
        )
        self.repositories = self.informer(REPOSITORIES, namespace, CachedRepository.of)
        self.definitions = self.informer(CUSTOM_RESOURCE_DEFINITIONS, None, ServedKind.of, needed=False)

    # --- variants -----------------------------------------------------------------------------------

    def variant(self, key: Key) -> CachedVariant | None:
        """Return a variant."""
        return self.variants.get(*key)

    def variant_keys(self) -> list[Key]:
        """Return the keys of all variants."""
        return [one.key for one in self.variants.values()]

    def tracking(self, package: Package) -> Iterable[CachedVariant]:
        """Return the variants whose source the package is."""
        return self.variants.by_index(_SOURCE, package)

    def targeting(self, package: Package) -> Iterable[CachedVariant]:
        """Return the variants whose target the package is."""
        return self.variants.by_index(_TARGET, package)

    def with_uid(self, namespace: str, uid: str) -> Sequence[CachedVariant]:
        """Return the variant with this UID."""
        return self.variants.by_index(_UID, (namespace, uid))

    def using(self, namespace: str, repository: str) -> Iterable[CachedVariant]:
        """Return the variants whose source or target is in the repository."""
        return self.variants.by_index(_REPOSITORY, (namespace, repository))

    def names(self, key: Key) -> Iterable[str]:
        """Return the names of the objects that a variant's selectors ask for."""
        variant = self.variant(key)
        return variant.injected_names if variant else ()

    def asking(self, namespace: str, name: str) -> Iterable[Key]:
        """Return the variants whose selectors ask for a name."""
        return [one.key for one in self.variants.by_index(_SELECTED, (namespace, name))]

    # --- package revisions and repositories ---------------------------------------------------------

    def revision(self, namespace: str, name: str) -> Revision | None:
        """Return a package revision."""
        return self.package_revisions.get(namespace, name)

    def revisions(self, package: Package) -> Sequence[Revision]:
        """Return the revisions of a package."""
        return self.package_revisions.by_index(_PACKAGE, package)

    def owned(self, namespace: str, uid: str) -> Sequence[Revision]:
        """Return the package revisions that have an owner with this UID."""
        return self.package_revisions.by_index(_OWNER, (namespace, uid))

    def locked_at(self, namespace: str, lock: Lock) -> Sequence[Revision]:
        """Return the package revisions whose own lock is at a place."""
        return self.package_revisions.by_index(_PLACE, (namespace, lock.place))

    def repository(self, namespace: str, name: str) -> CachedRepository | None:
        """Return a Repository."""
        return self.repositories.get(namespace, name)

    def branch(self, namespace: str, repository: str) -> str:
        """Return the branch that a repository publishes to."""
        known = self.repository(namespace, repository)
        return known.branch if known else DEFAULT_BRANCH
