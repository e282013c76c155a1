"""Empties namespaces that are being deleted, then removes them.

Contents go in the order given: Repositories first, so that nothing registers package revisions
anew while the rest is removed. Git is never touched. Of several replicas one does it. Source: ``kube-api.md`` 2.14, ``decisions.md`` 4.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Protocol, runtime_checkable

import orjson
import structlog

from apiserver.machinery.definition import Definition
from apiserver.machinery.rest import DeleteOptions, Deleter, Lister, ListOptions, Scope, User
from apiserver.resources.core import NAMESPACE_FINALIZER
from apiserver.resources.namespace_conditions import Remaining, with_conditions
from apiserver.resources.namespaces import RESOURCE, change_namespace
from apiserver.resources.writing import is_terminating
from krm.meta.errors import NotFound, StatusError
from krm.meta.selectors import FieldSelector, LabelSelector
from storage.bodies import decode
from storage.interfaces import Entry, Event, ObjectStore, StoreUnavailable

Json = dict[str, Any]
log = structlog.get_logger()

Contents = Callable[[str], Awaitable[Remaining]]
"""Deletes what it is responsible for in a namespace; returns what is still there."""

USER: Final = User("system:serviceaccount:kube-system:namespace-controller", ("system:masters",))
FIRST_DELAY: Final = 0.05
"""Seconds before a namespace that is not empty yet is looked at again; doubled every time."""
BATCH: Final = 50
"""Objects deleted at a time: they share transactions, and others get their turn in between."""
LONGEST_DELAY: Final = 5.0
"""Seconds between two looks at a namespace that something holds."""

_EVERYTHING: Final = ListOptions(LabelSelector.parse(""), FieldSelector.parse(""))
_FINALIZERS: Final = b'"finalizers":['


@runtime_checkable
class NamespacedObjects(Lister, Deleter, Protocol):
    """A resource whose objects in a namespace can be listed and deleted."""

    definition: Definition


class ContentsOf:
    """Deletes the objects of one resource through its own verbs; finalizers hold what they hold."""

    def __init__(self, resource: NamespacedObjects) -> None:
        self._resource = resource

    async def __call__(self, namespace: str) -> Remaining:
        """Delete every object once, and count those that are left afterwards."""
        scope = Scope(namespace, USER)
        left = Remaining()
        items = (await self._resource.list(scope, _EVERYTHING)).items
        for at in range(0, len(items), BATCH):
            outcomes = await asyncio.gather(*(self._delete(scope, item.name) for item in items[at : at + BATCH]))
            left.failures += filter(None, outcomes)
        if items:
            await self._count(scope, left)
        return left

    async def _delete(self, scope: Scope, name: str) -> str:
        """Delete one object; return why it was refused, or ""."""
        try:
            await self._resource.delete(scope, name, DeleteOptions(propagation="Background"))
        except NotFound:
            return ""
        except StatusError as error:
            # It still counts as left, so the namespace waits and this is tried again.
            kind = self._resource.definition.kind
            log.warning("object of a namespace cannot be deleted", kind=kind, name=name, error=error.message)
            return error.message
        return ""

    async def _count(self, scope: Scope, left: Remaining) -> None:
        items = (await self._resource.list(scope, _EVERYTHING)).items
        if items:
            left.resources[str(self._resource.definition.resource)] = len(items)
        for number, item in enumerate(items, 1):
            if _FINALIZERS in item.body:
                left.finalizers.update(orjson.loads(item.body)["metadata"].get("finalizers") or ())
            if number % BATCH == 0:
                await asyncio.sleep(0)


class NamespaceDeletion:
    """The namespace controller: one task per namespace that is being deleted.

    ``contents`` are emptied one after the other, the next only when the one before is empty.
    """

    def __init__(self, store: ObjectStore, contents: Sequence[Contents]) -> None:
        self._store = store
        self._contents = tuple(contents)
        self._found: asyncio.Queue[str] = asyncio.Queue()
        self._working: set[str] = set()
        self._deletes = False
        """Whether what happens is to be looked at; everything is when that begins."""
        store.observe(RESOURCE, self._observe)

    async def run(self) -> None:
        """Work until cancelled; may be run again."""
        self._deletes = True
        try:
            for entry in self._store.snapshot(RESOURCE):
                self._consider(entry)
            async with asyncio.TaskGroup() as tasks:
                while True:
                    name = await self._found.get()
                    if name not in self._working:
                        self._working.add(name)
                        tasks.create_task(self._finish(name))
        finally:
            self._deletes, self._found = False, asyncio.Queue()

    def _observe(self, event: Event) -> None:
        if self._deletes and event.type != "DELETED":
            self._consider(event.entry)

    def _consider(self, entry: Entry) -> None:
        # Bytes are enough to tell: decoding every namespace event would only repeat this.
        if b'"deletionTimestamp":"' in entry.body:
            self._found.put_nowait(entry.name)

    async def _finish(self, name: str) -> None:
        delay = FIRST_DELAY
        try:
            # Creates that saw the namespace Active just before land first, and are then found.
            await asyncio.sleep(delay)
            while not await self._step(name):
                await asyncio.sleep(delay)
                delay = min(delay * 2, LONGEST_DELAY)
        finally:
            self._working.discard(name)

    async def _step(self, name: str) -> bool:
        """Empty and remove the namespace as far as it goes now; tell whether it is gone, or no longer to be deleted."""
        try:
            left = await self._delete_contents(name)
            entry = await change_namespace(self._store, name, _report(left), actor=USER.name)
        except (StatusError, StoreUnavailable) as error:
            log.warning("namespace cannot be emptied yet", namespace=name, error=str(error))
            return False
        if entry is None or self._store.get(entry.key) is None:
            log.info("namespace deleted", namespace=name)
            return True
        return not is_terminating(decode(entry))

    async def _delete_contents(self, name: str) -> Remaining:
        for delete in self._contents:
            if left := await delete(name):
                return left
        return Remaining()


def _report(left: Remaining) -> Callable[[Json], Json | None]:
    """Say of a namespace what it waits for; let go of it when that is nothing."""

    def change(namespace: Json) -> Json | None:
        if not is_terminating(namespace):
            return None
        told = with_conditions(namespace, left)
        if left:
            return told
        finalizers = (namespace.get("spec") or {}).get("finalizers") or []
        kept = [finalizer for finalizer in finalizers if finalizer != NAMESPACE_FINALIZER]
        return {**told, "spec": {"finalizers": kept} if kept else {}}

    return change
