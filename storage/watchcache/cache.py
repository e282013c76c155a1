"""One resource in memory: its entries sorted per namespace, its ring of events, and the watchers parked on it.

Sorted lists of entries stand ready in key order, so that a list is a slice. Knows no database.
"""

import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from types import MappingProxyType

import orjson

from storage.bodies import encode_body, with_revision
from storage.interfaces import (
    Entry,
    Event,
    EventType,
    Index,
    IndexedFields,
    Json,
    ListQuery,
    LogRow,
    ObjectKey,
    Op,
    Page,
    Refresh,
)
from storage.watchcache.ring import EventRing

NO_LABELS: Mapping[str, str] = MappingProxyType({})
"""Shared by all entries without labels."""


class NamespaceEntries:
    """The entries of one namespace: by name, and in name order as two parallel lists."""

    __slots__ = ("by_name", "entries", "names")

    def __init__(self) -> None:
        self.by_name: dict[str, Entry] = {}
        self.names: list[str] = []
        self.entries: list[Entry] = []

    def put(self, entry: Entry) -> None:
        """Add or replace an entry."""
        name = entry.key.name
        known = name in self.by_name
        self.by_name[name] = entry
        if not self.names or name > self.names[-1]:
            self.names.append(name)
            self.entries.append(entry)
            return
        at = bisect_left(self.names, name)
        if known:
            self.entries[at] = entry
        else:
            self.names.insert(at, name)
            self.entries.insert(at, entry)

    def remove(self, name: str) -> None:
        """Remove an entry that is there."""
        del self.by_name[name]
        at = bisect_left(self.names, name)
        del self.names[at]
        del self.entries[at]

    def beyond(self, name: str) -> list[Entry]:
        """Return a copy of the entries after a name."""
        return self.entries[bisect_right(self.names, name) :]


