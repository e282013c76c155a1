# ruff: noqa: F811 # fixtures are imported and then named as parameters
"""The migrations go up and down on both databases, and make exactly the schema that the statements use."""

import asyncio
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from embedded_postgres import new_postgres
from object_store_cases import (
    NewDatabase,
    create,
    new_database,  # noqa: F401 # fixtures are found by name
    open_store,
    sqlite_template,  # noqa: F401
    target,  # noqa: F401
)
from sqlalchemy.ext.asyncio import create_async_engine

from storage.interfaces import StoreUnavailable
from storage.sql import alembic_run
from storage.sql.migrate import Target, current_revision, downgrade, upgrade, upgrade_aside
from storage.sql.schema import REVISION, metadata


def inspect(target: Target, look: Callable[[sa.Connection], Any]) -> Any:
    """Look at a database through SQLAlchemy, which the store itself does not use."""
    if isinstance(target, Path):
        engine = sa.create_engine(f"sqlite:///{target}")
        with engine.connect() as connection:
            found = look(connection)
        engine.dispose()
        return found

    async def ask() -> Any:
        engine = create_async_engine(sa.make_url(target).set(drivername="postgresql+asyncpg"))
        async with engine.connect() as connection:
            found = await connection.run_sync(look)
        await engine.dispose()
        return found

    return asyncio.run(ask())


def tables(connection: sa.Connection) -> set[str]:
    return set(sa.inspect(connection).get_table_names())


def test_the_migrated_schema_is_the_one_the_statements_use(target: Target) -> None:
    def differences(connection: sa.Connection) -> list[Any]:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        return list(compare_metadata(context, metadata))

    assert inspect(target, differences) == []


def test_a_difference_would_be_noticed(target: Target) -> None:
    other = sa.MetaData()
    for table in metadata.tables.values():
        table.to_metadata(other)
    other.tables["k_log"].append_column(sa.Column("extra", sa.Text()))

    def differences(connection: sa.Connection) -> list[Any]:
        return list(compare_metadata(MigrationContext.configure(connection), other))

    assert inspect(target, differences) != []


def test_migrations_go_down_and_up_again(target: Target) -> None:
    downgrade(target)
    assert inspect(target, tables) <= {"alembic_version"}
    assert current_revision(target) is None
    upgrade(target)
    upgrade(target)

    assert set(metadata.tables) <= inspect(target, tables)
    assert current_revision(target) == REVISION


async def test_a_running_event_loop_does_not_hinder_a_migration(new_database: NewDatabase) -> None:
    target = new_database()
    downgrade(target)
    upgrade(target)
    async with open_store(target) as store:
        assert len(await store.write([create("a")])) == 1


def test_servers_that_start_together_migrate_once(postgres_server: str) -> None:
    url = new_postgres(postgres_server)
    downgrade(url)
    with ThreadPoolExecutor(3) as executor:
        list(executor.map(lambda _: upgrade(url), range(3)))

    assert current_revision(url) == REVISION


def set_revision(target: Target, revision: str) -> None:
    async def execute(statement: str) -> None:
        engine = create_async_engine(sa.make_url(str(target)).set(drivername="postgresql+asyncpg"))
        async with engine.begin() as connection:
            await connection.execute(sa.text(statement))
        await engine.dispose()

    statement = f"UPDATE alembic_version SET version_num = '{revision}'"  # noqa: S608 # a number of the test's own
    if isinstance(target, Path):
        engine = sa.create_engine(f"sqlite:///{target}")
        with engine.begin() as connection:
            connection.execute(sa.text(statement))
        engine.dispose()
    else:
        asyncio.run(execute(statement))


def test_a_database_of_a_newer_version_is_refused_and_left_as_it_is(target: Target) -> None:
    set_revision(target, "0002")

    for begin in (upgrade, upgrade_aside):
        with pytest.raises(StoreUnavailable, match=r"at schema 0002, newer than .*start a newer version"):
            begin(target)
    assert current_revision(target) == "0002"


def test_a_server_works_beside_newer_ones_that_only_added_to_the_schema(target: Target) -> None:
    newer = f"{REVISION.partition('.')[0]}.9"
    set_revision(target, newer)
    upgrade(target)
    upgrade_aside(target)

    assert current_revision(target) == newer


def test_the_newest_script_is_the_revision_the_code_expects() -> None:
    assert ScriptDirectory.from_config(alembic_run.config()).get_heads() == [REVISION]


def test_an_up_to_date_database_is_opened_without_alembic(sqlite_template: Path) -> None:
    program = (
        "import sys; from storage.sql.migrate import upgrade; upgrade(sys.argv[1]);"
        "import storage.watchcache.store; sys.exit('alembic' in sys.modules)"
    )

    assert subprocess.run([sys.executable, "-c", program, str(sqlite_template)], check=False).returncode == 0


def test_a_file_that_is_no_database_is_named_as_the_problem(tmp_path: Path) -> None:
    path = tmp_path / "not.db"
    path.write_bytes(b"certainly not SQLite" * 100)

    with pytest.raises(StoreUnavailable):
        upgrade(path)
