"""The ports of storage: objects in the log and their watch cache.

The server depends on these types; ``storage.sql``, ``storage.watchcache`` and ``storage.git``
implement them. Nothing here does input or output.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Any, Protocol

from storage.outbox import Outbox, OutboxChange
from storage.turns import Replicated, Turn

Json = dict[str, Any]


# --- objects -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, order=True)
class ObjectKey:
    """Where an object lives: ``resource`` is ``plural.group`` (core kinds: the plural alone).

    ``namespace`` is empty for cluster-scoped kinds.
    """

    resource: str
    namespace: str
    name: str


class Op(IntEnum):
    """What a log row did to its object; the numbers are stored."""

    CREATE = 0
    UPDATE = 1
    DELETE = 2


@dataclass(frozen=True, slots=True)
class Mutation:
    """One wanted change of one object, compare-and-swap on the revision its author saw.

    ``prev_rv`` is 0 for a create and the object's current resourceVersion otherwise (the store
    finds the tombstone's revision by itself when an object is created again). ``body`` is the
    object's JSON *without* ``metadata.resourceVersion``; it must start with ``apiVersion``,
    ``kind``, then ``metadata`` with at least one key in it, as :func:`encode_body` writes it. For
    DELETE it is the last content, which watchers are shown.
    """

    key: ObjectKey
    op: Op
    prev_rv: int
    uid: str
    body: bytes
    actor: str = ""


@dataclass(frozen=True, slots=True)
class LogRow:
    """A committed mutation, as read back from the log, in ``rv`` order."""

    rv: int
    key: ObjectKey
    op: Op
    prev_rv: int
    create_rv: int
    uid: str
    body: bytes


class Entry:
    """An object in force, as bytes ready to serve, with what selectors need.

    ``body`` is the full JSON object with its resourceVersion. ``fields`` are the selectable
    fields in the order the resource's index declares. ``row``, ``partial`` are filled lazily by the
    machinery with the encoded Table row (with PartialObjectMetadata inside, cut at its dates) and the encoded
    PartialObjectMetadata. Entries are immutable but for these two caches, and shared by
    the cache, the event ring and every response.
    """

    __slots__ = ("body", "create_rv", "fields", "key", "labels", "partial", "row", "rv", "uid")

    def __init__(
        self,
        key: ObjectKey,
        rv: int,
        create_rv: int,
        uid: str,
        body: bytes,
        labels: Mapping[str, str],
        fields: tuple[str, ...],
    ) -> None:
        self.key = key
        self.rv = rv
        self.create_rv = create_rv
        self.uid = uid
        self.body = body
        self.labels = labels
        self.fields = fields
        self.row: tuple[bytes, ...] | None = None
        self.partial: bytes | None = None

    @property
    def namespace(self) -> str:
        """The object's namespace, empty when cluster-scoped."""
        return self.key.namespace

    @property
    def name(self) -> str:
        """The object's name."""
        return self.key.name


