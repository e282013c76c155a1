"""Bringing a database to the schema this version needs, before it is opened.

Alembic is imported only when there is something to do, so that a server in daily use never loads it.
Source: issue 3 part 2.
"""

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from storage.interfaces import StoreUnavailable
from storage.sql import sqlite
from storage.sql.schema import REVISION

Target = str | Path
"""A path of a SQLite file, or a ``postgresql://`` URL."""
T = TypeVar("T")


def upgrade(target: Target, revision: str = REVISION) -> None:
    """Migrate up to ``revision``, creating the database's tables, or the SQLite file, when there are none.

    Blocks (tens of milliseconds when nothing is to be done). Two servers may do it at once on PostgreSQL. Repeating it
    changes nothing.

    Raises:
        StoreUnavailable: the database cannot be reached, or is newer than this version knows.
    """
    current = current_revision(target)
    if current == revision:
        return
    if current is not None and current > REVISION:
        raise StoreUnavailable(f"the database is at schema {current}, newer than {REVISION}; start a newer version")
    _migrate(target, "upgrade", revision)


def downgrade(target: Target, revision: str = "base") -> None:
    """Migrate down to ``revision``; what later schemas hold beyond it is lost. Raises StoreUnavailable."""
    _migrate(target, "downgrade", revision)


def current_revision(target: Target) -> str | None:
    """Return the schema revision a database is at, None for an empty one. Raises StoreUnavailable."""
    if is_postgres(target):
        return _aside(lambda: asyncio.run(_postgres_revision(str(target))))
    if not Path(target).exists():
        return None
    with sqlite.unavailable():
        connection = sqlite3.connect(target, timeout=sqlite.BUSY_SECONDS)
        try:
            known = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'").fetchone()
            row = connection.execute("SELECT version_num FROM alembic_version").fetchone() if known else None
        finally:
            connection.close()
    return str(row[0]) if row else None


def is_postgres(target: Target) -> bool:
    """Tell a PostgreSQL URL from a path."""
    return isinstance(target, str) and target.startswith(("postgresql://", "postgres://"))


def _migrate(target: Target, direction: str, revision: str) -> None:
    # Imported here: together some 20 MB that a running server has no use for.
    from storage.sql import alembic_run

    if is_postgres(target):
        _aside(lambda: asyncio.run(alembic_run.on_postgres(str(target), direction, revision)))
    else:
        alembic_run.on_sqlite(Path(target), direction, revision)


async def _postgres_revision(url: str) -> str | None:
    # Only deployments with PostgreSQL need its driver.
    from storage.sql import postgres

    with postgres.unavailable():
        connection = await postgres.connect(url)
        try:
            known = await connection.fetchval("SELECT to_regclass('alembic_version') IS NOT NULL")
            found = await connection.fetchval("SELECT version_num FROM alembic_version") if known else None
        finally:
            await connection.close()
    return str(found) if found else None


def _aside(work: Callable[[], T]) -> T:
    """Run work on a thread of its own, where no event loop is running yet."""
    with ThreadPoolExecutor(1) as executor:
        return executor.submit(work).result()
