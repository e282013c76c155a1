"""What a request can come to other than an answer that it succeeded.

Answers of the server become :class:`krm.meta.errors.StatusError`, by code and reason; the rest is here.
"""

from typing import Any, Final

import orjson

from krm.meta import errors
from krm.meta.errors import Cause, StatusError

Json = dict[str, Any]

MESSAGE_BYTES: Final = 2048
"""Bytes of an answer that is no Status that are kept as its message."""


class NoAnswer(Exception):
    """The server said nothing that could be used; which of the two subclasses it is decides whether to try again."""


class Unanswered(NoAnswer):
    """The request was sent, or may have been, and its outcome is unknown: what it asked for may be done, now or later."""


class Garbled(Unanswered):
    """The server answered something that is not understood."""


class TooLong(Garbled):
    """The server answered more than is read."""


class Unreachable(NoAnswer):
    """The request surely was not sent: no connection could be made."""


class WriteRefused(Exception):
    """Nothing was sent, because this process may not write now: it has lost its lease, or cannot be sure of it."""


_CLASSES: Final[dict[tuple[int, str], type[StatusError]]] = {
    (kind.code, kind.reason): kind
    for kind in (
        errors.BadRequest,
        errors.Unauthorized,
        errors.Forbidden,
        errors.NotFound,
        errors.MethodNotAllowed,
        errors.NotAcceptable,
        errors.AlreadyExists,
        errors.Conflict,
        errors.Expired,
        errors.RequestEntityTooLarge,
        errors.UnsupportedMediaType,
        errors.Invalid,
        errors.TooManyRequests,
        errors.InternalError,
        errors.ServerTimeout,
        errors.ServiceUnavailable,
        errors.Timeout,
    )
}
_BY_CODE: Final[dict[int, type[StatusError]]] = {
    kind.code: kind for kind in _CLASSES.values() if kind not in {errors.AlreadyExists, errors.ServerTimeout}
}
"""For answers that give no reason that we know; 409 is a Conflict then and 500 an InternalError."""


def error_of(code: int, body: bytes) -> StatusError:
    """Return the error that an answer stands for: its class by code and reason, its ``status`` the answer's Status.

    A body that is no Status, as proxies send, becomes the message, cut to 2 KiB.
    """
    try:
        status = orjson.loads(body)
    except orjson.JSONDecodeError:
        status = None
    if isinstance(status, dict) and status.get("kind") == "Status":
        return error_of_status(status, code)
    return _error(_BY_CODE.get(code, StatusError), code, "", body[:MESSAGE_BYTES].decode(errors="replace"), {})


def error_of_status(status: Json, code: int = 500) -> StatusError:
    """Return the error that a ``v1 Status`` stands for; ``code`` is used when the Status has none."""
    told = status.get("code")
    code = told if isinstance(told, int) else code
    reason = str(status.get("reason") or "")
    kind = _CLASSES.get((code, reason)) or (errors.Expired if code == errors.Expired.code else None)
    return _error(kind or _BY_CODE.get(code, StatusError), code, reason, str(status.get("message") or ""), status)


def _error(kind: type[StatusError], code: int, reason: str, message: str, status: Json) -> StatusError:
    """Fill an error past its own constructor, which composes messages; this one came with the answer."""
    told = status.get("details")
    details: Json = told if isinstance(told, dict) else {}
    after = details.get("retryAfterSeconds")
    error = kind.__new__(kind)
    StatusError.__init__(
        error,
        message or f"the server answered {code}",
        **{key: str(details.get(key) or "") for key in ("name", "group", "kind", "uid")},
        causes=_causes(details.get("causes")),
        retry_after=after if isinstance(after, int) else 0,
    )
    error.code, error.reason, error.status = code, reason or error.reason, status
    if isinstance(error, errors.Expired):
        error.continue_token = str((status.get("metadata") or {}).get("continue") or "")
    return error


def _causes(causes: object) -> list[Cause]:
    found = causes if isinstance(causes, list) else []
    return [
        Cause(str(one.get("reason") or ""), str(one.get("message") or ""), str(one.get("field") or ""))
        for one in found
        if isinstance(one, dict)
    ]
