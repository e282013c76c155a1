"""Whom a change concerns: the product's own mapping of events, asked about the model's caches.

Nothing else wakes a variant in the model, so that an event that is kept from a variant that it concerns leaves it behind.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from controllers.packagevariant import wakeups
from controllers.packagevariant.cached_values import CachedRepository, CachedVariant
from krm.variants.revisions import Revision
from variant_model.caches import Key, StaleViews
from variant_model.porch import BRANCH, CONFIG_MAPS

Json = dict[str, Any]


def concerned(views: StaleViews, kind: str, old: Json | None, new: Json | None) -> Iterable[Key]:
    """Return the variants that have to look again after an object came, changed or went."""
    match kind:
        case "packagevariants":
            return wakeups.by_variant(_variant(old), _variant(new))
        case "packagerevisions":
            cached = _Cached(views)
            return wakeups.by_revision(_revision(old), _revision(new), cached, cached)
        case "repositories":
            return wakeups.by_repository(_repository(old), _repository(new), _Cached(views))
    assert kind == CONFIG_MAPS
    return [one.key for one in _Cached(views).all() if _injects(views, one, new or old or {})]


def _injects(views: StaleViews, variant: CachedVariant, config_map: Json) -> bool:
    """Tell whether a variant has a point for ConfigMaps and asks for the one of this name (``variants.md`` 2.14)."""
    watched = views.watched.get(variant.key, frozenset())
    return ("v1", "ConfigMap") in watched and config_map["metadata"]["name"] in variant.injected_names


def _revision(body: Json | None) -> Revision | None:
    return None if body is None else Revision.of(body)


def _variant(body: Json | None) -> CachedVariant | None:
    return None if body is None else CachedVariant.of(body)


def _repository(body: Json | None) -> CachedRepository | None:
    return None if body is None else CachedRepository.of(body)


class _Cached:
    """The model's caches as the mapping asks for them."""

    def __init__(self, views: StaleViews) -> None:
        self._views = views

    def all(self) -> list[CachedVariant]:
        return [CachedVariant.of(body) for body in self._views.variants()]

    def tracking(self, package: wakeups.Package) -> Iterable[CachedVariant]:
        return [one for one in self.all() if one.source_package == package]

    def targeting(self, package: wakeups.Package) -> Iterable[CachedVariant]:
        return [one for one in self.all() if one.target_package == package]

    def with_uid(self, namespace: str, uid: str) -> Iterable[CachedVariant]:
        return [one for one in self.all() if one.uid == uid]

    def using(self, namespace: str, repository: str) -> Iterable[CachedVariant]:
        return [one for one in self.all() if repository in (one.upstream.repo, one.downstream_repo)]

    def revisions(self, package: wakeups.Package) -> Sequence[Revision]:
        return self._views.revisions_of(*package)

    def branch(self, namespace: str, repository: str) -> str:
        return BRANCH
