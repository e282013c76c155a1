"""The log in one SQLite file: one writer thread that owns one connection, and one reader thread beside it.

WAL lets the reader work while the writer commits; ``synchronous=FULL`` makes every commit survive a power cut. The
``sqlite3`` module is used directly, on threads of its own, because an asynchronous wrapper costs more than the
writes (``kube-api.md`` 5.3 and 5.5, ``decisions.md`` 5). One process at a time may open a file.
"""

import asyncio
import fcntl
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from storage.interfaces import ObjectKey, StoreUnavailable
from storage.outbox import Parcel
from storage.sql import rows
from storage.sql.log import LogDatabase, Marks, Outcome, Transaction
from storage.sql.planning import NEVER, Head, keys_of, outbox_steps, plan
from storage.sql.reads import LogReads
from storage.sql.statements import Statement, sqlite_statements
from storage.turns import Claim, Election, TakenTurn, alone, unclaimed, unopposed

BUSY_SECONDS = 5.0
"""How long a write waits for another program that locks the file, before the client is told."""
COMPACT_BATCH = 1000
"""Rows deleted per transaction, so that writers wait for a few milliseconds only (``kube-api.md`` 5.4)."""

T = TypeVar("T")


def sqlite_database(path: Path) -> LogDatabase:
    """Return the log kept in the SQLite file at ``path``; it must be migrated before it is opened."""
    return SqliteDatabase(path)


def connect(path: Path) -> sqlite3.Connection:
    """Open a connection with the settings that every connection to the log has.

    Raises:
        StoreUnavailable: the file cannot be opened or is no database.
    """
    with unavailable(f" {path}"):
        connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        return connection


@contextmanager
def unavailable(which: str = "") -> Iterator[None]:
    """Turn what SQLite raises when it cannot work now (locked, disk full, unreadable) into StoreUnavailable.

    ``which`` follows the word database in its message; a path only where an operator reads it, never a client.
    """
    try:
        yield
    except (sqlite3.OperationalError, sqlite3.InternalError, OSError) as error:
        raise StoreUnavailable(f"the SQLite database{which} cannot be used: {error}") from error
    except sqlite3.DatabaseError as error:
        # NOTADB and CORRUPT have no class of their own; constraint and programming errors do.
        if type(error) is not sqlite3.DatabaseError:
            raise
        remedy = "restore it, or move it away and register the repositories again"
        raise StoreUnavailable(f"the SQLite database{which} cannot be read: {error}; {remedy}") from error


