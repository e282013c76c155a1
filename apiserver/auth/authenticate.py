"""From a TLS connection to a user: client certificates of the server's own CA.

The handshake has already verified the certificate: the server's context trusts our CA and nothing else, asks for
the client-authentication usage, and aborts when any presented certificate fails (``apiserver.serving``). So a
certificate that is seen here is genuine, and a second path validation could only agree. What is left is to
read the name, and to notice that a certificate expired while its connection stayed open.
Source: ``kube-api.md`` 3.2 (client certificate) and 3.4.
"""

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.x509.oid import NameOID

from apiserver.auth.identity import AUTHENTICATED, CREDENTIAL_ID
from apiserver.machinery.rest import User

REMEMBERED = 1024
"""Certificates whose verdict is kept; each costs about 5 KB. Requests on one connection share one."""


@dataclass(frozen=True, slots=True)
class _Verdict:
    user: User | None
    expires: float
    """Seconds since the epoch."""


class CertificateAuthenticator:
    """Knows users by the client certificate of their connection: common name → name, organisations → groups.

    ``observe`` is told how many seconds the certificate of each request has left.
    """

    def __init__(
        self,
        now: Callable[[], dt.datetime] = lambda: dt.datetime.now(dt.UTC),
        observe: Callable[[float], None] = lambda _seconds: None,
    ) -> None:
        self._now = now
        self._observe = observe
        self._read = lru_cache(maxsize=REMEMBERED)(_verdict)

    async def authenticate(self, scope: Mapping[str, Any]) -> User | None:
        """Return who holds the connection of an ASGI scope, or None when no certificate says so.

        A scope without TLS information counts as one without a certificate, never as trusted.
        """
        tls = scope.get("extensions", {}).get("tls")
        chain = tls.get("client_cert_chain") if tls else None
        if not chain:
            return None
        verdict = self._read(chain[0])
        left = verdict.expires - self._now().timestamp()
        if left <= 0:
            return None
        self._observe(left)
        return verdict.user


def _verdict(pem: str) -> _Verdict:
    certificate = x509.load_pem_x509_certificate(pem.encode("ascii"))
    expires = certificate.not_valid_after_utc.timestamp()
    name = common_name_of(certificate)
    if not name:
        return _Verdict(None, expires)
    groups = _values(certificate, NameOID.ORGANIZATION_NAME)
    fingerprint = certificate.fingerprint(hashes.SHA256()).hex()
    user = User(
        name=name,
        groups=tuple(dict.fromkeys((*groups, AUTHENTICATED))),
        extra={CREDENTIAL_ID: (f"X509SHA256={fingerprint}",)},
    )
    return _Verdict(user, expires)


def common_name_of(certificate: x509.Certificate) -> str:
    """Return the common name in a certificate's subject, or "".

    Of several the last one counts, as for kube-apiserver: with one certificate somebody is the same person everywhere.
    """
    return next(reversed(_values(certificate, NameOID.COMMON_NAME)), "")


def _values(certificate: x509.Certificate, oid: x509.ObjectIdentifier) -> list[str]:
    values = (attribute.value for attribute in certificate.subject.get_attributes_for_oid(oid))
    return [value if isinstance(value, str) else value.decode("utf-8", "replace") for value in values]
