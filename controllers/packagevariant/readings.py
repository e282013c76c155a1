"""What a variant reads of each object: values that differ exactly when the variant has to be looked at again.

The same values tell whom an event wakes (before and after it) and whether a pass can be skipped (then and now), so that the
two cannot disagree. Source: ``variants.md`` 2.14 and 6.10.
"""

from collections.abc import Hashable, Iterable

from controllers.packagevariant.cached_values import CachedRepository, CachedVariant
from controllers.packagevariant.drift import newer_published
from krm.variants.revisions import Lock, Owner, Revision
from krm.variants.upstream import UpstreamError, resolve
from krm.variants.variant import UpstreamSpec
from krm.variants.vocabulary import APPLIED_INPUTS, MARKER_LABEL

Reading = Hashable
NOTHING: Reading = ()


def of_variant(variant: CachedVariant | None) -> Reading:
    """Read what users and the garbage collector decide about a variant; its status is our own."""
    if variant is None:
        return NOTHING
    return variant.uid, variant.generation, variant.deleting, variant.paused, variant.finalized


def of_upstream(spec: UpstreamSpec, candidates: Iterable[Revision], branch: str) -> Reading:
    """Read what an upstream stands for among the revisions of its package, and how far it is behind them."""
    candidates = list(candidates)
    try:
        found = resolve(spec, candidates, branch).revision
    except UpstreamError as error:
        return error.reason, str(error)
    except ValueError:  # no spelling of a revision: a matter of the spec alone
        return NOTHING
    newer = newer_published(found, candidates)
    behind = (len(newer), newer[0].name) if newer else NOTHING
    return found.name, found.uid, found.revision, found.lifecycle, _place(found.self_lock), behind


def of_downstream(variant: CachedVariant, revision: Revision | None) -> Reading:
    """Read a revision that the variant owns, or that is in the place of its target; of others nothing."""
    if revision is None:
        return NOTHING
    if revision.owned_by(variant.uid) or revision.labels.get(MARKER_LABEL) == variant.uid:
        return *_identity(revision), revision.lifecycle, *_work(revision)
    if (revision.namespace, revision.repository, revision.package) != variant.target_package:
        return NOTHING
    if variant.adopts:
        return *_identity(revision), revision.lifecycle
    return *_identity(revision), revision.is_published


def of_repository(repository: CachedRepository | None) -> Reading:
    """Read the settings of a repository that decide what is made in it or of it."""
    return NOTHING if repository is None else (repository.branch, repository.deployment, repository.secret)


def _identity(revision: Revision) -> tuple[str, bool, int, tuple[Owner, ...]]:
    return revision.uid, revision.deleting, revision.revision, revision.owners


def _work(revision: Revision) -> tuple[Hashable, ...]:
    """Read what the variant compares of its own revisions: their files by the commit, its own gate, what it has applied."""
    return (
        revision.upstream_lock,
        _place(revision.self_lock),
        revision.operations_gate,
        revision.operations_complete,
        revision.annotations.get(APPLIED_INPUTS),
        revision.labels.get(MARKER_LABEL),
        revision.injections,
        revision.unfulfilled,
    )


def _place(lock: Lock | None) -> Hashable:
    return None if lock is None else lock.place
