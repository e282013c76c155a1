"""Bearer tokens: from the Authorization header to a user, whatever kind of token it is.

Which kinds there are is the composition root's choice; each answers only for its own. Source: ``kube-api.md`` 3.1, 3.6.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from starlette.types import Scope

from apiserver.auth.rules import quoted
from apiserver.machinery.request import header
from apiserver.machinery.rest import User
from krm.meta.errors import Unauthorized

MAX_TOKEN = 16 * 1024
"""Characters of a token; ours have under 1,500."""
_INVALID = "invalid bearer token"


class InvalidToken(Exception):
    """A token is not, or no longer, valid; ``why`` is shown to who reviews tokens, and never holds the token."""

    def __init__(self, why: str = "") -> None:
        super().__init__(f"[{_INVALID}, {why}]" if why else _INVALID)


@dataclass(frozen=True, slots=True)
class TokenIdentity:
    """Whom a token stands for; ``audiences`` are those it is meant for, or empty when it is for this server alone."""

    user: User
    audiences: tuple[str, ...] = ()


class TokenKind(Protocol):
    """One kind of token."""

    async def identify(self, token: str) -> TokenIdentity | None:
        """Return whom a token stands for, or None when it is of another kind.

        Raises:
            InvalidToken: it is of this kind, and not valid.
        """
        ...


class BearerTokens:
    """Every kind of token that this server takes; ``audiences`` are the names under which it is meant itself."""

    def __init__(self, kinds: Sequence[TokenKind], audiences: Sequence[str]) -> None:
        self._kinds = tuple(kinds)
        self.audiences = tuple(audiences)

    async def authenticate(self, scope: Scope) -> User | None:
        """Return who sends a request with a bearer token; None when it has none.

        Of several Authorization headers only the first counts.

        Raises:
            Unauthorized: the token is not valid.
        """
        parts = header(scope, b"authorization").strip().split(" ", 2)
        if parts[0].lower() != "bearer" or len(parts) == 1 or not parts[1]:
            return None
        try:
            return (await self.review(parts[1], self.audiences)).user
        except InvalidToken as error:
            raise Unauthorized from error

    async def review(self, token: str, audiences: Sequence[str]) -> TokenIdentity:
        """Return whom a token stands for and which of ``audiences`` it is meant for.

        Raises:
            InvalidToken: no kind knows it, or it is meant for others.
        """
        if len(token) > MAX_TOKEN:
            raise InvalidToken
        for kind in self._kinds:
            identity = await kind.identify(token)
            if identity is not None:
                return _meant_for(identity, audiences, self.audiences)
        raise InvalidToken


def token_digest(token: str) -> bytes:
    """Return what is kept and compared in place of a token.

    Looking a digest up takes a time that says nothing about the token: to come near a stored digest one would have
    to know it.
    """
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


def _meant_for(identity: TokenIdentity, wanted: Sequence[str], own: Sequence[str]) -> TokenIdentity:
    held = identity.audiences or own
    common = tuple(audience for audience in wanted if audience in held)
    if not common:
        raise InvalidToken(f"token audiences {quoted(held)} is invalid for the target audiences {quoted(wanted)}")
    return TokenIdentity(identity.user, common)
