"""Keeps what is served in step with the CustomResourceDefinitions, and their status in step with what is served.

One worker takes definitions one after the other, in the order of their changes; only the removal of instances, which may
wait for finalizers, has a task of its own. A kind is served before its definition says Established. Whatever is cut
short by a stop is found again at the next start, since all of it follows from the stored definitions.
Source: ``kube-api.md`` 2.15.
"""

import asyncio
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Final

import structlog

from apiserver.machinery.definition import Json
from apiserver.machinery.rest import Scope, Served, WriteOptions
from apiserver.machinery.schema import SchemaError
from apiserver.resources.custom.cleanup import InstanceRemoval
from apiserver.resources.custom.definitions import FIELD_MANAGER, SERVER, CustomResourceDefinitions
from apiserver.resources.custom.names import Given, accept_names, taken_by_others
from apiserver.resources.custom.serving import CustomServing
from apiserver.resources.custom.validation import approval_condition
from apiserver.resources.objects import NamespaceCheck
from apiserver.resources.reading import resource_key
from apiserver.resources.served_kinds import ServedKinds
from apiserver.resources.writing import is_terminating
from krm.meta.conditions import Condition, find_condition, set_condition
from krm.meta.errors import Conflict, NotFound, StatusError
from storage.bodies import decode
from storage.interfaces import Event, ObjectKey, ObjectStore, StoreUnavailable

log = structlog.get_logger()

SETTLE_SECONDS: Final = 1.0
"""How long the answer to a write of a definition waits for what it says to be in force."""
RETRY_SECONDS: Final = 1.0
"""Before a definition is looked at again whose status could not be written."""


