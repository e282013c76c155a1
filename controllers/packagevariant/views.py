"""What the reconciler reads: views of the cluster that cost no request, kept by the informers of ``controller.py``.

The reconciler never lists. Whatever it writes it also puts into the views, so that the next pass sees it without
waiting for the event. Source: ``variants.md`` 2.14 and 6.10.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from krm.variants.revisions import Lock, Owner, Revision

if TYPE_CHECKING:
    from krm.variants.mutation import Listing

Json = dict[str, Any]
Key = tuple[str, str]
"""Namespace and name of a PackageVariant."""
ObjectType = tuple[str, str]
"""apiVersion and kind of objects that can be injected."""


@dataclass(frozen=True, slots=True)
class RepositoryView:
    """A Repository as far as variants are concerned."""

    name: str
    branch: str
    """``spec.git.branch``, ``main`` where it is not set."""
    deployment: bool
    exists: bool = True
    secret: str = ""
    """``spec.git.secretRef.name``: credentials for clones of a pinned commit; empty where there is none."""


class Views(Protocol):
    """The cached state of one cluster. Every answer is a snapshot; lists are in no particular order."""

    def variant(self, namespace: str, name: str) -> Json | None:
        """Return a PackageVariant as it is on the wire; the caller does not change it."""
        ...

    def revisions_of(self, namespace: str, repository: str, package: str) -> Sequence[Revision]:
        """Return all package revisions of one package."""
        ...

    def owned(self, namespace: str, uid: str) -> Sequence[Revision]:
        """Return all package revisions that have an owner with this UID, of whatever package."""
        ...

    def locked_at(self, namespace: str, lock: Lock) -> Sequence[Revision]:
        """Return the package revisions whose own lock is at this place (``Lock.place``), of whatever package."""
        ...

    def revision(self, namespace: str, name: str) -> Revision | None:
        """Return one package revision."""
        ...

    def repository(self, namespace: str, name: str) -> RepositoryView | None:
        """Return a Repository; None (or ``exists`` False) where there is none."""
        ...

    def is_alive(self, owner: Owner, namespace: str) -> bool:
        """Whether the owner still exists, by UID; an owner of another kind than PackageVariant counts as alive."""
        ...

    async def injectables(self, key: Key, namespace: str, types: set[ObjectType]) -> "Mapping[ObjectType, Listing]":
        """Return the objects that can be injected, and wake the variant ``key`` from now on when one of them changes.

        ``types`` is all that the variant has injection points of; an empty set ends what was watched for it. A type that
        cannot be listed has a Listing with the error.
        """
        ...

    def wrote(self, body: Json) -> None:
        """Take over a package revision as the answer to our own write has it.

        Its event does not wake the variant that owns it; other variants that the change concerns are woken as ever.
        """
        ...

    def wrote_variant(self, body: Json) -> None:
        """Take over a PackageVariant as the answer to our own write has it; its event wakes nobody."""
        ...

    def forget(self, namespace: str, name: str) -> None:
        """Drop a package revision that our DELETE removed; who else is concerned is woken."""
        ...


@dataclass(frozen=True, slots=True)
class Findings:
    """What a pass found that is not as it should be but makes no draft: what ``drift.py`` reports (6.4)."""

    upstream: Revision
    """What the variant's upstream stands for now."""
    upstream_revisions: Sequence[Revision]
    """All revisions of the upstream package."""
    files: Sequence[str] = ()
    """Paths that the mutations would write differently, although their inputs were applied (ContentDrift); sorted."""
    unmanaged: Revision | None = None
    """A published revision of the downstream package that is newer than the target and that we do not own (C-11)."""
    unfulfilled: Sequence[str] = ()
    """Condition types of the injection points of the target into which nothing was injected; sorted."""


class DriftReport(Protocol):
    """``drift.py``'s function: makes the report of findings."""

    def __call__(self, findings: Findings, status: Json, now: str) -> tuple[Json | None, tuple[str, str] | None]:
        """Return ``status.drift`` (None: there is none), and reason and message of the condition Drifted (None: not drifted).

        ``status`` is the variant's status up to now (``since`` is kept while the drift lasts), ``now`` the time (RFC 3339).
        """
        ...


class DraftGuard(Protocol):
    """Stops a variant that makes draft after draft (I4). Implemented by ``churn.py``; says nothing of what exists."""

    def refusal(self, key: Key, generation: int) -> str:
        """Return why the variant may make no further draft now; empty where it may."""
        ...

    def made(self, key: Key, generation: int) -> None:
        """Count a draft that was made just now."""
        ...
