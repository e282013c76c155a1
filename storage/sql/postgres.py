"""The log in PostgreSQL, which several replicas may share.

A writer takes an advisory lock before it reads heads and gives out revisions, so commit order is revision order: who sees
revision N knows that every smaller one is final. Commits notify the other replicas. asyncpg is used directly
(``libraries.md`` 7). Source: ``kube-api.md`` 5.3.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

import asyncpg
import structlog

from storage.interfaces import ObjectKey, OutcomeUnknown, StoreUnavailable
from storage.outbox import Parcel
from storage.sql import rows
from storage.sql.log import LogDatabase, Marks, Outcome, Transaction
from storage.sql.planning import NEVER, Head, Plan, keys_of, outbox_steps, plan
from storage.sql.postgres_lineage import Lineage
from storage.sql.postgres_session import CONNECT_SECONDS, Connect, close_quietly, connect, each_host, unavailable
from storage.sql.postgres_turns import LEASE_SECONDS, PostgresTurns
from storage.sql.reads import LogReads
from storage.sql.statements import (
    CHANNEL,
    WRITE_LOCK,
    Statement,
    postgres_heads,
    postgres_statements,
    postgres_turns,
)
from storage.turns import Claim, Election, TakenTurn

OLDEST_SERVER = 14
"""Major version; the first that has ``idle_session_timeout``."""
READERS = 4
COMPACT_BATCH = 1000
"""Rows deleted per transaction (``kube-api.md`` 5.4)."""
RELISTEN_SECONDS = 1.0
PROVE_SECONDS = 10.0
"""Between two looks whether the session that listens still has a server at its other end."""
COMMIT_SECONDS = 30.0
WRITE_TURN_SECONDS = 30.0
"""How long a write waits for those of this process that are before it."""
_UNCANCELLED = 86_400.0
"""A deadline that the driver never reaches: at one it would have the server cancel."""

# Constants of this module only; asyncpg runs several statements in one round trip when none has parameters.
_BEGIN = f"BEGIN; SELECT pg_advisory_xact_lock({WRITE_LOCK})"
_COMMIT = f"NOTIFY {CHANNEL}; COMMIT"

log = structlog.get_logger(__name__)


def postgres_database(url: str, *, readers: int = READERS, lease_seconds: float = LEASE_SECONDS) -> LogDatabase:
    """Return the log kept in the PostgreSQL database at ``url``; it must be migrated before it is opened.

    ``readers`` bounds the connections that read; three more write, listen and hold turns, the latter for ``lease_seconds``
    after a sign of life.
    """
    return PostgresDatabase(url, readers, lease_seconds)


class PostgresDatabase(LogReads):
    """A :class:`LogDatabase` in PostgreSQL: one connection writes, one listens, one holds turns, a pool reads."""

    def __init__(self, url: str, readers: int = READERS, lease_seconds: float = LEASE_SECONDS) -> None:
        super().__init__(postgres_statements())
        self._connect: Connect = partial(connect, url, judge=self._judge)
        self._lineage = Lineage()
        self._readers = readers
        self._acquire_seconds = CONNECT_SECONDS * len(each_host(url))
        self._turns = PostgresTurns(self._connect_for_turns, lease_seconds)
        self._pool: Any = None
        self._writer: Any = None
        self._writer_pid = 0
        self._writer_expired = False
        self._write_turn = asyncio.Lock()
        self._listener: Any = None
        self._turn_holder: Any = None
        self._listening: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def shared(self) -> bool:
        """Return True."""
        return True

    async def open(self, on_commit: Callable[[], None]) -> None:
        """Connect for reading and writing, and begin to listen."""
        with unavailable():
            self._pool = await asyncpg.create_pool(
                connect=lambda *_, **__: self._connect(),
                min_size=1,
                max_size=self._readers,
                # Readers leave nothing behind in a session; the default reset would cost a round trip per read.
                reset=_leave_as_it_is,
            )
        await self._check_version()
        await self.marks()
        listening = asyncio.Event()
        self._listening = asyncio.create_task(self._listen(on_commit, listening), name="log listener")
        with unavailable():
            async with asyncio.timeout(self._acquire_seconds):
                await listening.wait()

    async def _check_version(self) -> None:
        """Refuse a server that cannot end the sessions of replicas that are paused. Raises StoreUnavailable."""
        with unavailable():
            async with self._pool.acquire(timeout=self._acquire_seconds) as connection:
                version = connection.get_server_version()
        if version.major < OLDEST_SERVER:
            await self._pool.close()
            self._pool = None
            raise StoreUnavailable(
                f"the database server is PostgreSQL {version.major}; {OLDEST_SERVER} or newer is needed"
            )

    async def close(self) -> None:
        """Close every connection."""
        self._closed = True
        await self._turns.close()
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.gather(self._listening, return_exceptions=True)
            self._listening = None
        if self._writer is not None:
            await close_quietly(self._writer)
            self._writer = None
        if self._pool is not None:
            await self._pool.close()
            self._pool = None

    # --- reading ------------------------------------------------------------------------------

    async def marks(self) -> Marks:
        """Return the newest and the compacted revision."""
        seen = self._lineage.newest
        newest, compacted, incarnation = (await self._select(self._sql.marks))[0]
        head = max(newest, compacted)
        try:
            self._lineage.require(head, seen)
        except StoreUnavailable:
            await self._leave_readers()
            raise
        self._lineage.saw(head)
        return Marks(head, compacted, incarnation)

    def turn(self, key: str) -> TakenTurn:
        """Wait for the turn at ``key``."""
        return self._turns.turn(key)

    def claim(self, key: str) -> Claim:
        """Take ``key`` unless another replica has it."""
        return self._turns.claim(key)

    def elect(self, key: str) -> Election:
        """Wait to lead what ``key`` names."""
        return self._turns.elect(key)

    async def _select(self, statement: Statement, **values: Any) -> list[Any]:
        if self._pool is None:
            raise StoreUnavailable("the PostgreSQL database is closed")
        with unavailable():
            async with self._pool.acquire(timeout=self._acquire_seconds) as connection:
                found: list[Any] = await connection.fetch(statement.sql, *statement.bind(**values))
                return found

    # --- writing ------------------------------------------------------------------------------

    async def commit(self, batch: Sequence[Transaction]) -> Sequence[Outcome]:
        """Write a batch; if the connection breaks during the commit, find out whether it went through.

        Raises:
            OutcomeUnknown: nobody could tell.
        """
        planned: Plan | None = None
        try:
            async with self._transaction() as connection:
                planned = await self._plan(connection, batch)
                await self._insert(connection, planned)
        except StoreUnavailable as error:
            if planned is None or planned.is_empty:
                raise
            if not await self._went_through(planned, error):
                raise
        if planned.rows:
            self._lineage.saw(planned.rows[-1]["rv"])
        return planned.outcomes

    async def forget(self, parcels: Sequence[Parcel]) -> None:
        """Drop parcels that have not changed since."""
        wanted = [{"repository": one.repository, "revision": one.revision, "version": one.version} for one in parcels]
        statement = self._sql.forget_parcel
        async with self._transaction() as connection:
            await connection.executemany(statement.sql, [statement.bind(**values) for values in wanted])

    async def compact(self, target: int) -> int:
        """Raise the mark, then delete in batches between which writers get their turn."""
        old = (await self.marks()).compacted
        if target <= old:
            return old
        after: int | None = 0
        while after is not None:
            after = await self._compact(old, target, after)
        return (await self.marks()).compacted

    async def _plan(self, connection: Any, batch: Sequence[Transaction]) -> Plan:
        keys = keys_of(batch)
        heads: dict[ObjectKey, Head] = {}
        if keys:
            bound = postgres_heads().bind(
                grs=[key.resource for key in keys],
                nss=[key.namespace for key in keys],
                names=[key.name for key in keys],
            )
            found = await connection.fetch(postgres_heads().sql, *bound)
            heads = {key: NEVER if row[0] is None else rows.head(row) for key, row in zip(keys, found, strict=True)}
        epochs = await self._epochs(connection, batch)
        marks = self._sql.marks
        seen = self._lineage.newest
        newest, compacted, _ = (await connection.fetch(marks.sql, *marks.bind()))[0]
        self._lineage.require(max(newest, compacted), seen)
        return plan(batch, heads, max(newest, compacted), time.time_ns() // 1_000_000, epochs)

    async def _epochs(self, connection: Any, batch: Sequence[Transaction]) -> Mapping[str, int]:
        """Return the epochs of the turns that writes were decided in; none of them can go on before this transaction ends."""
        keys = sorted({one.turn.key for one in batch if one.turn is not None and one.turn.key})
        if not keys:
            return {}
        statement = postgres_turns().epochs
        return {row[0]: row[1] for row in await connection.fetch(statement.sql, *statement.bind(keys=keys))}

    async def _insert(self, connection: Any, planned: Plan) -> None:
        if planned.rows:
            await connection.executemany(self._sql.append.sql, self._sql.append.bind_many(planned.rows))
        if planned.outbox:
            version = await connection.fetchval(self._sql.next_version.sql)
            for step in outbox_steps(planned.outbox, version):
                statement: Statement = getattr(self._sql, step.statement)
                await connection.executemany(statement.sql, statement.bind_many(step.rows))

    async def _went_through(self, planned: Plan, broken: StoreUnavailable) -> bool:
        """Tell whether what was sent before the connection broke is in the log.

        The transaction under doubt holds the write lock until it has ended; so who has the lock sees how it ended.
        """
        unknown = f"{broken}; whether the last write went through is not known"
        if not planned.rows:
            raise OutcomeUnknown(unknown) from broken  # only the outbox changed, which leaves no trace to look for
        first, changes = planned.rows[0], self._sql.changes
        try:
            async with self._transaction() as connection:
                rowset = await connection.fetch(changes.sql, *changes.bind(after=first["rv"] - 1, limit=1))
        except StoreUnavailable as error:
            raise OutcomeUnknown(unknown) from error
        for found in map(rows.log_row, rowset):
            key = (found.key.resource, found.key.namespace, found.key.name)
            same_key = key == (first["gr"], first["ns"], first["name"])
            return found.rv == first["rv"] and same_key and found.uid == first["uid"] and found.body == first["body"]
        return False

    async def _compact(self, old: int, target: int, after: int) -> int | None:
        """Delete one batch beyond ``after``; return where the next begins, or None at the end."""
        async with self._transaction() as connection:
            if after == 0:
                raised = await connection.fetch(
                    self._sql.raise_mark.sql, *self._sql.raise_mark.bind(old=old, target=target)
                )
                if not raised:
                    return None
            select = self._sql.superseded
            doomed = await connection.fetch(select.sql, *select.bind(after=after, target=target, limit=COMPACT_BATCH))
            await connection.executemany(self._sql.remove.sql, [tuple(row) for row in doomed])
            return int(doomed[-1][0]) if len(doomed) == COMPACT_BATCH else None

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[Any]:
        """Hold the write lock over a transaction on the writing connection, reconnecting first when it broke."""
        with unavailable():
            async with asyncio.timeout(WRITE_TURN_SECONDS):
                await self._write_turn.acquire()
        try:
            with unavailable():
                connection = await self._connected()
                try:
                    await connection.execute(_BEGIN)
                    yield connection
                    await _commit(connection)
                except BaseException:
                    await self._abandon(connection)
                    raise
        finally:
            self._write_turn.release()

    async def _connected(self) -> Any:
        if self._closed:
            raise StoreUnavailable("the PostgreSQL database is closed")
        if self._writer is not None and self._writer_expired:
            await self._abandon(self._writer)
        if self._writer is None or self._writer.is_closed():
            self._writer = await self._connect()
            self._writer_expired = False
            self._writer_pid = self._writer.get_server_pid()
        return self._writer

    async def _judge(self, connection: Any) -> None:
        """Refuse a server that a failover left behind; leave it everywhere when another one was promoted."""
        if await self._lineage.require_heir(connection):
            log.warning("another database server was promoted")
            self._writer_expired = True
            await self._leave_readers()
            for session in (self._listener, self._turn_holder):  # each is opened anew by whoever has it
                if session is not None:
                    session.terminate()

    async def _connect_for_turns(self, **settings: str) -> Any:
        self._turn_holder = await self._connect(**settings)
        return self._turn_holder

    async def _leave_readers(self) -> None:
        """Have every session that reads opened anew, with the server that takes writes now."""
        if self._pool is not None:
            await self._pool.expire_connections()

    async def _abandon(self, connection: Any) -> None:
        """Drop a connection whose transaction failed; the server rolls back."""
        self._writer = None
        await close_quietly(connection)

    # --- listening ----------------------------------------------------------------------------

    async def _listen(self, on_commit: Callable[[], None], listening: asyncio.Event) -> None:
        """Listen for commits, on a connection of its own, until cancelled."""
        while True:
            try:
                with unavailable():
                    self._listener = await self._connect()
                try:
                    await self._hear(self._listener, on_commit, listening)
                finally:
                    await close_quietly(self._listener)
            except StoreUnavailable as error:
                log.warning("not listening for commits", error=str(error))
            await asyncio.sleep(RELISTEN_SECONDS)

    async def _hear(self, connection: Any, on_commit: Callable[[], None], listening: asyncio.Event) -> None:
        def heard(_: Any, sender: int, *__: Any) -> None:
            if sender != self._writer_pid:
                on_commit()

        ended = asyncio.Event()
        connection.add_termination_listener(lambda _: ended.set())
        with unavailable():
            await connection.add_listener(CHANNEL, heard)
        listening.set()
        # What was committed while nobody listened.
        on_commit()
        while not await _within(PROVE_SECONDS, ended):
            with unavailable():
                await connection.execute("SELECT 1", timeout=CONNECT_SECONDS)


async def _commit(connection: Any) -> None:
    """Commit, and never have the server cancel that.

    A commit that waits for a synchronous standby would stop waiting: it would be there for all to read, and a failover would lose it.
    Who gives up leaves without a word instead, and the server goes on waiting. Raises what the driver raises.
    """
    committing = asyncio.ensure_future(connection.execute(_COMMIT, timeout=_UNCANCELLED))
    try:
        async with asyncio.timeout(COMMIT_SECONDS):
            await asyncio.shield(committing)
    finally:
        if not committing.done():
            connection.terminate()
            await asyncio.gather(committing, return_exceptions=True)


async def _within(seconds: float, ended: asyncio.Event) -> bool:
    """Tell whether something ends within ``seconds``."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await ended.wait()
    return ended.is_set()


async def _leave_as_it_is(_: Any) -> None:
    """Reset nothing."""
