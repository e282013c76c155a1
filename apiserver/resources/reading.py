"""Gets, lists and watches over the object store, the same for every stored kind.

Selectors are compiled to one predicate over index entries; nothing here decodes an object.
Source: ``kube-api.md`` 2.4 to 2.7.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager

from apiserver.machinery.continuation import LATEST, Continuation
from apiserver.machinery.definition import Definition, Json
from apiserver.machinery.rest import GetOptions, ItemEvent, ItemList, ListOptions, Scope, WatchOptions
from krm.meta.errors import BadRequest, Cause, Expired, NotFound, ServiceUnavailable, Timeout
from krm.meta.selectors import FieldSelector, FieldTerm, LabelSelector
from storage.interfaces import (
    Compacted,
    Entry,
    Event,
    EventType,
    FutureRevision,
    Index,
    IndexedFields,
    ListQuery,
    Matches,
    NotRegistered,
    ObjectKey,
    ObjectStore,
    OutcomeUnknown,
    StoreUnavailable,
    Watch,
)


def resource_key(definition: Definition) -> str:
    """Return the name under which the store keeps a kind: ``plural.group``."""
    return str(definition.stored_as or definition.resource)


def object_key(definition: Definition, namespace: str | None, name: str) -> ObjectKey:
    """Return where one object is kept."""
    return ObjectKey(resource_key(definition), namespace or "" if definition.namespaced else "", name)


def index_of(definition: Definition) -> Index:
    """Return the index of a kind, to register it with: its labels and its selectable fields, in declared order."""
    extractors = tuple(definition.selectable.values())

    def index(obj: Json) -> IndexedFields:
        return obj["metadata"].get("labels") or {}, tuple(extract(obj) for extract in extractors)

    return index


@contextmanager
def storage_errors(definition: Definition, operation: str) -> Iterator[None]:
    """Turn what storage raises into what clients are told; ``operation`` is the verb."""
    try:
        yield
    except StoreUnavailable as error:
        raise _unavailable(definition, operation, error) from error
    except NotRegistered as error:
        # A custom resource whose definition went while the request was under way.
        raise NotFound("the server could not find the requested resource") from error
    except Compacted as error:
        raise Expired(f"too old resource version: {error.wanted} ({error.oldest})") from error
    except FutureRevision as error:
        cause = Cause("ResourceVersionTooLarge", "Too large resource version")
        message = f"Timeout: Too large resource version: {error.wanted}, current: {error.current}"
        raise Timeout(message, causes=[cause], retry_after=1) from error


def _unavailable(definition: Definition, operation: str, error: StoreUnavailable) -> ServiceUnavailable:
    """Say that the database is away; every client tries again by itself upon this. What is wrong with it, the log says."""
    outcome = (
        "it may have been done; read the object, then try again" if isinstance(error, OutcomeUnknown) else "try again"
    )
    resource = definition.resource
    why = f"the {operation} operation against {resource} could not be completed: the database cannot be used; {outcome}"
    return ServiceUnavailable(why, group=resource.group, kind=resource.resource, retry_after=1)


async def item_or_404(
    store: ObjectStore, definition: Definition, scope: Scope, name: str, options: GetOptions | None = None
) -> Entry:
    """Return an object, as fresh as ``options`` ask for.

    Raises:
        NotFound: there is none.
        Timeout: the revision asked for does not come within 3 s.
    """
    revision = options.resource_version if options else ""
    with storage_errors(definition, "get"):
        fresh_enough = int(revision) if revision else None
        key = object_key(definition, scope.namespace, name)
        entry = await store.get_fresh(key, not_older_than=fresh_enough)
    if entry is None:
        raise NotFound.of(definition.resource, name)
    return entry


async def list_entries(
    store: ObjectStore,
    definition: Definition,
    scope: Scope,
    options: ListOptions,
    select: "Select | None" = None,
) -> ItemList:
    """List a kind: selectors, pages and revisions as ``options`` ask for.

    ``select`` compiles the selectors of a kind whose fields follow rules of their own.

    Raises:
        BadRequest: an unknown field, or a token that is not ours.
        Expired: the revision or token is compacted; for a token with a fresh one inside.
        Timeout: the revision asked for does not come within 3 s.
    """
    matches, namespace = (select or _selection)(definition, scope, options.labels, options.fields)
    token = Continuation.decode(options.continue_token) if options.continue_token else None
    at, not_older_than = _freshness(options, token)
    query = ListQuery(
        namespace=namespace,
        matches=matches,
        limit=options.limit,
        start_after=(token.namespace, token.name) if token else None,
        at=at,
        not_older_than=not_older_than,
    )
    try:
        with storage_errors(definition, "list"):
            page = await store.list(resource_key(definition), query)
    except Expired as error:
        if token is None:
            raise
        fresh = Continuation(LATEST, token.namespace, token.name).encode()
        message = "The provided continue parameter is too old to display a consistent list result."
        raise Expired(message, continue_token=fresh) from error
    last = page.entries[-1] if page.entries else None
    following = Continuation(page.rv, last.namespace, last.name).encode() if page.more and last else ""
    return ItemList(page.entries, page.rv, following, None if matches else page.remaining)


def _freshness(options: ListOptions, token: Continuation | None) -> tuple[int | None, int | None]:
    """Return the exact revision wanted, and the oldest acceptable one; both None for a consistent read."""
    if token:
        return (None if token.rv == LATEST else token.rv), None
    if not options.resource_version:
        return None, None
    revision = int(options.resource_version)
    exact = options.resource_version_match == "Exact" or (options.limit and not options.resource_version_match)
    return (revision, None) if exact and revision else (None, revision)


async def open_watch(
    store: ObjectStore,
    definition: Definition,
    scope: Scope,
    options: WatchOptions,
    select: "Select | None" = None,
) -> "EntryWatch":
    """Open a watch of a kind: selectors and start as ``options`` ask for.

    Raises:
        BadRequest: an unknown field.
        Expired: the revision is compacted.
        Timeout: the revision is not reached within 3 s.
    """
    matches, namespace = (select or _selection)(definition, scope, options.labels, options.fields)
    revision = int(options.resource_version or 0)
    resource = resource_key(definition)
    resume = bool(revision) and options.send_initial_events is not True
    with storage_errors(definition, "watch"):
        if revision > store.rv or not (revision or options.resource_version):
            # Reading any key waits until the caches hold that revision, or every write committed so far.
            anything = ObjectKey(resource, "", "")
            await store.get_fresh(anything, not_older_than=revision or None)
        initial, source = store.watch(resource, namespace=namespace, after=revision if resume else None)
    if options.send_initial_events is False:
        initial = ()
    elif matches is not None:
        initial = [entry for entry in initial if matches(entry)]
    return EntryWatch(initial, source, matches)


class EntryWatch:
    """A watch seen through selectors; an ``ItemWatch``."""

    def __init__(self, initial: Sequence[Entry], source: Watch, matches: Matches | None) -> None:
        self._initial = initial
        self._source = source
        self._matches = matches

    @property
    def rv(self) -> int:
        """Every event up to this revision has been told."""
        return self._source.rv

    def take_initial(self) -> Sequence[Entry]:
        """Hand over the entries to begin with."""
        taken, self._initial = self._initial, ()
        return taken

    def close(self) -> None:
        """End the watch; iteration stops."""
        self._source.close()

    def deliver_to(self, take: Callable[[Sequence[tuple[str, ItemEvent]]], bool]) -> None:
        """Offer what comes while the reader waits to ``take`` first."""

        def offer(events: Sequence[Event]) -> bool:
            told = self._told(events)
            return take(told) if told else True

        self._source.deliver_to(offer)

    async def __aiter__(self) -> AsyncIterator[Sequence[tuple[str, ItemEvent]]]:
        async for events in self._source:
            if told := self._told(events):
                yield told

    def _told(self, events: Sequence[Event]) -> Sequence[tuple[str, ItemEvent]]:
        if self._matches is None:
            return [(event.type, event) for event in events]
        return [pair for event in events if (pair := _seen(event, self._matches))]


def _seen(event: Event, matches: Matches) -> tuple[str, ItemEvent] | None:
    """Return what a watcher with a selector is told of an event: objects come and go with their labels, too."""
    deleted = event.type is EventType.DELETED
    known = event.previous or (event.entry if deleted else None)
    before = known is not None and matches(known)
    if deleted:
        return (EventType.DELETED, event) if before else None
    if matches(event.entry):
        return (EventType.MODIFIED if before else EventType.ADDED), event
    if before and event.previous is not None:
        return EventType.DELETED, _left(event, event.previous)
    return None


def _left(event: Event, previous: Entry) -> Event:
    """Return a deletion that shows the last content that matched, at the revision at which it stopped matching."""
    stale, fresh = b'"resourceVersion":"%d"' % previous.rv, b'"resourceVersion":"%d"' % event.rv
    body = previous.body.replace(stale, fresh, 1)
    shown = Entry(previous.key, event.rv, previous.create_rv, previous.uid, body, previous.labels, previous.fields)
    return Event(event.rv, EventType.DELETED, shown, previous)


Select = Callable[[Definition, Scope, LabelSelector, FieldSelector], tuple[Matches | None, str | None]]
"""Selectors of a request → the predicate (None selects all), and the namespace to scan."""


def _selection(
    definition: Definition, scope: Scope, labels: LabelSelector, fields: FieldSelector
) -> tuple[Matches | None, str | None]:
    """Compile selectors: the predicate (None selects all), and the namespace to scan."""
    namespace = scope.namespace if definition.namespaced else None
    terms = [_field_predicate(definition, term) for term in fields.terms]
    narrowed = fields.exact("metadata.namespace")
    if namespace is None and narrowed and definition.namespaced:
        namespace = narrowed
    if not labels.empty:
        wanted = labels.predicate()
        terms.append(lambda entry: wanted(entry.labels))
    if not terms:
        return None, namespace
    if len(terms) == 1:
        return terms[0], namespace
    return (lambda entry: all(term(entry) for term in terms)), namespace


def _field_predicate(definition: Definition, term: FieldTerm) -> Matches:
    extract = _field_of(definition, term.field)
    value = term.value
    if term.operator == "=":
        return lambda entry: extract(entry) == value
    return lambda entry: extract(entry) != value


def _field_of(definition: Definition, field: str) -> Callable[[Entry], str]:
    if field == "metadata.name":
        return lambda entry: entry.key.name
    if field == "metadata.namespace" and definition.namespaced:
        return lambda entry: entry.key.namespace
    if field not in definition.selectable:
        if definition.selectable or definition.custom or not definition.group:
            raise BadRequest(f"field label not supported: {field:.256}")
        raise BadRequest(f'"{field:.256}" is not a known field selector: only "metadata.name", "metadata.namespace"')
    position = list(definition.indexed or definition.selectable).index(field)
    return lambda entry: entry.fields[position]
