"""The port of a log database: what the watch cache needs of SQLite or PostgreSQL, and nothing more.

A :class:`LogDatabase` knows rows and revisions; it knows neither caches nor watches, nor what is in a body.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from storage.interfaces import LogRow, Mutation, NotOurTurn, ObjectKey, StaleWrite
from storage.outbox import Outbox, OutboxChange
from storage.turns import Replicated, Turn


@dataclass(frozen=True, slots=True)
class Transaction:
    """One caller's write, all or nothing. Bodies are as they are to be stored (sealed already).

    One that was decided in a ``turn`` is refused if another replica has had it since.
    """

    mutations: Sequence[Mutation]
    outbox: Sequence[OutboxChange] = ()
    turn: Turn | None = None


@dataclass(frozen=True, slots=True)
class Stamp:
    """The revisions that a committed mutation got."""

    rv: int
    create_rv: int


@dataclass(frozen=True, slots=True)
class Committed:
    """The outcome of a transaction that went through: a stamp per mutation, in order."""

    stamps: Sequence[Stamp]


Outcome = Committed | StaleWrite | NotOurTurn


@dataclass(frozen=True, slots=True)
class Marks:
    """The newest revision of the log, the revision up to which it is compacted, and which life of the database this is."""

    head: int
    compacted: int
    incarnation: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """A log row with the row it superseded (None for a create)."""

    row: LogRow
    previous: LogRow | None


@dataclass(frozen=True, slots=True)
class StateQuery:
    """Which objects in force at revision ``at`` are wanted, beyond ``after`` in key order.

    ``resource`` None means every resource; ``namespace`` None every namespace (and needs a resource otherwise).
    """

    at: int
    after: ObjectKey
    limit: int
    resource: str | None = None
    namespace: str | None = None


class LogDatabase(Outbox, Replicated, Protocol):
    """An append-only log of objects with compare-and-swap, and the outbox beside it.

    Every method raises :class:`StoreUnavailable` when the database cannot do its work now.
    """

    async def open(self, on_commit: Callable[[], None]) -> None:
        """Connect. ``on_commit`` is called in the event loop when another process may have committed."""
        ...

    async def close(self) -> None:
        """Let go of every connection; may be called twice."""
        ...

    async def commit(self, batch: Sequence[Transaction]) -> Sequence[Outcome]:
        """Write transactions in order inside one database transaction; the stale ones are left out.

        Revisions rise by one in the order of the batch. Only one call may be under way at a time. When it raises,
        nothing of the batch was written.

        Raises:
            OutcomeUnknown: the connection broke, and nobody can tell whether the batch was written.
        """
        ...

    async def marks(self) -> Marks:
        """Return the newest and the compacted revision, every smaller one of which is final, and the incarnation."""
        ...

    async def changes(self, after: int, limit: int) -> Sequence[LogRow]:
        """Return at most ``limit`` rows of every resource beyond a revision, in order."""
        ...

    async def history(self, resource: str | None, after: int, upto: int, limit: int) -> Sequence[Change]:
        """Return rows of one resource (or all) in (after, upto], in order, with what they superseded."""
        ...

    async def state_at(self, query: StateQuery) -> Sequence[LogRow]:
        """Return the objects in force at a revision, in key order."""
        ...

    async def compact(self, target: int) -> int:
        """Drop what is superseded at or before ``target``; return the low-water mark in force afterwards.

        Does nothing when another process is raising the mark or has raised it further.
        """
        ...