class EventType(StrEnum):
    """What a watcher is told."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


class Event:
    """One change in ``rv`` order. ``previous`` is the entry before it (None on create).

    For DELETED ``entry`` carries the last content with the deletion's revision. ``frames`` caches the
    encoded watch frame per variant, shared by all watchers; only the machinery writes to it.
    """

    __slots__ = ("entry", "frames", "previous", "rv", "type")

    def __init__(self, rv: int, type_: EventType, entry: Entry, previous: Entry | None) -> None:
        self.rv = rv
        self.type = type_
        self.entry = entry
        self.previous = previous
        self.frames: dict[str, bytes] = {}


IndexedFields = tuple[Mapping[str, str], tuple[str, ...]]
Index = Callable[[Json], IndexedFields]
"""A decoded object → (labels, values of its selectable fields in declared order)."""

Refresh = Callable[[Json], bool]
"""Gives an object as the log has it the form it would be stored in today, in place; tells whether it changed."""

Matches = Callable[[Entry], bool]
"""A compiled selector."""


@dataclass(frozen=True, slots=True)
class ListQuery:
    """Which entries a list wants.

    ``namespace`` None means all. ``limit`` 0 means no limit; ``start_after`` is the (namespace, name)
    of the last entry already returned. ``at`` asks for the state exactly at a revision, ``not_older_than``
    for a state at least that fresh; both None is a consistent read.
    """

    namespace: str | None = None
    matches: Matches | None = None
    limit: int = 0
    start_after: tuple[str, str] | None = None
    at: int | None = None
    not_older_than: int | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """A list's entries in (namespace, name) order, and the revision of the snapshot.

    ``more`` tells that a limit cut the list; ``remaining`` is how many are left, or None when
    a selector was used and nobody counted.
    """

    entries: Sequence[Entry]
    rv: int
    more: bool = False
    remaining: int | None = None


class Watch(Protocol):
    """A cursor over the events of one resource.

    Iterating yields non-empty batches, each in order and without gaps. It ends when the watch is closed by
    the store (too slow, or shutting down). ``close`` may be called at any time, twice too.
    ``deliver_to`` offers what comes while the reader waits to ``take`` first, which is quick; what that answers False
    for, or raises for, is yielded. It saves waking a task.
    """

    def __aiter__(self) -> AsyncIterator[Sequence[Event]]: ...
    def deliver_to(self, take: Callable[[Sequence[Event]], bool]) -> None: ...
    def close(self) -> None: ...

    @property
    def rv(self) -> int:
        """Every event up to this revision has been yielded (for bookmarks)."""
        ...


class StaleWrite(Exception):
    """A compare-and-swap lost; nothing of the batch was written.

    ``current_rv`` is 0 when the object does not exist.
    """

    def __init__(self, key: ObjectKey, current_rv: int) -> None:
        super().__init__(f"{key} is at revision {current_rv}")
        self.key = key
        self.current_rv = current_rv


class Compacted(Exception):
    """The wanted revision is below the low-water mark; list again."""

    def __init__(self, wanted: int, oldest: int) -> None:
        super().__init__(f"revision {wanted} is compacted; the oldest kept is {oldest}")
        self.wanted = wanted
        self.oldest = oldest


class FutureRevision(Exception):
    """The wanted revision has not been reached within the time the store waits (3 s)."""

    def __init__(self, wanted: int, current: int) -> None:
        super().__init__(f"revision {wanted} is not reached; the current one is {current}")
        self.wanted = wanted
        self.current = current


class NotRegistered(ValueError):
    """The resource is not served, or no longer; programs that ask for a built-in kind never see it."""

    def __init__(self, resource: str) -> None:
        super().__init__(f"resource {resource!r} is not registered")
        self.resource = resource


class StoreUnavailable(Exception):
    """The database cannot be reached, is locked by somebody else, or its disk is full."""


class NotOurTurn(StoreUnavailable):
    """Another replica has the turn, or has had it since; what was decided in ours has to be looked at again."""


class OutcomeUnknown(StoreUnavailable):
    """The database went away while it was writing; the write may have gone through."""


# --- the store -------------------------------------------------------------------------------

Observer = Callable[[Event], None]
"""Called in the event loop for every applied event, in order; must be quick and must not raise."""


class ObjectStore(Replicated, Protocol):
    """Every object of the server: one log, one watch cache per registered resource.

    Reads are served from memory and see every write that this process has acknowledged. Resources are
    registered before ``start``; registering one later (a custom resource) loads it on the spot.
    """

    @property
    def outbox(self) -> Outbox:
        """The outbox that shares the log's transactions."""
        ...

    def register(self, resource: str, index: Index, *, sealed: bool = False, refresh: Refresh | None = None) -> None:
        """Serve a resource. ``sealed`` bodies are encrypted at rest; ``refresh`` renews what is read from the log.

        Raises:
            ValueError: it is registered already.
        """
        ...

    def unregister(self, resource: str) -> None:
        """Stop serving a resource: its watches end, its observers are forgotten, its objects stay stored.

        It may be registered again, with another index, and then has its objects back. Not registered: nothing happens.

        Raises:
            ValueError: it is sealed; those are kinds of the server itself.
        """
        ...

    async def reindex(self, resource: str, index: Index, *, refresh: Refresh | None = None) -> None:
        """Serve a resource by another index and refresh, without a moment in which it is not served.

        Its watches end and its observers are forgotten. Objects are read anew in a thread.

        Raises:
            NotRegistered: it is not served, or no longer.
            ValueError: it is sealed.
        """
        ...

    def observe(self, resource: str, observer: Observer) -> None:
        """Call ``observer`` for each event of a resource, loaded objects (as ADDED) included."""
        ...

    async def start(self) -> None:
        """Load the current objects and begin following the log."""
        ...

    async def stop(self) -> None:
        """End all watches, finish the writes that were accepted, close the database."""
        ...

    def get(self, key: ObjectKey) -> Entry | None:
        """Return the object in force in memory."""
        ...

    async def get_fresh(self, key: ObjectKey, *, not_older_than: int | None = None) -> Entry | None:
        """Return the object as of every write committed anywhere before the call.

        ``not_older_than`` accepts any state at least that fresh (0: whatever is in memory).

        Raises:
            FutureRevision: that revision does not come within 3 s.
        """
        ...

    async def list(self, resource: str, query: ListQuery) -> Page:
        """Return entries in (namespace, name) order.

        Raises:
            Compacted: ``query.at`` is below the low-water mark.
            FutureRevision: the revision wanted does not come within 3 s.
        """
        ...

    def snapshot(self, resource: str, namespace: str | None = None) -> Sequence[Entry]:
        """Return the entries in memory, in order; for the server's own use."""
        ...

    def watch(self, resource: str, *, namespace: str | None, after: int | None) -> tuple[Sequence[Entry], Watch]:
        """Open a watch. ``after`` None starts now and returns the current entries beside it.

        With ``after`` given the first list is empty and events after that revision follow. Snapshot and
        cursor are taken in one step, so nothing is missed or told twice.

        Raises:
            Compacted: ``after`` is no longer in the ring nor in the log.
            FutureRevision: ``after`` is beyond the current revision.
        """
        ...

    async def write(
        self, mutations: Sequence[Mutation], outbox: Sequence[OutboxChange] = (), turn: Turn | None = None
    ) -> Sequence[Entry]:
        """Commit all mutations and outbox changes in one transaction; return entries in order.

        When it returns, the rows are durable and applied to the caches. A cancelled caller does not undo the
        write. Concurrent calls share transactions (group commit); each call is still all or nothing. ``turn`` is the
        one in which the write was decided, if what it says is true only as long as nobody else has had it.

        Raises:
            StaleWrite: a compare-and-swap lost; nothing was written, and the caches show why.
            NotOurTurn: another replica has had the turn meanwhile; nothing was written.
            OutcomeUnknown: the database went away meanwhile.
            StoreUnavailable: the database refused; nothing was written.
        """
        ...

    @property
    def rv(self) -> int:
        """The revision up to which the caches are complete."""
        ...

    @property
    def incarnation(self) -> str:
        """Which life of the database this is: another one after a backup was put back, empty before the first time."""
        ...

    async def compact(self, before: int) -> None:
        """Delete superseded rows and tombstones up to ``before`` and raise the low-water mark."""
        ...