class SqliteDatabase(LogReads):
    """A :class:`LogDatabase` in one file."""

    def __init__(self, path: Path) -> None:
        super().__init__(sqlite_statements())
        self._path = path
        self._writer = _Thread("log-writer", path)
        self._reader = _Thread("log-reader", path)
        self._lock: int | None = None

    @property
    def shared(self) -> bool:
        """Return False: the file is locked for this process."""
        return False

    async def open(self, on_commit: Callable[[], None]) -> None:  # noqa: ARG002 # nobody else commits
        """Lock the file and open both connections."""
        self._lock = _lock(self._path)
        await self._writer.run(_check)
        await self._reader.run(lambda connection: connection.execute("PRAGMA query_only=1"))

    async def close(self) -> None:
        """Finish what is under way and close both connections."""
        await self._writer.stop()
        await self._reader.stop()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    async def commit(self, batch: Sequence[Transaction]) -> Sequence[Outcome]:
        """Write a batch on the writer thread."""
        return await self._writer.run(lambda connection: self._commit(connection, batch))

    async def marks(self) -> Marks:
        """Return the newest and the compacted revision."""
        return await self._reader.run(self._marks)

    async def compact(self, target: int) -> int:
        """Raise the mark, then delete in batches between which writers get their turn."""
        old = (await self.marks()).compacted
        if target <= old:
            return old
        after: int | None = 0
        while after is not None:
            batch = partial(self._compact, old=old, target=target, after=after)
            after = await self._writer.run(batch)
        await self._writer.run(lambda connection: connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall())
        return (await self.marks()).compacted

    def turn(self, key: str) -> TakenTurn:  # noqa: ARG002 # nobody else wants one
        """Return a turn at once: the file is locked for this process."""
        return alone()

    def claim(self, key: str) -> Claim:
        """Return a claim that is given."""
        return unclaimed(key)

    def elect(self, key: str) -> Election:
        """Return an election that is won."""
        return unopposed(key)

    async def forget(self, parcels: Sequence[Parcel]) -> None:
        """Drop parcels that have not changed since."""
        wanted = [{"repository": one.repository, "revision": one.revision, "version": one.version} for one in parcels]
        bound = [self._sql.forget_parcel.bind(**values) for values in wanted]
        await self._writer.run(lambda connection: _write(connection, self._sql.forget_parcel.sql, bound))

    async def _select(self, statement: Statement, **values: Any) -> list[Any]:
        bound = statement.bind(**values)
        return await self._reader.run(lambda connection: connection.execute(statement.sql, bound).fetchall())

    # --- on the threads -----------------------------------------------------------------------

    def _marks(self, connection: sqlite3.Connection) -> Marks:
        statement = self._sql.marks
        newest, compacted, incarnation = connection.execute(statement.sql, statement.bind()).fetchone()
        return Marks(max(newest, compacted), compacted, incarnation)

    def _commit(self, connection: sqlite3.Connection, batch: Sequence[Transaction]) -> Sequence[Outcome]:
        with _transaction(connection):
            heads = {key: self._head(connection, key) for key in keys_of(batch)}
            planned = plan(batch, heads, self._marks(connection).head, time.time_ns() // 1_000_000)
            if planned.rows:
                connection.executemany(self._sql.append.sql, self._sql.append.bind_many(planned.rows))
            if planned.outbox:
                version = connection.execute(self._sql.next_version.sql).fetchall()[0][0]
                for step in outbox_steps(planned.outbox, version):
                    statement: Statement = getattr(self._sql, step.statement)
                    connection.executemany(statement.sql, statement.bind_many(step.rows))
            return planned.outcomes

    def _head(self, connection: sqlite3.Connection, key: ObjectKey) -> Head:
        statement = self._sql.head_of
        bound = statement.bind(gr=key.resource, ns=key.namespace, name=key.name)
        found = connection.execute(statement.sql, bound).fetchone()
        return rows.head(found) if found else NEVER

    def _compact(self, connection: sqlite3.Connection, old: int, target: int, after: int) -> int | None:
        """Delete one batch beyond ``after``; return where the next begins, or None at the end."""
        with _transaction(connection):
            if after == 0:
                raised = connection.execute(self._sql.raise_mark.sql, self._sql.raise_mark.bind(old=old, target=target))
                if not raised.fetchall():
                    return None
            select = self._sql.superseded
            bound = select.bind(after=after, target=target, limit=COMPACT_BATCH)
            doomed = connection.execute(select.sql, bound).fetchall()
            connection.executemany(self._sql.remove.sql, doomed)
            return doomed[-1][0] if len(doomed) == COMPACT_BATCH else None


class _Thread:
    """One thread with one connection, opened by the first call."""

    def __init__(self, name: str, path: Path) -> None:
        self._path = path
        self._executor = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._connection: sqlite3.Connection | None = None
        self._stopped = False

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run work on the thread. Raises StoreUnavailable."""
        if self._stopped:
            raise StoreUnavailable("the SQLite database is closed")
        return await asyncio.get_running_loop().run_in_executor(self._executor, self._work, work)

    async def stop(self) -> None:
        """Close the connection after the work that was accepted."""
        if not self._stopped:
            self._stopped = True
            await asyncio.get_running_loop().run_in_executor(self._executor, self._close)
            self._executor.shutdown()

    def _work(self, work: Callable[[sqlite3.Connection], T]) -> T:
        if self._connection is None:
            self._connection = connect(self._path)
        with unavailable():
            return work(self._connection)

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Hold the write lock from the start, so that what was read stays true until the commit."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # A full disk makes SQLite roll back by itself.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _write(connection: sqlite3.Connection, sql: str, bound: Sequence[Sequence[Any]]) -> None:
    with _transaction(connection):
        connection.executemany(sql, bound)


def _check(connection: sqlite3.Connection) -> None:
    """Fail early on a file that is no migrated database."""
    connection.execute(sqlite_statements().marks.sql, sqlite_statements().marks.bind())


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep servers from opening a database meanwhile.

    Raises:
        StoreUnavailable: one has it open.
    """
    handle = _lock(path)
    try:
        yield
    finally:
        os.close(handle)


def _lock(path: Path) -> int:
    """Hold the file for this process; the system lets go of the lock however the process ends."""
    with unavailable():
        handle = os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(handle)
        raise StoreUnavailable(f"{path.name} is in use by another process; stop it first") from error
    return handle
