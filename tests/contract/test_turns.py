"""Turns and claims of several processes on one PostgreSQL: one at a time, nobody starves, and who was paused is refused."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import asyncpg
import pytest
from embedded_postgres import new_postgres
from object_store_cases import RESOURCE, create, index, key

from storage.interfaces import NotOurTurn, OutcomeUnknown, StoreUnavailable
from storage.sql.postgres import PostgresDatabase
from storage.watchcache.store import WatchedStore

LEASE = 1.0
LONG = 60.0
"""A lease that does not end however busy the machine is."""
SLOW = 60.0


@pytest.fixture
def url(postgres_server: str) -> str:
    return new_postgres(postgres_server)


class Replica:
    """A store of its own, whose signs of life can be ended as if its process was paused."""

    def __init__(self, url: str, lease: float = LEASE) -> None:
        self.database = PostgresDatabase(url, lease_seconds=lease)
        self.store = WatchedStore(self.database)
        self.store.register(RESOURCE, index)

    async def lose_lease(self) -> None:
        """Say nothing until the database has ended the session that holds the turns."""
        turns = self.database._turns
        assert turns._beating is not None
        turns._beating.cancel()
        session = turns._session
        assert session is not None
        async with asyncio.timeout(SLOW):
            while not session.lost:
                await asyncio.sleep(0.05)
        turns._beating = None

    async def break_session(self) -> None:
        """Break the connection that holds turns and claims; return when the database has let go of them."""
        session = self.database._turns._session
        assert session is not None
        backend = session.connection.get_server_pid()
        session.connection.terminate()
        async with asyncio.timeout(SLOW):
            while await self.database._pool.fetchval("SELECT count(*) FROM pg_stat_activity WHERE pid = $1", backend):
                await asyncio.sleep(0.02)


@asynccontextmanager
async def replicas(url: str, count: int = 2, lease: float = LEASE) -> AsyncIterator[list[Replica]]:
    async with AsyncExitStack() as stack:
        made = [Replica(url, lease) for _ in range(count)]
        for one in made:
            await one.store.start()
            stack.push_async_callback(one.store.stop)
        yield made


async def test_one_replica_at_a_time_has_a_turn_and_all_get_theirs(url: str) -> None:
    async with replicas(url, 3) as three:
        inside, most, taken = 0, 0, [0, 0, 0]

        async def work(number: int) -> None:
            nonlocal inside, most
            for _ in range(8):
                async with three[number].store.turn("repository a"):
                    inside += 1
                    most = max(most, inside)
                    taken[number] += 1
                    await asyncio.sleep(0.005)
                    inside -= 1

        async with asyncio.timeout(SLOW):
            await asyncio.gather(*[work(number) for number in (0, 0, 1, 1, 2, 2)])

        assert most == 1
        assert taken == [16, 16, 16]


async def test_a_replica_that_always_wants_the_turn_does_not_keep_it_from_the_other(url: str) -> None:
    async with replicas(url) as (busy, other):
        turns, stop = 0, asyncio.Event()

        async def greedy() -> None:
            nonlocal turns
            while not stop.is_set():
                async with busy.store.turn("a"):
                    turns += 1
                    await asyncio.sleep(0.01)

        task = asyncio.create_task(greedy())
        async with asyncio.timeout(SLOW):
            for _ in range(3):
                async with other.store.turn("a"):
                    pass
        stop.set()
        await task

        assert turns > 0


async def test_turns_at_different_things_are_taken_together(url: str) -> None:
    async with replicas(url) as (one, two), asyncio.timeout(SLOW), one.store.turn("a"), two.store.turn("b") as second:
        assert second.key == "b"


async def test_a_turn_says_whether_another_replica_had_it_and_shows_what_that_wrote(url: str) -> None:
    async with replicas(url) as (one, two):
        moved = []
        for replica in (one, one, two, two, one):
            async with replica.store.turn("a") as turn:
                moved.append(turn.moved)
                if replica is two and not turn.moved:
                    await two.store.write([create("by-two")])

        assert moved == [True, False, True, False, True]
        assert one.store.get(key("by-two")) is not None


async def test_who_gives_up_waiting_is_in_nobodys_way(url: str) -> None:
    async with replicas(url, 3) as (one, two, three):
        async with one.store.turn("a"):

            async def wait() -> None:
                async with two.store.turn("a"):
                    raise AssertionError("it was not free")

            waiting = asyncio.create_task(wait())
            await asyncio.sleep(0.2)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        async with asyncio.timeout(SLOW):
            async with three.store.turn("a"):
                pass
            async with two.store.turn("a"):
                pass


async def test_a_replica_that_shows_no_life_loses_its_turn_and_what_it_decided_in_it_is_refused(url: str) -> None:
    async with replicas(url) as (paused, other):
        async with paused.store.turn("a") as turn:
            await paused.store.write([create("before")], turn=turn)
            await paused.lose_lease()
            async with asyncio.timeout(SLOW), other.store.turn("a") as taken:
                assert taken.moved
                await other.store.write([create("meanwhile")], turn=taken)
            with pytest.raises(NotOurTurn):
                await paused.store.write([create("after")], turn=turn)
            await paused.store.write([create("not-decided-in-it")])

            assert await turn.renew()
            await paused.store.write([create("after")], turn=turn)
        names = [entry.name for entry in other.store.snapshot(RESOURCE)]
        await other.store.get_fresh(key("any"))

        assert "meanwhile" in names
        assert [entry.name for entry in other.store.snapshot(RESOURCE)] == [
            "after",
            "before",
            "meanwhile",
            "not-decided-in-it",
        ]


async def test_a_turn_that_was_lost_and_wanted_by_nobody_goes_on(url: str) -> None:
    async with replicas(url) as (paused, _), paused.store.turn("a") as turn:
        await paused.lose_lease()

        assert not await turn.renew()
        assert len(await paused.store.write([create("x")], turn=turn)) == 1


async def test_a_claim_is_given_to_one_replica_and_is_free_when_that_loses_its_session(url: str) -> None:
    async with replicas(url) as (one, two):
        async with one.store.claim("r") as ours, two.store.claim("r") as theirs, two.store.claim("s") as another:
            assert (ours, theirs, another) == (True, False, True)
            await one.lose_lease()
            async with two.store.claim("r") as now:
                assert now
        async with one.store.claim("r") as again:
            assert again


async def test_a_turn_is_surely_ours_until_signs_of_life_are_missing_and_again_once_it_is_made_sure_of(
    url: str,
) -> None:
    async with replicas(url, lease=LONG) as (paused, _), paused.store.turn("a") as turn:
        surely_ours = turn.fence()
        assert surely_ours()
        session = paused.database._turns._session
        assert session is not None
        session.alive -= LONG * 0.8  # nobody has heard of us for as long, and the database still waits

        assert not surely_ours()
        assert not session.lost
        assert not await turn.renew()
        assert surely_ours()


async def test_a_turn_that_was_lost_is_not_ours_whoever_has_it_now(url: str) -> None:
    async with replicas(url) as (paused, _), paused.store.turn("a") as turn:
        await paused.lose_lease()

        assert not turn.fence()()


async def test_a_claim_comes_back_with_the_next_turn(url: str) -> None:
    async with replicas(url, lease=LONG) as (broken, other):
        async with broken.store.claim("r") as ours:
            assert ours
            await broken.break_session()
            async with broken.store.turn("a") as turn, other.store.claim("r") as theirs:
                assert not theirs
                assert turn.fence(["r", "never claimed"])()
        async with other.store.claim("r") as theirs:
            assert theirs


async def test_a_claim_that_another_replica_has_meanwhile_is_not_ours_until_it_is_given_back(url: str) -> None:
    async with replicas(url, lease=LONG) as (broken, other), broken.store.claim("r") as ours:
        assert ours
        await broken.break_session()
        async with broken.store.turn("a") as turn:
            await turn.renew()
            assert turn.fence(["r"])()
            await broken.break_session()
            async with other.store.claim("r") as theirs:
                assert theirs
                await turn.renew()

                assert turn.fence()()
                assert not turn.fence(["r"])()
            assert not turn.fence(["r"])()
            await turn.renew()
            assert turn.fence(["r"])()


async def test_without_a_database_there_are_neither_turns_nor_claims(url: str) -> None:
    async with replicas(url, 1) as (one,):
        await one.database._turns.close()
        with pytest.raises(StoreUnavailable):
            async with one.store.turn("a"):
                pass
        with pytest.raises(StoreUnavailable):
            async with one.store.claim("a"):
                pass


@pytest.mark.parametrize("arrived", [True, False])
async def test_a_commit_whose_answer_is_lost_is_looked_for(url: str, arrived: bool, monkeypatch: Any) -> None:
    async with replicas(url, 1) as (one,):
        await one.store.write([create("first")])
        await _break_next_commit(one, monkeypatch, arrived=arrived)
        if arrived:
            assert len(await one.store.write([create("second")])) == 1
        else:
            with pytest.raises(StoreUnavailable) as told:
                await one.store.write([create("second")])
            assert not isinstance(told.value, OutcomeUnknown)

        assert (await one.store.get_fresh(key("second")) is not None) == arrived


async def test_a_commit_that_nobody_can_look_for_is_told_as_unknown(url: str, monkeypatch: Any) -> None:
    async with replicas(url, 1) as (one,):
        await one.store.write([create("first")])

        async def away() -> Any:
            raise StoreUnavailable("away")

        await _break_next_commit(one, monkeypatch, arrived=True, then=away)
        with pytest.raises(OutcomeUnknown):
            await one.store.write([create("second")])


async def _break_next_commit(replica: Replica, monkeypatch: Any, *, arrived: bool, then: Any = None) -> None:
    """Lose the connection at the next COMMIT: before the server has it, or before its answer is here.

    ``then`` is how the next connections are made; as usual without it.
    """
    connected = replica.database._connected

    async def breaking() -> Any:
        monkeypatch.setattr(replica.database, "_connected", then or connected)
        return _Breaking(await connected(), arrived=arrived)

    monkeypatch.setattr(replica.database, "_connected", breaking)


class _Breaking:
    """A connection that breaks at a COMMIT."""

    def __init__(self, connection: Any, *, arrived: bool) -> None:
        self._connection = connection
        self._arrived = arrived

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    async def execute(self, statement: str, *values: Any, **named: Any) -> Any:
        if "COMMIT" not in statement:
            return await self._connection.execute(statement, *values, **named)
        if self._arrived:
            await self._connection.execute(statement)
        self._connection.terminate()
        raise asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")
