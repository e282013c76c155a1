"""What the engine says about Repositories, written to the cluster that has them. Source: ``porch-api.md`` 1.9."""

from typing import Any

import orjson

from apiserver.cluster.answers import cluster_errors
from apiserver.cluster.mirror import Mirror
from krm.client.client import KubeClient
from krm.meta.errors import Conflict, NotFound
from storage.bodies import decode
from storage.interfaces import Entry, Mutation, Op, StaleWrite

Json = dict[str, Any]


class RepositoryWriter:
    """Writes single changes of Repositories: metadata and spec by one request, the status by another, if they differ.

    A repetition finds nothing to do. What was cancelled may be done, and the mirror learns it by its watch.
    """

    def __init__(self, client: KubeClient, mirror: Mirror) -> None:
        self._client = client
        self._mirror = mirror

    async def write(self, mutation: Mutation) -> Entry:
        """Write what differs from the object that the author of ``mutation`` saw.

        An object that is gone meanwhile needs nothing written about it.

        Raises:
            StaleWrite: somebody else was first; the mirror shows what they wrote.
            StoreUnavailable: the cluster refuses, or does not answer.
        """
        known = self._mirror.get(mutation.key)
        if known is None or known.rv != mutation.prev_rv:
            raise StaleWrite(mutation.key, known.rv if known else 0)
        with self._mirror.writing(mutation.key), cluster_errors(f"repository {_shown(mutation)} cannot be written"):
            try:
                written = await self._replace(decode(known), _wanted(mutation), mutation.op)
            except Conflict as error:
                await self._look_again(mutation)
                current = self._mirror.get(mutation.key)
                raise StaleWrite(mutation.key, current.rv if current else 0) from error
            except NotFound:
                return known
            # One that goes with its last finalizer says so by an event; what it was then is no news.
            if mutation.op is not Op.DELETE:
                self._mirror.wrote(written)
        return self._mirror.get(mutation.key) or known

    async def _replace(self, old: Json, new: Json, op: Op) -> Json:
        written = old
        if op is Op.DELETE or _without_status(old) != _without_status(new):
            written = await self._client.update(self._mirror.resource, new)
        if op is not Op.DELETE and old.get("status") != new.get("status"):
            said = {**written, "status": new.get("status") or {}}
            written = await self._client.update_status(self._mirror.resource, said)
        return written

    async def _look_again(self, mutation: Mutation) -> None:
        """Have the mirror show the object as it is now: its watch may be slower than whoever tries again."""
        try:
            found = await self._client.get(self._mirror.resource, mutation.key.namespace, mutation.key.name)
        except NotFound:
            return
        self._mirror.wrote(found)


def _wanted(mutation: Mutation) -> Json:
    body: Json = orjson.loads(mutation.body)
    body["metadata"]["resourceVersion"] = str(mutation.prev_rv)
    return body


def _without_status(body: Json) -> Json:
    """Return what the main resource takes of an object; the generation is the cluster's business."""
    metadata = {key: value for key, value in body["metadata"].items() if key != "generation"}
    return {**{key: value for key, value in body.items() if key != "status"}, "metadata": metadata}


def _shown(mutation: Mutation) -> str:
    return f"{mutation.key.namespace}/{mutation.key.name}"
