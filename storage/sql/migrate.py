"""Bringing a database to the schema this version needs, before it is opened.

Alembic is imported only when there is something to do, so that a server in daily use never loads it.
Source: issue 3 part 2.
"""

import asyncio
import sqlite3
import subprocess
import sys
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
MIGRATION_SECONDS = 600
"""A migration that takes longer is given up; it is one transaction, so the database is as it was."""


def upgrade(target: Target, revision: str = REVISION) -> None:
    """Migrate up to ``revision``, creating the database's tables, or the SQLite file, when there are none.

    Blocks (tens of milliseconds when nothing is to be done). Two servers may do it at once on PostgreSQL. Repeating it
    changes nothing.

    Raises:
        StoreUnavailable: the database cannot be reached, or is newer than this version knows.
    """
    if _is_there(current_revision(target), revision):
        return
    _migrate(target, "upgrade", revision)


def upgrade_aside(target: Target) -> None:
    """Like :func:`upgrade`, with the migration itself in a process of its own.

    Alembic takes some 20 MB that a server would then keep for the rest of its life. The target goes through standard
    input, because it may hold a password and arguments are there for everybody to read.

    Raises:
        StoreUnavailable: the database cannot be reached or migrated, or is newer than this version knows.
    """
    if _is_there(current_revision(target), REVISION):
        return
    command = [sys.executable, "-m", "storage.sql.migrate"]
    text = f"{'path' if isinstance(target, Path) else 'url'} {target}"
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=MIGRATION_SECONDS, check=False)
    if done.returncode:
        problem = done.stderr.strip().rpartition("\n")[2] or f"exit code {done.returncode}"
        raise StoreUnavailable(f"the database cannot be migrated: {problem}")


def downgrade(target: Target, revision: str = "base") -> None:
    """Migrate down to ``revision``; what later schemas hold beyond it is lost. Raises StoreUnavailable."""
    _migrate(target, "downgrade", revision)


def current_revision(target: Target) -> str | None:
    """Return the schema revision a database is at, None for an empty one. Raises StoreUnavailable."""
    if is_postgres(target):
        return _aside(lambda: asyncio.run(_postgres_revision(str(target))))
    if not Path(target).exists():
        return None
    with sqlite.unavailable(f" {target}"):
        connection = sqlite3.connect(target, timeout=sqlite.BUSY_SECONDS)
        try:
            known = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'").fetchone()
            row = connection.execute("SELECT version_num FROM alembic_version").fetchone() if known else None
        finally:
            connection.close()
    return str(row[0]) if row else None


def is_current(current: str) -> bool:
    """Tell whether this version can work with a database of that schema as it is. Raises StoreUnavailable: it is too new."""
    return _is_there(current, REVISION)


def _is_there(current: str | None, wanted: str) -> bool:
    """Tell whether a database need not be migrated: it is where it should be, or has only more than that.

    Raises:
        StoreUnavailable: this version cannot work with it, and must not change it.
    """
    if current is None or current == wanted:
        return current == wanted
    (major, minor), (known, known_minor) = _parts(current), _parts(REVISION)
    if major > known:
        why = "another version of Porch has upgraded it to a schema that this one cannot work with"
        raise StoreUnavailable(
            f"the database is at schema {current}, newer than {REVISION}: {why}; start a newer version"
        )
    return major == known and minor > known_minor


def _parts(revision: str) -> tuple[int, int]:
    """Return the two numbers of a schema revision; see ``schema.REVISION``."""
    major, _, minor = revision.partition(".")
    return int(major), int(minor or 0)


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
    from storage.sql import postgres_session

    with postgres_session.unavailable():
        connection = await postgres_session.connect(url)
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


def main() -> None:
    """Migrate the database that standard input names; for :func:`upgrade_aside`."""
    kind, _, value = sys.stdin.read().partition(" ")
    try:
        upgrade(Path(value) if kind == "path" else value)
    except StoreUnavailable as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
