"""Any kind that is simply stored: every verb over the object store, driven by the kind's definition.

Source: ``kube-api.md`` 2.3 to 2.13.
"""

import asyncio
import functools
from collections.abc import Awaitable, Callable
from typing import ParamSpec, TypeVar

from apiserver.machinery.apply.managers import APPLY
from apiserver.machinery.apply.ownership import Ownership
from apiserver.machinery.definition import Definition, Json
from apiserver.machinery.rest import (
    LARGE,
    Change,
    DeleteOptions,
    GetOptions,
    ItemList,
    ItemWatch,
    ListOptions,
    Scope,
    WatchOptions,
    WriteOptions,
)
from apiserver.resources.reading import (
    index_of,
    item_or_404,
    list_entries,
    object_key,
    open_watch,
    resource_key,
    storage_errors,
)
from apiserver.resources.writing import (
    NAME_ATTEMPTS,
    check_preconditions,
    has_finalizers,
    is_terminating,
    mark_terminating,
    prepare_create,
    prepare_update,
    with_collector_finalizers,
)
from krm.meta.errors import AlreadyExists, Cause, Conflict, Forbidden, NotFound, ResourceName
from storage.bodies import decode, encode_body, with_revision
from storage.interfaces import Entry, Mutation, ObjectKey, ObjectStore, Op, StaleWrite

P = ParamSpec("P")
T = TypeVar("T")

UPDATE_ATTEMPTS = 64
"""Times a change is applied again to fresher state before the writer is told of the conflict."""

NamespaceCheck = Callable[[Definition, str, str], Awaitable[None]]
"""(definition, namespace, name of the new object) → nothing, or raises NotFound or Forbidden."""


def stored_namespaces(store: ObjectStore) -> NamespaceCheck:
    """Return the check that a namespace of this store exists and is not being deleted."""
    resource = ResourceName("namespaces")

    async def check(definition: Definition, namespace: str, name: str) -> None:
        key = ObjectKey("namespaces", "", namespace)
        entry = store.get(key) or await store.get_fresh(key)
        if entry is None:
            raise NotFound.of(resource, namespace)
        if is_terminating(decode(entry)):
            why = f"unable to create new content in namespace {namespace} because it is being terminated"
            cause = Cause("NamespaceTerminating", f"namespace {namespace} is being terminated", "metadata.namespace")
            raise Forbidden.of(definition.resource, name, why, [cause])

    return check


