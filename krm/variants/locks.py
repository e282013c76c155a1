"""Whether a downstream package is made of what its upstream is now, and what it was made of.

Source: ``variants.md`` 2.6 (old upstream) and 2.7.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from krm.variants.revision_choice import parse_number
from krm.variants.revisions import Lock, Revision

_NOT_FIXED: Final = ("drafts", "proposed")
"""First segments of refs whose packages were not published when they were cloned."""


class UpstreamNeverPublished(Exception):
    """A lock names revision 0, which no published package revision has."""


@dataclass(frozen=True, slots=True)
class UpToDate:
    """Whether an upgrade is needed, and what is odd about the answer."""

    yes: bool
    warning: str = ""


def up_to_date(downstream: Revision, upstream: Revision, *, upstream_branch: str) -> UpToDate:
    """Compare the lock of ``downstream`` with ``upstream``, whose Repository publishes to ``upstream_branch``.

    A placeholder's commit is the newest that touched its package (R11), so it is compared like any other. Where both commits are
    known the repository's address does not count: a commit names its contents wherever it lies (ADR 0038).
    """
    lock, own = downstream.upstream_lock, upstream.self_lock
    if lock is None or not (lock.ref or lock.commit):
        return UpToDate(yes=True, warning=f'package revision "{downstream.name}" does not say what it was made of')
    if lock.ref.partition("/")[0] in _NOT_FIXED and (own is None or lock.ref != own.ref):
        return UpToDate(yes=False)
    if own is not None and lock.commit and own.commit:
        return UpToDate(yes=_same_contents(lock, own))
    return UpToDate(yes=_same_package(lock, own) and _same_revision(lock, upstream, upstream_branch))


def same_address(downstream: Revision, upstream: Revision) -> bool:
    """Tell whether a lock names the repository where ``upstream`` is now; also where one of them names none."""
    lock, own = downstream.upstream_lock, upstream.self_lock
    if lock is None or own is None or not lock.repo or not own.repo:
        return True
    return lock.place[0] == own.place[0]


def old_upstream(downstream: Revision, revisions: Iterable[Revision]) -> Revision | Lock:
    """Return what ``downstream`` was made of: a package revision if one shows it still, else the lock, a place in Git.

    ``revisions`` are those where it may be found. A revision of the same number whose commit is another one (its tag was
    moved) is not what the package was made of: as the base of a merge it would hide what changed. Nor are revisions
    without a number, which may move before they are read.

    Raises:
        UpstreamNeverPublished: the lock names revision 0.
        ValueError: there is no lock.
    """
    lock = downstream.upstream_lock
    if lock is None:
        raise ValueError(f'package revision "{downstream.name}" has no upstream lock')
    fixed = [one for one in revisions if one.is_published and one.revision >= 1]
    if lock.commit:
        for one in fixed:
            if one.self_lock is not None and _same_contents(lock, one.self_lock):
                return one
    number = _number_of(lock)
    if number == 0:
        raise UpstreamNeverPublished("upstream cannot be published with revision number 0")
    for one in fixed:
        if one.revision == number and _same_package(lock, one.self_lock) and not _differs(lock, one.self_lock):
            return one
    return lock


def _number_of(lock: Lock) -> int:
    return parse_number(lock.ref.rpartition("/")[2])


def _same_contents(lock: Lock, own: Lock) -> bool:
    """Compare directories and commits, which both have."""
    return lock.place[1:] == own.place[1:]


def _differs(lock: Lock, own: Lock | None) -> bool:
    """Tell whether both commits are known and are not the same one."""
    return own is not None and bool(lock.commit and own.commit) and lock.commit != own.commit


def _same_package(lock: Lock, own: Lock | None) -> bool:
    """Compare repositories and directories where both are known."""
    if own is None:
        return True
    pairs = zip(lock.place[:2], own.place[:2], strict=True)
    return all(left == right or not left or not right for left, right in pairs)


def _same_revision(lock: Lock, upstream: Revision, branch: str) -> bool:
    """Compare what a lock names with a revision, where no commit tells: by number, or by the name of a branch or tag."""
    if upstream.revision >= 0:
        return _number_of(lock) == upstream.revision
    if upstream.is_placeholder(branch) and lock.commit and lock.ref == lock.commit:
        return True  # pinned to a commit of a branch that does not say where it is
    return lock.ref.rpartition("/")[2] == upstream.workspace
