"""The verbs of the Kubernetes API, on objects as JSON."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import orjson

from krm.client.connection import JSON, Connection, Observer, open_connection
from krm.client.discovery import Discovery
from krm.client.errors import Garbled, NoAnswer, TooLong, Unanswered, Unreachable, WriteRefused, error_of_status
from krm.client.resources import SHORT_SECONDS, Resource

__all__ = [
    "Garbled",
    "KubeClient",
    "NoAnswer",
    "Page",
    "TooLong",
    "Unanswered",
    "Unreachable",
    "WriteRefused",
    "connect",
]

Json = dict[str, Any]
Patch = Json | list[Json]
"""A merge patch, or a JSON patch."""

PAGE: Final = 500
"""Objects asked for at once."""
PAGE_SECONDS: Final = 60.0
WATCH_GRACE_SECONDS: Final = 15.0
"""A watch that its server does not end in time is ended by us so much later."""
MERGE_PATCH: Final = "application/merge-patch+json"


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a list; ``resource_version`` is that of the whole list."""

    items: list[Json]
    resource_version: str


class KubeClient:
    """Speaks to one API server; made by :func:`connect`. Safe for any number of tasks of one event loop.

    Every method may raise what :meth:`Connection.request` does; those that write also :class:`WriteRefused`.
    """

    def __init__(
        self, connection: Connection, discovery: Discovery | None = None, may_write: Callable[[], bool] | None = None
    ) -> None:
        self._connection = connection
        self._discovery = discovery or Discovery(self._read)
        self._may_write = may_write

    def guarded(self, may_write: Callable[[], bool]) -> "KubeClient":
        """Return a client on the same connections that asks before each write, so that a leader of the past writes nothing."""
        return KubeClient(self._connection, self._discovery, may_write)

    def of_metadata(self) -> "KubeClient":
        """Return a client on the same connections whose lists and watches bring the metadata of objects, where the server can."""
        return KubeClient(self._connection.of_metadata(), self._discovery, self._may_write)

    async def get(self, resource: Resource, namespace: str | None, name: str) -> Json:
        """Return one object."""
        return await self._read(resource.path(namespace, name))

    async def create(
        self, resource: Resource, namespace: str | None, body: Json, *, subresource: str = "", name: str = ""
    ) -> Json:
        """Create an object and return it as stored; ``name`` and ``subresource`` for those made below an object."""
        path = resource.path(namespace, name or None, subresource)
        return await self._write("POST", path, body, resource.write_seconds)

    async def update(self, resource: Resource, body: Json, *, subresource: str = "") -> Json:
        """Replace the object that ``body`` names, if it still has the resourceVersion of ``body``; return it as stored."""
        meta = body["metadata"]
        path = resource.path(meta.get("namespace"), meta["name"], subresource)
        return await self._write("PUT", path, body, resource.write_seconds)

    async def update_status(self, resource: Resource, body: Json) -> Json:
        """Replace the status of the object that ``body`` names, like :meth:`update`."""
        return await self.update(resource, body, subresource="status")

    async def patch(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        patch: Patch,
        *,
        content_type: str = MERGE_PATCH,
        subresource: str = "",
    ) -> Json:
        """Change one object by a patch of that media type; return it as stored."""
        path = resource.path(namespace, name, subresource)
        return await self._write("PATCH", path, patch, resource.write_seconds, content_type)

    async def delete(
        self, resource: Resource, namespace: str | None, name: str, *, uid: str = "", resource_version: str = ""
    ) -> None:
        """Delete one object, or mark it deleted while it has finalizers; a Conflict if it is not the one described."""
        wanted = {"uid": uid, "resourceVersion": resource_version}
        options: Json = {"kind": "DeleteOptions", "apiVersion": "v1"}
        if preconditions := {key: value for key, value in wanted.items() if value}:
            options["preconditions"] = preconditions
        await self._write("DELETE", resource.path(namespace, name), options, resource.write_seconds)

    async def list(
        self,
        resource: Resource,
        namespace: str | None,
        *,
        label_selector: str = "",
        field_selector: str = "",
        page: int = PAGE,
        versioned: bool = True,
    ) -> AsyncGenerator[Page]:
        """Stream the list of all objects by pages of at most ``page`` (0: all at once), together one consistent state.

        ``versioned`` False takes a list without a resourceVersion, too, as upstream's server answers (``porch-api.md`` 1.8).

        Raises:
            Expired: The state went away between two pages; what was read so far is not the whole.
            TooLong: A page is more than 64 MiB; ask for smaller ones.

        """
        path = resource.path(namespace)
        query = _selectors(label_selector, field_selector)
        if page:
            query["limit"] = str(page)
        while True:
            answer = await self._read(path, query, PAGE_SECONDS)
            found = _page(path, answer, versioned=versioned)
            yield found
            if not (token := answer["metadata"].get("continue")):
                return
            query["continue"] = str(token)

    async def watch(
        self,
        resource: Resource,
        namespace: str | None,
        resource_version: str,
        *,
        label_selector: str = "",
        field_selector: str = "",
        seconds: int = 180,
    ) -> AsyncGenerator[tuple[str, Json]]:
        """Stream what happens after ``resource_version``: ADDED, MODIFIED, DELETED or BOOKMARK, and the object.

        Ends when the server ends it, which it is asked to do after ``seconds``; close it (``aclosing``) to stop earlier.

        Raises:
            StatusError: An ERROR event or a refusal; Expired when that version is gone: list again.
            Unanswered: A broken connection, or no end long after ``seconds``.
            Garbled: A line that is no event, or too long.

        """
        query = _selectors(label_selector, field_selector)
        query |= {"watch": "true", "resourceVersion": resource_version, "allowWatchBookmarks": "true"}
        query["timeoutSeconds"] = str(seconds)
        lines = self._connection.lines(resource.path(namespace), query=query, seconds=seconds + WATCH_GRACE_SECONDS)
        async with aclosing(lines):
            async for batch in lines:
                for line in batch:
                    yield _event(line)

    async def resource_of(self, api_version: str, kind: str, *, fresh: bool = False) -> Resource | None:
        """Return the resource that serves a kind, None when none does; see :meth:`Discovery.resource_of`."""
        return await self._discovery.resource_of(api_version, kind, fresh=fresh)

    async def _read(self, path: str, query: Mapping[str, str] | None = None, seconds: float = SHORT_SECONDS) -> Json:
        return _object(path, await self._connection.request("GET", path, query=query, seconds=seconds))

    async def _write(self, method: str, path: str, body: Patch, seconds: float, content_type: str = JSON) -> Json:
        sent = orjson.dumps(body)
        if self._may_write is not None and not self._may_write():
            raise WriteRefused(f"{method} {path}: this process does not hold the lease")
        answer = await self._connection.request(
            method, path, body=sent, content_type=content_type, seconds=seconds, may_send=self._may_write
        )
        return _object(path, answer)


