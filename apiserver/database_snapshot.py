"""What a database holds at one moment, for commands that read beside a running server and change nothing."""

import asyncio
from pathlib import Path

from apiserver.settings import Settings
from storage.sealing import Sealer, load_or_create_key
from storage.sql.backup import copy_database
from storage.sql.postgres import postgres_database
from storage.sql.sqlite import sqlite_database
from storage.watchcache.store import WatchedStore


async def snapshot_of(settings: Settings, folder: Path) -> WatchedStore:
    """Return a store over a copy of the SQLite file in ``folder``, or over PostgreSQL as one more replica that only reads.

    Kinds are registered and the store is started by the caller.

    Raises:
        StoreUnavailable: the file is not there or cannot be read.
    """
    if settings.database.startswith("postgres"):
        database = postgres_database(settings.database)
    else:
        copy = folder / "porch.db"
        await asyncio.to_thread(copy_database, settings.data / "porch.db", copy)
        database = sqlite_database(copy)
    return WatchedStore(database, Sealer(load_or_create_key(settings.secret_key)))
