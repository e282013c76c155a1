"""The API server as one ASGI application over a set of served resources.

It owns the way of every request: exception boundary, authentication, request info, authorization, deadline,
dispatch. What is served can be replaced while running. Source: ``kube-api.md`` 1.2 and 1.3.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

import structlog
from starlette.routing import BaseRoute, Match, Route
from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as AsgiScope

from apiserver.machinery.definition import Definition
from apiserver.machinery.discovery import Discovery
from apiserver.machinery.health import Health
from apiserver.machinery.openapi import OpenApi
from apiserver.machinery.reply import plain
from apiserver.machinery.request import Query, RequestInfo, duration, read_query, request_info, text
from apiserver.machinery.rest import Resource, Served, User
from apiserver.machinery.routes import Call, Endpoint
from apiserver.machinery.status import ErrorBoundary
from krm.meta.errors import MethodNotAllowed, Timeout, Unauthorized

BODY_LIMIT = 6 * 1024 * 1024
"""Bytes of a request body, unless configured."""
REQUEST_SECONDS = 291.0
"""Seconds for one request other than a watch, unless configured; upstream's server uses the same."""
_OPEN_PATHS = ("/healthz", "/livez", "/readyz", "/version")
"""What anybody may read, with everything below."""
_NOT_FOUND = "404 page not found\n"


class Authenticator(Protocol):
    """Finds out who sends a request."""

    def authenticate(self, scope: AsgiScope) -> User | None:
        """Return the user, or None for nobody we know."""
        ...


Authorize = Callable[[User, RequestInfo], Awaitable[None]]
"""Raises Forbidden for what the user may not do."""


async def allow_all(_user: User, _info: RequestInfo) -> None:
    """Let every known user do everything."""


class ApiMachinery:
    """Serves ``served`` with discovery, OpenAPI, health and version.

    ``health_checks`` are quick and do not raise. ``stopping``, once set, ends all watches and fails ``/readyz``.
    ``body_limit`` is in bytes, ``request_seconds`` bounds every request that is no watch.
    """

    def __init__(
        self,
        served: Sequence[Served],
        *,
        authenticator: Authenticator,
        authorize: Authorize = allow_all,
        version_info: Mapping[str, str] | None = None,
        health_checks: Mapping[str, Callable[[], bool]] | None = None,
        stopping: asyncio.Event | None = None,
        body_limit: int = BODY_LIMIT,
        request_seconds: float = REQUEST_SECONDS,
    ) -> None:
        self._authenticator = authenticator
        self._authorize = authorize
        self._version_info = dict(version_info or {})
        self._health_checks = dict(health_checks or {})
        self._stopping = stopping or asyncio.Event()
        self._body_limit = body_limit
        self._request_seconds = request_seconds
        self._boundary = ErrorBoundary(self._serve)
        self._endpoints: dict[tuple[str, str, str, str], Endpoint] = {}
        self._documents: list[BaseRoute] = []
        self.replace(served)

    def replace(self, served: Sequence[Served]) -> None:
        """Serve something else from the next request on; requests under way finish as they began."""
        endpoints = {}
        for one in served:
            for subresource, resource in {"": one.resource, **one.subresources}.items():
                parent: Definition = one.resource.definition
                key = (parent.group, parent.version, parent.plural, subresource)
                endpoints[key] = self._endpoint(resource, subresource, one.deleted_as_object)
        discovery, openapi = Discovery(served), OpenApi(served)
        health = Health(
            self._health_checks,
            version=self._version_info,
            paths=[*discovery.paths(), "/openapi/v2", "/openapi/v3"],
            shutting_down=self._stopping.is_set,
        )
        self._endpoints = endpoints
        self._documents = [*discovery.routes(), *openapi.routes(), *health.routes()]

    def routes(self) -> list[BaseRoute]:
        """Return the route for the application: everything that no earlier route takes."""
        return [Route("/{path:path}", self, include_in_schema=False)]

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        await self._boundary(scope, receive, send)

    def _endpoint(self, resource: Resource, subresource: str, deleted_as_object: bool) -> Endpoint:
        return Endpoint(
            resource,
            subresource=subresource,
            deleted_as_object=deleted_as_object,
            body_limit=self._body_limit,
            stopping=self._stopping,
        )

    async def _serve(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        query = read_query(scope)
        info = request_info(scope["method"], path, query)
        if not path.startswith(_OPEN_PATHS):
            user = self._authenticator.authenticate(scope)
            if user is None:
                raise Unauthorized
            structlog.contextvars.bind_contextvars(user=user.name)
            await self._authorize(user, info)
            if info.resource:
                answer = await self._resource_answer(Call(scope, receive, info, query, user))
                await answer(scope, receive, send)
                return
        await self._document(scope, receive, send)

    async def _resource_answer(self, call: Call) -> ASGIApp:
        info = call.info
        endpoint = self._endpoints.get((info.group, info.version, info.resource, info.subresource))
        if endpoint is None or info.excess or not _reachable(endpoint.definition, info):
            return plain(_NOT_FOUND, status=404)
        if info.verb == "watch":
            return await endpoint.serve(call)
        seconds = self._seconds(call.query)
        try:
            async with asyncio.timeout(seconds) as deadline:
                return await endpoint.serve(call)
        except TimeoutError as error:
            if not deadline.expired():
                raise
            raise Timeout("Timeout: request did not complete within the allotted timeout") from error

    def _seconds(self, query: Query) -> float:
        wanted = text(query, "timeout")
        return (
            min(duration(wanted) or self._request_seconds, self._request_seconds) if wanted else self._request_seconds
        )

    async def _document(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Serve discovery, OpenAPI, health and version."""
        partial = False
        for route in self._documents:
            match, found = route.matches(scope)
            if match is Match.FULL:
                scope.update(found)
                await route.handle(scope, receive, send)
                return
            partial = partial or match is Match.PARTIAL
        if partial:
            raise MethodNotAllowed(f"{scope['method'].lower()} is not supported on this path")
        await plain(_NOT_FOUND, status=404)(scope, receive, send)


def _reachable(definition: Definition, info: RequestInfo) -> bool:
    """Tell whether a path's namespace fits the scope of the kind."""
    if not definition.namespaced:
        return info.namespace is None
    if info.namespace is not None:
        return True
    return not info.name and info.verb in ("list", "watch", "create", "deletecollection")
