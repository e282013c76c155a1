"""Which resource serves a kind: the API's discovery, one document for each group and version."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final
from urllib.parse import quote

from krm.client.resources import Resource
from krm.meta.errors import NotFound

Json = dict[str, Any]

MISS_SECONDS: Final = 5.0
"""A document is read again for a kind that it lacks when it is older than this."""
KEPT_DOCUMENTS: Final = 500
"""Groups and versions that are remembered; users name them, so they are bounded."""


class Discovery:
    """Remembers what the server serves; ``read`` gets the document of a path."""

    def __init__(self, read: Callable[[str], Awaitable[Json]]) -> None:
        self._read = read
        self._documents: dict[str, tuple[float, dict[str, Resource]]] = {}
        self._reading = asyncio.Lock()

    async def resource_of(self, api_version: str, kind: str, *, fresh: bool = False) -> Resource | None:
        """Return the resource of a kind, None when it is not served.

        What was served once is taken from memory, unless ``fresh`` asks again, as is that something was not served 5 s ago.

        Raises:
            StatusError, NoAnswer: The server could not say.

        """
        if {"", ".", ".."} & set(api_version.split("/")):
            return None  # in a path it would lead elsewhere
        if not fresh and (known := self._known(api_version, kind)):
            return known
        begun = time.monotonic()
        async with self._reading:  # so that many who miss the same kind ask once
            read_at, kinds = self._documents.get(api_version, (float("-inf"), {}))
            if read_at < (begun if fresh else begun - MISS_SECONDS):
                kinds = await self._read_document(api_version)
            return kinds.get(kind)

    def _known(self, api_version: str, kind: str) -> Resource | None:
        _, kinds = self._documents.get(api_version, (0.0, {}))
        return kinds.get(kind)

    async def _read_document(self, api_version: str) -> dict[str, Resource]:
        group, slash, version = api_version.rpartition("/")
        path = (
            f"/apis/{quote(group, safe='')}/{quote(version, safe='')}" if slash else f"/api/{quote(version, safe='')}"
        )
        try:
            kinds = _kinds(group, version, await self._read(path))
        except NotFound:
            kinds = {}
        if len(self._documents) >= KEPT_DOCUMENTS:
            self._documents.clear()
        self._documents[api_version] = time.monotonic(), kinds
        return kinds


def _kinds(group: str, version: str, document: Json) -> dict[str, Resource]:
    found: dict[str, Resource] = {}
    for served in document.get("resources") or ():
        plural, kind = str(served.get("name") or ""), str(served.get("kind") or "")
        if kind and plural and "/" not in plural:
            found.setdefault(kind, Resource(group, version, plural, kind, bool(served.get("namespaced"))))
    return found
