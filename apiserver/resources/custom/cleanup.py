"""Removes the instances of a custom resource whose definition is being deleted, then lets the definition go.

Finalizers of instances are respected: the definition waits for them. Source: ``kube-api.md`` 2.15.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from apiserver.machinery.definition import Json
from apiserver.machinery.rest import DeleteOptions, Scope, User
from apiserver.resources.custom.definitions import CLEANUP
from apiserver.resources.custom.objects import CustomObjects
from apiserver.resources.custom.serving import CustomServing, Kind
from krm.meta.conditions import Condition, set_condition
from krm.meta.errors import NotFound, StatusError
from storage.interfaces import Entry, ObjectStore, StoreUnavailable

log = structlog.get_logger()

ACTOR: Final = User("system:serviceaccount:kube-system:generic-garbage-collector", ("system:masters",))
BATCH: Final = 50
"""Instances deleted at a time: they share transactions, and others get their turn in between."""
FIRST_DELAY: Final = 0.05
"""Seconds before instances that are still there are looked at again; doubled every time."""
LONGEST_DELAY: Final = 5.0
"""Seconds between two looks while finalizers hold instances."""

Update = Callable[[str, Callable[[Json], Json], str], Awaitable[None]]
"""(name of a definition, change, subresource) → the definition changed, unless another writer was first."""


class InstanceRemoval:
    """One task per definition that is being deleted."""

    def __init__(self, store: ObjectStore, serving: CustomServing, update: Update) -> None:
        self._store = store
        self._serving = serving
        self._update = update
        self._working: dict[str, asyncio.Event] = {}

    def begin(self, name: str, tasks: asyncio.TaskGroup) -> None:
        """Remove the instances of a definition; a removal under way goes on."""
        if name not in self._working:
            self._working[name] = asyncio.Event()
            tasks.create_task(self._finish(name))

    def instance_gone(self, resource: str) -> None:
        """Note that an instance of a resource is gone: perhaps it was the last that was waited for."""
        if resource in self._working:
            self._working[resource].set()

    async def _finish(self, name: str) -> None:
        delay = FIRST_DELAY
        try:
            while not await self._step(name):
                event = self._working[name]
                try:
                    async with asyncio.timeout(delay):
                        await event.wait()
                except TimeoutError:
                    delay = min(delay * 2, LONGEST_DELAY)
                event.clear()
        finally:
            del self._working[name]

    async def _step(self, name: str) -> bool:
        """Remove what can be removed now; tell whether the definition was let go."""
        try:
            kind = self._serving.find(name)
            if kind is not None:
                await self._update(name, _in_progress, "status")
                if await self._delete_instances(kind):
                    return False
            await self._update(name, _completed, "status")
            await self._update(name, _released, "")
        except (StatusError, StoreUnavailable) as error:
            log.warning("instances cannot be removed yet", definition=name, error=str(error))
            return False
        except Exception:  # one definition must not keep the others from being served
            log.exception("instances cannot be removed", definition=name)
            return False
        return True

    async def _delete_instances(self, kind: Kind) -> int:
        """Delete every instance once; return how many are left, held by finalizers or made meanwhile."""
        resource = str(kind.resource)
        entries = self._store.snapshot(resource)
        for at in range(0, len(entries), BATCH):
            await asyncio.gather(*(_delete(kind.objects, entry) for entry in entries[at : at + BATCH]))
        return len(self._store.snapshot(resource))


async def _delete(objects: CustomObjects, entry: Entry) -> None:
    try:
        await objects.delete(Scope(entry.namespace or None, ACTOR), entry.name, DeleteOptions())
    except NotFound:
        return


def _in_progress(crd: Json) -> Json:
    return _terminating(crd, "True", "InstanceDeletionInProgress", "CustomResource deletion is in progress")


def _completed(crd: Json) -> Json:
    return _terminating(crd, "False", "InstanceDeletionCompleted", "removed all instances")


def _terminating(crd: Json, status: str, reason: str, message: str) -> Json:
    told = crd.setdefault("status", {})
    conditions = told["conditions"] = told.get("conditions") or []
    set_condition(
        conditions,
        Condition.model_validate({"type": "Terminating", "status": status, "reason": reason, "message": message}),
    )
    return crd


def _released(crd: Json) -> Json:
    finalizers = crd["metadata"].get("finalizers") or []
    crd["metadata"]["finalizers"] = [name for name in finalizers if name != CLEANUP]
    return crd
