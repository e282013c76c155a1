"""What a PostgreSQL database needs after it was put back to a backup by PostgreSQL's own means.

Source: ADR 0027; ``kube-api.md`` 5.4.
"""

import asyncio
import uuid
from typing import Any, Final

from storage.interfaces import StoreUnavailable
from storage.sql.migrate import upgrade
from storage.sql.postgres_session import SESSION, connect, unavailable
from storage.sql.statements import WRITE_LOCK

_CONNECTED: Final = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND application_name = $1 AND pid <> pg_backend_pid()
"""
_BEGIN_ANEW: Final = """
UPDATE k_meta SET incarnation = $1, compact_rv = $2
    + greatest(compact_rv, (SELECT coalesce(max(rv), 0) FROM k_log))
"""


async def begin_anew(url: str, reserved: int) -> None:
    """Leave out ``reserved`` revisions and begin another incarnation, in one transaction; migrates the database first.

    Every server then has all watches begin anew and reads all of Git. Repeating it leaves out as many again, which does no harm.

    Raises:
        StoreUnavailable: the database cannot be used, or servers are connected to it; nothing was changed.
    """
    await asyncio.to_thread(upgrade, url)
    with unavailable():
        connection = await connect(url)
        try:
            async with connection.transaction():
                await _require_nobody(connection)
                await connection.execute("SELECT pg_advisory_xact_lock($1)", WRITE_LOCK)
                await connection.execute(_BEGIN_ANEW, uuid.uuid4().hex, reserved)
        finally:
            await connection.close()


async def _require_nobody(connection: Any) -> None:
    """Refuse while servers have sessions: what they hold in memory is of before. Raises StoreUnavailable."""
    if connected := await connection.fetchval(_CONNECTED, SESSION["application_name"]):
        raise StoreUnavailable(f"servers are connected to the database ({connected} sessions); stop them first")
