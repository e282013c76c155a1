"""The audit trail: who asked for what, on whose behalf, and what became of it, as ``audit.k8s.io/v1`` events.

Never recorded, at any level: header fields, tokens, and what is in Secrets, ConfigMaps, token requests and token reviews.
The line of a request is accepted before the last byte of its answer is sent, so a write that a client knows of is in
the log. Source: ``kube-api.md`` 3.5.
"""

import re
from datetime import UTC, datetime
from enum import StrEnum
from types import TracebackType
from typing import Any, Self

import orjson
from starlette.types import Message, Receive, Scope, Send

from apiserver.auth.audit_log import AuditLogFile
from apiserver.auth.identity import user_info
from apiserver.machinery.access import OPEN_PATHS, AccessDenied
from apiserver.machinery.request import AUDIT_ID, RequestInfo, header
from apiserver.machinery.rest import User
from krm.meta.errors import ServiceUnavailable, StatusError

MAX_OBJECT = 64 * 1024
"""Bytes of a body up to which it is recorded, where bodies are."""
MAX_AGENT = 1024
MAX_URI = 4096
"""Characters of User-Agent and of the request's URI that are recorded."""

_READS = ("get", "list", "watch")
_QUIET_ROOTS = ("/api", "/apis", "/openapi", "/metrics")
_SECRETIVE = frozenset(
    {
        ("", "secrets"),
        ("", "configmaps"),
        ("", "serviceaccounts/token"),
        ("authentication.k8s.io", "tokenreviews"),
    }
)
"""(group, resource) of what may hold credentials."""
_CREDENTIAL_PARAMETER = re.compile(r"((?:^|&)[^&=]*(?:token|password|secret)[^&=]*=)[^&]*", re.IGNORECASE)
_SERVER_ERROR = 500

Json = dict[str, Any]


class Level(StrEnum):
    """How much is recorded of writes; reads are always recorded with their metadata only."""

    METADATA = "Metadata"
    REQUEST = "Request"
    REQUEST_RESPONSE = "RequestResponse"


def level_of(info: RequestInfo, most: Level) -> Level | None:
    """Return how much is recorded of a request, ``most`` at the most; None is nothing.

    Health, discovery and Events are left out: they are many, and tell nothing about anybody.
    """
    if not info.resource:
        root = "/" + info.path.split("/", 2)[1] if info.path.startswith("/") else ""
        return None if info.path in OPEN_PATHS or root in _QUIET_ROOTS else Level.METADATA
    if info.resource == "events":
        return None
    if info.verb in _READS or is_secretive(info):
        return Level.METADATA
    return most


def is_secretive(info: RequestInfo) -> bool:
    """Tell whether bodies and messages of a request may hold credentials."""
    resource = f"{info.resource}/{info.subresource}" if info.subresource == "token" else info.resource
    return (info.group, resource) in _SECRETIVE


class AuditLog:
    """Records requests in a file; ``level`` says how much of writes."""

    def __init__(self, file: AuditLogFile, level: Level = Level.METADATA) -> None:
        self._file = file
        self._level = level

    async def begin(self, scope: Scope, info: RequestInfo) -> "Record | None":
        """Begin the record of a request; None when its kind is not recorded.

        Raises:
            ServiceUnavailable: the file cannot be written, so nothing may be done either.
        """
        level = level_of(info, self._level)
        if level is None:
            return None
        if not await self._file.room():
            raise ServiceUnavailable("the audit log cannot be written; nothing is done that cannot be recorded")
        return Record(self._file, scope, info, level)


