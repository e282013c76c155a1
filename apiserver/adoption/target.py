"""The new server's database: read for a plan without changing it, and written once, in one transaction."""

import asyncio
import os
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from apiserver.adoption.objects import SECRET, register_all
from apiserver.adoption.plan import Plan
from apiserver.adoption.planner import Planner, Wishes
from apiserver.adoption.source import Source
from apiserver.database_snapshot import database_place, snapshot_of, store_at
from apiserver.engine.package_index import RESOURCE, PackageIndex, revision_fields
from apiserver.engine.remote_access import RemoteAccess
from apiserver.packages import remote_access_options
from apiserver.resources.reading import index_of, resource_key
from apiserver.settings import Settings
from storage.interfaces import StaleWrite, StoreUnavailable
from storage.sealing import KEY_BYTES, Sealer, load_or_create_key
from storage.sql.migrate import current_revision, is_current, upgrade
from storage.sql.schema import REVISION
from storage.watchcache.store import WatchedStore

THREADS: Final = 4


class TargetChanged(Exception):
    """Somebody wrote to the new server between the plan and its application; nothing was written."""


@dataclass(frozen=True, slots=True)
class _Target:
    store: WatchedStore
    index: PackageIndex
    secrets: WatchedStore


async def make_plan(settings: Settings, source: Source, wishes: Wishes) -> Plan:
    """Compare the old server, Git and the new server. Nothing is changed, nor made where nothing is yet.

    Raises:
        BadSource: the old server cannot be read.
        StoreUnavailable: the new server's database cannot be read.
    """
    with TemporaryDirectory(prefix="porch-adopt-") as name, ThreadPoolExecutor(THREADS) as pool:
        folder = Path(name)
        async with _opened(settings, folder) as target:
            access = RemoteAccess(target.secrets, remote_access_options(settings))
            planner = Planner(
                source, target.store, target.index, target.secrets, access, folder / "clones", pool, wishes
            )
            return await planner.plan()


async def apply(settings: Settings, plan: Plan) -> None:
    """Write everything of a plan in one transaction: however this ends, all of it is there or nothing.

    Raises:
        TargetChanged: the new server is not as it was when the plan was made.
        StoreUnavailable: the database cannot be written; a server has its SQLite file open, for one.
    """
    settings.data.mkdir(mode=0o700, parents=True, exist_ok=True)
    target = database_place(settings)
    await asyncio.to_thread(upgrade, target)
    store = store_at(target, Sealer(load_or_create_key(settings.secret_key)))
    for resource in {mutation.key.resource for mutation in plan.mutations}:
        store.register(resource, lambda _body: ({}, ()), sealed=resource == resource_key(SECRET))
    await store.start()
    try:
        await store.write(plan.mutations, plan.outbox)
    except StaleWrite as error:
        raise TargetChanged(f"the new server was written to meanwhile ({error}); type the command again") from error
    finally:
        await store.stop()


@asynccontextmanager
async def _opened(settings: Settings, folder: Path) -> AsyncIterator[_Target]:
    secrets, index = await _scratch(folder / "secrets.db"), PackageIndex()
    store = await _current(settings, folder)
    _register(store, index)
    secrets.register(resource_key(SECRET), index_of(SECRET), sealed=True)
    await secrets.start()
    try:
        await store.start()
        try:
            yield _Target(store, index, secrets)
        finally:
            await store.stop()
    finally:
        await secrets.stop()


async def _current(settings: Settings, folder: Path) -> WatchedStore:
    """Return a store of what the new server holds; an empty one where there is no database yet."""
    revision = await asyncio.to_thread(current_revision, database_place(settings))
    if revision is None:
        return await _scratch(folder / "empty.db")
    if not is_current(revision):
        raise StoreUnavailable(f"the database is at schema {revision}, not {REVISION}; type porch migrate up first")
    return await snapshot_of(settings, folder)


async def _scratch(path: Path) -> WatchedStore:
    """Return a store of its own that nobody sees, with a key that nobody keeps."""
    await asyncio.to_thread(upgrade, path)
    return store_at(path, Sealer(os.urandom(KEY_BYTES)))


def _register(store: WatchedStore, index: PackageIndex) -> None:
    register_all(store)
    store.register(RESOURCE, revision_fields)
    store.observe(RESOURCE, index.observe)
