"""The database of the settings, for commands that are no server: what it holds at one moment, or to be written."""

import asyncio
import os
from pathlib import Path

from apiserver.settings import Settings
from storage.sealing import KEY_BYTES, Sealer, load_or_create_key
from storage.sql.backup import copy_database
from storage.sql.migrate import Target
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
    target = database_place(settings)
    if isinstance(target, Path):
        await asyncio.to_thread(copy_database, target, folder / "porch.db")
        target = folder / "porch.db"
    key = load_or_create_key(settings.secret_key) if settings.secret_key.exists() else os.urandom(KEY_BYTES)
    return store_at(target, Sealer(key))


def database_place(settings: Settings) -> Target:
    """Return where the database is: the URL of PostgreSQL, or the path of the SQLite file."""
    return settings.database if settings.database.startswith("postgres") else settings.data / "porch.db"


def store_at(target: Target, sealer: Sealer) -> WatchedStore:
    """Return a store over a database that is migrated; it is opened by its ``start``."""
    database = sqlite_database(target) if isinstance(target, Path) else postgres_database(target)
    return WatchedStore(database, sealer)
