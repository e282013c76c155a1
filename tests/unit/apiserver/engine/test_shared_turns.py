"""Those of one process who want a turn at one time have it together; who comes later has the next one."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from apiserver.engine.shared_turns import SharedTurns
from storage.interfaces import StoreUnavailable
from storage.turns import Turn, alone

KEY = "packages of default/blueprints"


class Replicas:
    """Stands for the other replicas: says how often a turn was taken, and gives it when told to."""

    def __init__(self) -> None:
        self.taken = 0
        self.held = 0
        self.free = asyncio.Event()
        self.problem: Exception | None = None

    @asynccontextmanager
    async def take(self, key: str) -> AsyncIterator[Turn]:
        assert key == KEY
        await self.free.wait()
        if self.problem is not None:
            raise self.problem
        assert not self.held, "a turn is not taken while the one before it is held"
        self.taken, self.held = self.taken + 1, 1
        async with alone() as turn:
            try:
                yield turn
            finally:
                self.held = 0


@pytest.fixture
async def replicas() -> Replicas:
    return Replicas()


async def settle() -> None:
    """Let everybody go as far as they can."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_those_who_wait_together_have_one_turn_and_a_late_one_the_next(replicas: Replicas) -> None:
    turns, go_on, inside = SharedTurns(replicas.take), asyncio.Event(), []

    async def work(number: int) -> None:
        async with turns.turn(KEY):
            inside.append(number)
            await go_on.wait()

    together = [asyncio.create_task(work(number)) for number in range(3)]
    await settle()
    assert inside == []
    replicas.free.set()
    await settle()
    assert (inside, replicas.taken) == ([0, 1, 2], 1)

    replicas.free.clear()
    late = asyncio.create_task(work(3))
    await settle()
    assert inside == [0, 1, 2], "whoever comes while a turn is held waits for another"
    go_on.set()
    await asyncio.gather(*together)
    await settle()
    assert not replicas.held
    replicas.free.set()
    await late
    assert (inside, replicas.taken) == ([0, 1, 2, 3], 2)


async def test_a_turn_that_cannot_be_taken_fails_everybody_and_the_next_is_tried_anew(replicas: Replicas) -> None:
    turns = SharedTurns(replicas.take)
    replicas.problem = StoreUnavailable("the database is away")
    replicas.free.set()

    async def work() -> None:
        async with turns.turn(KEY):
            pass

    for error in await asyncio.gather(work(), work(), return_exceptions=True):
        assert isinstance(error, StoreUnavailable)

    replicas.problem = None
    await work()
    assert replicas.taken == 1


async def test_who_gives_up_waiting_leaves_the_turn_to_the_others(replicas: Replicas) -> None:
    turns, worked = SharedTurns(replicas.take), []

    async def work(number: int) -> None:
        async with turns.turn(KEY):
            worked.append(number)

    impatient, patient = (asyncio.create_task(work(number)) for number in range(2))
    await settle()
    impatient.cancel()
    await settle()
    replicas.free.set()
    await patient
    await settle()

    assert (worked, replicas.held) == ([1], 0)


async def test_a_turn_that_nobody_wants_any_more_is_given_up(replicas: Replicas) -> None:
    turns, worked = SharedTurns(replicas.take), []

    async def work(number: int) -> None:
        async with turns.turn(KEY):
            worked.append(number)

    impatient = asyncio.create_task(work(0))
    await settle()
    impatient.cancel()
    await settle()
    later = asyncio.create_task(work(1))
    await settle()
    replicas.free.set()
    await later
    await settle()

    assert (worked, replicas.held) == ([1], 0)


async def test_who_fails_inside_leaves_the_turn_to_the_others(replicas: Replicas) -> None:
    turns, go_on = SharedTurns(replicas.take), asyncio.Event()
    replicas.free.set()

    async def fail() -> None:
        async with turns.turn(KEY):
            raise ValueError("of its own")

    async def work() -> None:
        async with turns.turn(KEY):
            await go_on.wait()
            assert replicas.held

    failing, working = asyncio.create_task(fail()), asyncio.create_task(work())
    with pytest.raises(ValueError, match="of its own"):
        await failing
    go_on.set()
    await working
    await settle()
    assert not replicas.held
