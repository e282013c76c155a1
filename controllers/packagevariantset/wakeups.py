"""Whom an event concerns: from an object before and after to the sets that are to be looked at again.

Everything here is pure; an event in which nothing changed that a set reads wakes nobody, and no event asks all sets.
Source: ``variants.md`` 3.7, 6.10.
"""

from collections.abc import Callable, Iterable

from controllers.packagevariantset.cached_values import CachedRepository, CachedSet, Key, Member, Selectable
from controllers.packagevariantset.caches import Package
from controllers.packagevariantset.interests import Interests
from krm.variants.revisions import Revision
from krm.variants.sets.targets import Kind
from krm.variants.sets.vocabulary import REPOSITORY

SetOf = Callable[[Member], Iterable[CachedSet]]
"""Returns the set that made a variant, if it is there."""


def by_set(old: CachedSet | None, new: CachedSet | None) -> set[Key]:
    """Wake a set whose spec, deletion or orders changed."""
    if new is None:
        return set()
    if old is not None and _of_set(old) == _of_set(new):
        return set()
    return {new.key}


def by_member(old: Member | None, new: Member | None, set_of: SetOf, interests: Interests) -> tuple[set[Key], set[Key]]:
    """Return the sets that are to look soon, since they may have something to write, and those that tell of the variant.

    The first are the sets that made it, before or now, and those that want its name once it is gone.
    """
    states = [one for one in (old, new) if one is not None]
    owners = {one.key for state in states for one in set_of(state)}
    soon: set[Key] = set()
    if old is None or new is None or old.wants != new.wants:
        soon = owners | {key for one in states for key in interests.wanting(one.namespace, one.name)}
    later = owners if old is not None and new is not None and old.told != new.told else set()
    return soon, later - soon


def by_revision(
    old: Revision | None, new: Revision | None, interests: Interests, targeting: Callable[[Package], Iterable[Key]]
) -> set[Key]:
    """Wake the sets whose source a revision is, and those that wait for it to be published, if that changed.

    ``targeting`` returns the sets that have a variant for a package.
    """
    packages = {(one.namespace, one.repository, one.package) for one in (old, new) if one is not None}
    woken: set[Key] = set()
    if _as_source(old) != _as_source(new):
        woken |= {key for package in packages for key in interests.following(package)}
    if _as_target(old) != _as_target(new):
        woken |= {key for package in packages for key in targeting(package) if _waits(key, interests)}
    return woken


def by_repository(old: CachedRepository | None, new: CachedRepository | None, interests: Interests) -> set[Key]:
    """Wake the sets that select a Repository in one of its states, name it, or have variants for it."""
    states = [one for one in (old, new) if one is not None]
    woken: set[Key] = set()
    namespace, name = states[0].namespace, states[0].name
    if old is None or new is None or old.branch != new.branch:
        woken |= interests.following_repository(namespace, name)
    if old is None or new is None or old.metadata != new.metadata:
        woken |= interests.using(namespace, name)
        woken |= interests.selecting(namespace, REPOSITORY, [one.metadata for one in states])
    return woken


def by_object(
    namespace: str, kind: Kind, old: Selectable | None, new: Selectable | None, interests: Interests
) -> set[Key]:
    """Wake the sets of a namespace that select an object in one of its states."""
    states = [one.metadata for one in (old, new) if one is not None]
    if old is not None and new is not None and old.metadata == new.metadata:
        return set()
    return interests.selecting(namespace, kind, states)


def _of_set(one: CachedSet) -> object:
    return one.uid, one.generation, one.deleting, one.orders


def _waits(key: Key, interests: Interests) -> bool:
    interest = interests.get(key)
    return interest is not None and interest.publications


def _as_source(one: Revision | None) -> object:
    """Return what decides whether a revision is a set's source, and what expressions see of it."""
    if one is None or one.deleting:
        return None
    if not one.is_published:
        return one.workspace, one.revision, one.lifecycle
    return one.uid, one.workspace, one.revision, one.lifecycle, one.labels, one.annotations, one.self_lock


def _as_target(one: Revision | None) -> object:
    """Return what decides whether a variant's package is published."""
    if one is None or one.deleting:
        return None
    return one.lifecycle, one.revision, one.upstream_lock, one.owners
