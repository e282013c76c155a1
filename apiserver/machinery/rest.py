"""What a resource can do, one small protocol per verb; routes and discovery follow from them.

A resource is an object with a ``definition`` that implements any of these protocols. Handlers return
items whose bytes are ready to serve; only writes handle decoded objects. Source: ``kube-api.md`` 1.3 and 2.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from apiserver.machinery.definition import Definition
from krm.meta.selectors import FieldSelector, LabelSelector

Json = dict[str, Any]
Change = Callable[[Json], Json]
"""A copy of the stored object ({}: there is none) → the wanted object: PUT, any PATCH, server-side apply."""


LARGE = 64 * 1024
"""Bytes of a body or an object from which work on it leaves the event loop; below, it takes a few milliseconds at most."""


@dataclass(frozen=True, slots=True)
class User:
    """Who sends a request, as authentication found."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a request points and who sent it; ``namespace`` None is all, or cluster scope."""

    namespace: str | None
    user: User


class Item(Protocol):
    """One object as stored bytes; see ``storage.interfaces.Entry``, which is one."""

    rv: int
    body: bytes
    row: tuple[bytes, ...] | None
    partial: bytes | None

    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...


class ItemEvent(Protocol):
    """One change; see ``storage.interfaces.Event``, which is one. ``type`` is ADDED, MODIFIED or DELETED."""

    rv: int
    frames: dict[str, bytes]

    @property
    def type(self) -> str: ...
    @property
    def entry(self) -> Item: ...


@dataclass(frozen=True, slots=True)
class GetOptions:
    """``resource_version`` as sent: "" most recent, "0" any, N not older than N."""

    resource_version: str = ""


@dataclass(frozen=True, slots=True)
class ListOptions:
    """A list's query parameters, syntactically valid. Source: ``kube-api.md`` 2.5."""

    labels: LabelSelector
    fields: FieldSelector
    limit: int = 0
    continue_token: str = ""
    resource_version: str = ""
    resource_version_match: str = ""


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """A watch's query parameters, syntactically valid. Source: ``kube-api.md`` 2.7."""

    labels: LabelSelector
    fields: FieldSelector
    resource_version: str = ""
    send_initial_events: bool | None = None


@dataclass(slots=True)
class WriteOptions:
    """Options of create, update and patch; handlers append to ``warnings``."""

    dry_run: bool = False
    field_manager: str = ""
    field_validation: str = "Warn"
    warnings: list[str] = field(default_factory=list)
    annotations: Mapping[str, str] = field(default_factory=dict)
    operation: str = "Update"
    """Apply: the change is a server-side apply, whose result says in managedFields who manages what, and which creates
    an object that is missing."""
    force: bool = False
    """An apply takes fields from those who manage them."""
    large: bool = False
    """The request is over ``LARGE``: what is done with it can take longer than the event loop should wait."""
    before_create: Callable[[], Awaitable[None]] | None = None
    """To be awaited before a change creates an object: raises Forbidden if its author may not."""
    may: Callable[[str], Awaitable[bool]] | None = None
    """Of a change: tells whether its author may use another verb, too, on the object itself."""


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """Options of delete. Source: ``kube-api.md`` 2.11."""

    dry_run: bool = False
    uid: str = ""
    resource_version: str = ""
    propagation: str = ""
    """"" (what the object's finalizers say, else background), Background, Foreground or Orphan."""
    orphan_dependents: bool | None = None
    """The deprecated field as sent; False asks for 202 while finalizers hold the object."""


@dataclass(frozen=True, slots=True)
class ItemList:
    """A page of items. ``rv`` is the snapshot's revision; ``continue_token`` "" at the end."""

    items: Sequence[Item]
    rv: int
    continue_token: str = ""
    remaining: int | None = None


@dataclass(frozen=True, slots=True)
class ItemStream:
    """A list whose items are too large to be held together: each is made when it is its turn to be sent."""

    items: AsyncIterator[Item]
    rv: int
    continue_token: str = ""
    remaining: int | None = None


class ItemWatch(Protocol):
    """A filtered stream: first the initial items (if any), then batches of (type, event).

    ``deliver_to`` offers each batch that comes while the reader waits to ``take`` first; what that answers False for is
    yielded. ``take_initial`` hands the initial items over, once: a watch that kept them would keep every version that they have.
    The type told to this watcher may differ from the event's own when the object starts or stops
    matching its selectors. ``rv`` is a safe bookmark at any time. ``close`` may be called twice.
    """

    def take_initial(self) -> Iterable[Item]: ...
    def deliver_to(self, take: Callable[[Sequence[tuple[str, ItemEvent]]], bool]) -> None: ...
    def __aiter__(self) -> AsyncIterator[Sequence[tuple[str, ItemEvent]]]: ...
    @property
    def rv(self) -> int: ...
    def close(self) -> None: ...


@runtime_checkable
class Getter(Protocol):
    """Answers GET by name; raises NotFound."""

    async def get(self, scope: Scope, name: str, options: GetOptions) -> Item: ...


@runtime_checkable
class Lister(Protocol):
    """Answers GET of the collection."""

    async def list(self, scope: Scope, options: ListOptions) -> ItemList: ...


@runtime_checkable
class Streamer(Protocol):
    """Answers GET of the collection item by item, for kinds with large items; raises before the first item only."""

    async def stream(self, scope: Scope, options: ListOptions) -> ItemStream: ...


@runtime_checkable
class Watcher(Protocol):
    """Answers ?watch=true; raises Expired for a compacted revision."""

    async def watch(self, scope: Scope, options: WatchOptions) -> ItemWatch: ...


@runtime_checkable
class Creater(Protocol):
    """Answers POST; the body is decoded, kind checked, unknown fields handled."""

    async def create(self, scope: Scope, wanted: Json, options: WriteOptions) -> Item: ...


@runtime_checkable
class SubresourceCreater(Protocol):
    """Answers POST to a subresource of the named object, as ``serviceaccounts/token`` does; else like Creater."""

    async def create_for(self, scope: Scope, name: str, wanted: Json, options: WriteOptions) -> Item: ...


@runtime_checkable
class Updater(Protocol):
    """Answers PUT and PATCH; the bool tells that the object was created."""

    async def update(self, scope: Scope, name: str, change: Change, options: WriteOptions) -> tuple[Item, bool]: ...


@runtime_checkable
class Deleter(Protocol):
    """Answers DELETE with the object as it was, or as it is while finalizers hold it.

    The bool tells that it is gone; then a kind may answer with a Status instead of the object.
    """

    async def delete(self, scope: Scope, name: str, options: DeleteOptions) -> tuple[Item, bool]: ...


class Resource(Protocol):
    """Anything served: the definition plus some of the verb protocols."""

    definition: Definition


@dataclass(frozen=True, slots=True)
class Served:
    """A resource with its subresources (``status``, ``approval``, ``finalize``), as routes take it.

    ``deleted_as_object`` answers a DELETE with the object (porch kinds) rather than with a Status.
    """

    resource: Resource
    subresources: Mapping[str, Resource] = field(default_factory=dict)
    deleted_as_object: bool = False
