"""Sessions with PostgreSQL: how they are opened, with which limits, and what it means when one cannot be used."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import asyncpg

from storage.interfaces import StoreUnavailable

CONNECT_SECONDS = 5.0
COMMAND_SECONDS = 30.0
SESSION = {
    "lock_timeout": "5s",
    "statement_timeout": "30s",
    "idle_in_transaction_session_timeout": "10s",
    "application_name": "porch",
}
"""A replica that hangs with the write lock loses it; one that waits for it tells its client."""

Connect = Callable[..., Awaitable[Any]]
"""Opens a session; keyword arguments are settings of PostgreSQL besides :data:`SESSION`. Raises what :func:`unavailable` turns."""

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


async def connect(url: str, **settings: str) -> Any:
    """Open a session of our own settings."""
    return await asyncpg.connect(
        url, timeout=CONNECT_SECONDS, command_timeout=COMMAND_SECONDS, server_settings={**SESSION, **settings}
    )


async def close_quietly(connection: Any) -> None:
    """Close a connection that may be broken, without waiting long."""
    try:
        await connection.close(timeout=1)
    except (*AWAY, asyncpg.PostgresError):
        connection.terminate()
