"""The one exception boundary: whatever a handler raises leaves as a ``v1 Status``.

A StatusError says itself what the client sees. Anything else is a bug: the client gets a 500 that
names the request, the log gets the rest. Source: ``kube-api.md`` 1.2 and 2.17.
"""

import contextlib
import uuid
from typing import Any

import orjson
import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from apiserver.machinery.access import AccessDenied
from apiserver.machinery.negotiate import Shape, negotiate
from apiserver.machinery.reply import Reply, formatted
from apiserver.machinery.request import AUDIT_ID, header
from apiserver.machinery.warnings import warning_headers
from krm.meta.errors import InternalError, NotAcceptable, StatusError, Timeout

log = structlog.get_logger()

_ID_LENGTH = 64
"""Characters of a client's Audit-Id that are echoed and logged."""
_SERVER_FAULT = 500


class ErrorBoundary:
    """Wraps the application: Audit-Id and Cache-Control on every answer, a Status for every exception."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        audit_id = scope[AUDIT_ID] = header(scope, b"audit-id")[:_ID_LENGTH] or str(uuid.uuid4())
        structlog.contextvars.bind_contextvars(request_id=audit_id)
        started = False

        async def tracked(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message["headers"] = _with_defaults(message["headers"], audit_id)
            await send(message)

        try:
            await self._app(scope, receive, tracked)
        except StatusError as error:
            if started and isinstance(error, Timeout):
                log.warning("answer abandoned", path=scope["path"])
                return
            if error.code >= _SERVER_FAULT:
                log.warning("request failed", path=scope["path"], method=scope["method"], error=error.message)
            if started:
                raise
            await (await status_reply(error, header(scope, b"accept")))(scope, receive, tracked)
        except Exception as error:
            if started and isinstance(error, TimeoutError):
                # The client stopped reading: the answer stays incomplete and the server closes the connection.
                log.warning("answer abandoned", path=scope["path"])
                return
            log.exception("unexpected error", path=scope["path"], method=scope["method"])
            if started:
                raise
            hidden = InternalError.because(f"unexpected error; see request {audit_id} in the server's log")
            await (await status_reply(hidden))(scope, receive, tracked)


async def status_reply(error: StatusError, accept: str = "") -> Reply:
    """Return the answer for an error, in YAML to who accepts YAML only."""
    headers = [(b"retry-after", str(error.retry_after).encode())] if error.retry_after else []
    if isinstance(error, AccessDenied):
        # Its message shows what the client sent.
        headers.append((b"x-content-type-options", b"nosniff"))
    headers += warning_headers(error.warnings)
    if "yaml" in accept:
        with contextlib.suppress(NotAcceptable):
            return await formatted(
                [status_bytes(error)], negotiate(accept, Shape.ITEM), status=error.code, headers=headers
            )
    return Reply([status_bytes(error), b"\n"], status=error.code, headers=headers)


def status_bytes(error: StatusError) -> bytes:
    """Return the Status object as JSON."""
    return orjson.dumps(error.to_status())


def _with_defaults(headers: Any, audit_id: str) -> list[tuple[bytes, bytes]]:
    completed = [*headers, (b"audit-id", audit_id.encode("latin-1"))]
    if not any(name.lower() == b"cache-control" for name, _ in completed):
        completed.append((b"cache-control", b"no-cache, private"))
    return completed
