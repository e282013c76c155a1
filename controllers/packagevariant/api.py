"""The verbs that the reconciler writes with: those of :class:`krm.client.client.KubeClient`, and of what stands in for it."""

from typing import Any, Protocol

from krm.client.resources import Resource

Json = dict[str, Any]


class Api(Protocol):
    """Reads and writes single objects; every call has a deadline of its own.

    Each raises a ``StatusError`` by code and reason, ``Unanswered`` (it may have been done), ``Unreachable`` (it was not)
    and, if it writes, ``WriteRefused`` (this process may not write now).
    """

    async def get(self, resource: Resource, namespace: str | None, name: str) -> Json:
        """Return one object."""
        ...

    async def create(
        self, resource: Resource, namespace: str | None, body: Json, *, subresource: str = "", name: str = ""
    ) -> Json:
        """Create an object and return it as stored."""
        ...

    async def update(self, resource: Resource, body: Json, *, subresource: str = "") -> Json:
        """Replace an object, if it still has the resourceVersion of ``body``; return it as stored."""
        ...

    async def delete(
        self, resource: Resource, namespace: str | None, name: str, *, uid: str = "", resource_version: str = ""
    ) -> None:
        """Delete one object; a Conflict if it is not the one described."""
        ...
