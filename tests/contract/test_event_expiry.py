"""Events go an hour after their last write, on a real SQLite store with a clock of our own."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from apiserver.resources.event_expiry import EventExpiry
from storage.bodies import encode_body
from storage.interfaces import IndexedFields, Mutation, ObjectKey, Op
from storage.sql.migrate import upgrade
from storage.sql.sqlite import sqlite_database
from storage.watchcache.store import WatchedStore


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def index(_obj: dict[str, Any]) -> IndexedFields:
    return {}, ()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def parts(tmp_path: Path, clock: Clock) -> AsyncIterator[tuple[WatchedStore, EventExpiry]]:
    path = tmp_path / "porch.db"
    upgrade(path)
    store = WatchedStore(sqlite_database(path))
    store.register("events", index)
    expiry = EventExpiry(store, ttl=100, clock=clock)
    await store.start()
    yield store, expiry
    await store.stop()


async def write(store: WatchedStore, name: str, *, prev_rv: int = 0) -> int:
    body = encode_body({"apiVersion": "v1", "kind": "Event", "metadata": {"name": name}, "count": prev_rv})
    op = Op.UPDATE if prev_rv else Op.CREATE
    return (await store.write([Mutation(ObjectKey("events", "ns", name), op, prev_rv, "uid", body)]))[0].rv


async def test_only_events_whose_time_is_over_are_deleted(
    parts: tuple[WatchedStore, EventExpiry], clock: Clock
) -> None:
    store, expiry = parts
    refreshed = await write(store, "refreshed")
    for number in range(250):
        await write(store, f"old-{number}")
    clock.now = 60
    await write(store, "young")
    await write(store, "refreshed", prev_rv=refreshed)

    clock.now = 100
    deleted = await expiry.purge()

    assert deleted == 250
    assert [entry.name for entry in store.snapshot("events")] == ["refreshed", "young"]
    assert await expiry.purge() == 0


async def test_of_more_events_than_are_kept_the_oldest_go_before_their_time(
    parts: tuple[WatchedStore, EventExpiry],
) -> None:
    store, _ = parts
    expiry = EventExpiry(store, most=3)
    first = await write(store, "first")
    for name in ("second", "third", "fourth", "fifth"):
        await write(store, name)
    await write(store, "first", prev_rv=first)

    deleted = await expiry.purge()

    assert deleted == 2
    assert [entry.name for entry in store.snapshot("events")] == ["fifth", "first", "fourth"]


async def test_an_event_deleted_by_somebody_else_is_forgotten(
    parts: tuple[WatchedStore, EventExpiry], clock: Clock
) -> None:
    store, expiry = parts
    rv = await write(store, "a")
    body = encode_body({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "a"}})
    await store.write([Mutation(ObjectKey("events", "ns", "a"), Op.DELETE, rv, "uid", body)])

    clock.now = 1000

    assert await expiry.purge() == 0
