"""The API server as one ASGI application over a set of served resources.

It owns the way of every request: exception boundary, request info, deadline, audit, authentication, impersonation, places
in flight, authorization, dispatch. What is served can be replaced while running. Source: ``kube-api.md`` 1.2 and 1.3.
"""

import asyncio
import dataclasses
from collections.abc import Mapping, Sequence
from contextlib import nullcontext

import structlog
from starlette.routing import BaseRoute, Match, Route
from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as AsgiScope

from apiserver.machinery.access import (
    OPEN_PATHS,
    AuditRecord,
    AuditTrail,
    Authenticator,
    Authorize,
    Impersonate,
    allow_all,
    take_credentials,
)
from apiserver.machinery.call import Call
from apiserver.machinery.definition import Definition
from apiserver.machinery.discovery import Discovery
from apiserver.machinery.health import Check, Health
from apiserver.machinery.in_flight import InFlight
from apiserver.machinery.metrics import PATH as METRICS_PATH
from apiserver.machinery.metrics import Measured, Metrics, WatchMeter, unserved
from apiserver.machinery.openapi import OpenApi
from apiserver.machinery.reply import plain
from apiserver.machinery.request import REQUEST_INFO, Query, RequestInfo, duration, read_query, request_info, text
from apiserver.machinery.request_span import RequestSpans
from apiserver.machinery.rest import Resource, Served
from apiserver.machinery.routes import Endpoint
from apiserver.machinery.status import ErrorBoundary
from apiserver.machinery.stopping import Stopping
from krm.meta.errors import BadRequest, Forbidden, MethodNotServed, NotServed, Timeout, Unauthorized
from krm.meta.selectors import FieldSelector

BODY_LIMIT = 6 * 1024 * 1024
"""Bytes of a request body, unless configured."""
REQUEST_SECONDS = 291.0
"""Seconds for one request other than a watch, unless configured; upstream's server uses the same."""
log = structlog.get_logger(__name__)

_NOT_FOUND = "404 page not found\n"
_NAMED_VERBS = ("list", "watch", "deletecollection")
"""Verbs of collections; a field selector may narrow them to one object."""


