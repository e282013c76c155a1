"""Keeps the caches complete when other processes write to the same log.

Revisions have no gaps, so a missing number is either a row to be read, or was compacted while this process was cut off;
then the state is read afresh. A poll every second backs up the database's notifications. Source: ``kube-api.md`` 5.4.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from random import uniform

import structlog

from storage.interfaces import LogRow, StoreUnavailable
from storage.sql.log import LogDatabase, Marks
from storage.watchcache.progress import Progress

POLL_SECONDS = 1.0
PAGE = 500
"""Rows per read (``kube-api.md`` 5.1)."""

log = structlog.get_logger(__name__)


class Follower:
    """Reads what others wrote. ``apply`` takes rows in order, ``reload`` replaces the state; both under the lock."""

    def __init__(
        self,
        database: LogDatabase,
        progress: Progress,
        apply: Callable[[Sequence[LogRow]], None],
        reload: Callable[[], Awaitable[None]],
    ) -> None:
        self.lock = asyncio.Lock()
        """Held by whoever applies events, so that they are applied in order."""
        self._database = database
        self._progress = progress
        self._apply = apply
        self._reload = reload
        self._kicked = asyncio.Event()
        self._next_marks: asyncio.Task[Marks] | None = None
        self._marks_running = asyncio.Lock()

    def kick(self) -> None:
        """Say that there may be something to read."""
        self._kicked.set()

    async def run(self) -> None:
        """Follow the log until cancelled; a database that is away is tried again every second or so."""
        away = False
        while True:
            try:
                async with asyncio.timeout(POLL_SECONDS * uniform(0.9, 1.1)):  # noqa: S311 # spreads replicas' polls
                    await self._kicked.wait()
            except TimeoutError:
                pass
            self._kicked.clear()
            try:
                await self.catch_up()
            except StoreUnavailable as error:
                if not away:
                    log.warning("database away, caches may be behind", error=str(error))
                away = True
                await asyncio.sleep(POLL_SECONDS)
            except Exception:  # told here; the server is not ready any more
                log.exception("the log cannot be followed")
                raise
            else:
                away = False

    async def marks(self) -> Marks:
        """Return marks read after the call began; callers that come together share one read."""
        task = self._next_marks
        if task is None:
            task = self._next_marks = asyncio.create_task(self._read_marks())
        return await asyncio.shield(task)

    async def catch_up(self) -> None:
        """Apply everything that is committed now."""
        marks = await self.marks()
        self._progress.compacted = max(self._progress.compacted, marks.compacted)
        if marks.head > self._progress.rv:
            async with self.lock:
                await self.fill(marks.head)

    async def fill(self, upto: int) -> None:
        """Apply everything up to a committed revision; the caller holds the lock."""
        while self._progress.rv < upto:
            before = self._progress.rv
            rows = await self._database.changes(before, PAGE)
            if not rows or rows[-1].rv - before != len(rows):
                await self._reload()
            else:
                self._apply(rows)

    async def _read_marks(self) -> Marks:
        async with self._marks_running:
            # From here on a newcomer may have missed the read, and starts the next one.
            self._next_marks = None
            marks = await self._database.marks()
            if marks.incarnation != self._progress.incarnation:
                raise StoreUnavailable("a backup was put in the place of the database; start this server again")
            return marks
