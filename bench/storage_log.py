"""How fast the log and the watch cache are: ``python bench/storage_log.py [postgresql://… | folder]``.

Prints single writes, concurrent writers, lists, a start with many objects, watch fan-out and memory. The disk's own
flush is measured beside, because it is the floor of a single durable write.
"""

import asyncio
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from storage.bodies import encode_body
from storage.interfaces import IndexedFields, Json, ListQuery, Mutation, ObjectKey, Op
from storage.sql.log import LogDatabase
from storage.sql.migrate import Target, is_postgres, upgrade
from storage.sql.postgres import postgres_database
from storage.sql.sqlite import sqlite_database
from storage.watchcache.store import WatchedStore

RESOURCE = "widgets.example.com"
OBJECTS = 11_000
BODY = 1_500
PADDING = "x" * (BODY - 330)


def index(obj: Json) -> IndexedFields:
    spec = obj["spec"]
    return obj["metadata"]["labels"], (spec["repository"], spec["lifecycle"], obj["metadata"]["name"])


def create(name: str, revision: int = 0) -> Mutation:
    obj = {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": name, "namespace": "default", "labels": {}, "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"repository": f"repo-{hash(name) % 10}", "lifecycle": "Published", "padding": PADDING},
    }
    op = Op.UPDATE if revision else Op.CREATE
    uid = f"00000000-0000-4000-8000-{abs(hash(name)) % 10**12:012}"
    return Mutation(ObjectKey(RESOURCE, "default", name), op, revision, uid, encode_body(obj))


def database(target: Target) -> LogDatabase:
    return postgres_database(str(target)) if is_postgres(target) else sqlite_database(Path(target))


def rss_mb() -> float:
    """Resident memory now, in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


async def timed(count: int, work: Callable[[int], Awaitable[object]]) -> list[float]:
    """Milliseconds of each of ``count`` calls, sorted."""
    found = []
    for number in range(count):
        started = time.perf_counter()
        await work(number)
        found.append((time.perf_counter() - started) * 1000)
    return sorted(found)


def show(what: str, times: list[float]) -> None:
    print(f"{what}: p50 {statistics.median(times):.3f} ms, p99 {times[int(len(times) * 0.99)]:.3f} ms")


def flush_floor(folder: Path) -> list[float]:
    """Milliseconds of fdatasync after 8 KB, about what a commit appends to the WAL."""
    handle = os.open(folder / "floor", os.O_WRONLY | os.O_CREAT)
    found = []
    for _ in range(300):
        os.write(handle, b"x" * 8192)
        started = time.perf_counter()
        os.fdatasync(handle)
        found.append((time.perf_counter() - started) * 1000)
    os.close(handle)
    return sorted(found)


async def writes(target: Target) -> None:
    store = WatchedStore(database(target))
    store.register(RESOURCE, index)
    await store.start()
    show("single write", await timed(1000, lambda number: store.write([create(f"single-{number}")])))

    async def worker(worker_number: int) -> None:
        for number in range(200):
            await store.write([create(f"w{worker_number}-{number}")])

    started = time.perf_counter()
    await asyncio.gather(*[worker(number) for number in range(16)])
    print(f"16 concurrent writers: {3200 / (time.perf_counter() - started):.0f} writes/s")
    await fan_out(store)
    for start in range(0, OBJECTS - 4300, 50):
        await store.write([create(f"o{number}") for number in range(start, start + 50)])
    await store.stop()


async def fan_out(store: WatchedStore, watchers: int = 100, rate: int = 100, events: int = 300) -> None:
    """Delay from the acknowledgement of a write to each watcher, in the same loop."""
    acknowledged: dict[int, float] = {}
    delays: list[float] = []

    async def watch() -> None:
        _, cursor = store.watch(RESOURCE, namespace=None, after=None)
        seen = 0
        async for batch in cursor:
            now = time.perf_counter()
            delays.extend((now - acknowledged.get(event.rv, now)) * 1000 for event in batch)
            seen += len(batch)
            if seen >= events:
                cursor.close()

    readers = [asyncio.create_task(watch()) for _ in range(watchers)]
    await asyncio.sleep(0)
    cpu = time.process_time()
    started = time.perf_counter()
    for number in range(events):
        (entry,) = await store.write([create(f"f{number}")])
        acknowledged[entry.rv] = time.perf_counter()
        await asyncio.sleep(max(0.0, started + (number + 1) / rate - time.perf_counter()))
    await asyncio.gather(*readers)
    busy = (time.process_time() - cpu) / (time.perf_counter() - started)
    show(f"watch, {watchers} watchers, {rate} events/s ({busy:.0%} of a core)", sorted(delays))


async def reads(target: Target) -> None:
    before = rss_mb()
    store = WatchedStore(database(target))
    store.register(RESOURCE, index)
    started = time.perf_counter()
    await store.start()
    took = time.perf_counter() - started
    count = len(store.snapshot(RESOURCE))
    print(
        f"start with {count} objects: {took * 1000:.0f} ms, memory {rss_mb():.0f} MB, {rss_mb() - before:.0f} MB of it for them"
    )
    show(f"list of all {count}", await timed(200, lambda _: store.list(RESOURCE, ListQuery())))
    page = ListQuery(limit=500, start_after=("default", "o5"))
    show("page of 500", await timed(200, lambda _: store.list(RESOURCE, page)))
    key = ObjectKey(RESOURCE, "default", "o77")
    show("consistent get", await timed(500, lambda _: store.get_fresh(key)))
    started = time.perf_counter()
    await store.compact(store.rv)
    print(f"compaction with nothing to drop: {(time.perf_counter() - started) * 1000:.0f} ms")
    await store.stop()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        given = sys.argv[1] if len(sys.argv) > 1 else folder
        target: Target = given if is_postgres(given) else Path(given) / "bench.db"
        show("fdatasync of this disk", flush_floor(Path(folder)))
        upgrade(target)
        # Each half in a process of its own, so that memory is that of a server that was just started.
        for half in (writes, reads):
            child = os.fork()
            if child == 0:
                asyncio.run(half(target))
                sys.stdout.flush()
                os._exit(0)
            os.waitpid(child, 0)


if __name__ == "__main__":
    main()
