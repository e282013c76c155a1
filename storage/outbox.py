"""The outbox: Git objects and branches that are acknowledged, and that no remote has yet.

It shares the log's transactions, so that a revision and its contents are stored together or not at all. Nothing here does input
or output. Source: ``decisions.md`` 5 and 8.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

GitKind = Literal["blob", "tree", "commit", "tag"]


@dataclass(frozen=True, slots=True)
class GitObject:
    """One Git object: its kind, its raw bytes without header, and its hexadecimal SHA-1."""

    kind: GitKind
    data: bytes
    oid: str


@dataclass(frozen=True, slots=True)
class OutboxChange:
    """What a write adds to and takes from the outbox, in the same transaction as its log rows.

    One outbox *parcel* belongs to one package revision: the new Git objects that no remote has yet, and the
    branches that the remote is known to have for it (``seen``: ref → commit). A parcel exists exactly while the
    remote still has to be told something about the revision (also that it is gone: a parcel of a deleted
    revision). ``objects`` are added to the parcel; ``seen`` is what a new parcel begins with, and one that exists keeps
    its own: what the remote had before the first edit that was not pushed. ``drop`` removes the parcel and its
    objects first (after which ``objects`` and ``seen`` start a new one).
    """

    repository: str
    """``namespace/name`` of the Repository."""
    revision: str
    """Object name of the package revision."""
    objects: Sequence[GitObject] = ()
    seen: Mapping[str, str] | None = None
    drop: bool = False


@dataclass(frozen=True, slots=True)
class Parcel:
    """An outbox parcel as stored; ``version`` grows with every change to it (for ``forget``)."""

    repository: str
    revision: str
    seen: Mapping[str, str]
    version: int
    objects: Sequence[GitObject] = field(default=())


class Outbox(Protocol):
    """Git objects and refs that are acknowledged and not yet in their remote."""

    async def parcels(self, repository: str | None = None) -> Sequence[Parcel]:
        """Return every parcel with its objects, of one repository or of all."""
        ...

    async def heads(self, repository: str) -> Sequence[Parcel]:
        """Return every parcel of one repository without its objects: which revisions the remote has to be told of."""
        ...

    async def parcel(self, repository: str, revision: str) -> Parcel | None:
        """Return the parcel of one revision with its objects."""
        ...

    async def find_object(self, repository: str, oid: str) -> GitObject | None:
        """Return one object that some replica saved and has not pushed."""
        ...

    async def owing(self) -> Sequence[str]:
        """Return the repositories that have parcels, whoever saved them."""
        ...

    async def forget(self, parcels: Sequence[Parcel]) -> None:
        """Drop parcels that were pushed, each only if its version is still the given one."""
        ...