@asynccontextmanager
async def connect(
    kubeconfig: Path | None = None, *, agent: str = "porch-controllers", observe: Observer | None = None
) -> AsyncIterator[KubeClient]:
    """Make a client of the server that a kubeconfig names (None: of the cluster we run in); closed at the end.

    Raises:
        BadKubeconfig: The configuration cannot be used. Whether the server answers is not tried.

    """
    async with open_connection(kubeconfig, agent=agent, observe=observe) as connection:
        yield KubeClient(connection)


def _selectors(labels: str, fields: str) -> dict[str, str]:
    chosen = {"labelSelector": labels, "fieldSelector": fields}
    return {key: value for key, value in chosen.items() if value}


def _object(path: str, answer: bytes) -> Json:
    try:
        found = orjson.loads(answer)
    except orjson.JSONDecodeError as error:
        raise Garbled(f"{path}: the answer is no JSON") from error
    if not isinstance(found, dict):
        raise Garbled(f"{path}: the answer is no object")
    return found


def _page(path: str, answer: Json, *, versioned: bool) -> Page:
    meta, items = answer.get("metadata"), answer.get("items") or []
    version = str(meta.get("resourceVersion") or "") if isinstance(meta, dict) else ""
    if not isinstance(meta, dict) or not isinstance(items, list) or (versioned and not version):
        raise Garbled(f"{path}: the answer is no list")
    return Page(items, version)


def _event(line: bytes) -> tuple[str, Json]:
    try:
        event = orjson.loads(line)
        kind, changed = event["type"], event["object"]
    except (orjson.JSONDecodeError, TypeError, KeyError) as error:
        raise Garbled("a watch sent a line that is no event") from error
    if not isinstance(changed, dict):
        raise Garbled("a watch sent an event without an object")
    if kind == "ERROR":
        raise error_of_status(changed)
    return str(kind), changed
