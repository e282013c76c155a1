"""What the pipeline asks about access: who sends a request, on whose behalf, whether they may, and who keeps the record.

Protocols and the one fact about headers that they share; ``apiserver.auth`` implements them.
Source: ``kube-api.md`` 1.2, 3.1 and 3.5.
"""

from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import Any, Protocol, Self

from starlette.types import Receive, Send
from starlette.types import Scope as AsgiScope

from apiserver.machinery.request import RequestInfo
from apiserver.machinery.rest import User
from krm.meta.errors import Forbidden

OPEN_PATHS = frozenset({"/healthz", "/livez", "/readyz", "/version"})
"""What anybody may read: exactly these paths, nothing below them."""

_CREDENTIALS = (b"authorization", b"x-remote-", b"impersonate-")
_IMPERSONATION = b"impersonate-"

HeaderList = Sequence[tuple[bytes, bytes]]


class Authenticator(Protocol):
    """Finds out who sends a request."""

    async def authenticate(self, scope: AsgiScope) -> User | None:
        """Return the user, or None when the request carries no credentials of the kind that this one knows.

        Raises:
            Unauthorized: it carries some, and they are not valid.
        """
        ...


Authorize = Callable[[User, RequestInfo], Awaitable[str | None]]
"""Raises Forbidden for what the user may not do; else returns why they may, for the audit log, if it knows."""

Impersonate = Callable[[User, HeaderList], Awaitable[User]]
"""(sender, impersonation headers) → on whose behalf the request is served; raises Forbidden or BadRequest."""


class AuditRecord(Protocol):
    """What is written down of one request; entered as a context, so that it learns how the request ended."""

    def known(self, user: User) -> None:
        """Take down who asks."""
        ...

    def acts_for(self, user: User) -> None:
        """Take down on whose behalf they ask."""
        ...

    def allowed(self, reason: str) -> None:
        """Take down that they may, and why."""
        ...

    def receiving(self, receive: Receive) -> Receive:
        """Return ``receive``, listened to as far as the record's level asks for it."""
        ...

    def sending(self, send: Send) -> Send:
        """Return ``send``, listened to."""
        ...

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...


class AuditTrail(Protocol):
    """Keeps the record of requests."""

    async def begin(self, scope: AsgiScope, info: RequestInfo) -> AuditRecord | None:
        """Begin the record of a request; None when its kind is not recorded.

        Raises:
            ServiceUnavailable: no record can be kept at present, so nothing may be done either.
        """
        ...


class AccessDenied(Forbidden):
    """The authorizer refuses a request; ``why`` is the reason that it gave, if any."""

    def __init__(self, message: str, *, info: RequestInfo, reason: str) -> None:
        super().__init__(message, name=info.name, group=info.group, kind=info.resource)
        self.why = reason

    def to_status(self) -> dict[str, Any]:
        """Return the Status, which has details even where none are known."""
        status = super().to_status()
        code = status.pop("code")
        return {**status, "details": status.get("details", {}), "code": code}


async def allow_all(_user: User, _info: RequestInfo) -> str | None:
    """Let every known user do everything."""
    return None


def take_credentials(scope: AsgiScope) -> HeaderList:
    """Remove every header that claims an identity, in place, and return those that ask for impersonation.

    Called once the sender is known: what comes after must find nothing to believe, to log or to pass on.
    """
    headers = scope["headers"]
    kept = [pair for pair in headers if not pair[0].startswith(_CREDENTIALS)]
    if len(kept) == len(headers):
        return ()
    scope["headers"] = kept
    return [pair for pair in headers if pair[0].startswith(_IMPERSONATION)]
