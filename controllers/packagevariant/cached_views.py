"""What the reconciler reads, answered from the caches; and what it writes, told to them.

A write of ours wakes whom it concerns, but for the variant on whose behalf it was made: that one knows. Source:
``variants.md`` 6.10.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from controllers.packagevariant import wakeups
from controllers.packagevariant.cached_values import CachedVariant, Key
from controllers.packagevariant.caches import Caches
from controllers.packagevariant.injectables import Injectables
from controllers.packagevariant.views import ObjectType, RepositoryView
from krm.variants.injection import Listing
from krm.variants.revisions import Lock, Owner, Revision
from krm.variants.vocabulary import GROUP, KIND

Json = dict[str, Any]

working_on: ContextVar[Key | None] = ContextVar("working_on", default=None)
"""The variant that the current task works on."""


class CachedViews:
    """The ``Views`` of the controller. ``wake`` has variants looked at, ``made`` is told of each new draft."""

    def __init__(
        self,
        caches: Caches,
        injectables: Injectables,
        wake: Callable[[Iterable[Key]], None],
        made: Callable[[Revision], None] = lambda _draft: None,
    ) -> None:
        self._caches, self._injectables, self._wake, self._made = caches, injectables, wake, made
        self._saved: dict[Key, tuple[str, Key | None]] = {}
        """Of revisions whose files we saved: the version that this made, and for which variant."""

    def variant(self, namespace: str, name: str) -> Json | None:
        """Return a PackageVariant, a new copy at each call."""
        known = self._caches.variant((namespace, name))
        return known.body() if known else None

    def revisions_of(self, namespace: str, repository: str, package: str) -> Sequence[Revision]:
        """Return all revisions of a package."""
        return self._caches.revisions((namespace, repository, package))

    def owned(self, namespace: str, uid: str) -> Sequence[Revision]:
        """Return all package revisions that have an owner with this UID."""
        return self._caches.owned(namespace, uid)

    def locked_at(self, namespace: str, lock: Lock) -> Sequence[Revision]:
        """Return the package revisions whose own lock is at this place."""
        return self._caches.locked_at(namespace, lock)

    def revision(self, namespace: str, name: str) -> Revision | None:
        """Return one package revision."""
        return self._caches.revision(namespace, name)

    def repository(self, namespace: str, name: str) -> RepositoryView | None:
        """Return a Repository."""
        known = self._caches.repository(namespace, name)
        if known is None:
            return None
        return RepositoryView(name, known.branch, known.deployment, secret=known.secret)

    def is_alive(self, owner: Owner, namespace: str) -> bool:
        """Whether a PackageVariant that owns something exists; owners of other kinds count as alive."""
        if (owner.kind, owner.api_version.partition("/")[0]) != (KIND, GROUP):
            return True
        return bool(self._caches.with_uid(namespace, owner.uid))

    async def injectables(self, key: Key, namespace: str, types: set[ObjectType]) -> Mapping[ObjectType, Listing]:
        """Return the objects that can be injected, and wake the variant when one that it selects changes."""
        return await self._injectables.listings(key, namespace, types)

    def wrote(self, body: Json) -> None:
        """Take over a package revision as the answer to our own write has it. A repeated call changes nothing."""
        meta = body["metadata"]
        namespace, name = meta.get("namespace", ""), meta["name"]
        self._saved.pop((namespace, name), None)
        old = self._caches.revision(namespace, name)
        self._caches.package_revisions.wrote(body)
        new = self._caches.revision(namespace, name)
        if old is None and new is not None and not new.is_published:
            self._made(new)
        self._wake_others(old, new)

    def saved(self, body: Json) -> None:
        """Note the version that saving a revision's files made; ``body`` are its PackageRevisionResources.

        The revision itself comes with the event of that version, which wakes the variant for nothing.
        """
        meta = body["metadata"]
        self._saved[meta.get("namespace", ""), meta["name"]] = meta.get("resourceVersion", ""), working_on.get()

    def saved_for(self, revision: Revision | None) -> Key | None:
        """Return the variant for which we saved exactly this state of a revision."""
        if revision is None:
            return None
        version, key = self._saved.get((revision.namespace, revision.name), ("", None))
        return key if version and version == revision.resource_version else None

    def wrote_variant(self, body: Json) -> None:
        """Take over a PackageVariant as the answer to our own write has it.

        The answer may be the first news of what its user did meanwhile, whose own event is older then and tells nothing.
        """
        key = (body["metadata"].get("namespace", ""), body["metadata"]["name"])
        old = self._caches.variant(key)
        self._caches.variants.wrote(body)
        new = self._caches.variant(key)
        if old is not None and new is not None and _by_user(old) != _by_user(new):
            self._wake({key})

    def forget(self, namespace: str, name: str) -> None:
        """Drop a package revision that our DELETE removed."""
        self._saved.pop((namespace, name), None)
        old = self._caches.revision(namespace, name)
        self._caches.package_revisions.forget(namespace, name)
        self._wake_others(old, None)

    def _wake_others(self, old: Revision | None, new: Revision | None) -> None:
        if old is new:
            return
        woken = wakeups.by_revision(old, new, self._caches, self._caches)
        self._wake({key for key in woken if key != working_on.get()})


def _by_user(variant: CachedVariant) -> tuple[str, int, bool, bool]:
    """Return what its user decides about a variant."""
    return variant.uid, variant.generation, variant.deleting, variant.paused