class ApiMachinery:
    """Serves ``served`` with discovery, OpenAPI, health and version.

    ``health_checks`` are quick and do not raise. ``stopping`` fails ``/readyz`` and ends the watches.
    ``body_limit`` is in bytes, ``request_seconds`` bounds every request that is no watch. Without ``impersonate`` nobody
    may act for somebody else; without ``audit`` no record is kept; without ``in_flight`` nobody waits for a place.
    With ``traced`` each request is a span, with ``log_requests`` a line at debug level. ``documents`` are served beside our own, to who may read their paths.
    """

    def __init__(
        self,
        served: Sequence[Served],
        *,
        authenticator: Authenticator,
        authorize: Authorize = allow_all,
        impersonate: Impersonate | None = None,
        audit: AuditTrail | None = None,
        in_flight: InFlight | None = None,
        metrics: Metrics | None = None,
        documents: Sequence[Route] = (),
        version_info: Mapping[str, str] | None = None,
        health_checks: Mapping[str, Check] | None = None,
        stopping: Stopping | None = None,
        body_limit: int = BODY_LIMIT,
        request_seconds: float = REQUEST_SECONDS,
        traced: bool = False,
        log_requests: bool = False,
    ) -> None:
        self._authenticator = authenticator
        self._authorize = authorize
        self._impersonate = impersonate
        self._audit = audit
        self._in_flight = in_flight
        self._metrics = metrics or Metrics()
        self._more_documents = tuple(documents)
        self._version_info = dict(version_info or {})
        self._health_checks = dict(health_checks or {})
        self._stopping = stopping or Stopping()
        self._body_limit = body_limit
        self._request_seconds = request_seconds
        boundary = ErrorBoundary(self._serve)
        self._log_requests = log_requests
        self._boundary: ASGIApp = RequestSpans(boundary) if traced else boundary
        self._endpoints: dict[tuple[str, str, str, str], Endpoint] = {}
        # What is unknown in the groups of custom resources alone is told in another way, as by a kube-apiserver.
        self._own_groups: set[str] = set()
        self._documents: list[BaseRoute] = []
        self._discovery = Discovery(())
        self._openapi = OpenApi(())
        self._health = Health(
            self._health_checks,
            version=self._version_info,
            paths=self._index,
            shutting_down=self._stopping.is_set,
        ).routes()
        self.replace(served)

    def replace(self, served: Sequence[Served]) -> None:
        """Serve something else from the next request on; requests under way finish as they began.

        What stays the same keeps its endpoint and its documents, so that one more kind costs little however many
        there are.
        """
        endpoints = {}
        for one in served:
            for subresource, resource in {"": one.resource, **one.subresources}.items():
                parent: Definition = one.resource.definition
                key = (parent.group, parent.version, parent.plural, subresource)
                known = self._endpoints.get(key)
                if known is None or known.resource is not resource:
                    known = self._endpoint(resource, subresource, one.deleted_as_object)
                endpoints[key] = known
        self._discovery = Discovery(served, known=self._discovery)
        self._openapi = OpenApi(served, known=self._openapi)
        self._endpoints = endpoints
        self._own_groups = {key[0] for key, one in endpoints.items() if not (key[3] or one.definition.custom)}
        self._documents = [
            *self._discovery.routes(),
            *self._openapi.routes(),
            *self._health,
            *self._metrics.routes(),
            *self._more_documents,
        ]

    def _index(self) -> list[str]:
        return [
            *self._discovery.paths(),
            "/openapi/v2",
            "/openapi/v3",
            METRICS_PATH,
            *(one.path for one in self._more_documents),
        ]

    def routes(self) -> list[BaseRoute]:
        """Return the route for the application: everything that no earlier route takes."""
        return [Route("/{path:path}", self, include_in_schema=False)]

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        measured = Measured(self._metrics, scope, send)
        try:
            await self._boundary(scope, receive, measured.send)
        finally:
            self._count(measured, scope)

    def _count(self, measured: Measured, scope: AsgiScope) -> None:
        info: RequestInfo = scope.get(REQUEST_INFO) or RequestInfo("get", "")
        key = (info.group, info.version, info.resource, info.subresource)
        if self._log_requests:
            log.debug("request answered", asked=info, code=measured.code)
        measured.finish(info if not info.resource or key in self._endpoints else unserved(info))

    def _endpoint(self, resource: Resource, subresource: str, deleted_as_object: bool) -> Endpoint:
        return Endpoint(
            resource,
            subresource=subresource,
            deleted_as_object=deleted_as_object,
            body_limit=self._body_limit,
            stopping=self._stopping,
            meter=WatchMeter(self._metrics, resource.definition),
        )

    async def _serve(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Read what is asked for and begin its record; the boundary around this is the outermost part of the way."""
        query = read_query(scope)
        info = scope[REQUEST_INFO] = request_info(scope["method"], scope["path"], query)
        record = await self._audit.begin(scope, info) if self._audit else None
        if record is None:
            await self._serve_in_time(scope, receive, send, query, None)
            return
        with record:
            await self._serve_in_time(scope, record.receiving(receive), record.sending(send), query, record)

    async def _serve_in_time(
        self, scope: AsgiScope, receive: Receive, send: Send, query: Query, record: AuditRecord | None
    ) -> None:
        """Serve everything but a watch within its time, waiting for a place and sending the answer included."""
        if scope[REQUEST_INFO].verb == "watch":
            await self._serve_sender(scope, receive, send, query, record)
            return
        try:
            async with asyncio.timeout(self._seconds(query)) as deadline:
                await self._serve_sender(scope, receive, send, query, record)
        except TimeoutError as error:
            if not deadline.expired():
                raise
            raise Timeout("Timeout: request did not complete within the allotted timeout") from error

    async def _serve_sender(
        self, scope: AsgiScope, receive: Receive, send: Send, query: Query, record: AuditRecord | None
    ) -> None:
        """Find out who asks, and for whom."""
        info: RequestInfo = scope[REQUEST_INFO]
        is_open = info.path in OPEN_PATHS
        user = await self._metrics.authentication(self._authenticator.authenticate(scope))
        impersonation = take_credentials(scope)
        if user is None:
            if not is_open:
                raise Unauthorized
            await self._document(scope, receive, send)
            return
        if record is not None:
            record.known(user)
        if impersonation:
            if self._impersonate is None:
                raise Forbidden("impersonation is not enabled on this server")
            user = await self._impersonate(user, impersonation)
            if record is not None:
                record.acts_for(user)
        structlog.contextvars.bind_contextvars(user=user.name, asked=info)
        if is_open:
            await self._document(scope, receive, send)
            return
        async with self._in_flight.turn(user, info) if self._in_flight else nullcontext():
            reason = await self._metrics.authorization(self._authorize(user, _target(info, query)))
            if record is not None:
                record.allowed(reason or "")
            await self._serve_allowed(Call(scope, receive, info, query, user, self._authorize), send)

    async def _serve_allowed(self, call: Call, send: Send) -> None:
        """Serve a resource or a document to somebody who may have it."""
        if call.info.resource:
            await self._serve_resource(call, send)
        else:
            await self._document(call.asgi, call.receive, send)

    async def _serve_resource(self, call: Call, send: Send) -> None:
        """Serve a resource, if it is there."""
        info = call.info
        endpoint = self._endpoints.get((info.group, info.version, info.resource, info.subresource))
        if endpoint is None or info.excess or not _reachable(endpoint.definition, info) or "//" in info.path:
            if info.group in self._own_groups:
                raise NotServed
            await plain(_NOT_FOUND, status=404)(call.asgi, call.receive, send)
            return
        answer = await endpoint.serve(call)
        await answer(call.asgi, call.receive, send)

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
            raise MethodNotServed
        await plain(_NOT_FOUND, status=404)(scope, receive, send)


def _target(info: RequestInfo, query: Query) -> RequestInfo:
    """Return what is authorized: a collection narrowed to one name counts as that object, a namespace as within itself.

    What else a collection is narrowed to is told, too.
    """
    if info.resource == "namespaces" and info.name and not info.group:
        return dataclasses.replace(info, namespace=info.name)
    fields, labels = text(query, "fieldSelector"), text(query, "labelSelector")
    if info.name or info.verb not in _NAMED_VERBS or not (fields or labels):
        return info
    narrowed = dataclasses.replace(info, field_selector=fields, label_selector=labels)
    try:
        name = FieldSelector.parse(fields).exact("metadata.name")
    except BadRequest:
        # The verb itself refuses it, if the sender may use the verb at all.
        return narrowed
    return dataclasses.replace(narrowed, name=name) if name else narrowed


def _reachable(definition: Definition, info: RequestInfo) -> bool:
    """Tell whether a path's namespace fits the scope of the kind."""
    if not definition.namespaced:
        return info.namespace is None
    if info.namespace is not None:
        return True
    return not info.name and info.verb in ("list", "watch", "create", "deletecollection")
