"""Empties namespaces that are being deleted, then removes them.

Contents go in the order given: Repositories first, so that nothing registers package revisions
anew while the rest is removed. Git is never touched. Source: ``kube-api.md`` 2.14, ``decisions.md`` 4.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Protocol, runtime_checkable

import structlog

from apiserver.machinery.definition import Definition
from apiserver.machinery.rest import DeleteOptions, Deleter, Lister, ListOptions, Scope, User
from apiserver.resources.core import NAMESPACE_FINALIZER
from apiserver.resources.namespaces import RESOURCE, change_namespace
from apiserver.resources.writing import is_terminating
from krm.meta.conditions import timestamp
from krm.meta.errors import NotFound, StatusError
from krm.meta.selectors import FieldSelector, LabelSelector
from storage.bodies import decode
from storage.interfaces import Event, ObjectStore, StoreUnavailable

Json = dict[str, Any]
log = structlog.get_logger()

Contents = Callable[[str], Awaitable[int]]
"""Deletes what it is responsible for in a namespace; returns how many objects are still there."""

ACTOR: Final = "system:namespace-controller"
FIRST_DELAY: Final = 0.05
"""Seconds before a namespace that is not empty yet is looked at again; doubled every time."""
BATCH: Final = 50
"""Objects deleted at a time: they share transactions, and others get their turn in between."""
LONGEST_DELAY: Final = 5.0
"""Seconds between two looks at a namespace that something holds."""


@runtime_checkable
@runtime_checkable
class NamespacedObjects(Lister, Deleter, Protocol):
    """A resource whose objects in a namespace can be listed and deleted."""

    definition: Definition


class ContentsOf:
    """Deletes the objects of one resource through its own verbs; finalizers hold what they hold."""

    def __init__(self, resource: NamespacedObjects) -> None:
        self._resource = resource

    async def __call__(self, namespace: str) -> int:
        """Delete every object once, and count those that are left afterwards."""
        scope = Scope(namespace, User(ACTOR, ("system:masters",)))
        everything = ListOptions(LabelSelector.parse(""), FieldSelector.parse(""))
        items = (await self._resource.list(scope, everything)).items
        for at in range(0, len(items), BATCH):
            await asyncio.gather(*(self._delete(scope, item.name) for item in items[at : at + BATCH]))
        return len((await self._resource.list(scope, everything)).items) if items else 0

    async def _delete(self, scope: Scope, name: str) -> None:
        try:
            await self._resource.delete(scope, name, DeleteOptions())
        except NotFound:
            return
        except StatusError as error:
            # It still counts as left, so the namespace waits and this is tried again.
            kind = self._resource.definition.kind
            log.warning("object of a namespace cannot be deleted", kind=kind, name=name, error=error.message)


class NamespaceDeletion:
    """The namespace controller: one task per namespace that is being deleted.

    ``contents`` are emptied one after the other, the next only when the one before is empty.
    """

    def __init__(self, store: ObjectStore, contents: Sequence[Contents]) -> None:
        self._store = store
        self._contents = tuple(contents)
        self._found: asyncio.Queue[str] = asyncio.Queue()
        self._working: set[str] = set()
        store.observe(RESOURCE, self._observe)

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                name = await self._found.get()
                if name not in self._working:
                    self._working.add(name)
                    tasks.create_task(self._finish(name))

    def _observe(self, event: Event) -> None:
        # Bytes are enough to tell: decoding every namespace event would only repeat this.
        if event.type != "DELETED" and b'"deletionTimestamp":"' in event.entry.body:
            self._found.put_nowait(event.entry.name)

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
            entry = await change_namespace(self._store, name, _report(left), actor=ACTOR)
        except (StatusError, StoreUnavailable) as error:
            log.warning("namespace cannot be emptied yet", namespace=name, error=str(error))
            return False
        if entry is None or self._store.get(entry.key) is None:
            log.info("namespace deleted", namespace=name)
            return True
        return not is_terminating(decode(entry))

    async def _delete_contents(self, name: str) -> int:
        for delete in self._contents:
            if left := await delete(name):
                return left
        return 0


def _report(left: int) -> Callable[[Json], Json | None]:
    """Let go of an empty namespace; say of another one what it waits for."""

    def change(namespace: Json) -> Json | None:
        if not is_terminating(namespace):
            return None
        if not left:
            finalizers = (namespace.get("spec") or {}).get("finalizers") or []
            kept = [finalizer for finalizer in finalizers if finalizer != NAMESPACE_FINALIZER]
            return {**namespace, "spec": {"finalizers": kept} if kept else {}}
        return _with_condition(namespace, left)

    return change


def _with_condition(namespace: Json, left: int) -> Json | None:
    status = namespace.get("status") or {}
    message = f"Some content in the namespace has not been deleted yet: {left} objects remain"
    conditions = status.get("conditions") or []
    if any(condition.get("message") == message for condition in conditions):
        return None
    condition = {
        "type": "NamespaceContentRemaining",
        "status": "True",
        "lastTransitionTime": timestamp(),
        "reason": "SomeResourcesRemain",
        "message": message,
    }
    others = [c for c in conditions if c.get("type") != condition["type"]]
    return {**namespace, "status": {**status, "conditions": [*others, condition]}}
