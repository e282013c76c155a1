"""A span around each request, as a part of the client's trace when it names one (W3C ``traceparent``).

Used only where traces are collected. Watches have none: they last for minutes and would hold the trace open.
"""

from functools import cached_property

import structlog
from opentelemetry import trace
from opentelemetry.trace import SpanKind, Status, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from apiserver.machinery.request import AUDIT_ID, REQUEST_INFO, RequestInfo, header

SCOPE = "porch"
"""The instrumentation scope of all spans."""
_SERVER_FAULT = 500
_HEADERS = (b"traceparent", b"tracestate")
_WATCHES = (b"watch=1", b"watch=true", b"watch=True")


class RequestSpans:
    """Wraps an application; the span is named after what is served, not after what a client typed."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._context = TraceContextTextMapPropagator()

    @cached_property
    def _tracer(self) -> Tracer:
        # Asked for with the first request: the provider is set when the server begins to serve.
        return trace.get_tracer(SCOPE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request within its span."""
        if any(watch in scope["query_string"] for watch in _WATCHES):
            await self._app(scope, receive, send)
            return
        code = 0

        async def noting(message: Message) -> None:
            nonlocal code
            if message["type"] == "http.response.start":
                code = message["status"]
            await send(message)

        parent = self._context.extract({name.decode(): header(scope, name) for name in _HEADERS})
        with self._tracer.start_as_current_span(
            "request", context=parent, kind=SpanKind.SERVER, record_exception=False, set_status_on_exception=False
        ) as span:
            identity = span.get_span_context()
            structlog.contextvars.bind_contextvars(trace_id=f"{identity.trace_id:032x}")
            try:
                await self._app(scope, receive, noting)
            finally:
                info: RequestInfo = scope.get(REQUEST_INFO) or RequestInfo("", "")
                span.update_name(
                    f"{info.verb} {info.resource}{'/' if info.subresource else ''}{info.subresource}".strip()
                )
                span.set_attributes(_attributes(scope, info, code))
                if code >= _SERVER_FAULT or not code:
                    span.set_status(Status(StatusCode.ERROR))


def _attributes(scope: Scope, info: RequestInfo, code: int) -> dict[str, str | int]:
    known = {
        "http.request.method": scope["method"],
        "http.response.status_code": code,
        "porch.request_id": scope.get(AUDIT_ID, ""),
        "k8s.verb": info.verb,
        "k8s.group": info.group,
        "k8s.resource": info.resource,
        "k8s.subresource": info.subresource,
        "k8s.namespace.name": info.namespace or "",
        "k8s.object.name": info.name,
    }
    return {key: value for key, value in known.items() if value != ""}
