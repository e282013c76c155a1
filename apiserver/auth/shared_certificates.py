"""The certificates that servers of a cluster share: what a Secret holds of them, and what becomes of it next.

Values in, values out; who reads and writes the Secret is ``apiserver.cluster.shared_certificates``. An authority is exchanged in
steps, so that whoever looks in between trusts what is shown: the new one is named beside the old one, then it signs, then the old one
goes. Source: ``kube-api.md`` 4; ADR 0039.
"""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from cryptography.hazmat.primitives.serialization import Encoding

from apiserver.auth.certificates import (
    CLOCK_SKEW,
    Authority,
    UnusableCertificate,
    certificate_in,
    is_current,
    is_due,
    issue_serving,
    key_in,
    key_pem,
    new_authority,
)

Data = dict[str, bytes]
"""What a Secret holds, by its keys."""

CERTIFICATE: Final = "tls.crt"
KEY: Final = "tls.key"
_CA: Final = ("ca.crt", "ca.key")
_NEXT: Final = ("next-ca.crt", "next-ca.key")
_PREVIOUS: Final = "previous-ca.crt"


@dataclass(frozen=True, slots=True)
class SharedCertificates:
    """An authority with the serving certificate that it signed, and while it is exchanged its successor or predecessor."""

    authority: Authority
    leaf: tuple[bytes, bytes]
    """Certificate and key, in PEM."""
    successor: Authority | None = None
    predecessor: bytes = b""
    """Its certificate, in PEM: it signs nothing any more."""

    @property
    def bundle(self) -> bytes:
        """Every authority that is to be trusted, in PEM."""
        after = _pem(self.successor) if self.successor else b""
        return self.predecessor + _pem(self.authority) + after

    @property
    def data(self) -> Data:
        """What a Secret holds of it."""
        kept = {**_named(_CA, self.authority), CERTIFICATE: self.leaf[0], KEY: self.leaf[1]}
        if self.successor:
            kept |= _named(_NEXT, self.successor)
        return {**kept, _PREVIOUS: self.predecessor} if self.predecessor else kept


def read_shared(data: Mapping[str, bytes]) -> SharedCertificates | None:
    """Read what a Secret holds; None when it is empty.

    Raises:
        UnusableCertificate: it holds something else, or something is missing or damaged.
    """
    if not data:
        return None
    authority = _authority(data, _CA)
    if authority is None:
        raise UnusableCertificate(f"it has no {_CA[0]} with its {_CA[1]}")
    successor = _authority(data, _NEXT) if _NEXT[0] in data else None
    leaf = (data.get(CERTIFICATE, b""), data.get(KEY, b""))
    return SharedCertificates(authority, leaf, successor, data.get(_PREVIOUS, b""))


def renewed(
    known: SharedCertificates | None, names: Sequence[str], *, published: bool, settle: dt.timedelta
) -> SharedCertificates:
    """Return what is to be kept next: the same where nothing is due. One step of an exchange at a time.

    ``published``: the bundle of ``known`` has been trusted for long enough by those who connect. ``settle`` is how long a
    certificate must be in use before its authority's predecessor may go.
    """
    if known is None or _has_ended(known.authority):
        authority = new_authority()
        return SharedCertificates(authority, issue_serving(authority, names))
    if known.successor and published:
        issued = issue_serving(known.successor, names)
        return SharedCertificates(known.successor, issued, predecessor=_pem(known.authority))
    certificate, key = (certificate_in(known.leaf[0]), key_in(known.leaf[1]))
    if not is_current(certificate, key, known.authority, names):
        return replace(known, leaf=issue_serving(known.authority, names))
    if known.successor is None and is_due(known.authority.certificate):
        return replace(known, successor=new_authority())
    if known.predecessor and certificate and _age(certificate.not_valid_before_utc) > settle:
        return replace(known, predecessor=b"")
    return known


def _age(not_before: dt.datetime) -> dt.timedelta:
    return dt.datetime.now(dt.UTC) - not_before - CLOCK_SKEW


def _has_ended(authority: Authority) -> bool:
    return authority.certificate.not_valid_after_utc <= dt.datetime.now(dt.UTC)


def _authority(data: Mapping[str, bytes], names: tuple[str, str]) -> Authority | None:
    certificate, key = certificate_in(data.get(names[0], b"")), key_in(data.get(names[1], b""))
    if certificate is None or key is None:
        return None
    if certificate.public_key() != key.public_key():
        raise UnusableCertificate(f"its {names[0]} and {names[1]} do not belong together")
    return Authority(certificate, key)


def _named(names: tuple[str, str], authority: Authority) -> Data:
    return {names[0]: _pem(authority), names[1]: key_pem(authority.key)}


def _pem(authority: Authority) -> bytes:
    return authority.certificate.public_bytes(Encoding.PEM)
