"""Resources that come and go while the store runs, as custom resources do."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from storage.bodies import decode, encode_body
from storage.interfaces import ListQuery, Mutation, NotRegistered, ObjectKey, Op
from storage.sql.migrate import upgrade
from storage.sql.sqlite import sqlite_database
from storage.watchcache.store import WatchedStore

Json = dict[str, Any]
RESOURCE = "widgets.example.com"


def index(obj: Json) -> tuple[dict[str, str], tuple[str, ...]]:
    return obj["metadata"].get("labels") or {}, (str((obj.get("spec") or {}).get("size", "")),)


def create(name: str, **spec: Any) -> Mutation:
    obj = {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": name, "uid": f"u-{name}"},
        "spec": spec,
    }
    return Mutation(ObjectKey(RESOURCE, "ns", name), Op.CREATE, 0, f"u-{name}", encode_body(obj))


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("schema") / "log.db"
    upgrade(path)
    return path


@pytest.fixture
async def store(schema: Path, tmp_path: Path) -> AsyncIterator[WatchedStore]:
    database = tmp_path / "log.db"
    shutil.copy(schema, database)
    running = WatchedStore(sqlite_database(database))
    await running.start()
    yield running
    await running.stop()


async def test_a_resource_given_up_is_not_served_and_comes_back_with_its_objects(store: WatchedStore) -> None:
    store.register(RESOURCE, lambda _obj: ({}, ()))
    (written,) = await store.write([create("one", size=3)])

    store.unregister(RESOURCE)
    with pytest.raises(NotRegistered):
        store.get(written.key)
    store.register(RESOURCE, index)

    again = store.get(written.key)
    assert again is not None
    assert (again.rv, again.create_rv, again.uid, again.body) == (written.rv, written.create_rv, "u-one", written.body)
    assert again.fields == ("3",)


async def test_watches_of_a_resource_given_up_end(store: WatchedStore) -> None:
    store.register(RESOURCE, index)
    _, watch = store.watch(RESOURCE, namespace=None, after=None)
    ended = asyncio.create_task(anext(aiter(watch), None))
    await asyncio.sleep(0)

    store.unregister(RESOURCE)

    assert await asyncio.wait_for(ended, 60) is None


async def test_a_write_that_was_accepted_before_its_resource_was_given_up_is_kept(store: WatchedStore) -> None:
    store.register(RESOURCE, index)
    writing = asyncio.create_task(store.write([create("late")]))
    await asyncio.sleep(0)

    store.unregister(RESOURCE)
    (entry,) = await writing
    store.register(RESOURCE, index)

    found = store.get(entry.key)
    assert found is not None
    assert found.body == entry.body


async def test_giving_up_twice_does_nothing(store: WatchedStore) -> None:
    store.register(RESOURCE, index)
    store.unregister(RESOURCE)
    store.unregister(RESOURCE)


async def test_objects_read_from_the_log_are_renewed_and_new_ones_are_not_touched(store: WatchedStore) -> None:
    def refresh(obj: Json) -> bool:
        if "size" in obj["spec"]:
            return False
        obj["spec"]["size"] = 1
        return True

    store.register(RESOURCE, index)
    await store.write([create("old")])
    store.unregister(RESOURCE)

    store.register(RESOURCE, index, refresh=refresh)
    await store.write([create("young")])

    entries = (await store.list(RESOURCE, ListQuery())).entries
    assert [decode(entry)["spec"] for entry in entries] == [{"size": 1}, {}]
    assert entries[0].fields == ("1",)


async def test_another_index_takes_over_with_every_object_and_without_a_gap(store: WatchedStore) -> None:
    store.register(RESOURCE, lambda _obj: ({}, ()))
    await store.write([create(f"w{number}", size=number) for number in range(300)])
    _, watch = store.watch(RESOURCE, namespace=None, after=None)
    ended = asyncio.create_task(anext(aiter(watch), None))

    changing = asyncio.create_task(store.reindex(RESOURCE, index))
    await asyncio.sleep(0)
    written = await store.write([create("meanwhile", size=7)])
    during = store.get(written[0].key)
    await changing
    entries = (await store.list(RESOURCE, ListQuery())).entries

    assert during is not None
    assert len(entries) == 301
    assert {entry.name: entry.fields for entry in entries}["meanwhile"] == ("7",)
    assert {entry.name: entry.fields for entry in entries}["w299"] == ("299",)
    if not ended.done():
        assert await asyncio.wait_for(ended, 60) is None


async def test_what_is_not_served_has_no_index_to_change(store: WatchedStore) -> None:
    with pytest.raises(NotRegistered):
        await store.reindex(RESOURCE, index)
