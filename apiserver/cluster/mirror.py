"""Objects of the cluster as a store has its own: entries in memory, and events to those who observe them."""

import asyncio
from typing import Any

import orjson
import structlog

from krm.client.client import KubeClient
from krm.client.informer import Informer
from krm.client.resources import Resource
from storage.interfaces import Entry, Event, EventType, ObjectKey, Observer

Json = dict[str, Any]
log = structlog.get_logger()


class ClusterEntry(Entry):
    """An entry made of an object of the cluster; its revision is the cluster's."""

    __slots__ = ()

    @property
    def resource_version(self) -> str:
        """The revision as the cluster writes it."""
        return str(self.rv)


class Mirror:
    """All objects of one resource, kept by an informer; ``run`` it, and wait until it is ``synced``.

    ``stored_as`` is what the engine calls the resource.
    """

    def __init__(self, client: KubeClient, resource: Resource, stored_as: str) -> None:
        self.resource = resource
        self._stored_as = stored_as
        self._informer: Informer[ClusterEntry] = Informer(client, resource, None, self.entry)
        self._informer.subscribe(self._tell)
        self._observers: list[Observer] = []

    @property
    def problem(self) -> Exception | None:
        """Why the last list or watch failed."""
        return self._informer.error

    @property
    def synced(self) -> bool:
        """Whether everything was read once."""
        return self._informer.synced

    async def run(self) -> None:
        """Keep up with the cluster until cancelled."""
        await self._informer.run()

    async def wait_synced(self) -> None:
        """Wait until everything was read once; the caller sets the deadline."""
        await self._informer.wait_synced()

    def get(self, key: ObjectKey) -> ClusterEntry | None:
        """Return an object as it was last seen."""
        return self._informer.get(key.namespace, key.name)

    def snapshot(self, namespace: str | None) -> list[Entry]:
        """Return the objects of a namespace, or of all, in order."""
        found = (entry for entry in self._informer.values() if namespace is None or entry.namespace == namespace)
        return sorted(found, key=lambda entry: (entry.namespace, entry.name))

    def observe(self, observer: Observer) -> None:
        """Call ``observer`` for each change, beginning with the objects that are there."""
        self._observers.append(observer)
        for entry in self.snapshot(None):
            observer(Event(entry.rv, EventType.ADDED, entry, None))

    def writing(self, key: ObjectKey) -> Any:
        """Return a context in which news of an object waits for the answer to our own write of it."""
        return self._informer.writing(key.namespace, key.name)

    def wrote(self, body: Json) -> None:
        """Take the cluster's answer to a write of ours, and tell it to those who observe as any other news."""
        key = ObjectKey(self._stored_as, body["metadata"].get("namespace") or "", body["metadata"]["name"])
        before = self.get(key)
        self._informer.wrote(body)
        if (after := self.get(key)) is not before:
            self._tell(before, after)

    def entry(self, body: Json) -> ClusterEntry:
        """Make an entry of an object.

        Raises:
            KeyError, ValueError: it is no object with a revision in figures, which Kubernetes promises since KEP-5504.
        """
        metadata = body["metadata"]
        rv = int(metadata["resourceVersion"])
        key = ObjectKey(self._stored_as, metadata.get("namespace") or "", metadata["name"])
        # The items of a list do not always say what they are.
        whole = {"apiVersion": self.resource.api_version, "kind": self.resource.kind, **body}
        return ClusterEntry(key, rv, 0, str(metadata.get("uid") or ""), orjson.dumps(whole), {}, ())

    def _tell(self, old: Entry | None, new: Entry | None) -> None:
        entry = new or old
        if entry is None:
            return
        type_ = EventType.DELETED if new is None else EventType.MODIFIED if old else EventType.ADDED
        event = Event(entry.rv, type_, entry, old)
        for observer in self._observers:
            observer(event)


async def wait_for_all(mirrors: list[Mirror], seconds: float) -> str:
    """Wait until all mirrors were filled; return "" or, after ``seconds``, which one was not, and why."""
    try:
        async with asyncio.timeout(seconds):
            for mirror in mirrors:
                await mirror.wait_synced()
    except TimeoutError:
        slow = next(mirror for mirror in mirrors if not mirror.synced)
        return f"{slow.resource.plural} cannot be read: {slow.problem or 'no answer'}"
    return ""
