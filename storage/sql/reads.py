"""What is asked of the log in the same way in either database: rows, objects in force, and the outbox."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from storage.interfaces import LogRow
from storage.outbox import GitObject, Parcel
from storage.sql import rows
from storage.sql.log import Change, StateQuery
from storage.sql.statements import Statement, Statements


class LogReads(ABC):
    """The reading half of a :class:`~storage.sql.log.LogDatabase`; a database has the connections.

    Every method raises StoreUnavailable when the database cannot be asked.
    """

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    @abstractmethod
    async def _select(self, statement: Statement, **values: Any) -> list[Any]:
        """Return the rows that a statement finds."""

    async def changes(self, after: int, limit: int) -> Sequence[LogRow]:
        """Return rows beyond a revision."""
        found = await self._select(self._sql.changes, after=after, limit=limit)
        return [rows.log_row(values) for values in found]

    async def history(self, resource: str | None, after: int, upto: int, limit: int) -> Sequence[Change]:
        """Return rows in a range of revisions with what they superseded."""
        if resource is None:
            found = await self._select(self._sql.history, after=after, upto=upto, limit=limit)
        else:
            found = await self._select(self._sql.history_of, after=after, upto=upto, limit=limit, gr=resource)
        return [rows.change(values) for values in found]

    async def state_at(self, query: StateQuery) -> Sequence[LogRow]:
        """Return the objects in force at a revision."""
        statement, values = self._sql.state_for(query)
        return [rows.log_row(found) for found in await self._select(statement, **values)]

    async def parcels(self, repository: str | None = None) -> Sequence[Parcel]:
        """Return parcels with their objects."""
        if repository is None:
            return rows.parcels(await self._select(self._sql.parcels))
        return rows.parcels(await self._select(self._sql.parcels_of, repository=repository))

    async def heads(self, repository: str) -> Sequence[Parcel]:
        """Return a repository's parcels without their objects."""
        return rows.parcels(await self._select(self._sql.heads_of, repository=repository))

    async def parcel(self, repository: str, revision: str) -> Parcel | None:
        """Return one parcel with its objects."""
        found = rows.parcels(await self._select(self._sql.parcel, repository=repository, revision=revision))
        return found[0] if found else None

    async def find_object(self, repository: str, oid: str) -> GitObject | None:
        """Return one saved object."""
        found = await self._select(self._sql.find_object, repository=repository, oid=oid)
        return rows.git_object(found[0]) if found else None

    async def owing(self) -> Sequence[str]:
        """Return the repositories that have parcels."""
        return [str(row[0]) for row in await self._select(self._sql.owing)]
