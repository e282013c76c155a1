"""Users behind kube-apiserver: it names them in headers, and is believed for its certificate, request by request.

A connection of the aggregator carries the requests of many users. So what is remembered is whether its certificate is the
front proxy's, and never who asked. Source: ``kube-api.md`` 3.1, 3.2 and 3.4.
"""

import datetime as dt
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import unquote

from cryptography import x509
from starlette.types import Scope

from apiserver.auth.authenticate import common_name_of
from apiserver.auth.cluster_trust import ClusterTrust, FrontProxy
from apiserver.machinery.access import Authenticator
from apiserver.machinery.rest import User
from krm.meta.errors import Unauthorized

Now = Callable[[], dt.datetime]
_Headers = Sequence[tuple[bytes, bytes]]


def utc_now() -> dt.datetime:
    """Return the time by which certificates are judged."""
    return dt.datetime.now(dt.UTC)


class FrontProxyAuthenticator:
    """Believes the headers of whoever holds the front proxy's certificate, and of nobody else.

    ``trust`` is asked for each request, so that an authority that is taken away counts at once.
    """

    def __init__(self, trust: Callable[[], ClusterTrust], now: Now = utc_now) -> None:
        self._trust = trust
        self._now = now

    async def authenticate(self, scope: Scope) -> User | None:
        """Return the user whom the headers name; None when no front proxy asks, or it names nobody.

        Raises:
            Unauthorized: the right authority vouches for a name that is not among those allowed, or a header is not text.
        """
        proxy, chain = self._trust().proxy, peer_chain(scope)
        if proxy is None or not chain or not proxy.authorities.vouch_for(chain, self._now()):
            return None
        if proxy.names and _name_in(chain[0]) not in proxy.names:
            raise Unauthorized
        try:
            return _user(proxy, scope["headers"])
        except UnicodeDecodeError as error:
            raise Unauthorized from error


class VouchedCertificates:
    """Lets ``certificates`` read the name in a certificate only if the authorities of clients vouch for it."""

    def __init__(self, certificates: Authenticator, trust: Callable[[], ClusterTrust], now: Now = utc_now) -> None:
        self._certificates = certificates
        self._trust = trust
        self._now = now

    async def authenticate(self, scope: Scope) -> User | None:
        """Return the certificate's user; None when there is no certificate.

        Raises:
            Unauthorized: somebody else vouches for it, or nobody any more.
        """
        chain, clients = peer_chain(scope), self._trust().clients
        if not chain:
            return None
        if clients is None or not clients.vouch_for(chain, self._now()):
            raise Unauthorized
        return await self._certificates.authenticate(scope)


class HeadersForgotten:
    """Takes every header that names a user out of a request once its sender is known, or found not to be.

    The usual ones are taken by the machinery; a cluster may have chosen others.
    """

    def __init__(self, authenticator: Authenticator, trust: Callable[[], ClusterTrust]) -> None:
        self._authenticator = authenticator
        self._trust = trust

    async def authenticate(self, scope: Scope) -> User | None:
        """Return whom the other one finds."""
        try:
            return await self._authenticator.authenticate(scope)
        finally:
            if names := tuple(self._trust().headers):
                scope["headers"] = [pair for pair in scope["headers"] if not pair[0].startswith(names)]


def peer_chain(scope: Any) -> tuple[str, ...]:
    """Return the certificates that the peer of a connection showed, its own first, as PEM; empty without TLS."""
    tls = scope.get("extensions", {}).get("tls")
    return tuple(tls.get("client_cert_chain") or ()) if tls else ()


def _name_in(pem: str) -> str:
    return common_name_of(x509.load_pem_x509_certificate(pem.encode("ascii")))


def _user(proxy: FrontProxy, headers: _Headers) -> User | None:
    name = _first(proxy.user_headers, headers)
    if not name:
        return None
    groups = (value for wanted in proxy.group_headers for value in _values(wanted, headers))
    return User(
        name=name,
        groups=tuple(group for group in groups if group),
        uid=_first(proxy.uid_headers, headers),
        extra=_extra(proxy.extra_prefixes, headers),
    )


def _first(wanted: Sequence[bytes], headers: _Headers) -> str:
    """Return the first value of the first header that has one."""
    return next((values[0] for values in (_values(one, headers) for one in wanted) if values and values[0]), "")


def _values(wanted: bytes, headers: _Headers) -> list[str]:
    return [value.decode() for name, value in headers if name == wanted]


def _extra(prefixes: Sequence[bytes], headers: _Headers) -> dict[str, tuple[str, ...]]:
    extra: dict[str, tuple[str, ...]] = {}
    for prefix in prefixes:
        for name, value in headers:
            if name.startswith(prefix):
                key = unquote(name[len(prefix) :].decode(), errors="strict")
                extra[key] = (*extra.get(key, ()), value.decode())
    return extra
