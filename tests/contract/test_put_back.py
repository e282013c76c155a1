"""A database that a backup took the place of: no server mistakes it for the one that it knew."""

import asyncio

import asyncpg
import pytest
from embedded_postgres import new_postgres
from object_store_cases import create, key, open_store

from storage.interfaces import StoreUnavailable
from storage.sql.migrate import current_revision, downgrade
from storage.sql.postgres_put_back import begin_anew
from storage.sql.schema import REVISION


@pytest.fixture
def url(postgres_server: str) -> str:
    return new_postgres(postgres_server)


async def test_revisions_go_on_above_and_the_incarnation_is_another(url: str) -> None:
    async with open_store(url) as store:
        (entry,) = await store.write([create("a")])
        assert store.incarnation == ""

    await begin_anew(url, 1000)

    async with open_store(url) as store:
        found = store.get(key("a"))
        assert found is not None
        assert found.rv == entry.rv
        assert store.rv == entry.rv + 1000
        assert store.incarnation
        (after,) = await store.write([create("b")])
        assert after.rv == entry.rv + 1001
        first = store.incarnation
    await begin_anew(url, 1000)
    async with open_store(url) as store:
        assert store.incarnation not in ("", first)


async def test_servers_that_are_connected_are_in_the_way(url: str) -> None:
    async with open_store(url) as store:
        with pytest.raises(StoreUnavailable, match=r"servers are connected to the database \(\d+ sessions\)"):
            await begin_anew(url, 1000)
        assert (await store.write([create("a")]))[0].rv == 1


async def test_a_dump_of_an_older_version_is_migrated(url: str) -> None:
    await asyncio.to_thread(downgrade, url, "0001")

    await begin_anew(url, 1000)

    assert await asyncio.to_thread(current_revision, url) == REVISION


async def test_a_server_that_was_overlooked_does_not_answer_from_its_memory(url: str) -> None:
    async with open_store(url) as store:
        await store.write([create("a")])
        connection = await asyncpg.connect(url)
        await connection.execute("UPDATE k_meta SET incarnation = 'another', compact_rv = 1000")
        await connection.close()

        with pytest.raises(StoreUnavailable, match="a backup was put in the place of the database"):
            await store.get_fresh(key("a"))
