"""A database server that a failover left behind, or that lacks the last commits, is never believed."""

import asyncio
import socket
import urllib.parse
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import asyncpg
import pytest
from embedded_postgres import OwnPostgres, ask, new_postgres, stopped
from object_store_cases import RESOURCE, create, index, key, open_store, update
from standby_postgres import Standby, either

from storage.interfaces import ListQuery, OutcomeUnknown, StoreUnavailable
from storage.sql import postgres, postgres_session
from storage.sql.migrate import current_revision, upgrade
from storage.sql.postgres import PostgresDatabase
from storage.sql.postgres_session import each_host
from storage.sql.schema import REVISION
from storage.watchcache.store import WatchedStore

SLOW = 90.0
SESSIONS = (
    "SELECT array_agg(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'porch'"
)
HOLDERS = "SELECT count(DISTINCT pid) FROM pg_locks WHERE locktype = 'advisory'"
pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def primary(tmp_path: Path) -> Iterator[OwnPostgres]:
    server = OwnPostgres(tmp_path / "pg")
    yield server
    server.end()


@pytest.fixture
def alone(primary: OwnPostgres) -> str:
    """The URL of a database at the primary."""
    return new_postgres(primary.url)


@pytest.fixture
def standby(tmp_path: Path, primary: OwnPostgres, alone: str) -> Iterator[Standby]:  # copied with the rest
    server = Standby(primary, tmp_path / "standby")
    yield server
    server.end()


@pytest.fixture
def url(primary: OwnPostgres, standby: Standby, alone: str) -> str:
    return either(primary.url, standby.url, name_of(alone))


def name_of(url: str) -> str:
    return url.partition("?")[0].rpartition("/")[2]


async def rows(url: str) -> int:
    connection = await asyncpg.connect(url)
    try:
        return int(await connection.fetchval("SELECT count(*) FROM k_log"))
    finally:
        await connection.close()


async def when_it_answers(ask: Callable[[], Awaitable[object]]) -> object:
    """Ask again until the database can be used."""
    async with asyncio.timeout(SLOW):
        while True:
            try:
                return await ask()
            except StoreUnavailable:
                await asyncio.sleep(0.1)


async def refused(ask: Callable[[], Awaitable[object]]) -> None:
    """Ask until the answer is that the database is an older state; anything but a refusal fails."""
    async with asyncio.timeout(SLOW):
        while True:
            with pytest.raises(StoreUnavailable) as caught:
                await ask()
            if "older state" in str(caught.value):
                return
            await asyncio.sleep(0.1)


async def test_a_standby_without_the_last_commit_is_refused_by_who_has_seen_it(
    primary: OwnPostgres, standby: Standby, alone: str, url: str
) -> None:
    async with open_store(url) as store:
        (a,) = await store.write([create("a")])
        at_the_standby = either(standby.url, standby.url, name_of(alone))
        async with asyncio.timeout(SLOW):
            while await rows(each_host(at_the_standby)[0]) < 1:
                await asyncio.sleep(0.05)
        await asyncio.to_thread(standby.end)
        await store.write([create("b")])
        await asyncio.to_thread(primary.end, 9)
        await asyncio.to_thread(standby.start_again)
        await asyncio.to_thread(standby.promote)

        await refused(lambda: store.get_fresh(key("a")))
        await refused(lambda: store.list(RESOURCE, ListQuery()))
        await refused(lambda: store.write([update(a, colour="red")]))

        assert [entry.name for entry in store.snapshot(RESOURCE)] == ["a", "b"]
        assert await rows(each_host(at_the_standby)[0]) == 1


async def test_the_former_primary_is_refused_although_it_takes_writes(
    primary: OwnPostgres, standby: Standby, alone: str, url: str
) -> None:
    await asyncio.to_thread(standby.required)
    async with open_store(url) as store:
        await store.write([create("a")])
        await asyncio.to_thread(primary.end, 9)
        await asyncio.to_thread(standby.promote)
        await when_it_answers(lambda: store.write([create("b")]))
        # It commits without its standby now, and so gets a history of its own.
        await asyncio.to_thread(primary.start_again)
        stray = await asyncpg.connect(primary.url)
        await stray.execute("ALTER SYSTEM RESET synchronous_standby_names")
        await stray.execute("SELECT pg_reload_conf()")
        await stray.close()
        await when_it_answers(lambda: asyncio.shield(_write_at(alone)))

        await asyncio.to_thread(standby.refuse_sessions)
        await when_it_answers(lambda: store.write([create("c")]))
        page = await when_it_answers(lambda: store.list(RESOURCE, ListQuery()))

        assert [entry.name for entry in page.entries] == ["a", "b", "c"]  # type: ignore[attr-defined] # a page
    assert await rows(alone) == 4, "the former primary has what it had, and what strangers wrote there"


async def _write_at(url: str) -> None:
    async with open_store(url) as stranger:
        for number in range(3):
            await stranger.write([create(f"stray-{number}")])


