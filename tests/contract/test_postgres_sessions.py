"""Every session with PostgreSQL has its limits, and there are never more of them than the settings say."""

import asyncio
from collections import Counter
from typing import Any

import asyncpg
import pytest
from embedded_postgres import new_postgres
from object_store_cases import RESOURCE, create, index

from storage.interfaces import ListQuery
from storage.sql import alembic_run
from storage.sql.migrate import downgrade, upgrade
from storage.sql.postgres import PostgresDatabase
from storage.watchcache.store import WatchedStore

READERS = 3
LEASE = 7.0
LIMITS = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout", "idle_session_timeout")
OF_ALL = ("30s", "5s", "10s", "0")
OF_TURNS = ("30s", "5s", "10s", "7s")
OF_MIGRATIONS = ("10min", "10min", "1min", "0")


@pytest.fixture
def url(postgres_server: str) -> str:
    return new_postgres(postgres_server)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every session that is opened from now on."""
    sessions: list[Any] = []
    connect = asyncpg.connect

    async def remember(*arguments: Any, **options: Any) -> Any:
        assert 0 < options["timeout"] <= 5
        assert options["command_timeout"] > 0
        sessions.append(await connect(*arguments, **options))
        return sessions[-1]

    monkeypatch.setattr(asyncpg, "connect", remember)
    return sessions


async def limits(session: Any) -> tuple[str, ...]:
    return tuple([str(await session.fetchval(f"SHOW {limit}")) for limit in LIMITS])


async def test_sessions_are_limited_in_time_and_number(url: str, opened: list[Any]) -> None:
    store = WatchedStore(PostgresDatabase(url, readers=READERS, lease_seconds=LEASE))
    store.register(RESOURCE, index)
    await store.start()
    try:

        async def use(number: int) -> None:
            await store.write([create(f"n{number}")])
            await store.list(RESOURCE, ListQuery())
            async with store.turn(f"turn-{number % 3}"), store.claim(f"claim-{number}"):
                await store.outbox.owing()

        await asyncio.gather(*[use(number) for number in range(60)])

        assert all(not session.is_closed() for session in opened)
        assert len(opened) <= READERS + 3
        found = Counter([await limits(session) for session in opened])
        assert found == {OF_ALL: len(opened) - 1, OF_TURNS: 1}
    finally:
        await store.stop()
    assert all(session.is_closed() for session in opened)


def test_migrations_are_limited_too(url: str, opened: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    run = alembic_run.run

    def look_and_run(connection: Any, *arguments: Any) -> None:
        shown = [connection.exec_driver_sql(f"SHOW {limit}").scalar() for limit in LIMITS]
        seen.append(tuple(shown))
        run(connection, *arguments)

    monkeypatch.setattr(alembic_run, "run", look_and_run)
    downgrade(url)
    upgrade(url)

    of_tables = (OF_MIGRATIONS[0], alembic_run.TABLE_LOCK, *OF_MIGRATIONS[2:])
    assert seen == [of_tables, of_tables]
    assert all(session.is_closed() for session in opened)
