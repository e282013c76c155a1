"""Errors that clients see, and their ``meta/v1 Status`` form.

Everything that may leave the server as an error is a :class:`StatusError`; the HTTP boundary
(``apiserver/machinery/status.py``) turns it into bytes. Storage and Git raise their own types
and the engine translates them. Source: ``kube-api.md`` 2.17.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Cause:
    """One machine-readable reason of an error: what is wrong, and in which field."""

    reason: str
    message: str
    field: str = ""

    def to_json(self) -> Json:
        """Return the StatusCause."""
        cause: Json = {"reason": self.reason, "message": self.message}
        if self.field:
            cause["field"] = self.field
        return cause


@dataclass(frozen=True, slots=True)
class ResourceName:
    """A resource and its group, for messages: ``packagerevisions`` of ``porch.kpt.dev``."""

    resource: str
    group: str = ""

    def __str__(self) -> str:
        return f"{self.resource}.{self.group}" if self.group else self.resource


class StatusError(Exception):
    """An answer other than success; subclasses fix code and reason."""

    code = 500
    reason = "InternalError"
    details_shown = False
    """Shows its details even when they are empty, as a kube-apiserver does where no route takes a request."""

    def __init__(
        self,
        message: str,
        *,
        name: str = "",
        group: str = "",
        kind: str = "",
        uid: str = "",
        causes: Sequence[Cause] = (),
        retry_after: int = 0,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.name = name
        self.group = group
        self.kind = kind
        self.uid = uid
        self.causes = tuple(causes)
        self.retry_after = retry_after
        """Seconds; above zero it also becomes the Retry-After header."""
        self.warnings: tuple[str, ...] = ()
        """What the client is warned of beside the error."""
        self.status: Json = {}
        """The Status as a client received it; empty in an error that was not received."""

    def to_status(self) -> Json:
        """Return the ``v1 Status`` object for this error."""
        details: Json = {}
        for key in ("name", "group", "kind", "uid"):
            if value := getattr(self, key):
                details[key] = value
        if self.causes:
            details["causes"] = [cause.to_json() for cause in self.causes]
        if self.retry_after:
            details["retryAfterSeconds"] = self.retry_after
        status: Json = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
        }
        if details or self.details_shown:
            status["details"] = details
        status["code"] = self.code
        return status


class BadRequest(StatusError):
    """The request cannot be understood."""

    code, reason = 400, "BadRequest"


class Unauthorized(StatusError):
    """Nobody we know sent the request."""

    code, reason = 401, "Unauthorized"

    def __init__(self, message: str = "Unauthorized") -> None:
        super().__init__(message)


class Forbidden(StatusError):
    """A rule or the authorizer refuses."""

    code, reason = 403, "Forbidden"

    @classmethod
    def of(cls, resource: ResourceName, name: str, why: str, causes: Sequence[Cause] = ()) -> "Forbidden":
        """Refuse an action on one object, with the usual message form."""
        message = f'{resource} "{name}" is forbidden: {why}'
        return cls(message, name=name, group=resource.group, kind=resource.resource, causes=causes)


class NotFound(StatusError):
    """The named object does not exist."""

    code, reason = 404, "NotFound"

    @classmethod
    def of(cls, resource: ResourceName, name: str) -> "NotFound":
        """Say that an object of ``resource`` does not exist."""
        message = f'{resource} "{name}" not found'
        return cls(message, name=name, group=resource.group, kind=resource.resource)


class NotServed(StatusError):
    """Nothing is served under this path of a served group."""

    code, reason = 404, "NotFound"
    details_shown = True

    def __init__(self) -> None:
        super().__init__("the server could not find the requested resource")


class MethodNotAllowed(StatusError):
    """The resource has no such verb."""

    code, reason = 405, "MethodNotAllowed"

    @classmethod
    def of(cls, resource: ResourceName, action: str) -> "MethodNotAllowed":
        """Say what cannot be done with a custom resource."""
        message = f'{action} is not supported on resources of kind "{resource}"'
        return cls(message, group=resource.group, kind=resource.resource)


class MethodNotServed(MethodNotAllowed):
    """The path is served, but not for this method."""

    details_shown = True

    def __init__(self) -> None:
        super().__init__("the server does not allow this method on the requested resource")


class NotAcceptable(StatusError):
    """None of the media types the client accepts can be served."""

    code, reason = 406, "NotAcceptable"


class AlreadyExists(StatusError):
    """A create met an existing object."""

    code, reason = 409, "AlreadyExists"

    @classmethod
    def of(cls, resource: ResourceName, name: str, *, terminating: bool = False) -> "AlreadyExists":
        """Say that the object exists; ``terminating`` explains that it is on its way out."""
        prefix = "object is being deleted: " if terminating else ""
        message = f'{prefix}{resource} "{name}" already exists'
        return cls(message, name=name, group=resource.group, kind=resource.resource)


STALE = "the object has been modified; please apply your changes to the latest version and try again"
"""The conflict sentence that clients and upstream's suites compare literally."""