async def test_a_promotion_that_one_session_notices_is_followed_by_all(
    primary: OwnPostgres, standby: Standby, alone: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_session, "CONNECT_SECONDS", 2.0)
    at_the_standby = each_host(either(standby.url, standby.url, name_of(alone)))[0]
    database = PostgresDatabase(url)
    store = WatchedStore(database)
    store.register(RESOURCE, index)
    await store.start()
    try:
        await store.write([create("a")])
        async with store.turn("somewhere") as turn, asyncio.timeout(SLOW):
            while await rows(at_the_standby) < 1:
                await asyncio.sleep(0.05)
            await asyncio.to_thread(standby.promote)
            # The former primary serves who is connected, and lets nobody in: so what is opened anew meets the new one.
            with stopped(primary.postmaster):
                await database._pool.expire_connections()
                await when_it_answers(lambda: store.get_fresh(key("a")))

                await when_it_answers(turn.renew)
                while await ask(at_the_standby, HOLDERS) != 1:
                    await asyncio.sleep(0.05)
                while database._listener.is_closed():
                    await asyncio.sleep(0.05)
                assert database._listener.get_server_pid() in await ask(at_the_standby, SESSIONS)
                await when_it_answers(lambda: store.write([create("b")]))
            assert await rows(at_the_standby) == 2
            assert await rows(alone) == 1
            while await ask(alone, SESSIONS):
                await asyncio.sleep(0.05)
    finally:
        await store.stop()


async def test_a_commit_that_no_standby_has_is_neither_acknowledged_nor_there_to_be_read(
    primary: OwnPostgres, alone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "COMMIT_SECONDS", 1.0)
    monkeypatch.setitem(postgres_session.SESSION, "lock_timeout", "500ms")
    async with open_store(alone) as store, asyncio.timeout(SLOW):
        await ask(primary.url, "ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        await ask(primary.url, "SELECT pg_reload_conf()")
        written = 0
        unknown: OutcomeUnknown | None = None
        while unknown is None:  # until the server has read that
            try:
                await store.write([create(f"n{written}")])
                written += 1
            except OutcomeUnknown as error:
                unknown = error
        with pytest.raises(StoreUnavailable):
            await store.write([create("behind-it")])

        assert await rows(alone) == written
        await ask(primary.url, "ALTER SYSTEM RESET synchronous_standby_names")
        await ask(primary.url, "SELECT pg_reload_conf()")
        await when_it_answers(lambda: store.write([create("last")]))
        assert [entry.rv for entry in store.snapshot(RESOURCE)] == [written + 2, *range(1, written + 2)]


async def test_a_standby_is_not_written_to_nor_read_nor_migrated(standby: Standby, alone: str, url: str) -> None:
    only = each_host(either(standby.url, standby.url, name_of(alone)))[0]
    with pytest.raises(StoreUnavailable):
        async with open_store(only):
            pytest.fail("a standby was opened")
    with pytest.raises(StoreUnavailable):
        await asyncio.to_thread(current_revision, only)

    backwards = either(standby.url, alone, name_of(alone))
    await asyncio.to_thread(upgrade, backwards)
    assert await asyncio.to_thread(current_revision, backwards) == REVISION
    assert len(each_host(url)) == 2


async def test_a_host_that_hangs_costs_its_own_deadline_only(
    postgres_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_session, "CONNECT_SECONDS", 1.0)
    there = new_postgres(postgres_server)
    host = urllib.parse.parse_qs(urllib.parse.urlsplit(there).query)["host"][0]
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections, and says nothing
        hosts = {"host": f"127.0.0.1,{host}", "port": f"{silent.getsockname()[1]},5432"}
        async with open_store(f"{there.partition('?')[0]}?{urllib.parse.urlencode(hosts)}") as store:
            await store.write([create("a")])

    assert await rows(there) == 1


@pytest.mark.parametrize(
    ("url", "hosts"),
    [
        ("postgresql://db/porch", ["postgresql://db/porch"]),
        ("postgresql:///porch?host=/run/pg", ["postgresql:///porch?host=/run/pg"]),
        (
            "postgresql://me:a%2Cb@one:1,two/porch?sslmode=require",
            ["postgresql://me:a%2Cb@one:1/porch?sslmode=require", "postgresql://me:a%2Cb@two/porch?sslmode=require"],
        ),
        (
            "postgresql://me@[::1]:5432,[::2]:5433/porch",
            ["postgresql://me@[::1]:5432/porch", "postgresql://me@[::2]:5433/porch"],
        ),
        (
            "postgresql:///porch?host=/a,/b&port=1,2",
            ["postgresql:///porch?host=%2Fa&port=1", "postgresql:///porch?host=%2Fb&port=2"],
        ),
        (
            "postgresql:///porch?host=/a,/b&port=5433",
            ["postgresql:///porch?host=%2Fa&port=5433", "postgresql:///porch?host=%2Fb&port=5433"],
        ),
    ],
)
def test_each_host_of_a_url_is_tried_by_itself(url: str, hosts: list[str]) -> None:
    assert each_host(url) == hosts
