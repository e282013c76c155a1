"""Waking many watchers is shared, and happens soon."""

import asyncio

from variant_model.virtual_time import VirtualTimeLoop

from storage.interfaces import Entry, Event, EventType, Index, ObjectKey, Op
from storage.watchcache.cache import ResourceCache
from storage.watchcache.compactor import target_of
from storage.watchcache.cursor import ParkingLot, RingWatch
from storage.watchcache.progress import Progress

INDEX: Index = lambda _: ({}, ())  # noqa: E731 # a one-line index


def entry(rv: int, namespace: str = "ns") -> Entry:
    return Entry(ObjectKey("widgets", namespace, f"n{rv}"), rv, rv, "", b"{}", {}, ())


class Scene:
    """One resource with its lot, without a store."""

    def __init__(self) -> None:
        self.progress = Progress()
        self.lot = ParkingLot(lambda: self.progress.rv)
        self.cache = ResourceCache(INDEX, 0, lambda event, number: self.lot.call(event.entry.namespace, number))

    def watch(self, namespace: str | None = None) -> RingWatch:
        return RingWatch(self.cache.ring, self.lot, namespace, self.progress.rv, self._nothing)

    def publish(self, rv: int, namespace: str = "ns") -> None:
        self.cache.apply(Op.CREATE, entry(rv, namespace))
        self.progress.advance(rv)

    async def _nothing(self, _: int, __: int) -> list[Event]:
        return []


async def test_a_hundred_watchers_get_the_same_event_objects_from_one_flush() -> None:
    scene = Scene()
    watches = [scene.watch() for _ in range(100)]
    waiting = [asyncio.create_task(anext(aiter(watch))) for watch in watches]
    await asyncio.sleep(0)
    scene.publish(1)
    batches = await asyncio.wait_for(asyncio.gather(*waiting), 60)

    assert all(batch[0] is batches[0][0] for batch in batches)
    assert batches[0][0].type is EventType.ADDED


def test_flushes_to_many_watchers_are_spaced_but_never_far() -> None:
    """By a clock that stands still while anybody works: how busy the machine is does not count."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        delays = runner.run(delays_of_flushes())

    assert len(delays) == 5000
    assert max(delays) < 0.1


async def delays_of_flushes() -> list[float]:
    """Return the seconds from each of 50 writes to each of 100 watchers."""
    scene = Scene()
    loop = asyncio.get_running_loop()
    delays: list[float] = []

    async def read(watch: RingWatch) -> None:
        seen = 0
        async for batch in watch:
            delays.extend(loop.time() - published[event.rv] for event in batch)
            seen += len(batch)
            if seen == 50:
                return

    published: dict[int, float] = {}
    readers = [asyncio.create_task(read(scene.watch())) for _ in range(100)]
    await asyncio.sleep(0)
    for rv in range(1, 51):
        published[rv] = loop.time()
        scene.publish(rv)
        await asyncio.sleep(0.002)
    await asyncio.gather(*readers)
    return delays


async def test_a_parked_watch_is_complete_up_to_the_stores_revision_until_an_event_is_due() -> None:
    scene = Scene()
    watch = scene.watch("ns")
    waiting = asyncio.create_task(anext(aiter(watch)))
    await asyncio.sleep(0)
    scene.publish(1, "other")
    assert watch.rv == 1
    scene.publish(2, "ns")
    assert watch.rv < 2
    assert [event.rv for event in await waiting] == [2]

    assert watch.rv == 2


async def test_closed_watches_leave_nothing_behind() -> None:
    scene = Scene()
    for _ in range(10):
        watch = scene.watch("quiet")
        waiting = asyncio.create_task(anext(aiter(watch)))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        watch.close()

    assert (scene.lot.watches, scene.lot._parked, scene.lot._due) == ({}, {}, {})


def test_compaction_keeps_the_newest_thousand_and_an_interval() -> None:
    assert target_of(interval_ago=0, head=5000) == 0
    assert target_of(interval_ago=4900, head=5000) == 4000
    assert target_of(interval_ago=100, head=5000) == 100
    assert target_of(interval_ago=500, head=600) == 0
