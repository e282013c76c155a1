"""What the object store's tests share: migrated databases of both kinds, stores over them, and short mutations."""

import asyncio
import itertools
import shutil
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from embedded_postgres import new_postgres

from storage.bodies import encode_body
from storage.interfaces import Entry, Event, IndexedFields, Json, Mutation, ObjectKey, Op, Watch
from storage.sealing import Sealer
from storage.sql.log import LogDatabase
from storage.sql.migrate import Target, upgrade
from storage.sql.postgres import postgres_database
from storage.sql.sqlite import sqlite_database
from storage.watchcache.store import WatchedStore

RESOURCE = "widgets.example.com"
SECRETS = "secrets"
UID = "00000000-0000-4000-8000-000000000000"
_numbers = itertools.count()

NewDatabase = Callable[[], Target]
"""Makes an empty, migrated database and returns where it is."""


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated file to copy."""
    path = tmp_path_factory.mktemp("sqlite") / "template.db"
    upgrade(path)
    return path


@pytest.fixture(params=["sqlite", "postgres"])
def new_database(request: pytest.FixtureRequest, tmp_path: Path, sqlite_template: Path) -> NewDatabase:
    """Databases of each kind in turn."""
    if request.param == "sqlite":
        return lambda: new_sqlite(sqlite_template, tmp_path)
    url: str = request.getfixturevalue("postgres_server")
    return lambda: new_postgres(url)


@pytest.fixture
def target(new_database: NewDatabase) -> Target:
    """One migrated database."""
    return new_database()


def new_sqlite(template: Path, folder: Path) -> Path:
    path = folder / f"{next(_numbers)}.db"
    shutil.copy(template, path)
    return path


def database(target: Target) -> LogDatabase:
    return sqlite_database(target) if isinstance(target, Path) else postgres_database(target)


@asynccontextmanager
async def open_store(target: Target, *, sealer: Sealer | None = None) -> AsyncIterator[WatchedStore]:
    """A started store that serves widgets (and secrets when there is a sealer)."""
    store = WatchedStore(database(target), sealer)
    store.register(RESOURCE, index)
    if sealer is not None:
        store.register(SECRETS, index, sealed=True)
    await store.start()
    try:
        yield store
    finally:
        await store.stop()


def index(obj: Json) -> IndexedFields:
    return obj["metadata"].get("labels") or {}, (str(obj.get("colour", "")),)


def key(name: str, namespace: str = "ns", resource: str = RESOURCE) -> ObjectKey:
    return ObjectKey(resource, namespace, name)


def body(name: str, namespace: str = "ns", **more: object) -> bytes:
    meta = {"name": name, "namespace": namespace, "labels": more.pop("labels", {})}
    return encode_body({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": meta, **more})


def create(name: str, namespace: str = "ns", resource: str = RESOURCE, **more: object) -> Mutation:
    return Mutation(key(name, namespace, resource), Op.CREATE, 0, UID, body(name, namespace, **more), "tester")


def update(entry: Entry, **more: object) -> Mutation:
    return Mutation(entry.key, Op.UPDATE, entry.rv, entry.uid, body(entry.name, entry.namespace, **more), "tester")


def delete(entry: Entry, **more: object) -> Mutation:
    return Mutation(entry.key, Op.DELETE, entry.rv, entry.uid, body(entry.name, entry.namespace, **more), "tester")


async def take(watch: Watch, count: int) -> list[Event]:
    """The next ``count`` events."""
    events: list[Event] = []
    async with asyncio.timeout(60):
        async for batch in watch:
            events.extend(batch)
            if len(events) >= count:
                break
    return events


def told(events: Sequence[Event]) -> list[tuple[str, str, int]]:
    return [(event.type.value, event.entry.name, event.rv) for event in events]