class StoredObjects:
    """All verbs of one stored kind.

    ``held`` tells whether an object must wait with its deletion, ``marked`` adds (in place) what the kind shows
    while it waits. ``namespace_check`` None accepts any namespace.
    """

    def __init__(
        self,
        definition: Definition,
        store: ObjectStore,
        *,
        namespace_check: NamespaceCheck | None = None,
        held: Callable[[Json], bool] = has_finalizers,
        marked: Callable[[Json], None] = lambda _obj: None,
    ) -> None:
        self.definition = definition
        self._store = store
        self._schema = definition.compiled
        self._ownerships: dict[str, Ownership] = {}
        self._namespace_check = namespace_check
        self._held = held
        self._marked = marked

    def register(self) -> None:
        """Tell the store of the kind; to be called before the store starts."""
        self._store.register(resource_key(self.definition), index_of(self.definition), sealed=self.definition.sealed)

    async def get(self, scope: Scope, name: str, options: GetOptions) -> Entry:
        return await item_or_404(self._store, self.definition, scope, name, options)

    async def list(self, scope: Scope, options: ListOptions) -> ItemList:
        return await list_entries(self._store, self.definition, scope, options)

    async def watch(self, scope: Scope, options: WatchOptions) -> ItemWatch:
        return await open_watch(self._store, self.definition, scope, options)

    async def create(self, scope: Scope, wanted: Json, options: WriteOptions) -> Entry:
        """Create an object.

        Raises:
            AlreadyExists: there is one of that name, or no free name was found.
            NotFound: the namespace does not exist.
            Forbidden: the namespace is being deleted.
            Invalid: the object breaks a rule.
        """
        given = wanted["metadata"].get("name") or ""
        if self.definition.namespaced and self._namespace_check:
            with storage_errors(self.definition, "create"):
                await self._namespace_check(self.definition, scope.namespace or "", given)
        for _ in range(1 if given else NAME_ATTEMPTS):
            warnings = WriteOptions(field_validation=options.field_validation)
            obj = await self._worked(options.large, self._new, wanted, scope.namespace, options, warnings)
            try:
                entry = await self._insert(obj, scope, options)
            except StaleWrite:
                continue
            options.warnings.extend(warnings.warnings)
            return entry
        raise await self._already_exists(scope, obj["metadata"]["name"], generated=not given)

    def _new(self, wanted: Json, namespace: str | None, options: WriteOptions, warnings: WriteOptions) -> Json:
        """Return the object to store for a create, its managers recorded."""
        obj = prepare_create(self.definition, self._schema, wanted, namespace, warnings)
        self._ownership("").created(obj, options)
        return obj

    async def _worked(self, large: bool, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Do some work on objects, in a thread if it may take long: CEL rules, and objects of many fields."""
        if large or self.definition.slow or self._schema.slow:
            return await asyncio.to_thread(work, *args, **kwargs)
        return work(*args, **kwargs)

    async def _insert(self, obj: Json, scope: Scope, options: WriteOptions) -> Entry:
        key = object_key(self.definition, scope.namespace, obj["metadata"]["name"])
        if not options.dry_run:
            return await self._write(key, Op.CREATE, 0, obj, scope)
        with storage_errors(self.definition, "create"):
            existing = await self._store.get_fresh(key)
        if existing is not None:
            raise StaleWrite(key, existing.rv)
        return self._unsaved(key, obj, None)

    async def _already_exists(self, scope: Scope, name: str, *, generated: bool) -> AlreadyExists:
        resource = self.definition.resource
        if generated:
            message = (
                f'{resource} "{name}" already exists, the server was not able to generate a unique name for the object'
            )
            return AlreadyExists(message, name=name, group=resource.group, kind=resource.resource, retry_after=1)
        existing = self._store.get(object_key(self.definition, scope.namespace, name))
        terminating = existing is not None and is_terminating(decode(existing))
        return AlreadyExists.of(resource, name, terminating=terminating)

    async def update(self, scope: Scope, name: str, change: Change, options: WriteOptions) -> tuple[Entry, bool]:
        return await self.update_part(scope, name, change, options)

    async def update_part(
        self, scope: Scope, name: str, change: Change, options: WriteOptions, subresource: str = ""
    ) -> tuple[Entry, bool]:
        """Change an object, or what a subresource shows of it; the bool tells that it was created.

        A lost race is repeated on fresh state as long as the change itself allows it.

        Raises:
            NotFound: there is none (unless the kind may be created so).
            Conflict: the change is for another revision.
            Invalid: the result breaks a rule.
        """
        key = object_key(self.definition, scope.namespace, name)
        for _ in range(UPDATE_ATTEMPTS):
            with storage_errors(self.definition, "update"):
                entry = await self._store.get_fresh(key)
            if entry is None:
                try:
                    return await self._create_by_update(scope, name, change, options, subresource)
                except AlreadyExists:
                    continue
            try:
                return await self._apply(key, entry, change, scope, options, subresource=subresource), False
            except StaleWrite:
                continue
        raise Conflict.of(self.definition.resource, name)

    async def _create_by_update(
        self, scope: Scope, name: str, change: Change, options: WriteOptions, subresource: str
    ) -> tuple[Entry, bool]:
        if subresource or not (self.definition.create_on_update or options.operation == APPLY):
            raise NotFound.of(self.definition.resource, name)
        if options.before_create:
            await options.before_create()
        wanted = await self._worked(options.large, change, {})
        wanted["metadata"].pop("resourceVersion", None)
        return await self.create(scope, wanted, options), True

    async def _apply(
        self, key: ObjectKey, entry: Entry, change: Change, scope: Scope, options: WriteOptions, *, subresource: str
    ) -> Entry:
        warnings = WriteOptions(field_validation=options.field_validation)
        large = options.large or len(entry.body) > LARGE
        current, obj = await self._worked(large, self._next, entry, change, options, warnings, subresource)
        finished = is_terminating(current) and not self._held(obj or current)
        if obj is None and not finished:
            saved = entry
        elif options.dry_run:
            saved = self._unsaved(key, obj or current, entry)
        elif finished:
            # Watchers see what was stored last; the answer shows the change, at the revision at which it was last there.
            await self._write(key, Op.DELETE, entry.rv, current, scope)
            saved = self._unsaved(key, obj or current, entry)
        else:
            saved = await self._write(key, Op.UPDATE, entry.rv, obj or current, scope)
        options.warnings.extend(text for text in warnings.warnings if text not in options.warnings)
        return saved

    def _next(
        self, entry: Entry, change: Change, options: WriteOptions, warnings: WriteOptions, subresource: str
    ) -> tuple[Json, Json | None]:
        """Return an object, and what a change makes of it (None: the same), its managers recorded."""
        current = self._decoded(entry)
        wanted = change(self._decoded(entry))
        changed = functools.partial(self._ownership(subresource).changed, options=options)
        obj = prepare_update(self.definition, self._schema, current, wanted, warnings, subresource, changed)
        return current, obj

    async def delete(self, scope: Scope, name: str, options: DeleteOptions) -> tuple[Entry, bool]:
        """Delete an object, or begin to while finalizers hold it; the bool tells that it is gone.

        Raises:
            NotFound: there is none.
            Conflict: a precondition does not hold.
        """
        key = object_key(self.definition, scope.namespace, name)
        for _ in range(UPDATE_ATTEMPTS):
            entry = await item_or_404(self._store, self.definition, scope, name)
            current = self._decoded(entry)
            check_preconditions(self.definition, current, options)
            try:
                return await self._remove(key, entry, current, scope, options)
            except StaleWrite:
                continue
        raise Conflict.of(self.definition.resource, name)

    async def _remove(
        self, key: ObjectKey, entry: Entry, current: Json, scope: Scope, options: DeleteOptions
    ) -> tuple[Entry, bool]:
        obj = with_collector_finalizers(current, options.propagation)
        gone = not self._held(obj)
        if not gone:
            mark_terminating(self.definition, obj)
            self._marked(obj)
            if obj == current:
                return entry, False
        if options.dry_run:
            return self._unsaved(key, obj, entry), gone
        return await self._write(key, Op.DELETE if gone else Op.UPDATE, entry.rv, obj, scope), gone

    def _ownership(self, subresource: str) -> Ownership:
        """Return who keeps managedFields for writes through a subresource ("": the main resource)."""
        found = self._ownerships.get(subresource)
        if found is None:
            found = self._ownerships[subresource] = Ownership(self.definition, subresource)
        return found

    def _decoded(self, entry: Entry) -> Json:
        """Return a changeable copy of a stored object, in the version that this resource speaks."""
        return decode(entry)

    def _encoded(self, obj: Json) -> bytes:
        """Return the bytes to store."""
        return encode_body(obj)

    async def _write(self, key: ObjectKey, op: Op, prev_rv: int, obj: Json, scope: Scope) -> Entry:
        """Commit one change; StaleWrite passes through."""
        mutation = Mutation(key, op, prev_rv, obj["metadata"]["uid"], self._encoded(obj), scope.user.name)
        with storage_errors(self.definition, op.name.lower()):
            entries = await self._store.write([mutation])
        return entries[0]

    def _unsaved(self, key: ObjectKey, obj: Json, stored: Entry | None) -> Entry:
        """Return what a dry run answers: the object as it would be, at the revision that is in force."""
        body = self._encoded(obj)
        rv = stored.rv if stored else 0
        labels, fields = index_of(self.definition)(obj)
        shown = with_revision(body, rv) if stored else body
        return Entry(key, rv, stored.create_rv if stored else 0, obj["metadata"]["uid"], shown, labels, fields)


class StatusOf:
    """The ``status`` subresource of a stored kind: reads the object, changes its status only."""

    def __init__(self, parent: StoredObjects) -> None:
        self.definition = parent.definition
        self._parent = parent

    async def get(self, scope: Scope, name: str, options: GetOptions) -> Entry:
        return await self._parent.get(scope, name, options)

    async def update(self, scope: Scope, name: str, change: Change, options: WriteOptions) -> tuple[Entry, bool]:
        return await self._parent.update_part(scope, name, change, options, "status")
