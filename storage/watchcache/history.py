"""What only the log still knows: events older than the ring, and lists at revisions older than it.

Source: ``kube-api.md`` 5.4, exact-revision lists and resuming.
"""

from collections.abc import Callable, Sequence

from storage.interfaces import Compacted, Entry, Event, EventType, ListQuery, LogRow, ObjectKey, Op, Page
from storage.sql.log import Change, LogDatabase, StateQuery
from storage.watchcache.cache import cut
from storage.watchcache.progress import Progress

PAGE = 500
"""Rows per read."""

Build = Callable[[LogRow], Entry]
"""A stored row → its entry, decrypted."""


class History:
    """Reads one store's past from its log."""

    def __init__(self, database: LogDatabase, progress: Progress) -> None:
        self._database = database
        self._progress = progress

    async def events(self, resource: str, build: Build, after: int, upto: int) -> Sequence[Event]:
        """Return the next events of a resource in (after, upto], at most a page; empty at the end.

        Raises:
            Compacted: some of them are gone.
        """
        changes = await self._database.history(resource, after, upto, PAGE)
        await self._refuse_below(after)
        return [event_of(change, build) for change in changes]

    async def page(self, resource: str, build: Build, query: ListQuery, at: int) -> Page:
        """Return what a query wants as of revision ``at``.

        Raises:
            Compacted: that state is gone.
        """
        start = ObjectKey(resource, *(query.start_after or (query.namespace or "", "")))
        found: list[Entry] = []
        while True:
            rows = await self._database.state_at(StateQuery(at, start, PAGE, resource, query.namespace))
            entries = map(build, rows)
            found.extend(entries if query.matches is None else filter(query.matches, entries))
            if len(rows) < PAGE or 0 < query.limit < len(found):
                break
            start = rows[-1].key
        await self._refuse_below(at)
        page = cut(found, ListQuery(limit=query.limit), at)
        counted = query.matches is None and not page.more
        return Page(page.entries, at, page.more, page.remaining if counted else None)

    async def _refuse_below(self, rv: int) -> None:
        # Asked after the read, because a compaction may have come in between.
        compacted = (await self._database.marks()).compacted
        self._progress.compacted = max(self._progress.compacted, compacted)
        if rv < compacted:
            raise Compacted(rv, compacted)


def event_of(change: Change, build: Build) -> Event:
    """Build the event of a row and the one it superseded."""
    previous = build(change.previous) if change.previous is not None else None
    if change.row.op is Op.DELETE:
        type_ = EventType.DELETED
    else:
        type_ = EventType.ADDED if previous is None else EventType.MODIFIED
    return Event(change.row.rv, type_, build(change.row), previous)
