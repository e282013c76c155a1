"""What each set has to hear of: its source, what its targets select, and the repositories that its variants go to.

A set says so before it reads the caches, so that no event falls between. Source: ``variants.md`` 3.7, 6.10.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, Final

from controllers.packagevariantset.cached_values import Key
from controllers.packagevariantset.caches import Package
from krm.variants.sets.targets import Kind, SelectedObject, target_filter
from krm.variants.sets.vocabulary import REPOSITORY
from krm.variants.variant import UpstreamSpec

Json = dict[str, Any]
Filter = Callable[[SelectedObject], bool]

_EVERY: Final = "*"
"""Stands for all names of repositories; none is called so."""


@dataclass(frozen=True, slots=True)
class Interest:
    """What one set has to hear of, in its own namespace."""

    source: tuple[str, str] = ("", "")
    """Repository and package of the upstream."""
    filters: Mapping[Kind, tuple[Filter, ...]] = field(default_factory=dict)
    """Of objects by kind, Repositories among them: which of them concern the set."""
    repositories: frozenset[str] = frozenset()
    """Names of the Repositories that targets name or variants go to."""
    every_repository: bool = False
    """Whether all Repositories concern it, while it is found out where its variants go."""
    taken: frozenset[str] = frozenset()
    """Names that its variants would have, and that others' variants have."""
    publications: bool = False
    """Whether it waits for package revisions to be published."""


def interest_of(spec: Json, upstream: UpstreamSpec) -> Interest:
    """Return what a set with a valid spec has to hear of before its variants are rendered."""
    filters: dict[Kind, list[Filter]] = defaultdict(list)
    for target in spec["targets"]:
        if (kind := _kind(target)) is not None:
            filters[kind].append(target_filter(target))
    rollout = spec.get("rollout") or {}
    return Interest(
        source=(upstream.repo, upstream.package),
        filters={kind: tuple(found) for kind, found in filters.items()},
        publications=rollout.get("settleOn") == "Published",
    )


def named_repositories(spec: Json) -> set[str]:
    """Return the names that the targets of a valid set list."""
    return {one["name"] for target in spec["targets"] for one in target.get("repositories") or ()}


class Interests:
    """The interests of all sets, found by what an event is about."""

    def __init__(self) -> None:
        self._interests: dict[Key, Interest] = {}
        self._index: dict[Hashable, set[Key]] = {}

    def __len__(self) -> int:
        return len(self._interests)

    def get(self, key: Key) -> Interest | None:
        """Return what a set said last."""
        return self._interests.get(key)

    def put(self, key: Key, interest: Interest) -> None:
        """Take what a set has to hear of from now on."""
        before = self._interests.get(key)
        self._interests[key] = interest
        self._move(key, _places(key[0], before), _places(key[0], interest))
        self._move_names(key, before, interest)

    def forget(self, key: Key) -> None:
        """Drop what a set said; repeating it changes nothing."""
        before = self._interests.pop(key, None)
        self._move(key, _places(key[0], before), set())
        self._move_names(key, before, None)

    def _move_names(self, key: Key, before: Interest | None, after: Interest | None) -> None:
        """Take the names of repositories, of which there may be ten thousand and mostly the same as before."""
        old = before.repositories if before else frozenset()
        new = after.repositories if after else frozenset()
        if old != new:
            self._move(key, _named(key[0], old - new), _named(key[0], new - old))

    def _move(self, key: Key, before: AbstractSet[Hashable], after: AbstractSet[Hashable]) -> None:
        for found in before - after:
            keys = self._index[found]
            keys.discard(key)
            if not keys:
                del self._index[found]
        for found in after - before:
            self._index.setdefault(found, set()).add(key)

    def following(self, package: Package) -> AbstractSet[Key]:
        """Return the sets whose source the package is."""
        return self._found("source", *package)

    def following_repository(self, namespace: str, name: str) -> AbstractSet[Key]:
        """Return the sets whose source is in a repository."""
        return self._found("source repository", namespace, name)

    def using(self, namespace: str, repository: str) -> AbstractSet[Key]:
        """Return the sets that name a repository or have variants for it."""
        return self._found("repository", namespace, repository) | self._found("repository", namespace, _EVERY)

    def selecting(self, namespace: str, kind: Kind, states: Iterable[SelectedObject]) -> set[Key]:
        """Return the sets that select an object in one of its states."""
        candidates, known = self._found("kind", namespace, *kind), [*states]
        return {key for key in candidates if _selects(self._interests[key], kind, known)}

    def wanting(self, namespace: str, name: str) -> AbstractSet[Key]:
        """Return the sets that could not make a variant because of one that has this name."""
        return self._found("name", namespace, name)

    def _found(self, *place: str) -> AbstractSet[Key]:
        return self._index.get(place, frozenset())


def _kind(target: Json) -> Kind | None:
    if target.get("repositorySelector") is not None:
        return REPOSITORY
    selector = target.get("objectSelector")
    return (selector["apiVersion"], selector["kind"]) if selector is not None else None


def _selects(interest: Interest, kind: Kind, states: Iterable[SelectedObject]) -> bool:
    return any(accepts(one) for one in states for accepts in interest.filters.get(kind, ()))


def _places(namespace: str, interest: Interest | None) -> set[Hashable]:
    """Return where a set is found, but for the names of repositories."""
    if interest is None:
        return set()
    repository, package = interest.source
    return {
        ("source", namespace, repository, package),
        ("source repository", namespace, repository),
        *(("kind", namespace, *kind) for kind in interest.filters),
        *(("name", namespace, name) for name in interest.taken),
        *_named(namespace, [_EVERY] if interest.every_repository else []),
    }


def _named(namespace: str, repositories: Iterable[str]) -> set[Hashable]:
    return {("repository", namespace, name) for name in repositories}
