"""The garbage collector: objects whose owners are gone go too, as the deletion of the owner asked for.

Background: dependents go after their owner. Foreground: the owner waits, by a finalizer, for the dependents that block it.
Orphan: dependents lose the reference, then the owner goes. Everything is done through the verbs of the resources, so what a
resource refuses is refused here too, and told in an Event. All state is in the objects: a restart goes on where it ended, and
so does another replica: one of them collects, the others only remember who owns what.
Source: ``kube-api.md`` 2.11; ADR 0018.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Protocol, runtime_checkable

import structlog

from apiserver.machinery.definition import Definition
from apiserver.machinery.rest import DeleteOptions, Deleter, Lister, Scope, Served, Updater, User, WriteOptions
from apiserver.resources.event_recorder import EventRecorder
from apiserver.resources.owner_index import OwnerIndex, OwnerReference, owners_of
from apiserver.resources.owner_lookup import Fate, OwnerLookup
from apiserver.resources.reading import resource_key
from apiserver.resources.served_kinds import ServedKinds
from apiserver.resources.work_queue import WorkQueue
from apiserver.resources.writing import is_terminating
from krm.meta.errors import Conflict, NotFound, ResourceName, StatusError
from storage.bodies import decode
from storage.interfaces import Entry, Event, EventType, NotRegistered, ObjectKey, ObjectStore, StoreUnavailable

Json = dict[str, Any]
log = structlog.get_logger()

USER: Final = User("system:serviceaccount:kube-system:generic-garbage-collector", ("system:masters",))
COMPONENT: Final = "garbage-collector-controller"
WORKERS: Final = 16
"""Objects worked on at a time, which bounds the rate: each waits for its write."""
RESCAN_SECONDS: Final = 600.0
"""Seconds between two looks at everything that has owners."""
RESCAN_SLICE: Final = 500
"""Dependents put back into the queue before requests get their turn."""
ORPHAN: Final = "orphan"
FOREGROUND: Final = "foregroundDeletion"

_TERMINATING: Final = b'"deletionTimestamp":"'
_HELD: Final = (b'"foregroundDeletion"', b'"orphan"')


@runtime_checkable
class Collectable(Deleter, Updater, Lister, Protocol):
    """A resource whose objects can be collected and can own others."""

    definition: Definition


@dataclass(frozen=True, slots=True)
class Departed:
    """An owner that is gone: its dependents have to be looked at."""

    uid: str


class GarbageCollector:
    """Follows all served kinds and deletes what nobody owns any more; to be made before the store starts.

    ``events`` is where refusals are told.
    """

    def __init__(self, store: ObjectStore, kinds: ServedKinds, events: Updater) -> None:
        self._store = store
        self._recorder = EventRecorder(events, component=COMPONENT, user=USER)
        self._index = OwnerIndex()
        self._queue: WorkQueue[ObjectKey | Departed] = WorkQueue()
        self._lookup = OwnerLookup(store, self._index)
        self._resources: dict[str, Collectable] = {}
        self._waiting: dict[str, ObjectKey] = {}
        self._collects = not store.shared
        """Whether what happens is to be looked at; otherwise another replica does, or all is looked at when this one begins."""
        kinds.observe(self._serve)

    async def run(self) -> None:
        """Work until cancelled; may be run again."""
        begun_late, self._collects = not self._collects, True
        try:
            async with asyncio.TaskGroup() as tasks:
                for _ in range(WORKERS):
                    tasks.create_task(self._work())
                tasks.create_task(self._rescan())
                if begun_late:
                    tasks.create_task(self._look_at_everything())
        finally:
            self._collects = False
            self._queue.close()
            self._queue = WorkQueue()
            self._waiting.clear()

    @property
    def backlog(self) -> int:
        """How many objects wait to be looked at, or are being looked at."""
        return len(self._queue)

    # --- what happens -------------------------------------------------------------------------

    def _serve(self, resource: ResourceName, versions: Sequence[Served]) -> None:
        """Follow a kind from now on, or no longer. Its registration is a new one each time."""
        found = [
            (one.resource.definition, one.resource)
            for one in versions
            if isinstance(one.resource, Collectable) and one.resource.definition.stored_as is None
        ]
        if not found:
            if self._resources.pop(str(resource), None) is not None:
                self._lookup.forget(str(resource))
                self._index.drop(str(resource))
            return
        key = resource_key(found[0][0])
        self._resources[key] = found[0][1]
        for dependent in self._lookup.learn(key, [definition for definition, _ in found]):
            self._add(dependent)
        self._store.observe(key, self._observe)

    def _observe(self, event: Event) -> None:
        uid = event.entry.uid
        before = self._index.apply(event)
        for owner in before:
            if owner.uid in self._waiting and not self._index.is_blocked(owner.uid):
                self._add(self._waiting[owner.uid])
        if event.type is EventType.DELETED:
            self._waiting.pop(uid, None)
            if self._index.has_dependents(uid):
                self._add(Departed(uid))
            return
        self._consider(event.entry)

    def _consider(self, entry: Entry) -> None:
        """Have an object looked at that may have to go, or waits for others to go."""
        key, uid, body = entry.key, entry.uid, entry.body
        held = _TERMINATING in body and any(finalizer in body for finalizer in _HELD)
        if not held:
            self._waiting.pop(uid, None)
        if held or any(self._is_doubtful(key, owner) for owner in self._index.owners(key)):
            self._add(key)

    def _add(self, item: ObjectKey | Departed) -> None:
        if self._collects:
            self._queue.add(item)

    async def _look_at_everything(self) -> None:
        """Consider every object there is: this replica has only remembered so far who owns what."""
        for resource in list(self._resources):
            with suppress(NotRegistered):  # a kind that went meanwhile
                for number, entry in enumerate(self._store.snapshot(resource), 1):
                    self._consider(entry)
                    if number % RESCAN_SLICE == 0:
                        await asyncio.sleep(0)

    def _is_doubtful(self, key: ObjectKey, owner: OwnerReference) -> bool:
        return owner.uid in self._waiting or not self._lookup.is_there(key, owner)

    async def _rescan(self) -> None:
        while True:
            await asyncio.sleep(RESCAN_SECONDS)
            self._lookup.forget_waiting()
            keys = self._index.keys()
            for at in range(0, len(keys), RESCAN_SLICE):
                for key in keys[at : at + RESCAN_SLICE]:
                    self._queue.add(key)
                await asyncio.sleep(0)

    # --- what is done -------------------------------------------------------------------------

    async def _work(self) -> None:
        while True:
            item = await self._queue.take()
            try:
                if isinstance(item, Departed):
                    await self._spread(item.uid)
                else:
                    await self._look_at(item)
            except NotRegistered:
                # Its kind went.
                self._queue.done(item)
            except (StatusError, StoreUnavailable) as error:
                if self._is_gone(item):
                    self._queue.done(item)
                else:
                    await self._put_off(item, error)
            except Exception:
                # One object that trips us must not end the collection of all others.
                log.exception("object cannot be collected", object=str(item))
                self._queue.failed(item)
            else:
                self._queue.done(item)

    def _is_gone(self, item: ObjectKey | Departed) -> bool:
        """Tell whether an object went by itself, so that no error about it matters."""
        return isinstance(item, ObjectKey) and (item.resource not in self._resources or self._store.get(item) is None)

    async def _put_off(self, item: ObjectKey | Departed, error: StatusError | StoreUnavailable) -> None:
        delay = self._queue.failed(item)
        if isinstance(error, Conflict | StoreUnavailable) or isinstance(item, Departed):
            return
        entry = self._store.get(item) if item.resource in self._resources else None
        log.warning("object cannot be collected", object=str(item), error=error.message, again_seconds=delay)
        if entry is not None:
            await self._recorder.warn(decode(entry), "FailedDelete", f"it cannot be garbage collected: {error.message}")

    async def _spread(self, uid: str) -> None:
        """Look at everything that depends on an object."""
        for number, key in enumerate(self._index.dependents(uid), 1):
            self._queue.add(key)
            if number % RESCAN_SLICE == 0:
                await asyncio.sleep(0)

    async def _look_at(self, key: ObjectKey) -> None:
        """Do what one object needs now; an object that needs nothing is left alone.

        Raises:
            NotFound: it is gone.
            StatusError: its resource refused.
        """
        if key.resource not in self._resources:
            return
        entry = await self._store.get_fresh(key)
        if entry is None:
            return
        obj = decode(entry)
        finalizers = obj["metadata"].get("finalizers") or ()
        if not is_terminating(obj):
            await self._check_owners(key, obj)
        elif ORPHAN in finalizers:
            await self._orphan(key, entry.uid)
        elif FOREGROUND in finalizers:
            await self._delete_dependents_first(key, entry.uid)

    async def _orphan(self, key: ObjectKey, uid: str) -> None:
        """Take the reference from every dependent, then let the owner go."""
        dependents = self._index.dependents(uid)
        for at in range(0, len(dependents), WORKERS):
            await asyncio.gather(*(self._without_owners(one, {uid}) for one in dependents[at : at + WORKERS]))
        await self._without_finalizer(key, uid, ORPHAN)

    async def _delete_dependents_first(self, key: ObjectKey, uid: str) -> None:
        """Let the owner go if no dependent blocks that; the last one that does brings us here again."""
        if uid not in self._waiting:
            self._waiting[uid] = key
            await self._spread(uid)
        if not self._index.is_blocked(uid):
            await self._without_finalizer(key, uid, FOREGROUND)
            self._waiting.pop(uid, None)

    async def _check_owners(self, key: ObjectKey, obj: Json) -> None:
        fates = {owner: await self._fate(key, owner) for owner in owners_of(obj)}
        if not fates:
            return
        for owner, fate in fates.items():
            if fate in (Fate.MISPLACED, Fate.UNREACHABLE):
                await self._tell_misplaced(key, obj, owner)
        if {Fate.UNKNOWN, Fate.UNREACHABLE} & set(fates.values()):
            return
        kept = {owner.uid for owner, fate in fates.items() if fate is Fate.PRESENT}
        gone = {owner.uid for owner in fates} - kept
        if kept:
            if gone:
                await self._without_owners(key, gone)
            return
        uid = obj["metadata"]["uid"]
        first = Fate.WAITING in fates.values() and self._index.has_dependents(uid)
        if first and self._is_cyclic(uid):
            obj = await self._unblocked(key, obj)
        await self._delete(key, obj, dependents_first=first)

    async def _fate(self, key: ObjectKey, owner: OwnerReference) -> Fate:
        fate = await self._lookup.fate(key, owner)
        return Fate.WAITING if fate is Fate.PRESENT and owner.uid in self._waiting else fate

    async def _tell_misplaced(self, key: ObjectKey, obj: Json, owner: OwnerReference) -> None:
        named = f"{owner.api_version}/{owner.kind}, namespace: {key.namespace}, name: {owner.name}, uid: {owner.uid}"
        said = f'ownerRef [{named}] does not exist in namespace "{key.namespace}"'
        await self._recorder.warn(obj, "OwnerRefInvalidNamespace", said)

    def _is_cyclic(self, uid: str) -> bool:
        """Tell whether a dependent waits for its own dependents, among which may be what waits for it."""
        entries = (self._store.get(key) for key in self._index.dependents(uid) if key.resource in self._resources)
        return any(entry is not None and entry.uid in self._waiting for entry in entries)

    # --- writes -------------------------------------------------------------------------------

    async def _delete(self, key: ObjectKey, obj: Json, *, dependents_first: bool) -> None:
        metadata = obj["metadata"]
        finalizers = metadata.get("finalizers") or ()
        propagation = "Foreground" if dependents_first or FOREGROUND in finalizers else "Background"
        if ORPHAN in finalizers and not dependents_first:
            propagation = "Orphan"
        options = DeleteOptions(
            uid=metadata["uid"], resource_version=metadata["resourceVersion"], propagation=propagation
        )
        await self._resources[key.resource].delete(_scope(key), key.name, options)

    async def _without_owners(self, key: ObjectKey, uids: set[str]) -> None:
        """Take references from an object; one that is gone has none."""

        def change(current: Json) -> Json:
            owners = current["metadata"].get("ownerReferences") or []
            current["metadata"]["ownerReferences"] = [one for one in owners if one.get("uid") not in uids]
            return current

        try:
            await self._update(key, None, change)
        except NotFound:
            # What is missing may be something else that the resource needs, such as a repository.
            if not self._is_gone(key):
                raise

    async def _without_finalizer(self, key: ObjectKey, uid: str, finalizer: str) -> None:
        def change(current: Json) -> Json:
            present = current["metadata"].get("finalizers") or []
            current["metadata"]["finalizers"] = [one for one in present if one != finalizer]
            return current

        await self._update(key, uid, change)

    async def _unblocked(self, key: ObjectKey, obj: Json) -> Json:
        """Let an object block the deletion of none of its owners, and return it as it is then."""

        def change(current: Json) -> Json:
            for owner in current["metadata"].get("ownerReferences") or ():
                owner["blockOwnerDeletion"] = False
            return current

        await self._update(key, obj["metadata"]["uid"], change)
        entry = await self._store.get_fresh(key)
        return obj if entry is None else decode(entry)

    async def _update(self, key: ObjectKey, uid: str | None, change: Callable[[Json], Json]) -> None:
        """Change an object that is still there, and still the same one if ``uid`` says which.

        Raises:
            NotFound: it is gone.
        """
        resource = self._resources.get(key.resource)
        if resource is None:
            return

        def checked(current: Json) -> Json:
            if not current or uid not in (None, current["metadata"].get("uid")):
                raise NotFound.of(resource.definition.resource, key.name)
            return change(current)

        await resource.update(_scope(key), key.name, checked, WriteOptions(field_manager="kube-controller-manager"))


def _scope(key: ObjectKey) -> Scope:
    return Scope(key.namespace or None, USER)
