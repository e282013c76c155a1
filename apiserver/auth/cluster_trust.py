"""Whom a cluster trusts: the ConfigMap ``kube-system/extension-apiserver-authentication``, read.

Values in, values out; who follows the ConfigMap is ``apiserver.cluster``. Source: ``kube-api.md`` 3.2.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from apiserver.auth.authorities import Authorities, UnusableAuthorities

CLIENT_CA = "client-ca-file"
PROXY_CA = "requestheader-client-ca-file"


class UnusableTrust(Exception):
    """The ConfigMap says something that cannot be followed; the message names its key."""


@dataclass(frozen=True, slots=True)
class FrontProxy:
    """Whose word about users is taken, and in which headers (in lower case) it comes; ``names`` empty: any name."""

    authorities: Authorities
    names: tuple[str, ...] = ()
    user_headers: tuple[bytes, ...] = ()
    uid_headers: tuple[bytes, ...] = ()
    group_headers: tuple[bytes, ...] = ()
    extra_prefixes: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class ClusterTrust:
    """Who vouches for users with certificates of their own, and who may speak for others; None: nobody."""

    clients: Authorities | None = None
    proxy: FrontProxy | None = None
    headers: frozenset[bytes] = field(default=frozenset())
    """Every header, or beginning of one, that names a user."""

    @property
    def pem(self) -> str:
        """Every authority whose certificates a handshake may accept."""
        both = (self.clients, self.proxy.authorities if self.proxy else None)
        return "\n".join(one.pem for one in both if one is not None)


def read_trust(data: Mapping[str, str]) -> ClusterTrust:
    """Read the data of the ConfigMap; without a key's value nobody is trusted on its account.

    Raises:
        UnusableTrust: a value cannot be understood. To guess would be to trust somebody whom nobody named.
    """
    clients = _authorities(data, CLIENT_CA)
    authorities = _authorities(data, PROXY_CA)
    if authorities is None:
        return ClusterTrust(clients)
    proxy = FrontProxy(
        authorities,
        names=_list(data, "requestheader-allowed-names"),
        user_headers=_headers(data, "requestheader-username-headers"),
        uid_headers=_headers(data, "requestheader-uid-headers"),
        group_headers=_headers(data, "requestheader-group-headers"),
        extra_prefixes=_headers(data, "requestheader-extra-headers-prefix"),
    )
    named = frozenset((*proxy.user_headers, *proxy.uid_headers, *proxy.group_headers, *proxy.extra_prefixes))
    return ClusterTrust(clients, proxy, named)


def _authorities(data: Mapping[str, str], key: str) -> Authorities | None:
    if not data.get(key):
        return None
    try:
        return Authorities(data[key])
    except UnusableAuthorities as error:
        raise UnusableTrust(f"{key}: {error}") from error


def _headers(data: Mapping[str, str], key: str) -> tuple[bytes, ...]:
    names = _list(data, key)
    if not all(name and name.isascii() for name in names):
        raise UnusableTrust(f"{key}: {names!r} are not names of headers")
    return tuple(name.lower().encode("ascii") for name in names)


def _list(data: Mapping[str, str], key: str) -> tuple[str, ...]:
    text = data.get(key) or "[]"
    try:
        names = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnusableTrust(f"{key}: {text[:100]!r} is not JSON") from error
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise UnusableTrust(f"{key}: {text[:100]!r} is not a list of strings")
    return tuple(names)