class CustomResources:
    """The controller of CustomResourceDefinitions. ``run`` works until cancelled; ``start`` comes before it.

    ``built_in`` names definitions of kinds that the server serves by itself: they are established, and no more.
    """

    def __init__(
        self,
        store: ObjectStore,
        definitions: CustomResourceDefinitions,
        kinds: ServedKinds,
        namespace_check: NamespaceCheck | None = None,
        *,
        built_in: Collection[str] = (),
    ) -> None:
        self._store = store
        self._definitions = definitions
        self._resource = resource_key(definitions.definition)
        self._built_in = frozenset(built_in)
        self._serving = CustomServing(store, kinds, namespace_check, self._instance_changed)
        self._removal = InstanceRemoval(store, self._serving, self._update)
        self._found: asyncio.Queue[str] = asyncio.Queue()
        self._waiting: set[str] = set()
        self._given: dict[str, Given] = {}
        self._working = ""
        self._awaited: dict[str, asyncio.Event] = {}
        self._refused: set[str] = set()
        """Definitions that lack a name which another one has."""

    async def start(self) -> None:
        """Store the server's own definitions and serve what was established before.

        To be awaited once the store has started, before the first request.
        """
        await self._definitions.store_own()
        self._store.observe(self._resource, self._definition_changed)
        definitions = [decode(entry) for entry in self._store.snapshot(self._resource)]
        self._given = {crd["metadata"]["name"]: Given.of(crd) for crd in definitions}
        for crd in definitions:
            name = crd["metadata"]["name"]
            try:
                await self._bring_up(name, crd)
            except Exception:  # a server without one of its kinds is better than none; ``run`` tries again
                log.exception("custom resource definition cannot be served", name=name)

    def served_from_the_start(self) -> list[Served]:
        """Return what the server's own definitions define, beside what is built in; for documents, before any start."""
        own = self._definitions.own
        return [one for name, crd in own.items() if name not in self._built_in for one in self._serving.versions(crd)]

    async def run(self) -> None:
        """Follow the definitions until cancelled."""
        self._definitions.settled = self._settled
        async with asyncio.TaskGroup() as tasks:
            while True:
                name = await self._found.get()
                self._waiting.discard(name)
                self._working = name
                try:
                    await self._settle(name, tasks)
                except (StatusError, StoreUnavailable) as error:
                    log.warning("custom resource definition cannot be served yet", name=name, error=str(error))
                    asyncio.get_running_loop().call_later(RETRY_SECONDS, self._look_at, name)
                except Exception:  # one definition must not keep the others from being served
                    log.exception("custom resource definition cannot be served", name=name)
                self._working = ""
                if name in self._awaited and name not in self._waiting:
                    self._awaited.pop(name).set()

    async def _settled(self, name: str) -> None:
        """Wait until nothing is left to do for a definition that was just written, at most ``SETTLE_SECONDS``."""
        if name in self._waiting or name == self._working:
            done = self._awaited.setdefault(name, asyncio.Event())
            with suppress(TimeoutError):
                async with asyncio.timeout(SETTLE_SECONDS):
                    await done.wait()

    def _definition_changed(self, event: Event) -> None:
        self._look_at(event.entry.name)

    def _instance_changed(self, event: Event) -> None:
        if event.type == "DELETED":
            self._removal.instance_gone(event.entry.key.resource)

    def _look_at(self, name: str) -> None:
        if name not in self._waiting:
            self._waiting.add(name)
            self._found.put_nowait(name)

    async def _settle(self, name: str, tasks: asyncio.TaskGroup) -> None:
        """Bring service and status of one definition in step with what it says now."""
        entry = self._store.get(ObjectKey(self._resource, "", name))
        if entry is None:
            self._forget(name)
            return
        crd = decode(entry)
        await self._bring_up(name, crd)
        if is_terminating(crd):
            self._removal.begin(name, tasks)

    async def _bring_up(self, name: str, crd: Json) -> None:
        """Serve what can be served of a definition and write its status; one that goes is served until it is gone."""
        if is_terminating(crd):
            if _is_established(crd):
                await self._serve(crd)
            return
        status = await self._status(crd)
        if status != (crd.get("status") or {}):
            await self._update(name, _with_status(crd, status), "status")

    def _forget(self, name: str) -> None:
        """Stop serving what a definition that is gone defined; its names are free for others now."""
        self._serving.stop(name)
        self._given.pop(name, None)
        self._refused.discard(name)
        for other in self._refused:
            self._look_at(other)

    async def _status(self, crd: Json) -> Json:
        """Return the status that a definition has to have; what it establishes is served already."""
        names, accepted = accept_names(crd, taken_by_others(crd, self._given))
        self._note(crd["metadata"]["name"], Given(crd["spec"]["group"], names), accepted)
        status = {**(crd.get("status") or {}), "acceptedNames": names}
        conditions = status["conditions"] = [dict(one) for one in status.get("conditions") or ()]
        set_condition(conditions, accepted)
        if approval := approval_condition(crd):
            set_condition(conditions, approval)
        if accepted.status == "True" or _is_established(crd):
            established = await self._serve({**crd, "status": status})
        else:
            established = Condition(
                type="Established", status="False", reason="NotAccepted", message="not all names are accepted"
            )
        set_condition(conditions, established)
        return status

    def _note(self, name: str, given: Given, accepted: Condition) -> None:
        self._given[name] = given
        if accepted.status == "True":
            self._refused.discard(name)
        else:
            self._refused.add(name)

    async def _serve(self, crd: Json) -> Condition:
        """Serve a definition; return its Established condition."""
        try:
            if crd["metadata"]["name"] not in self._built_in:
                await self._serving.serve(crd)
        except SchemaError as error:
            # Its definition was stored by an earlier version of this server, which knew fewer rules.
            log.warning("custom resource definition cannot be served", name=crd["metadata"]["name"], error=str(error))
            return Condition(type="Established", status="False", reason="Installing", message=str(error))
        message = "the initial names have been accepted"
        return Condition(type="Established", status="True", reason="InitialNamesAccepted", message=message)

    async def _update(self, name: str, change: Callable[[Json], Json], subresource: str) -> None:
        """Change a definition as the server itself; one that changed or went meanwhile is looked at again anyway."""
        options = WriteOptions(field_manager=FIELD_MANAGER)
        try:
            await self._definitions.update_part(Scope(None, SERVER), name, change, options, subresource)
        except (NotFound, Conflict):
            self._look_at(name)


def _with_status(seen: Json, status: Json) -> Callable[[Json], Json]:
    def change(current: Json) -> Json:
        # Against the revision that the status was made from: another writer's is not overwritten unseen.
        metadata = {**current["metadata"], "resourceVersion": seen["metadata"]["resourceVersion"]}
        return {**current, "metadata": metadata, "status": status}

    return change


def _is_established(crd: Json) -> bool:
    found = find_condition((crd.get("status") or {}).get("conditions"), "Established")
    return found is not None and found.get("status") == "True"
