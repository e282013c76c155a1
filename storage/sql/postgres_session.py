"""Sessions with PostgreSQL: how they are opened, with which limits, and what it means when one cannot be used."""

import urllib.parse
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from itertools import zip_longest
from typing import Any

import asyncpg

from storage.interfaces import StoreUnavailable

CONNECT_SECONDS = 5.0
"""For each host."""
COMMAND_SECONDS = 30.0
SESSION = {
    "lock_timeout": "5s",
    "statement_timeout": "30s",
    "idle_in_transaction_session_timeout": "10s",
    # Another one, which a database or role may have as its default, would show the log as it was before the write lock came.
    "default_transaction_isolation": "read committed",
    # Networks forget connections that say nothing for minutes; the server also finds out sooner who is gone.
    "tcp_keepalives_idle": "30",
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "3",
    "application_name": "porch",
}
"""A replica that hangs with the write lock loses it; one that waits for it tells its client."""
_DURABLE = "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
# What is acknowledged is durable, whatever a database or role has by default; which standbys are waited for is the operator's.

Connect = Callable[..., Awaitable[Any]]
"""Opens a session; keyword arguments are settings of PostgreSQL besides :data:`SESSION`. Raises what :func:`unavailable` turns."""

Judge = Callable[[Any], Awaitable[None]]
"""Looks at a new session. Raises StoreUnavailable when its server is not to be used."""

AWAY = (
    OSError,
    TimeoutError,
    asyncpg.InterfaceError,
    # What the driver says when the server ends a session in the middle of an exchange.
    asyncpg.InternalClientError,
    asyncpg.PostgresConnectionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.OperatorInterventionError,
    asyncpg.LockNotAvailableError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    # Deadlocks with a migration; statements that one made outdated; disks and pages that cannot be read.
    asyncpg.TransactionRollbackError,
    asyncpg.InvalidCachedStatementError,
    asyncpg.PostgresSystemError,
    asyncpg.InternalServerError,
    asyncpg.InsufficientPrivilegeError,
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.UndefinedTableError,
    asyncpg.UndefinedColumnError,
)


@contextmanager
def unavailable() -> Iterator[None]:
    """Turn what the driver raises when the server cannot work now into StoreUnavailable.

    A value that PostgreSQL cannot hold is a ValueError.
    """
    try:
        yield
    except AWAY as error:
        raise StoreUnavailable(f"the PostgreSQL database cannot be used: {error or type(error).__name__}") from error
    except asyncpg.DataError as error:
        raise ValueError(f"PostgreSQL cannot hold a value: {error}") from error


async def connect(
    url: str, *, judge: Judge | None = None, command_seconds: float = COMMAND_SECONDS, **settings: str
) -> Any:
    """Open a session of our own settings with the first of the URL's hosts that takes writes.

    A host that does not answer costs :data:`CONNECT_SECONDS`, and the next one is tried. Raises what :func:`unavailable` turns.
    """
    problem: Exception | None = None
    for one in each_host(url):
        try:
            session = await asyncpg.connect(
                one,
                timeout=CONNECT_SECONDS,
                command_timeout=command_seconds,
                server_settings={**SESSION, **settings},
                target_session_attrs="read-write",
            )
        except AWAY as error:
            problem = error
            continue
        except (ValueError, OverflowError):
            raise _unreadable() from None
        try:
            await session.execute(_DURABLE, timeout=CONNECT_SECONDS)
            if judge is not None:
                await judge(session)
        except BaseException as error:
            session.terminate()
            if not isinstance(error, (*AWAY, StoreUnavailable)):
                raise
            problem = error
        else:
            return session
    raise problem or OSError(f"the URL names no host: {urllib.parse.urlsplit(url).scheme}://…")


def each_host(url: str) -> list[str]:
    """Return one URL for each host that a URL names, in its order. The driver itself would wait for all with one deadline.

    Raises:
        StoreUnavailable: it is no URL.
    """
    try:
        return _each_host(url)
    except ValueError:
        raise _unreadable() from None


def _unreadable() -> StoreUnavailable:
    """Say that a URL cannot be read without quoting any part of it: what looks like a port or a query may be the password."""
    return StoreUnavailable(
        "the URL of the PostgreSQL database cannot be read; its form is postgresql://USER:PASSWORD@HOST:PORT/NAME, and "
        "characters such as / ? # @ : % in the user's name and password have to be percent-encoded"
    )


def _each_host(url: str) -> list[str]:
    parts = urllib.parse.urlsplit(url)
    user, at, hosts = parts.netloc.rpartition("@")
    if "," in hosts:
        return [parts._replace(netloc=f"{user}{at}{host}").geturl() for host in hosts.split(",")]
    query = urllib.parse.parse_qs(parts.query, keep_blank_values=True)
    named, ports = (query.pop(name, [""])[-1].split(",") for name in ("host", "port"))
    if len(named) < 2:  # noqa: PLR2004 # one host, or none
        return [url]
    urls = []
    for host, port in zip_longest(named, ports if len(ports) == len(named) else ports * len(named)):
        place = {"host": [host]} | ({"port": [port]} if port else {})
        urls.append(f"{url.partition('?')[0]}?{urllib.parse.urlencode(query | place, doseq=True)}")
    return urls


async def close_quietly(connection: Any) -> None:
    """Close a connection that may be broken, without waiting long."""
    try:
        await connection.close(timeout=1)
    except (*AWAY, asyncpg.PostgresError):
        connection.terminate()
