"""Whom an event concerns: from an object before and after to the variants that are to be looked at again.

Everything here is pure. An event in which nothing changed that a variant reads wakes nobody; what is read is said in
``readings.py``. Source: ``variants.md`` 2.14 and 6.10.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from controllers.packagevariant import readings
from controllers.packagevariant.cached_values import CachedRepository, CachedVariant, Key
from krm.variants.revisions import DRAFT, PLACEHOLDER_REVISION, PROPOSED, PUBLISHED, Revision
from krm.variants.variant import UpstreamSpec
from krm.variants.vocabulary import MARKER_LABEL, TAG_LABEL_PREFIX

Package = tuple[str, str, str]
"""Namespace, repository and package."""

_FORWARD: Final = frozenset({(DRAFT, PROPOSED), (PROPOSED, PUBLISHED)})
"""The steps of a revision's lifecycle that people take on the way to its publication."""


class Variants(Protocol):
    """The variants by what they have to do with."""

    def tracking(self, package: Package) -> Iterable[CachedVariant]:
        """Return those whose source the package is."""
        ...

    def targeting(self, package: Package) -> Iterable[CachedVariant]:
        """Return those whose target the package is."""
        ...

    def with_uid(self, namespace: str, uid: str) -> Iterable[CachedVariant]:
        """Return the one with this UID."""
        ...

    def using(self, namespace: str, repository: str) -> Iterable[CachedVariant]:
        """Return those whose source or target is in the repository."""
        ...


class Packages(Protocol):
    """The package revisions and repositories as they are after an event."""

    def revisions(self, package: Package) -> Sequence[Revision]:
        """Return the revisions of a package."""
        ...

    def branch(self, namespace: str, repository: str) -> str:
        """Return the branch that a repository publishes to."""
        ...


def by_variant(old: CachedVariant | None, new: CachedVariant | None) -> set[Key]:
    """Wake a variant whose spec, deletion, pause or finalizer changed; for one that is gone nothing is left to do."""
    changed = new is not None and readings.of_variant(old) != readings.of_variant(new)
    return {new.key} if new is not None and changed else set()


def by_revision(old: Revision | None, new: Revision | None, variants: Variants, packages: Packages) -> set[Key]:
    """Wake the variants that follow a revision, own it, or have its package as their target, if it changed for them."""
    woken = {one.key for one in _affected(old, new, variants) if _target_changed(one, old, new)}
    if _upstream_facts(old) == _upstream_facts(new):
        return woken
    for package in {_package(one) for one in (old, new) if one is not None}:
        woken |= _followers(package, old, new, variants, packages)
    return woken


def can_wait(variant: CachedVariant, old: Revision | None, new: Revision | None) -> bool:
    """Whether a variant that an event wakes has at most something to tell: what it made was proposed or approved.

    With the first approval in a package comes the placeholder of its branch.
    """
    if new is None or _package(new) == variant.source_package:
        return False
    if old is None:
        return new.revision == PLACEHOLDER_REVISION and not new.owned_by(variant.uid)
    is_ours = old.owned_by(variant.uid) and new.owned_by(variant.uid) and old.uid == new.uid
    return is_ours and (old.lifecycle, new.lifecycle) in _FORWARD


def by_repository(old: CachedRepository | None, new: CachedRepository | None, variants: Variants) -> set[Key]:
    """Wake the variants that use a repository when it appears, goes, changes its settings or becomes ready."""
    one = new or old
    became_ready = new is not None and new.ready and not (old is not None and old.ready)
    if one is None or not (became_ready or readings.of_repository(old) != readings.of_repository(new)):
        return set()
    return {variant.key for variant in variants.using(one.namespace, one.name)}


def _affected(old: Revision | None, new: Revision | None, variants: Variants) -> Iterable[CachedVariant]:
    """Return who owns a revision or targets its package, before or after; one may come twice."""
    for one in (old, new):
        if one is None:
            continue
        yield from variants.targeting(_package(one))
        for uid in {*(owner.uid for owner in one.owners), one.labels.get(MARKER_LABEL, "")} - {""}:
            yield from variants.with_uid(one.namespace, uid)


def _target_changed(variant: CachedVariant, old: Revision | None, new: Revision | None) -> bool:
    return readings.of_downstream(variant, old) != readings.of_downstream(variant, new)


def _followers(
    package: Package, old: Revision | None, new: Revision | None, variants: Variants, packages: Packages
) -> set[Key]:
    """Return the variants whose upstream stands for something else than before."""
    name = (new or old).name  # type: ignore[union-attr]  # one of the two is there
    others = [one for one in packages.revisions(package) if one.name != name]
    before, after = ([*others, *_if_of(package, one)] for one in (old, new))
    branch = packages.branch(package[0], package[1])
    return {
        variant.key
        for spec, followers in _by_spec(variants.tracking(package)).items()
        if readings.of_upstream(spec, before, branch) != readings.of_upstream(spec, after, branch)
        for variant in followers
    }


def _by_spec(variants: Iterable[CachedVariant]) -> dict[UpstreamSpec, list[CachedVariant]]:
    """Group variants that ask for the same: there are many of them for each."""
    groups: dict[UpstreamSpec, list[CachedVariant]] = defaultdict(list)
    for one in variants:
        groups[one.upstream].append(one)
    return groups


def _if_of(package: Package, revision: Revision | None) -> list[Revision]:
    return [revision] if revision is not None and _package(revision) == package else []


def _package(revision: Revision) -> Package:
    return revision.namespace, revision.repository, revision.package


def _upstream_facts(revision: Revision | None) -> readings.Reading:
    """Read all that any upstream could be chosen by; of a draft, which none can use, not its contents."""
    if revision is None:
        return readings.NOTHING
    tags = frozenset(label for label in revision.labels if label.startswith(TAG_LABEL_PREFIX))
    lock = revision.self_lock if revision.is_published else None
    return _package(revision), revision.uid, revision.revision, revision.lifecycle, revision.deleting, tags, lock
