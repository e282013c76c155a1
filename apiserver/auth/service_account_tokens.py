"""Service-account tokens: JWTs that name an account, are bound to its uid, and end.

Signed and verified here; which accounts and objects exist is asked through ``live_uid``. A token of a deleted account, or
one bound to a deleted object, is worth nothing from that moment on. Source: ``kube-api.md`` 3.6 (c); claims
and user attributes are kube-apiserver's.
"""

import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jwt
from jwt.types import Options

from apiserver.auth.bearer import InvalidToken, TokenIdentity, token_digest
from apiserver.auth.identity import (
    AUTHENTICATED,
    CREDENTIAL_ID,
    service_account_groups,
    service_account_user,
)
from apiserver.auth.signing_keys import ALGORITHM, SigningKeys
from apiserver.machinery.rest import User

REMEMBERED = 4096
"""Verified tokens whose claims are kept, about 2 KB each; verifying one costs 0.1 ms."""
LEEWAY = 10.0
"""Seconds by which clocks of servers that share a key may differ."""

_PRIVATE = "kubernetes.io"
_REQUIRED = ["exp", "iat", "nbf", "iss", "sub", "aud", _PRIVATE]
_CHECKS: Options = {
    "require": _REQUIRED,
    "verify_signature": True,
    # These are checked here, at every use of the token.
    "verify_aud": False,
    "verify_exp": False,
    "verify_nbf": False,
    "verify_iat": False,
}
_POD_NAME, _POD_UID = "authentication.kubernetes.io/pod-name", "authentication.kubernetes.io/pod-uid"

LiveUid = Callable[[str, str, str], str | None]
"""(plural of a core kind, namespace, name) → uid of the object, or None when there is none."""


@dataclass(frozen=True, slots=True)
class BoundObject:
    """An object whose end ends the token: ``kind`` is Secret or Pod."""

    kind: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Account:
    """The service account a token is for."""

    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class _Claims:
    account: Account
    bound: BoundObject | None
    audiences: tuple[str, ...]
    identifier: str
    begins: float
    ends: float


class ServiceAccountTokens:
    """Issues and knows tokens of one issuer. ``clock`` gives seconds since the epoch."""

    def __init__(
        self, keys: SigningKeys, issuer: str, live_uid: LiveUid, *, clock: Callable[[], float] = time.time
    ) -> None:
        self.issuer = issuer
        self._keys = keys
        self._live_uid = live_uid
        self._clock = clock
        self._verified: OrderedDict[bytes, _Claims] = OrderedDict()

    def issue(
        self, account: Account, audiences: Sequence[str], seconds: int, bound: BoundObject | None = None
    ) -> tuple[str, float]:
        """Sign a token that is good for ``seconds``; return it and its end, in seconds since the epoch."""
        now = int(self._clock())
        private: dict[str, Any] = {
            "namespace": account.namespace,
            "serviceaccount": {"name": account.name, "uid": account.uid},
        }
        if bound is not None:
            private[bound.kind.lower()] = {"name": bound.name, "uid": bound.uid}
        claims = {
            "aud": list(audiences),
            "exp": now + seconds,
            "iat": now,
            "iss": self.issuer,
            "jti": str(uuid.uuid4()),
            _PRIVATE: private,
            "nbf": now,
            "sub": service_account_user(account.namespace, account.name),
        }
        key_id, key = self._keys.signing
        return jwt.encode(claims, key, algorithm=ALGORITHM, headers={"kid": key_id}), float(now + seconds)

    async def identify(self, token: str) -> TokenIdentity | None:
        """Return the service account of a token of this issuer; None for every other token.

        Raises:
            InvalidToken: the signature is not ours, the time is over, or the account or bound object is gone.
        """
        digest = token_digest(token)
        claims = self._verified.get(digest)
        if claims is None:
            if not self._is_ours(token):
                return None
            claims = self._verify(token)
            self._verified[digest] = claims
            if len(self._verified) > REMEMBERED:
                self._verified.popitem(last=False)
        self._check_time(claims)
        self._check_alive(claims)
        return TokenIdentity(_user(claims), claims.audiences)

    def _is_ours(self, token: str) -> bool:
        """Tell whether a token claims to be of this issuer; nothing is believed yet."""
        try:
            claimed = jwt.decode(token, options={"verify_signature": False})
        except (jwt.InvalidTokenError, RecursionError):
            return False
        return claimed.get("iss") == self.issuer

    def _verify(self, token: str) -> _Claims:
        try:
            key = self._keys.public(str(jwt.get_unverified_header(token).get("kid", "")))
            if key is None:
                raise InvalidToken
            claims = jwt.decode(
                token,
                key,
                algorithms=[ALGORITHM],
                issuer=self.issuer,
                options=_CHECKS,
            )
            return _read(claims)
        except (jwt.InvalidTokenError, KeyError, TypeError, ValueError, RecursionError) as error:
            raise InvalidToken from error

    def _check_time(self, claims: _Claims) -> None:
        now = self._clock()
        if now >= claims.ends + LEEWAY:
            raise InvalidToken("service account token has expired")
        if now < claims.begins - LEEWAY:
            raise InvalidToken("service account token is not valid yet")

    def _check_alive(self, claims: _Claims) -> None:
        account, bound = claims.account, claims.bound
        if self._live_uid("serviceaccounts", account.namespace, account.name) != account.uid:
            raise InvalidToken("service account token has been invalidated")
        if bound and self._live_uid(f"{bound.kind.lower()}s", account.namespace, bound.name) != bound.uid:
            raise InvalidToken("service account token has been invalidated")


def _read(claims: dict[str, Any]) -> _Claims:
    private = claims[_PRIVATE]
    named = private["serviceaccount"]
    account = Account(str(private["namespace"]), str(named["name"]), str(named["uid"]))
    if claims["sub"] != service_account_user(account.namespace, account.name):
        raise ValueError("subject and account differ")
    bound = None
    for kind in ("Secret", "Pod"):
        if kind.lower() in private:
            reference = private[kind.lower()]
            bound = BoundObject(kind, str(reference["name"]), str(reference["uid"]))
    audiences = claims["aud"] if isinstance(claims["aud"], list) else [claims["aud"]]
    return _Claims(
        account,
        bound,
        tuple(map(str, audiences)),
        str(claims.get("jti", "")),
        float(claims["nbf"]),
        float(claims["exp"]),
    )


def _user(claims: _Claims) -> User:
    account = claims.account
    extra: dict[str, tuple[str, ...]] = {}
    if claims.identifier:
        extra[CREDENTIAL_ID] = (f"JTI={claims.identifier}",)
    if claims.bound and claims.bound.kind == "Pod":
        extra |= {_POD_NAME: (claims.bound.name,), _POD_UID: (claims.bound.uid,)}
    groups = (*service_account_groups(account.namespace), AUTHENTICATED)
    return User(service_account_user(account.namespace, account.name), groups, account.uid, extra)
