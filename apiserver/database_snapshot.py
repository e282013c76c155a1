"""What a database holds at one moment, for commands that read beside a running server and change nothing."""

import asyncio
import os
from pathlib import Path

from apiserver.settings import Settings
from storage.sealing import KEY_BYTES, Sealer, load_or_create_key
from storage.sql.backup import copy_database
from storage.sql.postgres import postgres_database
from storage.sql.sqlite import sqlite_database
from storage.watchcache.store import WatchedStore


async def snapshot_of(settings: Settings, folder: Path) -> WatchedStore:
    """Return a store over a copy of the SQLite file in ``folder``, or over PostgreSQL as one more replica that only reads.

    Kinds are registered and the store is started by the caller. Where the key for Secrets is missing none is made: what was
    sealed under it cannot be opened any more, and a store that loads Secrets then says so.

    Raises:
        StoreUnavailable: the file is not there or cannot be read.
    """
    if settings.database.startswith("postgres"):
        database = postgres_database(settings.database)
    else:
        copy = folder / "porch.db"
        await asyncio.to_thread(copy_database, settings.data / "porch.db", copy)
        database = sqlite_database(copy)
    key = load_or_create_key(settings.secret_key) if settings.secret_key.exists() else os.urandom(KEY_BYTES)
    return WatchedStore(database, Sealer(key))
