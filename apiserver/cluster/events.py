"""Events about our objects, written to the cluster. Source: ``kube-api.md`` 2.16; ADR 0022."""

from typing import Any

import orjson

from apiserver.machinery.rest import Change, Scope, WriteOptions
from krm.client.client import KubeClient
from krm.client.errors import NoAnswer
from krm.client.resources import EVENTS
from krm.meta.errors import NotFound, ServiceUnavailable
from storage.interfaces import Entry, ObjectKey

Json = dict[str, Any]


class ClusterEvents:
    """What the recorder of events writes to: a change makes an Event, or counts one up."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    async def update(self, scope: Scope, name: str, change: Change, options: WriteOptions) -> tuple[Entry, bool]:
        """Write what ``change`` makes of the Event, or of nothing; tell whether it is new. ``options`` have no effect here.

        Raises:
            StatusError: the cluster refuses it, or does not answer (ServiceUnavailable).
        """
        del options  # the field manager is the name under which the client sends its requests
        namespace = scope.namespace or "default"
        try:
            return await self._write(namespace, name, change)
        except NoAnswer as error:
            raise ServiceUnavailable(f"event {namespace}/{name} cannot be written: {error}") from error

    async def _write(self, namespace: str, name: str, change: Change) -> tuple[Entry, bool]:
        try:
            known = await self._client.get(EVENTS, namespace, name)
        except NotFound:
            return _entry(await self._client.create(EVENTS, namespace, change({}))), True
        return _entry(await self._client.update(EVENTS, change(known))), False


def _entry(body: Json) -> Entry:
    metadata = body["metadata"]
    key = ObjectKey("events", str(metadata.get("namespace") or ""), str(metadata["name"]))
    return Entry(key, 0, 0, str(metadata.get("uid") or ""), orjson.dumps(body), {}, ())
