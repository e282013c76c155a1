"""The object store: writes go through the group commit to the log, reads are served from the watch caches.

This module is the :class:`storage.interfaces.ObjectStore`: it routes. How the caches are filled from the log is in
``resources``.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress

from storage.bodies import MARK, with_revision
from storage.interfaces import (
    Compacted,
    Entry,
    Event,
    FutureRevision,
    Index,
    ListQuery,
    Mutation,
    NotOurTurn,
    ObjectKey,
    Observer,
    Page,
    Refresh,
    StaleWrite,
    StoreUnavailable,
    Watch,
)
from storage.leading import Leader
from storage.outbox import Outbox, OutboxChange
from storage.sealing import Sealer
from storage.spans import span
from storage.sql.log import Committed, LogDatabase, Outcome, Transaction
from storage.turns import Claim, Election, TakenTurn, Turn
from storage.watchcache.commits import Described, GroupCommit, Pending
from storage.watchcache.compactor import Compactor
from storage.watchcache.cursor import RingWatch
from storage.watchcache.follower import Follower
from storage.watchcache.history import History
from storage.watchcache.progress import LONGEST_WAIT, Progress
from storage.watchcache.resources import Resources

TRIM_SECONDS = 300.0
"""Between two looks at the events of resources that are written too seldom to trim them by the way."""


class WatchedStore:
    """An :class:`storage.interfaces.ObjectStore` over a log database that is migrated already.

    ``sealer`` is needed when a sealed resource is registered.
    """

    def __init__(self, database: LogDatabase, sealer: Sealer | None = None) -> None:
        self._database = database
        self._progress = Progress()
        self._resources = Resources(database, self._progress, sealer)
        self._history = History(database, self._progress)
        self._follower = Follower(database, self._progress, self._resources.apply_rows, self._resources.reload)
        self._commits = GroupCommit(database, self._apply_committed)
        self._compactor = Leader(database, "compaction", [Compactor(lambda: self._progress.rv, self.compact).run])
        self._tasks: list[asyncio.Task[None]] = []
        self._running = False

    @property
    def outbox(self) -> Outbox:
        """The outbox in the same database."""
        return self._database

    @property
    def shared(self) -> bool:
        """Whether other replicas may write to the same database."""
        return self._database.shared

    @property
    def rv(self) -> int:
        """The revision up to which the caches are complete."""
        return self._progress.rv

    @property
    def incarnation(self) -> str:
        """Which life of the database this is."""
        return self._progress.incarnation

    # --- life ---------------------------------------------------------------------------------

    def register(self, resource: str, index: Index, *, sealed: bool = False, refresh: Refresh | None = None) -> None:
        """Serve a resource; after ``start`` its stored objects are there at once.

        Raises:
            ValueError: it is registered already, or is sealed and the store has no sealer.
        """
        self._resources.register(resource, index, sealed=sealed, refresh=refresh)

    def unregister(self, resource: str) -> None:
        """Stop serving a resource; its objects stay stored. May be called twice.

        Raises:
            ValueError: it is sealed.
        """
        self._resources.unregister(resource)

    async def reindex(self, resource: str, index: Index, *, refresh: Refresh | None = None) -> None:
        """Serve a resource by another index; its watches end.

        Raises:
            NotRegistered: it is not served.
            ValueError: it is sealed.
        """
        await self._resources.reindex(resource, index, refresh)

    def observe(self, resource: str, observer: Observer) -> None:
        """Call ``observer`` for each event, beginning with the objects that are there."""
        self._resources.of(resource).observe(observer)

    async def start(self) -> None:
        """Load the current objects and begin following the log.

        Raises:
            StoreUnavailable: the database cannot be opened.
        """
        try:
            await self._database.open(self._follower.kick)
            await self._resources.load()
        except BaseException:
            await self._database.close()
            raise
        self._running = True
        self._tasks.append(asyncio.create_task(self._compactor.run(), name="compactor"))
        self._tasks.append(asyncio.create_task(self._trim(), name="trimmer"))
        if self._database.shared:
            self._tasks.append(asyncio.create_task(self._follower.run(), name="log follower"))

    async def stop(self) -> None:
        """End all watches, finish the accepted writes, close the database; may be called twice."""
        self._running = False
        self._resources.close_watches()
        await self._commits.finish()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        await self._database.close()

    @property
    def synced(self) -> bool:
        """Whether the caches were filled and follow the log."""
        return self._running and not any(task.done() for task in self._tasks)

    async def reachable(self) -> bool:
        """Tell whether the database answers."""
        try:
            await self._database.marks()
        except StoreUnavailable:
            return False
        return True

    def figures(self) -> list[tuple[str, int, int, int]]:
        """Return, for each resource: objects, events since the start, watches closed for being too slow.

        May be called from another thread.
        """
        return self._resources.figures()

    # --- reading ------------------------------------------------------------------------------

    def get(self, key: ObjectKey) -> Entry | None:
        """Return the object in force in memory."""
        return self._resources.of(key.resource).cache.get(key.namespace, key.name)

    def snapshot(self, resource: str, namespace: str | None = None) -> Sequence[Entry]:
        """Return the entries in memory, in order."""
        return self._resources.of(resource).cache.snapshot(namespace)

    async def get_fresh(self, key: ObjectKey, *, not_older_than: int | None = None) -> Entry | None:
        """Return the object at least as fresh as asked for; without a number, as of now everywhere."""
        await self._freshen(not_older_than)
        return self.get(key)

    async def list(self, resource: str, query: ListQuery) -> Page:
        """Return entries in key order, at an exact revision or at least as fresh as asked for."""
        served = self._resources.of(resource)
        if query.at is None:
            await self._freshen(query.not_older_than)
            return served.cache.page(query, self.rv)
        await self._freshen(query.at)
        if query.at < self._progress.compacted:
            raise Compacted(query.at, self._progress.compacted)
        if query.at >= served.cache.ring.floor:
            return served.cache.page_at(query, query.at)
        return await self._history.page(resource, served.build, query, query.at)

    def watch(self, resource: str, *, namespace: str | None, after: int | None) -> tuple[Sequence[Entry], Watch]:
        """Open a watch from now on, with the entries of now, or after a revision."""
        if not self._running:
            raise StoreUnavailable("the store is stopped")
        served = self._resources.of(resource)
        cache, build = served.cache, served.build
        if after is None:
            entries, start = cache.snapshot(namespace), self.rv
        else:
            entries, start = [], after
        if start > self.rv:
            raise FutureRevision(start, self.rv)
        if start < cache.ring.floor and start < self._progress.compacted:
            raise Compacted(start, self._progress.compacted)

        async def backlog(beyond: int, upto: int) -> Sequence[Event]:
            return await self._history.events(resource, build, beyond, upto)

        return entries, RingWatch(cache.ring, served.lot, namespace, start, backlog)

    async def _freshen(self, not_older_than: int | None) -> None:
        """Wait until the caches are complete up to a revision, or up to now. Raises FutureRevision."""
        if not_older_than is None:
            # Alone with its database, a store has applied all that it has acknowledged.
            if self._database.shared:
                await self._follower.catch_up()
            return
        if self.rv >= not_older_than:
            return
        if self._database.shared:
            await self._follower.catch_up()
        if not await self._progress.reached(not_older_than, LONGEST_WAIT):
            raise FutureRevision(not_older_than, self.rv)

    # --- writing ------------------------------------------------------------------------------

    async def write(
        self, mutations: Sequence[Mutation], outbox: Sequence[OutboxChange] = (), turn: Turn | None = None
    ) -> Sequence[Entry]:
        """Commit everything in one transaction; see the port.

        Raises:
            ValueError: a body or key is not fit to be stored, or the resource is not registered.
        """
        if not self._running:
            raise StoreUnavailable("the store is stopped")
        if not mutations and not outbox:
            return []
        with span("commit", objects=len(mutations)):
            try:
                return await self._commit(mutations, outbox, turn)
            except StaleWrite:
                if self.shared:  # whoever tries again must not see what another replica has changed by now
                    with suppress(StoreUnavailable):
                        await self._follower.catch_up()
                raise

    async def _commit(
        self, mutations: Sequence[Mutation], outbox: Sequence[OutboxChange], turn: Turn | None
    ) -> Sequence[Entry]:
        described = [self._describe(mutation) for mutation in mutations]
        transaction = Transaction([self._resources.sealed(mutation) for mutation in mutations], outbox, turn)
        answer: asyncio.Future[Sequence[Entry]] = asyncio.get_running_loop().create_future()
        self._commits.submit(Pending(mutations, described, transaction, answer))
        return await asyncio.shield(answer)

    def turn(self, key: str) -> TakenTurn:
        """Wait for the turn at ``key``; memory is brought up to date then, and whenever the turn is made sure of."""
        return self._up_to_date(key) if self.shared else self._database.turn(key)

    def claim(self, key: str) -> Claim:
        """Take ``key`` unless another replica has it."""
        return self._database.claim(key)

    def elect(self, key: str) -> Election:
        """Wait to lead what ``key`` names."""
        return self._database.elect(key)

    @asynccontextmanager
    async def _up_to_date(self, key: str) -> AsyncIterator[Turn]:
        async with self._database.turn(key) as turn:
            await self._follower.catch_up()
            yield _FollowedTurn(turn, self._follower)

    async def _trim(self) -> None:
        """Let go of events in memory that need not be kept any longer, until cancelled."""
        while True:
            await asyncio.sleep(TRIM_SECONDS)
            self._resources.trim()

    async def compact(self, before: int) -> None:
        """Delete what is superseded at or before a revision and raise the low-water mark.

        Raises:
            ValueError: the revision is not reached yet.
        """
        if before > self.rv:
            raise ValueError(f"cannot compact to {before}, the newest revision is {self.rv}")
        self._progress.compacted = max(self._progress.compacted, await self._database.compact(before))

    def _describe(self, mutation: Mutation) -> Described:
        """Look at a body before it is committed, so that nothing can go wrong afterwards."""
        key = mutation.key
        if "\0" in key.namespace or "\0" in key.name or not key.name or MARK not in mutation.body:
            raise ValueError(f"{key} cannot be stored: its key or its body is malformed")
        cache = self._resources.of(key.resource).cache
        return Described(cache.describe(mutation.body), cache)

    async def _apply_committed(self, batch: Sequence[Pending], outcomes: Sequence[Outcome]) -> None:
        """Apply a committed batch in revision order, behind everything before it, and answer its callers."""
        stamps = [stamp for outcome in outcomes if isinstance(outcome, Committed) for stamp in outcome.stamps]
        async with self._follower.lock:
            try:
                if stamps:
                    await self._follower.fill(stamps[0].rv - 1)
            except StoreUnavailable:
                # Written, yet not to be shown before the rows below it; the follower will read it with them.
                self._follower.kick()
            ready = not stamps or self.rv >= stamps[0].rv - 1
            for pending, outcome in zip(batch, outcomes, strict=True):
                self._answer(pending, outcome, visible=ready)
            if stamps and ready:
                self._progress.advance(stamps[-1].rv)

    def _answer(self, pending: Pending, outcome: Outcome, *, visible: bool) -> None:
        if isinstance(outcome, StaleWrite | NotOurTurn):
            pending.answer.set_exception(outcome)
            return
        entries: list[Entry] = []
        for mutation, described, stamp in zip(pending.mutations, pending.described, outcome.stamps, strict=True):
            served = self._resources.find(mutation.key.resource)
            entry = served.cache.get(mutation.key.namespace, mutation.key.name) if served else None
            # The follower may have been first, when another replica's notification made it read this row too.
            if entry is None or entry.rv != stamp.rv:
                body = with_revision(mutation.body, stamp.rv)
                # The index may have been exchanged while this waited for its commit.
                outdated = served is not None and served.cache is not described.cache
                fields = served.cache.describe(mutation.body) if served and outdated else described.fields
                entry = Entry(mutation.key, stamp.rv, stamp.create_rv, mutation.uid, body, *fields)
                if visible and stamp.rv > self.rv:
                    self._resources.apply(mutation.op, entry)
            entries.append(entry)
        pending.answer.set_result(entries)


class _FollowedTurn:
    """A turn whose holder's memory is as new as its turn."""

    def __init__(self, turn: Turn, follower: Follower) -> None:
        self._turn = turn
        self._follower = follower

    @property
    def key(self) -> str:
        return self._turn.key

    @property
    def epoch(self) -> int:
        return self._turn.epoch

    @property
    def moved(self) -> bool:
        return self._turn.moved

    async def renew(self) -> bool:
        """Make sure that it is our turn."""
        moved = await self._turn.renew()
        await self._follower.catch_up()
        return moved

    def fence(self, claims: Iterable[str] = ()) -> Callable[[], bool]:
        """Return what tells whether no other replica can have the turn."""
        return self._turn.fence(claims)
