"""Places for requests: who gets one, who waits, who is refused."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from cost import metered

from apiserver.machinery.in_flight import InFlight, Limits
from apiserver.machinery.request import RequestInfo, request_info
from apiserver.machinery.rest import User
from krm.meta.errors import TooManyRequests

ALICE, BOB, CAROL = User("alice"), User("bob"), User("carol")
ADMIN = User("root", ("system:masters",))
READ = request_info("GET", "/api/v1/namespaces/default/configmaps/a", {})
WRITE = request_info("POST", "/api/v1/namespaces/default/configmaps", {})
WATCH = request_info("GET", "/api/v1/namespaces/default/configmaps", {"watch": ["true"]})
PACKAGE = request_info("PUT", "/apis/porch.kpt.dev/v1alpha1/namespaces/default/packagerevisions/a", {})
MICROSECOND = 1e-6

under_way_tasks: set["asyncio.Task[None]"] = set()
"""Requests of the test that runs: the loop itself holds its tasks weakly, and one that is let go of ends early."""


@pytest_asyncio.fixture(autouse=True)
async def requests_end_with_their_test() -> AsyncIterator[None]:
    yield
    tasks = list(under_way_tasks)
    under_way_tasks.clear()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class Held:
    """A request that stays under way until it is released."""

    def __init__(self, in_flight: InFlight, user: User, info: RequestInfo = READ) -> None:
        self._release = asyncio.Event()
        self.entered = asyncio.Event()
        self.task = asyncio.create_task(self._run(in_flight, user, info))
        under_way_tasks.add(self.task)

    async def _run(self, in_flight: InFlight, user: User, info: RequestInfo) -> None:
        async with in_flight.turn(user, info):
            self.entered.set()
            await self._release.wait()

    async def finish(self) -> None:
        """Let the request end."""
        self._release.set()
        await self.task


async def held(in_flight: InFlight, *users: User, info: RequestInfo = READ) -> list[Held]:
    requests = [Held(in_flight, user, info) for user in users]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return requests


def running(in_flight: InFlight, kind: str = "readOnly") -> tuple[int, int, int]:
    return next((f.running, f.waiting, f.refused) for f in in_flight.figures() if f.kind == kind)


async def test_one_user_has_at_most_half_of_the_places() -> None:
    in_flight = InFlight(Limits(reads=4))
    first, *_ = await held(in_flight, ALICE, ALICE, ALICE)
    bobs = await held(in_flight, BOB, BOB)

    assert running(in_flight) == (4, 1, 0)
    assert all(request.entered.is_set() for request in bobs)
    await first.finish()


async def test_who_waits_gets_the_next_place_one_user_after_the_other() -> None:
    in_flight = InFlight(Limits(reads=4))
    under_way = await held(in_flight, ALICE, ALICE, BOB, BOB)
    waiting = await held(in_flight, ALICE, ALICE, CAROL)
    order = []
    for request in under_way:
        await request.finish()
        await asyncio.sleep(0)
        order.append([one.entered.is_set() for one in waiting])

    assert order == [[True, False, False], [True, False, True], [True, True, True], [True, True, True]]
    for request in waiting:
        await request.finish()
    assert running(in_flight) == (0, 0, 0)


async def test_a_wait_that_takes_too_long_is_refused_with_retry_after() -> None:
    in_flight = InFlight(Limits(reads=2, wait_seconds=0.05))
    under_way = await held(in_flight, ALICE)

    with pytest.raises(TooManyRequests) as refused:
        async with in_flight.turn(ALICE, READ):
            pytest.fail("there is no place")
    assert refused.value.to_status()["details"] == {"retryAfterSeconds": 1}
    assert refused.value.code == 429
    assert running(in_flight) == (1, 0, 1)
    await under_way[0].finish()


async def test_a_full_queue_refuses_at_once_and_no_user_fills_it_alone() -> None:
    in_flight = InFlight(Limits(reads=4, wait_seconds=60))
    await held(in_flight, ALICE, ALICE, BOB, BOB)
    await held(in_flight, ALICE, ALICE)
    begun = time.monotonic()

    with pytest.raises(TooManyRequests):
        async with in_flight.turn(ALICE, READ):
            pytest.fail("the queue is full for alice")
    assert time.monotonic() - begun < 20
    await held(in_flight, BOB, CAROL)
    assert running(in_flight) == (4, 4, 1)


async def test_administrators_are_never_held_up() -> None:
    in_flight = InFlight(Limits(reads=2, writes=2))
    await held(in_flight, ALICE, BOB)

    admins = await held(in_flight, ADMIN, ADMIN, ADMIN)

    assert all(request.entered.is_set() for request in admins)
    assert running(in_flight)[0] == 5


async def test_kinds_of_requests_do_not_take_each_others_places() -> None:
    in_flight = InFlight(Limits(reads=1, writes=1, packages=1, watches=1), package_groups=["porch.kpt.dev"])
    requests = [one for info in (READ, WRITE, PACKAGE, WATCH) for one in await held(in_flight, ALICE, info=info)]

    assert all(request.entered.is_set() for request in requests)
    assert [figures.running for figures in in_flight.figures()] == [1, 1, 1, 1]


async def test_watches_are_refused_at_once_when_there_are_too_many() -> None:
    in_flight = InFlight(Limits(watches=4))
    await held(in_flight, ALICE, ALICE, info=WATCH)

    with pytest.raises(TooManyRequests):
        async with in_flight.turn(ALICE, WATCH):
            pytest.fail("alice has her half")
    await held(in_flight, BOB, BOB, info=WATCH)
    with pytest.raises(TooManyRequests):
        async with in_flight.turn(CAROL, WATCH):
            pytest.fail("all are taken")


async def test_who_gives_up_waiting_leaves_nothing_behind() -> None:
    in_flight = InFlight(Limits(reads=2))
    under_way = await held(in_flight, ALICE)
    (waiting,) = await held(in_flight, ALICE)
    waiting.task.cancel()
    await asyncio.gather(waiting.task, return_exceptions=True)

    assert running(in_flight) == (1, 0, 0)
    await under_way[0].finish()
    assert running(in_flight) == (0, 0, 0)


async def test_a_place_handed_over_to_a_request_that_is_cancelled_goes_on_to_the_next() -> None:
    in_flight = InFlight(Limits(reads=4))
    under_way = await held(in_flight, ALICE, ALICE)
    cancelled, following = await held(in_flight, ALICE, ALICE)
    under_way[0]._release.set()
    while running(in_flight)[1] != 1:
        await asyncio.sleep(0)
    cancelled.task.cancel()
    await asyncio.gather(cancelled.task, return_exceptions=True)
    await asyncio.wait_for(following.entered.wait(), 60)

    assert running(in_flight) == (2, 0, 0)
    await following.finish()


async def test_an_unsaturated_server_pays_next_to_nothing() -> None:
    in_flight = InFlight()
    best = 1.0
    for _ in range(5):
        with metered() as cost:
            for _ in range(2000):
                async with in_flight.turn(ALICE, READ):
                    pass
        best = min(best, cost.seconds / 2000)

    assert best < 10 * MICROSECOND, "about 2 µs on an idle machine"
