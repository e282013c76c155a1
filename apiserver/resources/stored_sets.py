"""What previews of sets are made of, from the objects of this server. Source: ``variants.md`` 3.2, 6.1 and 6.10."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from apiserver.machinery.rest import Item, Lister, ListOptions, Scope, Served, User
from krm.meta.errors import BadRequest, Forbidden, MethodNotAllowed, MethodNotServed, NotFound, ResourceName
from krm.meta.selectors import FieldSelector, LabelSelector
from krm.variants.sets.targets import NEVER_SELECTED, SECRET, Kind, SelectedObject
from krm.variants.sets.vocabulary import SET_LABEL
from storage.interfaces import Entry, ListQuery, ObjectKey, ObjectStore

Json = dict[str, Any]
RevisionsOf = Callable[[str, str, str], Iterable[Entry]]
"""(namespace, repository, package) → its revisions; may be asked in any thread."""

_SETS: Final = "packagevariantsets.config.porch.kpt.dev"
_VARIANTS: Final = "packagevariants.config.porch.kpt.dev"
_REPOSITORIES: Final = "repositories.config.porch.kpt.dev"
_EVERYTHING: Final = ListOptions(LabelSelector(()), FieldSelector(()))


class StoredSets:
    """Reads sets and what is around them; ``served`` tells which kinds there are now."""

    def __init__(self, store: ObjectStore, revisions: RevisionsOf, served: Callable[[], Iterable[Served]]) -> None:
        self._store, self._revisions, self._served = store, revisions, served

    async def stored_set(self, namespace: str, name: str) -> Json | None:
        """Return a PackageVariantSet as it is on the wire."""
        entry = await self._store.get_fresh(ObjectKey(_SETS, namespace, name))
        return None if entry is None else orjson.loads(entry.body)

    async def resource_of(self, kind: Kind) -> tuple[ResourceName, bool] | None:
        """Return the resource of a kind and whether it is namespaced; None where it is not served."""
        served = self._find(kind)
        if served is None:
            return None
        definition = served.resource.definition
        return definition.resource, definition.namespaced

    async def surroundings(self, user: User, set_body: Json, kinds: Sequence[Kind]) -> "StoredSurroundings":
        """Return what there is in the namespace of a set, as of now."""
        namespace, uid = set_body["metadata"]["namespace"], set_body["metadata"].get("uid") or ""
        repositories = await self._store.list(_REPOSITORIES, ListQuery(namespace))
        variants = await self._store.list(_VARIANTS, ListQuery(namespace, matches=_has_label(uid)))
        listed = {kind: found for kind in kinds if (found := await self._listed(user, namespace, kind)) is not None}
        objects = await asyncio.to_thread(_selectable, listed)
        return StoredSurroundings(
            self._store, self._revisions, namespace, repositories.entries, variants.entries, objects
        )

    def _find(self, kind: Kind) -> Served | None:
        found = (
            one for one in self._served() if (one.resource.definition.api_version, one.resource.definition.kind) == kind
        )
        return next(found, None)

    async def _listed(self, user: User, namespace: str, kind: Kind) -> Sequence[Item] | str | None:
        """Return the objects of a kind, or why they are not selected; None where it is not served."""
        if kind == SECRET:
            return NEVER_SELECTED
        served = self._find(kind)
        if served is None:
            return None
        resource = served.resource
        if not isinstance(resource, Lister):
            return MethodNotServed().message
        scope = Scope(namespace if resource.definition.namespaced else None, user)
        try:
            return (await resource.list(scope, _EVERYTHING)).items
        except (BadRequest, Forbidden, NotFound, MethodNotAllowed) as error:
            return error.message


@dataclass(frozen=True, slots=True)
class StoredSurroundings:
    """What there was in a namespace when it was read; revisions of packages and single variants are looked up when asked for."""

    store: ObjectStore
    revisions_of: RevisionsOf
    namespace: str
    stored_repositories: Sequence[Entry]
    stored_variants: Sequence[Entry]
    selectable: Mapping[Kind, Sequence[SelectedObject] | str]

    def repositories(self) -> Iterator[Json]:
        """Yield the Repositories."""
        return (orjson.loads(entry.body) for entry in self.stored_repositories)

    def revisions(self, repository: str, package: str) -> Iterator[Json]:
        """Yield the revisions of a package."""
        return (orjson.loads(entry.body) for entry in self.revisions_of(self.namespace, repository, package))

    def variants_of(self, set_uid: str) -> Iterator[Json]:
        """Yield the PackageVariants with the label of the set."""
        has_label = _has_label(set_uid)
        return (orjson.loads(entry.body) for entry in self.stored_variants if has_label(entry))

    def variant(self, name: str) -> Json | None:
        """Return a PackageVariant."""
        entry = self.store.get(ObjectKey(_VARIANTS, self.namespace, name))
        return None if entry is None else orjson.loads(entry.body)

    def objects(self) -> Mapping[Kind, Sequence[SelectedObject] | str]:
        """Return what there is of each kind that the targets select."""
        return self.selectable


def _has_label(set_uid: str) -> Callable[[Entry], bool]:
    return lambda entry: bool(set_uid) and entry.labels.get(SET_LABEL) == set_uid


def _selectable(
    listed: Mapping[Kind, Sequence[Item] | str],
) -> dict[Kind, Sequence[SelectedObject] | str]:
    return {
        kind: found if isinstance(found, str) else [SelectedObject.of(orjson.loads(one.body), kind) for one in found]
        for kind, found in listed.items()
    }
