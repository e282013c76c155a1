"""Group commit: writes that wait together share one database transaction.

While one batch is being committed the next one collects, so a lone writer never waits and a crowd pays for one
commit per batch. Source: ``kube-api.md`` 5.3.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from copy import copy
from dataclasses import dataclass

import structlog

from storage.interfaces import Entry, IndexedFields, Mutation, OutcomeUnknown, StoreUnavailable
from storage.sql.log import LogDatabase, Outcome, Transaction
from storage.watchcache.cache import ResourceCache

MOST_TOGETHER = 64
"""Writes per transaction (``kube-api.md`` 5.3)."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Described:
    """What the selectors see of an object, and the cache whose index says so."""

    fields: IndexedFields
    cache: ResourceCache


@dataclass(frozen=True, slots=True)
class Pending:
    """One caller's write: as its author gave it, what the selectors see, as it is stored, and the answer to come."""

    mutations: Sequence[Mutation]
    described: Sequence["Described"]
    transaction: Transaction
    answer: "asyncio.Future[Sequence[Entry]]"


Apply = Callable[[Sequence[Pending], Sequence[Outcome]], Awaitable[None]]
"""Makes a committed batch visible and answers its callers."""


class GroupCommit:
    """The only writer of a store; commits in the order of :meth:`submit`."""

    def __init__(self, database: LogDatabase, apply: Apply) -> None:
        self._database = database
        self._apply = apply
        self._waiting: deque[Pending] = deque()
        self._task: asyncio.Task[None] | None = None

    def submit(self, pending: Pending) -> None:
        """Take a write; its answer comes whatever happens to the caller."""
        self._waiting.append(pending)
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="group commit")

    async def finish(self) -> None:
        """Wait until everything submitted is answered."""
        while self._task is not None:
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        try:
            while self._waiting:
                count = min(MOST_TOGETHER, len(self._waiting))
                await self._commit([self._waiting.popleft() for _ in range(count)])
        finally:
            self._task = None

    async def _commit(self, batch: Sequence[Pending]) -> None:
        try:
            outcomes = await self._database.commit([pending.transaction for pending in batch])
        except StoreUnavailable as error:
            _fail(batch, error)
        except Exception as error:  # noqa: BLE001 # not handled here: passed on to whoever waits for the answer
            if len(batch) == 1:
                _fail(batch, error)
                return
            # One of them cannot be written; find out which, for the others' sake.
            for pending in batch:
                await self._commit([pending])
        else:
            await self._show(batch, outcomes)

    async def _show(self, batch: Sequence[Pending], outcomes: Sequence[Outcome]) -> None:
        """Make a batch visible; it is written, so it must not be tried again, whatever is wrong with memory."""
        try:
            await self._apply(batch, outcomes)
        except Exception as error:
            log.exception("a write cannot be shown")
            _fail(batch, OutcomeUnknown(f"what was written cannot be shown by this server: {error}"))


def _fail(batch: Sequence[Pending], error: Exception) -> None:
    for pending in batch:
        if not pending.answer.done():
            pending.answer.set_exception(_own(error))


def _own(error: Exception) -> Exception:
    """Return an exception for one caller alone, because raising adds to its traceback; where it cannot be copied, the same."""
    try:
        return copy(error)
    except Exception:  # noqa: BLE001 # its class decides what copying raises, and the caller must be answered
        return error