class Conflict(StatusError):
    """Another writer was first, or a precondition does not hold."""

    code, reason = 409, "Conflict"

    @classmethod
    def of(cls, resource: ResourceName, name: str, why: str = STALE) -> "Conflict":
        """Refuse an operation on one object, with the usual message form."""
        message = f'Operation cannot be fulfilled on {resource} "{name}": {why}'
        return cls(message, name=name, group=resource.group, kind=resource.resource)


class Expired(StatusError):
    """The revision asked for is compacted; list again."""

    code, reason = 410, "Expired"

    def __init__(self, message: str, *, continue_token: str = "") -> None:
        super().__init__(message)
        self.continue_token = continue_token
        """A token to go on with, inconsistently, or empty."""

    def to_status(self) -> Json:
        """Add the fresh continue token to the Status metadata."""
        status = super().to_status()
        if self.continue_token:
            status["metadata"] = {"continue": self.continue_token}
        return status


class RequestEntityTooLarge(StatusError):
    """The body is over its limit."""

    code, reason = 413, "RequestEntityTooLarge"

    def __init__(self, message: str) -> None:
        super().__init__(f"Request entity too large: {message}")


class UnsupportedMediaType(StatusError):
    """The body's format is not one we read here."""

    code, reason = 415, "UnsupportedMediaType"


class Invalid(StatusError):
    """The object is understood and breaks a rule; one cause per problem."""

    code, reason = 422, "Invalid"

    @classmethod
    def of(cls, kind: str, group: str, name: str, causes: Sequence[Cause]) -> "Invalid":
        """Compose the usual message from ``causes``; several stand in brackets, each once."""
        texts = list(dict.fromkeys(f"{c.field}: {c.message}" if c.field else c.message for c in causes))
        body = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
        what = f"{kind}.{group}" if group else kind
        return cls(f'{what} "{name}" is invalid: {body}', name=name, group=group, kind=kind, causes=causes)


class Unprocessable(Invalid):
    """A patch does not fit the object; which of its values it met is not told: its author may not be allowed to read them."""

    details_shown = True

    def __init__(self) -> None:
        super().__init__("the server rejected our request due to an error in our request")


class TooManyRequests(StatusError):
    """Overload; try again."""

    code, reason = 429, "TooManyRequests"


class InternalError(StatusError):
    """Something that is not the client's fault."""

    code, reason = 500, "InternalError"

    @classmethod
    def because(cls, why: str) -> "InternalError":
        """Compose the usual message."""
        return cls(f"Internal error occurred: {why}", causes=[Cause("", why)])


class ServerTimeout(StatusError):
    """Storage could not be reached; nothing was done and trying again may help."""

    code, reason = 500, "ServerTimeout"

    @classmethod
    def of(cls, resource: ResourceName, operation: str) -> "ServerTimeout":
        """Compose the usual message; ``operation`` is the verb."""
        message = f"The {operation} operation against {resource} could not be completed at this time, please try again."
        return cls(message, group=resource.group, kind=resource.resource, retry_after=2)


class ServiceUnavailable(StatusError):
    """The server, or something it depends on, is not ready."""

    code, reason = 503, "ServiceUnavailable"


class Timeout(StatusError):
    """The deadline passed before the work was done."""

    code, reason = 504, "Timeout"


def invalid_value(field: str, value: object, detail: str) -> Cause:
    """Build a FieldValueInvalid cause; strings are quoted, everything else is JSON."""
    shown = orjson.dumps(value).decode()
    return Cause("FieldValueInvalid", f"Invalid value: {shown}: {detail}", field)


def required_value(field: str, detail: str = "") -> Cause:
    """Build a FieldValueRequired cause."""
    return Cause("FieldValueRequired", f"Required value{': ' + detail if detail else ''}", field)


def forbidden_value(field: str, detail: str) -> Cause:
    """Build a FieldValueForbidden cause."""
    return Cause("FieldValueForbidden", f"Forbidden: {detail}", field)


def not_supported_value(field: str, value: object, supported: Sequence[str]) -> Cause:
    """Build a FieldValueNotSupported cause that names what is supported."""
    names = ", ".join(f'"{name}"' for name in supported)
    message = f"Unsupported value: {orjson.dumps(value).decode()}: supported values: {names}"
    return Cause("FieldValueNotSupported", message, field)
