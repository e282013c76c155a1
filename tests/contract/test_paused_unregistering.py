"""A replica that is paused while it forgets a repository, and wakes when its name is in use again: nothing of the new one is forgotten.

Source: issue 9, part 3; ADR 0037.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from embedded_postgres import new_postgres
from engine_fixture import NAMESPACE, Engine, new_remote, running_engine

from apiserver.engine.repositories import RESOURCE
from storage.bodies import decode, encode_body
from storage.interfaces import Mutation, ObjectKey, Op
from storage.sql.postgres import PostgresDatabase

LEASE = 1.0
SLOW = 90.0
REPOSITORY = ObjectKey(RESOURCE, NAMESPACE, "repo")
pytestmark = pytest.mark.timeout(300)


@pytest.fixture
async def pair(postgres_server: str, tmp_path: Path) -> AsyncIterator[tuple[Engine, Engine, PostgresDatabase]]:
    """Two replicas, and the database as the first of them has it."""
    url = new_postgres(postgres_server)
    databases = [PostgresDatabase(url, lease_seconds=LEASE) for _ in range(2)]
    async with AsyncExitStack() as stack:
        engines = []
        for number, database in enumerate(databases):
            folder = tmp_path / str(number)
            folder.mkdir()
            running = running_engine(folder, database=database, push_drafts="never")
            engines.append(await stack.enter_async_context(running))
        yield engines[0], engines[1], databases[0]


async def lose_lease(database: PostgresDatabase) -> None:
    """Show no sign of life, as a paused process, until the turns are lost."""
    session, beating = database._turns._session, database._turns._beating
    assert session is not None
    assert beating is not None
    beating.cancel()
    while not session.lost:
        await asyncio.sleep(0.05)
    database._turns._beating = None


async def unregister(engine: Engine) -> None:
    entry = await engine.store.get_fresh(REPOSITORY)
    assert entry is not None
    body = decode(entry)
    body["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    await engine.store.write([Mutation(REPOSITORY, Op.UPDATE, entry.rv, entry.uid, encode_body(body))])


class PausedForgetting:
    """A replica that sleeps once it knows that the repository is still the one to forget, until it is woken."""

    def __init__(self, engine: Engine) -> None:
        self.knows, self.awake = asyncio.Event(), asyncio.Event()
        write = engine.repositories._recorder.write

        async def sleep_and_write(*arguments: object) -> object:
            if asyncio.current_task() in engine.repositories._leaving.values():
                self.knows.set()
                await self.awake.wait()
            return await write(*arguments)  # type: ignore[arg-type] # passed on

        engine.repositories._recorder.write = sleep_and_write  # type: ignore[assignment, method-assign] # the pause


async def test_a_repository_that_was_registered_again_keeps_its_drafts(
    pair: tuple[Engine, Engine, PostgresDatabase], tmp_path: Path
) -> None:
    paused, other, database = pair
    async with asyncio.timeout(SLOW):
        await paused.register("repo", new_remote(tmp_path / "one.git"))
        while (NAMESPACE, "repo") not in other.repositories._held:
            await asyncio.sleep(0.05)
        await paused.create("old")
        pause = PausedForgetting(paused)
        await unregister(paused)
        await pause.knows.wait()
        await lose_lease(database)
        while await other.store.get_fresh(REPOSITORY) is not None:
            await asyncio.sleep(0.05)
        await other.register("repo", new_remote(tmp_path / "two.git"))
        draft = await other.create("new")
        await other.save(draft.name, one_txt="1\n")
        pause.awake.set()
        while paused.repositories._leaving or not paused.repositories.get(NAMESPACE, "repo").repository.synced:
            await asyncio.sleep(0.05)
        await paused.store.get_fresh(draft.key)

        for engine in (paused, other):
            assert [entry.name for entry in engine.index.revisions(NAMESPACE, "repo")] == [draft.name]
            assert "one.txt" in await engine.contents(draft.name)
        assert [parcel.revision for parcel in await other.store.outbox.heads(f"{NAMESPACE}/repo")] == [draft.name]
