"""Passes that would find what the last one found are not made, so that a resync with nothing new costs next to nothing.

After a pass that left nothing to do, what the variant reads of its own object, its upstream, its downstream, its repositories
and its injected objects is remembered, with resourceVersions wherever it can change them itself. Source: issue 7, part 2.
"""

import itertools
from collections.abc import Callable, Hashable

from controllers.packagevariant import readings
from controllers.packagevariant.cached_values import CachedVariant, Key
from controllers.packagevariant.caches import Caches
from controllers.packagevariant.injectables import Injectables
from krm.variants.revisions import Revision


class FinishedPasses:
    """What each variant read when a pass over it ended with nothing left to do; kept in memory only.

    ``reading`` gives what a variant reads now, None for one that is gone.
    """

    def __init__(self, reading: Callable[[Key], Hashable]) -> None:
        self._reading = reading
        self._finished: dict[Key, Hashable] = {}
        self._events: dict[Key, int] = {}
        self._numbers = itertools.count(1)
        """Of events, of whatever variant: none comes twice, also not after a variant was forgotten."""
        self._seen: dict[Key, int] = {}
        """Of the events, how many had come when the last pass began."""

    def __len__(self) -> int:
        return len(self._finished)

    def woken(self, key: Key) -> None:
        """Note that an event concerned the variant: a pass that is under way may not have seen it."""
        self._events[key] = next(self._numbers)

    def rests(self, key: Key) -> bool:
        """Whether the last pass over the variant left nothing to do, and no event has concerned it since that began."""
        return key in self._finished and self._events.get(key, 0) == self._seen.get(key, 0)

    def events(self, key: Key) -> int:
        """Return how many events concerned the variant."""
        return self._events.get(key, 0)

    def begin(self, key: Key) -> int:
        """Begin a pass; returns what :meth:`finish` needs."""
        self._finished.pop(key, None)
        self._seen[key] = self.events(key)
        return self._seen[key]

    def finish(self, key: Key, begun: int) -> None:
        """End a pass that left nothing to do. It is forgotten if an event came meanwhile."""
        if self.events(key) == begun and (reading := self._reading(key)) is not None:
            self._finished[key] = reading

    def is_finished(self, key: Key) -> bool:
        """Whether the variant would read what the last pass over it read."""
        return key in self._finished and self._finished[key] == self._reading(key)

    def forget(self, key: Key) -> None:
        """Drop what is known of a variant that is gone."""
        self._finished.pop(key, None)
        self._events.pop(key, None)
        self._seen.pop(key, None)


def reading_of(key: Key, caches: Caches, injectables: Injectables) -> Hashable:
    """Return all that a pass over a variant reads; None for a variant that is gone."""
    variant = caches.variant(key)
    if variant is None:
        return None
    places = variant.upstream.repo, variant.downstream_repo
    repositories = tuple(readings.of_repository(caches.repository(variant.namespace, name)) for name in places)
    candidates = caches.revisions(variant.source_package)
    upstream = readings.of_upstream(
        variant.upstream, candidates, caches.branch(variant.namespace, variant.upstream.repo)
    )
    return variant.resource_version, repositories, upstream, _downstream(variant, caches), injectables.reading(key)


def _downstream(variant: CachedVariant, caches: Caches) -> Hashable:
    """Return the owned revisions by version, and of those that are in the target's place what a variant reads of them."""
    owned = caches.owned(variant.namespace, variant.uid)
    others = [one for one in caches.revisions(variant.target_package) if not one.owned_by(variant.uid)]
    return (
        tuple(sorted(map(_version, owned))),
        frozenset((one.name, readings.of_downstream(variant, one)) for one in others),
    )


def _version(revision: Revision) -> tuple[str, str, str]:
    return revision.name, revision.uid, revision.resource_version