class ResourceCache:
    """Entries and events of one resource. ``index`` gives an object's labels and selectable fields.

    ``refresh`` renews what comes from the log; what is written now has its form already.
    """

    def __init__(
        self, index: Index, floor: int, on_event: Callable[[Event, int], None], refresh: Refresh | None = None
    ) -> None:
        self.ring = EventRing(floor)
        self._index = index
        self._refresh = refresh
        self._on_event = on_event
        self._namespaces: dict[str, NamespaceEntries] = {}
        self._sorted: list[str] = []

    # --- reading ------------------------------------------------------------------------------

    def count(self) -> int:
        """Return how many entries there are; may be called from another thread."""
        return sum(len(found.names) for found in list(self._namespaces.values()))

    def get(self, namespace: str, name: str) -> Entry | None:
        """Return an entry in force."""
        found = self._namespaces.get(namespace)
        return found.by_name.get(name) if found is not None else None

    def snapshot(self, namespace: str | None) -> list[Entry]:
        """Return a copy of the entries in key order."""
        if namespace is not None:
            found = self._namespaces.get(namespace)
            return found.entries[:] if found is not None else []
        if len(self._sorted) == 1:
            return self._namespaces[self._sorted[0]].entries[:]
        return list(chain.from_iterable(self._namespaces[one].entries for one in self._sorted))

    def snapshot_at(self, rv: int, namespace: str | None) -> list[Entry]:
        """Return the entries as of a revision not below the ring's floor, by undoing the events after it."""
        undo: dict[ObjectKey, Entry | None] = {}
        for event in self.ring.newest_first(rv):
            if namespace is None or event.entry.key.namespace == namespace:
                undo[event.entry.key] = event.previous
        current = self.snapshot(namespace)
        if not undo:
            return current
        kept = [entry for entry in current if entry.key not in undo]
        kept.extend(entry for entry in undo.values() if entry is not None)
        kept.sort(key=_position)
        return kept

    def page(self, query: ListQuery, rv: int) -> Page:
        """Return the entries in force now that a query wants; ``rv`` is the revision of now."""
        if query.start_after is None:
            return cut(self.snapshot(query.namespace), query, rv)
        namespace, name = query.start_after
        if query.namespace is not None:
            found = self._namespaces.get(query.namespace)
            wanted = [found] if found is not None else []
        else:
            wanted = [self._namespaces[one] for one in self._sorted[bisect_left(self._sorted, namespace) :]]
        parts = [one.beyond(name) if one.entries[0].key.namespace == namespace else one.entries for one in wanted]
        return cut(list(chain.from_iterable(parts)), query, rv)

    def page_at(self, query: ListQuery, rv: int) -> Page:
        """Return what a query wants as of a revision not below the ring's floor."""
        entries = self.snapshot_at(rv, query.namespace)
        if query.start_after is not None:
            entries = entries[bisect_right(entries, query.start_after, key=_position) :]
        return cut(entries, query, rv)

    # --- building entries ---------------------------------------------------------------------

    def describe(self, body: bytes) -> IndexedFields:
        """Return the labels and selectable fields of a stored body, sharing what repeats between objects."""
        return self._described(orjson.loads(body))

    def _described(self, obj: Json) -> IndexedFields:
        labels, fields = self._index(obj)
        shared = {sys.intern(key): value for key, value in labels.items()} if labels else NO_LABELS
        return shared, tuple(map(sys.intern, fields))

    def entry_of(self, row: LogRow, body: bytes) -> Entry:
        """Build the entry of a log row whose decrypted body is given."""
        obj = orjson.loads(body)
        if self._refresh is not None and self._refresh(obj):
            body = encode_body(obj)
        labels, fields = self._described(obj)
        return Entry(row.key, row.rv, row.create_rv, row.uid, with_revision(body, row.rv), labels, fields)

    # --- changing -----------------------------------------------------------------------------

    def load(self, entry: Entry) -> None:
        """Put an entry without an event."""
        self._namespace(entry.key.namespace).put(entry)

    def apply(self, op: Op, entry: Entry) -> Event:
        """Make a committed change visible: entries, ring, watchers. Revisions must rise."""
        key = entry.key
        previous = self.get(key.namespace, key.name)
        if op is Op.DELETE:
            if previous is not None:
                self._remove(key)
            event = Event(entry.rv, EventType.DELETED, entry, previous)
        else:
            self._namespace(key.namespace).put(entry)
            type_ = EventType.ADDED if previous is None else EventType.MODIFIED
            event = Event(entry.rv, type_, entry, previous)
        number = self.ring.end
        self.ring.append(event)
        self._on_event(event, number)
        return event

    def _namespace(self, namespace: str) -> NamespaceEntries:
        found = self._namespaces.get(namespace)
        if found is None:
            found = self._namespaces[namespace] = NamespaceEntries()
            self._sorted.insert(bisect_left(self._sorted, namespace), namespace)
        return found

    def _remove(self, key: ObjectKey) -> None:
        found = self._namespaces[key.namespace]
        found.remove(key.name)
        if not found.names:
            del self._namespaces[key.namespace]
            self._sorted.remove(key.namespace)


def cut(entries: Sequence[Entry], query: ListQuery, rv: int) -> Page:
    """Apply selector and limit to entries in key order, which begin where the query wants them to."""
    limit, matches = query.limit, query.matches
    if matches is None:
        if not limit or len(entries) <= limit:
            return Page(entries, rv, remaining=0 if limit else None)
        return Page(entries[:limit], rv, more=True, remaining=len(entries) - limit)
    if not limit:
        return Page(list(filter(matches, entries)), rv)
    found = first_matches(entries, query)
    return Page(found[:limit], rv, more=len(found) > limit)


def first_matches(entries: Iterable[Entry], query: ListQuery) -> list[Entry]:
    """Return up to one more than ``limit`` matching entries, to know whether there are more."""
    found: list[Entry] = []
    for entry in entries:
        if query.matches is None or query.matches(entry):
            found.append(entry)
            if len(found) > query.limit:
                break
    return found


def _position(entry: Entry) -> tuple[str, str]:
    return entry.key.namespace, entry.key.name
