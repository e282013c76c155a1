"""Stored objects as another version of their kind shows them: with its apiVersion, and nothing else changed.

All versions of a custom resource share what is stored. Its bytes say the storage version; for any other version the
beginning is exchanged, so that reading never decodes. Source: ``kube-api.md`` 2.15, conversion None.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final, cast

from apiserver.machinery.rest import Item, ItemEvent, ItemList, ItemWatch
from storage.interfaces import Entry, Event, ObjectKey

MAX_ENTRIES: Final = 16_384
"""Entries whose other form is kept, so that Table rows made for it are made once."""
MAX_EVENTS: Final = 1024
"""Events whose other form is kept, so that watchers of a version share its frames."""


class VersionView:
    """Shows entries and events that say ``stored`` as they are in ``shown``; both are ``group/version``."""

    def __init__(self, stored: str, shown: str) -> None:
        self._stored = b'{"apiVersion":"%b"' % stored.encode()
        self._shown = b'{"apiVersion":"%b"' % shown.encode()
        self._entries: dict[ObjectKey, tuple[Entry, Entry]] = {}
        self._events: dict[int, tuple[Event, Event]] = {}

    def entry(self, entry: Entry) -> Entry:
        """Return the entry in the shown version."""
        known = self._entries.get(entry.key)
        if known is not None and known[0] is entry:
            return known[1]
        body = self.form(entry.body)
        shown = Entry(entry.key, entry.rv, entry.create_rv, entry.uid, body, entry.labels, entry.fields)
        self._entries.pop(entry.key, None)
        if len(self._entries) >= MAX_ENTRIES:
            del self._entries[next(iter(self._entries))]
        self._entries[entry.key] = (entry, shown)
        return shown

    def form(self, body: bytes) -> bytes:
        """Return a body in the shown version; a view whose versions differ in more than their name does it otherwise."""
        # An entry of the log's past may still say another version; it begins the same way.
        at = len(self._stored) if body.startswith(self._stored) else body.index(b'"', 15) + 1
        return self._shown + body[at:]

    def event(self, event: Event) -> Event:
        """Return the event in the shown version, the same one for all who ask; what was before is left out."""
        known = self._events.get(event.rv)
        if known is not None and known[0] is event:
            return known[1]
        shown = Event(event.rv, event.type, self.entry(event.entry), None)
        if len(self._events) >= MAX_EVENTS:
            del self._events[next(iter(self._events))]
        self._events[event.rv] = (event, shown)
        return shown

    def page(self, page: ItemList) -> ItemList:
        """Return a page of stored entries in the shown version."""
        return replace(page, items=[self.entry(entry) for entry in cast(Sequence[Entry], page.items)])


class VersionWatch:
    """A watch of stored entries seen in another version; an ``ItemWatch`` over one."""

    def __init__(self, source: ItemWatch, view: VersionView) -> None:
        self._source = source
        self._view = view

    @property
    def rv(self) -> int:
        """Every event up to this revision has been told."""
        return self._source.rv

    def take_initial(self) -> Iterable[Item]:
        """Hand over the entries to begin with, each converted when its turn comes."""
        return map(self._view.entry, cast(Iterable[Entry], self._source.take_initial()))

    def close(self) -> None:
        """End the watch; iteration stops."""
        self._source.close()

    def deliver_to(self, take: Callable[[Sequence[tuple[str, ItemEvent]]], bool]) -> None:
        """Offer what comes while the reader waits to ``take`` first."""
        self._source.deliver_to(lambda batch: take(self._shown(batch)))

    async def __aiter__(self) -> AsyncIterator[Sequence[tuple[str, ItemEvent]]]:
        async for batch in self._source:
            yield self._shown(batch)

    def _shown(self, batch: Sequence[tuple[str, ItemEvent]]) -> Sequence[tuple[str, ItemEvent]]:
        return [(type_, self._view.event(cast(Event, event))) for type_, event in batch]
