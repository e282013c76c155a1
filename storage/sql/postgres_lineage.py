"""Whether a database server is the one whose log this process knows, or one that was left behind by a failover.

A standby is never asked (``postgres_session.connect``). A former primary that comes back has an older timeline, a standby that was
promoted without the last commits ends at an older revision than was seen: neither is believed. Source: ``kube-api.md`` 5.4.
"""

from typing import Any, Final

import asyncpg

from storage.interfaces import StoreUnavailable

_TIMELINE: Final = "SELECT substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8)"
"""In hexadecimal digits; it is another one after each promotion of a standby."""


class Lineage:
    """The newest revision and the newest timeline that this process has seen."""

    def __init__(self) -> None:
        self.newest = 0
        self._timeline = 0

    def saw(self, newest: int) -> None:
        """Take a revision for final."""
        self.newest = max(self.newest, newest)

    def require(self, newest: int, seen: int) -> None:
        """Refuse a server whose log ends before what was ``seen`` when it was asked: more may be final by the time it has answered.

        Raises:
            StoreUnavailable: it does.
        """
        if newest < seen:
            raise StoreUnavailable(
                f"the database ends at revision {newest} and has been at {seen}: it was replaced by an older state; "
                "restore it as the guide for backups says, then start this server again"
            )

    async def require_heir(self, connection: Any) -> bool:
        """Look at a new session; tell whether its server was promoted since the sessions before it were opened.

        A server that does not tell its timeline, as some that are hosted do not, is judged by its revisions alone.

        Raises:
            StoreUnavailable: the server was left behind by a failover.
        """
        try:
            timeline = int(await connection.fetchval(_TIMELINE), 16)
        except asyncpg.PostgresError:
            return False
        if timeline < self._timeline:
            raise StoreUnavailable(
                f"this PostgreSQL server is at timeline {timeline}, and another one was promoted and is at {self._timeline}; "
                "it is not the primary any more, and has to be stopped"
            )
        promoted, self._timeline = 0 < self._timeline < timeline, timeline
        return promoted
