"""Passes that would find what the last one found are not made, so that a resync with nothing new costs next to nothing.

After a pass that left nothing to do, what the variant reads of its own object, its upstream, its downstream, its repositories
and its injected objects is remembered, with resourceVersions wherever it can change them itself. Source: issue 7, part 2.
"""

from collections.abc import Hashable

from controllers.packagevariant import readings
from controllers.packagevariant.cached_values import CachedVariant, Key
from controllers.packagevariant.caches import Caches
from controllers.packagevariant.injectables import Injectables
from krm.variants.revisions import Revision


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
