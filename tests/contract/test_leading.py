"""Of several replicas one leads: until it stops, or the database has not heard of it for the length of its lease."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from embedded_postgres import new_postgres
from object_store_cases import new_sqlite, open_store, sqlite_template  # noqa: F401 # a fixture is found by name
from test_turns import SLOW, Replica, replicas

from storage.leading import Leader

WHAT = "something"


@pytest.fixture
def url(postgres_server: str) -> str:
    return new_postgres(postgres_server)


class Candidate:
    """A replica that wants to lead; ``working`` says whether it does its work."""

    def __init__(self, replica: Replica) -> None:
        self.replica = replica
        self.working = asyncio.Event()
        self.told: list[bool] = []
        self.task = asyncio.create_task(Leader(replica.store, WHAT, [self._work], self.told.append).run())

    async def _work(self) -> None:
        self.working.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self.working.clear()

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


@asynccontextmanager
async def candidates(url: str, count: int) -> AsyncIterator[list[Candidate]]:
    async with replicas(url, count) as several, AsyncExitStack() as stack:
        made = [Candidate(one) for one in several]
        for one in made:
            stack.push_async_callback(one.stop)
        yield made


async def leader_among(some: list[Candidate]) -> Candidate:
    """Wait until one of them works."""
    async with asyncio.timeout(SLOW):
        while not any(one.working.is_set() for one in some):
            await asyncio.sleep(0.02)
    (leader,) = (one for one in some if one.working.is_set())
    return leader


async def test_one_of_three_leads_and_the_next_one_when_it_stops(url: str) -> None:
    async with candidates(url, 3) as three:
        left, led = list(three), []
        while left:
            leader = await leader_among(left)
            led.append(leader)
            await leader.stop()
            assert not leader.working.is_set()
            left.remove(leader)

        assert [one.told for one in led] == [[True, False]] * 3


async def test_a_leader_whose_signs_of_life_end_stops_working_before_one_is_elected_anew(url: str) -> None:
    async with candidates(url, 2) as two:
        first = await leader_among(two)

        await first.replica.lose_lease()

        async with asyncio.timeout(SLOW):
            while first.told[:2] != [True, False]:
                await asyncio.sleep(0.02)
        assert not first.working.is_set()
        await leader_among(two)


async def test_work_that_fails_is_begun_again_and_nobody_else_is_kept_from_it(url: str) -> None:
    failed = 0

    async def fail_once() -> None:
        nonlocal failed
        failed += 1
        if failed == 1:
            raise RuntimeError("as if a bug")
        done.set()
        await asyncio.get_running_loop().create_future()

    async with replicas(url, 1) as (only,):
        done = asyncio.Event()
        task = asyncio.create_task(Leader(only.store, WHAT, [fail_once]).run())
        async with asyncio.timeout(SLOW):
            await done.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    assert failed == 2


async def test_a_process_that_is_alone_leads_at_once(sqlite_template: Path, tmp_path: Path) -> None:  # noqa: F811
    async with (
        open_store(new_sqlite(sqlite_template, tmp_path)) as store,
        asyncio.timeout(SLOW),
        store.elect(WHAT) as leadership,
    ):
        lost = asyncio.ensure_future(leadership.lost())
        await asyncio.sleep(0)
        assert not lost.done()
        lost.cancel()
