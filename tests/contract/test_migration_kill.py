# ruff: noqa: F811 # fixtures are imported and then named as parameters
"""``kill -9`` in the middle of a migration leaves the old schema or the new one, and the next attempt goes through."""

import asyncio
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from object_store_cases import (
    create,
    key,
    new_database,  # noqa: F401 # fixtures are found by name
    open_store,
    sqlite_template,  # noqa: F401
    target,  # noqa: F401
)
from sqlalchemy.ext.asyncio import create_async_engine

from storage.sql.migrate import Target, current_revision, downgrade, upgrade
from storage.sql.schema import REVISION

PROGRAM = Path(__file__).parents[1] / "doomed_migration.py"
FIRST = "0001"
SAMPLES = (3, 4, 5, 6, 8, 10)
"""Statements after which it dies: the first are Alembic's questions, the last ones beyond both migrations on some database."""


def shape(target: Target) -> set[tuple[str, str]]:
    """Return every table with each of its columns."""
    if isinstance(target, Path):
        engine = sa.create_engine(f"sqlite:///{target}")
        with engine.connect() as connection:
            found = _columns(connection)
        engine.dispose()
        return found

    async def ask() -> set[tuple[str, str]]:
        engine = create_async_engine(sa.make_url(target).set(drivername="postgresql+asyncpg"))
        async with engine.connect() as connection:
            found = await connection.run_sync(_columns)
        await engine.dispose()
        return found

    return asyncio.run(ask())


def _columns(connection: sa.Connection) -> set[tuple[str, str]]:
    inspector = sa.inspect(connection)
    return {(table, column["name"]) for table in inspector.get_table_names() for column in inspector.get_columns(table)}


async def _write(target: Target) -> None:
    async with open_store(target) as store:
        await store.write([create("a", colour="red")])


async def _held(target: Target) -> Any:
    async with open_store(target) as store:
        found = store.get(key("a"))
        return found and (found.rv, found.fields)


def killed(target: Target, *arguments: str) -> bool:
    """Run the program; tell whether it was killed before it was done."""
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(target), *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode != 0


def move(target: Target, revision: str) -> None:
    """Bring a database to a schema, whichever side it comes from."""
    downgrade(target, revision) if revision == FIRST else upgrade(target, revision)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("old", "new", "direction"), [(FIRST, REVISION, "upgrade"), (REVISION, FIRST, "downgrade")])
def test_all_of_it_or_nothing(target: Target, old: str, new: str, direction: str) -> None:
    asyncio.run(_write(target))
    before = asyncio.run(_held(target))
    shapes = {}
    for revision in (FIRST, REVISION, old):
        move(target, revision)
        shapes[revision] = shape(target)
    assert shapes[old] != shapes[new]

    deaths = 0
    for number in SAMPLES:
        deaths += killed(target, direction, new, str(number))
        now = current_revision(target)
        assert now in (old, new)
        assert shape(target) == shapes[now], f"half a migration after {number} statements"
        if now == new:
            break

    assert deaths >= 3
    move(target, new)
    assert shape(target) == shapes[new]
    upgrade(target)
    assert asyncio.run(_held(target)) == before
