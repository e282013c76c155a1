"""Running Alembic from within the program, with the scripts of the installed ``migrations`` package."""

from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

import migrations
from storage.interfaces import StoreUnavailable
from storage.sql.migrate import MIGRATION_SECONDS
from storage.sql.statements import MIGRATION_LOCK

TABLE_LOCK = "5s"
"""How long a migration waits for a table."""


def on_sqlite(path: Path, direction: str, revision: str) -> None:
    """Migrate a file, in one transaction. Raises StoreUnavailable."""
    # The driver itself would begin a transaction only before the first INSERT or UPDATE, so that tables made before it stay when the
    # process dies; it is told to leave transactions to us.
    engine = sa.create_engine(
        sa.URL.create("sqlite", database=str(path)), poolclass=NullPool, connect_args={"isolation_level": None}
    )
    sa.event.listen(engine, "begin", _begin)
    _run_guarded(engine, direction, revision)


def _begin(connection: sa.Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


async def on_postgres(url: str, direction: str, revision: str) -> None:
    """Migrate a PostgreSQL database; a second server that tries at the same time waits. Raises StoreUnavailable."""
    from storage.sql.postgres_session import AWAY, connect  # SQLite needs no driver

    # The driver reads the URL, as everywhere: SQLAlchemy knows no URLs of several hosts.
    engine = create_async_engine(
        "postgresql+asyncpg://",
        poolclass=NullPool,
        async_creator=lambda: connect(
            url,
            command_seconds=MIGRATION_SECONDS,
            statement_timeout=f"{MIGRATION_SECONDS}s",
            # Another server may be migrating.
            lock_timeout=f"{MIGRATION_SECONDS}s",
            idle_in_transaction_session_timeout="60s",
        ),
    )
    try:
        async with engine.begin() as connection:
            await connection.execute(sa.select(sa.func.pg_advisory_xact_lock(MIGRATION_LOCK)))
            # Servers of the old version work on meanwhile: they must not queue up behind a table that cannot be had.
            await connection.execute(sa.text(f"SET LOCAL lock_timeout = '{TABLE_LOCK}'"))
            await connection.run_sync(lambda bound: run(bound, direction, revision))
    except (DBAPIError, *AWAY) as error:
        raise StoreUnavailable(f"the database cannot be migrated: {error}") from error
    finally:
        await engine.dispose()


def config(connection: sa.Connection | None = None) -> Config:
    """Return Alembic's configuration; migrations use the given connection."""
    made = Config()
    # Holds for an installed package as for an editable one.
    folder = next(iter(migrations.__path__))
    # Alembic's settings interpolate percent signs.
    made.set_main_option("script_location", folder.replace("%", "%%"))
    made.attributes["connection"] = connection
    return made


def steps() -> list[tuple[str, str]]:
    """Return every migration, oldest first: its revision, and what it says that it does."""
    scripts = list(ScriptDirectory.from_config(config()).walk_revisions())
    return [(script.revision, (script.doc or "").strip().replace("\n", " ")) for script in reversed(scripts)]


def run(connection: sa.Connection, direction: str, revision: str) -> None:
    """Migrate over a connection that is inside a transaction."""
    if direction == "upgrade":
        command.upgrade(config(connection), revision)
    else:
        command.downgrade(config(connection), revision)


def _run_guarded(engine: sa.Engine, direction: str, revision: str) -> None:
    try:
        with engine.begin() as connection:
            run(connection, direction, revision)
    except (DBAPIError, OSError) as error:
        raise StoreUnavailable(f"the database cannot be migrated: {error}") from error
    finally:
        engine.dispose()