class Record:
    """What is written down of one request."""

    def __init__(self, file: AuditLogFile, scope: Scope, info: RequestInfo, level: Level) -> None:
        self._file = file
        self._info = info
        self._level = level
        self._secretive = is_secretive(info)
        self._user: User | None = None
        self._impersonated: User | None = None
        self._annotations: dict[str, str] = {}
        self._received = _now()
        self._request = _Collected() if level is not Level.METADATA else None
        # A create's answer tells the name that the object got; nothing else of it is recorded below RequestResponse.
        wanted = level is Level.REQUEST_RESPONSE or info.verb == "create"
        self._response = _Collected() if wanted else None
        self._code = 0
        self._complete = False
        client = scope.get("client")
        self._head = {
            "auditID": scope[AUDIT_ID],
            "requestURI": _uri(scope),
            "verb": info.verb,
            "sourceIPs": [client[0]] if client else [],
            "userAgent": header(scope, b"user-agent")[:MAX_AGENT],
        }

    def known(self, user: User) -> None:
        """Take down who asks; of a write this is recorded at once."""
        self._user = user
        if self._info.verb not in _READS:
            self._write("RequestReceived")

    def acts_for(self, user: User) -> None:
        """Take down on whose behalf they ask."""
        self._impersonated = user

    def allowed(self, reason: str) -> None:
        """Take down that they may, and why."""
        self._annotations |= {"authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": reason}

    def receiving(self, receive: Receive) -> Receive:
        """Return ``receive``, listened to as far as the level asks for it."""
        collected = self._request
        if collected is None:
            return receive

        async def listen() -> Message:
            message = await receive()
            if message["type"] == "http.request":
                collected.add(message.get("body", b""))
            return message

        return listen

    def sending(self, send: Send) -> Send:
        """Return ``send``, listened to; before the end of the answer passes, its line is in the log."""

        async def listen(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._code = message["status"]
                if self._info.verb == "watch":
                    self._write("ResponseStarted")
            elif message["type"] == "http.response.body":
                if self._response is not None:
                    self._response.add(message.get("body", b""))
                if not message.get("more_body"):
                    self._finish()
            await send(message)

        return listen

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if isinstance(error, AccessDenied):
            self._annotations |= {"authorization.k8s.io/decision": "forbid", "authorization.k8s.io/reason": error.why}
        if isinstance(error, StatusError):
            self._code = error.code
            self._finish(error)
        elif isinstance(error, Exception):
            self._code = _SERVER_ERROR
            self._write("Panic", self._status(None))
            self._complete = True
        else:
            # The answer ended early: the client went away, or the server stops.
            self._finish()

    def _finish(self, error: StatusError | None = None) -> None:
        if not self._complete:
            self._complete = True
            self._write("ResponseComplete", self._status(error))

    def _status(self, error: StatusError | None) -> Json:
        status: Json = {"metadata": {}}
        if error is not None:
            status |= {"status": "Failure", "reason": error.reason}
            if not self._secretive:
                status["message"] = error.message
        return {**status, "code": self._code}

    def _write(self, stage: str, status: Json | None = None) -> None:
        event: Json = {
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": self._level,
            **self._head,
            "stage": stage,
            "user": user_info(self._user) if self._user else {},
        }
        if self._impersonated is not None:
            event["impersonatedUser"] = user_info(self._impersonated)
        answered = self._response.parsed() if status and self._response else None
        if self._info.resource:
            event["objectRef"] = _object_reference(self._info, answered)
        if status is not None:
            event |= {"responseStatus": status, **self._objects(answered)}
        event["requestReceivedTimestamp"] = self._received
        event["stageTimestamp"] = _now()
        if self._annotations:
            event["annotations"] = self._annotations
        self._file.append(orjson.dumps(event, option=orjson.OPT_APPEND_NEWLINE))

    def _objects(self, answered: Any) -> Json:
        objects: Json = {}
        if self._request is not None and (sent := self._request.parsed()) is not None:
            objects["requestObject"] = sent
        if self._level is Level.REQUEST_RESPONSE and answered is not None:
            objects["responseObject"] = answered
        return objects


class _Collected:
    """The bytes of one body, as long as they are few."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, part: bytes) -> None:
        self._size += len(part)
        if self._size <= MAX_OBJECT:
            self._parts.append(part)
        else:
            self._parts.clear()

    def parsed(self) -> Any:
        """Return the body if it was small enough and JSON, else None."""
        if not self._size or self._size > MAX_OBJECT:
            return None
        try:
            return orjson.loads(b"".join(self._parts))
        except orjson.JSONDecodeError:
            return None


def _object_reference(info: RequestInfo, answered: Any) -> Json:
    metadata = answered.get("metadata") if isinstance(answered, dict) else None
    name = info.name
    if not name and info.verb == "create" and isinstance(metadata, dict):
        name = metadata.get("name") or ""
    reference = {
        "resource": info.resource,
        "namespace": info.namespace or "",
        "name": name,
        "apiGroup": info.group,
        "apiVersion": info.version,
        "subresource": info.subresource,
    }
    return {key: value for key, value in reference.items() if value}


def _uri(scope: Scope) -> str:
    query = scope["query_string"].decode("latin-1")
    if not query:
        return str(scope["path"][:MAX_URI])
    shown = _CREDENTIAL_PARAMETER.sub(r"\1(removed)", query)
    return f"{scope['path']}?{shown}"[:MAX_URI]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
