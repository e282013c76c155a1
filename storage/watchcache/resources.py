"""All resources of a store: which are served, and how their caches are filled from rows of the log.

Rows of resources that nobody has registered yet are kept as they are, because a custom resource
is registered only after its definition was loaded; then it is served without asking the database.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import groupby

from storage.bodies import decode, encode_body, with_revision, without_revision
from storage.interfaces import (
    Entry,
    Event,
    EventType,
    Index,
    LogRow,
    Mutation,
    NotRegistered,
    ObjectKey,
    Observer,
    Op,
    Refresh,
)
from storage.sealing import Sealer
from storage.sql.log import LogDatabase, StateQuery
from storage.watchcache.cache import ResourceCache
from storage.watchcache.cursor import ParkingLot
from storage.watchcache.history import event_of
from storage.watchcache.progress import Progress

LOAD_PAGE = 1000
"""Rows read at once, so that loading needs little more memory than what stays."""
SEED = 1000
"""Newest revisions put into the rings at start, so that clients resume without reading the log."""

Open = Callable[[ObjectKey, bytes], bytes]


class Resource:
    """One served resource: cache, parked watchers, observers. ``sealer`` None means that bodies are stored plain."""

    def __init__(self, index: Index, progress: Progress, sealer: Sealer | None, refresh: Refresh | None) -> None:
        self.lot = ParkingLot(lambda: progress.rv)
        self.cache = ResourceCache(index, progress.rv, self._notify, refresh)
        self.sealer = sealer
        self._observers: list[Observer] = []

    def observe(self, observer: Observer) -> None:
        """Add an observer and show it what is there."""
        self._observers.append(observer)
        for entry in self.cache.snapshot(None):
            observer(Event(entry.rv, EventType.ADDED, entry, None))

    def build(self, row: LogRow) -> Entry:
        """Build the entry of a row; one that is in force is shared with the cache."""
        known = self.cache.get(row.key.namespace, row.key.name)
        if known is not None and known.rv == row.rv:
            return known
        body = self.sealer.open(row.key, row.body) if self.sealer is not None else row.body
        return self.cache.entry_of(row, body)

    def load(self, rows: Iterable[LogRow]) -> None:
        """Put objects in force into the cache."""
        for row in rows:
            entry = self.build(row)
            self.cache.load(entry)
            for observer in self._observers:
                observer(Event(entry.rv, EventType.ADDED, entry, None))

    def row(self, entry: Entry) -> LogRow:
        """Return an entry in force as a row of the log; which revision it superseded is not known any more."""
        body = without_revision(entry.body, entry.rv)
        return LogRow(entry.rv, entry.key, Op.UPDATE, 0, entry.create_rv, entry.uid, body)

    def apply(self, op: Op, entry: Entry) -> None:
        """Make one committed change visible and tell the observers."""
        event = self.cache.apply(op, entry)
        for observer in self._observers:
            observer(event)

    def begin_anew(self, rv: int) -> None:
        """End all watches; new ones have their events from ``rv`` on."""
        self.cache.ring.begin_anew(rv)
        self.lot.close_all()

    def _notify(self, event: Event, number: int) -> None:
        self.lot.call(event.entry.key.namespace, number)


def _renewed(reader: Resource, entries: Sequence[Entry]) -> dict[ObjectKey, Entry]:
    """Read entries anew, off the event loop."""
    return {entry.key: reader.build(reader.row(entry)) for entry in entries}


class Resources:
    """The registered resources by name, and the unclaimed rows."""

    def __init__(self, database: LogDatabase, progress: Progress, sealer: Sealer | None) -> None:
        self._database = database
        self._progress = progress
        self._sealer = sealer
        self._served: dict[str, Resource] = {}
        self._unclaimed: dict[str, dict[ObjectKey, LogRow]] = {}

    def find(self, resource: str) -> Resource | None:
        """Return a served resource, or None."""
        return self._served.get(resource)

    def of(self, resource: str) -> Resource:
        """Return a served resource.

        Raises:
            NotRegistered: it is not served.
        """
        found = self._served.get(resource)
        if found is None:
            raise NotRegistered(resource)
        return found

    def register(self, resource: str, index: Index, *, sealed: bool, refresh: Refresh | None) -> None:
        """Serve a resource, with the rows kept for it. Raises ValueError."""
        if resource in self._served:
            raise ValueError(f"resource {resource!r} is registered already")
        if sealed and self._sealer is None:
            raise ValueError(f"resource {resource!r} is to be sealed and the store has no key")
        served = Resource(index, self._progress, self._sealer if sealed else None, refresh)
        rows = self._unclaimed.pop(resource, {})
        served.load(rows[key] for key in sorted(rows))
        self._served[resource] = served

    def unregister(self, resource: str) -> None:
        """Stop serving a resource, end its watches and keep its rows. Raises ValueError when it is sealed."""
        if resource not in self._served:
            return
        served = self._unsealed(resource)
        del self._served[resource]
        served.lot.close_all()
        self._unclaimed[resource] = {entry.key: served.row(entry) for entry in served.cache.snapshot(None)}

    async def reindex(self, resource: str, index: Index, refresh: Refresh | None) -> None:
        """Serve a resource by another index. Raises NotRegistered, or ValueError when it is sealed."""
        served = self._unsealed(resource)
        reader = Resource(index, self._progress, None, refresh)
        read = await asyncio.to_thread(_renewed, reader, served.cache.snapshot(None))
        if self._served.get(resource) is not served:
            raise NotRegistered(resource)
        # What changed meanwhile is read again; the ring begins now.
        renewed = Resource(index, self._progress, None, refresh)
        for entry in served.cache.snapshot(None):
            known = read.get(entry.key)
            renewed.cache.load(known if known and known.rv == entry.rv else reader.build(reader.row(entry)))
        self._served[resource] = renewed
        served.lot.close_all()

    def _unsealed(self, resource: str) -> Resource:
        served = self.of(resource)
        if served.sealer is not None:
            raise ValueError(f"resource {resource!r} is sealed and stays as it is")
        return served

    def apply(self, op: Op, entry: Entry) -> None:
        """Make one committed change visible; of a resource that is no longer served, it is kept."""
        served = self._served.get(entry.key.resource)
        if served is not None:
            served.apply(op, entry)
        elif op is Op.DELETE:
            self._unclaimed.get(entry.key.resource, {}).pop(entry.key, None)
        else:
            body = without_revision(entry.body, entry.rv)
            row = LogRow(entry.rv, entry.key, op, 0, entry.create_rv, entry.uid, body)
            self._unclaimed.setdefault(entry.key.resource, {})[entry.key] = row

    def sealed(self, mutation: Mutation) -> Mutation:
        """Return a mutation as it is to be stored."""
        sealer = self.of(mutation.key.resource).sealer
        return mutation if sealer is None else replace(mutation, body=sealer.seal(mutation.key, mutation.body))

    def apply_rows(self, rows: Sequence[LogRow]) -> None:
        """Make rows that another process wrote visible, in order; those before one that cannot be read are not shown again."""
        applied = self._progress.rv
        try:
            for row in rows:
                self._apply_row(row)
                applied = row.rv
        finally:
            self._progress.advance(applied)

    def _apply_row(self, row: LogRow) -> None:
        served = self._served.get(row.key.resource)
        if served is not None:
            served.apply(row.op, served.build(row))
        elif row.op is Op.DELETE:
            self._unclaimed.get(row.key.resource, {}).pop(row.key, None)
        else:
            self._unclaimed.setdefault(row.key.resource, {})[row.key] = row

    def figures(self) -> list[tuple[str, int, int, int]]:
        """Return, for each resource: objects, events since the start, watches closed for being too slow.

        May be called from another thread.
        """
        return [
            (name, served.cache.count(), served.cache.ring.end, served.lot.overtaken)
            for name, served in list(self._served.items())
        ]

    def trim(self) -> None:
        """Let go of events that need not be kept any longer."""
        for served in self._served.values():
            served.cache.ring.trim()

    def close_watches(self) -> None:
        """End every watch of every resource."""
        for served in self._served.values():
            served.lot.close_all()

    # --- the state as a whole -----------------------------------------------------------------

    async def load(self) -> None:
        """Fill empty caches with the current state, and the rings with the newest events."""
        marks = await self._database.marks()
        start = ObjectKey("", "", "")
        while rows := await self._database.state_at(StateQuery(marks.head, start, LOAD_PAGE)):
            self._load_page(rows)
            start = rows[-1].key
        await self._seed(max(marks.compacted, marks.head - SEED), marks.head)
        self._progress.compacted, self._progress.incarnation = marks.compacted, marks.incarnation
        self._progress.advance(marks.head)

    def _load_page(self, rows: Sequence[LogRow]) -> None:
        for resource, some in groupby(rows, key=lambda row: row.key.resource):
            served = self._served.get(resource)
            if served is not None:
                served.load(some)
            else:
                self._unclaimed.setdefault(resource, {}).update((row.key, row) for row in some)

    async def _seed(self, after: int, upto: int) -> None:
        for served in self._served.values():
            served.cache.ring.floor = after
        for change in await self._database.history(None, after, upto, SEED):
            served_or_none = self._served.get(change.row.key.resource)
            if served_or_none is not None:
                served_or_none.cache.ring.append(event_of(change, served_or_none.build))

    async def reload(self) -> None:
        """Catch up by comparing states, because the rows in between were compacted.

        Observers see the difference as events, deletions last. Nobody can tell those events' revisions, so no client may resume
        between them: all watches end, and resuming from before is refused as after any compaction.
        """
        marks = await self._database.marks()
        changed: list[LogRow] = []
        present: set[ObjectKey] = set()
        start = ObjectKey("", "", "")
        while rows := await self._database.state_at(StateQuery(marks.head, start, LOAD_PAGE)):
            present.update(row.key for row in rows)
            changed.extend(row for row in rows if row.rv > self._progress.rv)
            start = rows[-1].key
        for row in sorted(changed, key=lambda row: row.rv):
            self._apply_row(row)  # how far we are is said at the end: only then what went in between is gone here, too
        self._remove_absent(present, marks.head)
        self._progress.compacted = max(self._progress.compacted, marks.compacted)
        self._progress.advance(marks.head)
        for served in self._served.values():
            served.begin_anew(marks.head)

    def _remove_absent(self, present: set[ObjectKey], rv: int) -> None:
        for resource, unclaimed in self._unclaimed.items():
            self._unclaimed[resource] = {key: row for key, row in unclaimed.items() if key in present}
        for served in self._served.values():
            for entry in served.cache.snapshot(None):
                if entry.key not in present:
                    body = with_revision(encode_body(decode(entry)), rv)
                    gone = Entry(entry.key, rv, entry.create_rv, entry.uid, body, entry.labels, entry.fields)
                    served.apply(Op.DELETE, gone)
