"""Which certificate authority vouches for a client's certificate, and until when.

The handshake trusts the authorities of clients and of the front proxy together, and does not say which one matched. Whose
word a certificate is, is decided here, against one set of authorities alone. Source: ``kube-api.md`` 3.2 and 3.4.
"""

import datetime as dt
from collections import OrderedDict
from collections.abc import Sequence

from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID
from cryptography.x509.verification import (
    Criticality,
    ExtensionPolicy,
    Policy,
    PolicyBuilder,
    Store,
    VerificationError,
)

REMEMBERED = 1024
"""Chains whose verdict is kept. All requests of a connection have the same."""
MAX_PEM = 1024 * 1024
"""Characters of the certificates of a set: etcd would not keep a larger ConfigMap."""


class UnusableAuthorities(Exception):
    """What should be certificates of authorities is something else."""


def _may_authenticate(_policy: Policy, _leaf: x509.Certificate, usage: x509.ExtendedKeyUsage) -> None:
    if ExtendedKeyUsageOID.CLIENT_AUTH not in usage and ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE not in usage:
        raise ValueError("the certificate is not one of a client")


def _is_authority(_policy: Policy, _issuer: x509.Certificate, constraints: x509.BasicConstraints | None) -> None:
    if constraints is not None and not constraints.ca:
        raise ValueError("the certificate is not one of an authority")


# Certificates of front proxies have no alternative name (kubeadm's have none), and the usual policy asks for one.
_LEAVES = ExtensionPolicy.permit_all().require_present(x509.ExtendedKeyUsage, Criticality.AGNOSTIC, _may_authenticate)
_ISSUERS = ExtensionPolicy.permit_all().require_present(x509.BasicConstraints, Criticality.AGNOSTIC, _is_authority)


class Authorities:
    """A set of authorities as it was read once; another reading is another object, which has judged nobody yet.

    Raises:
        UnusableAuthorities: the text holds something else than certificates, or none.
    """

    def __init__(self, pem: str) -> None:
        self.pem = pem
        try:
            certificates = x509.load_pem_x509_certificates(pem.encode("ascii")) if len(pem) <= MAX_PEM else []
        except ValueError as error:  # text that is not ASCII is one, too
            raise UnusableAuthorities(f"no certificates in PEM: {error}") from error
        if not certificates:
            raise UnusableAuthorities("no certificates in PEM")
        self._store = Store(certificates)
        self._known: OrderedDict[tuple[str, ...], float] = OrderedDict()

    def vouch_for(self, chain: Sequence[str], now: dt.datetime) -> bool:
        """Tell whether ``chain`` leads to one of these authorities: a client's certificate, then those between, as PEM.

        Whoever was vouched for once is believed until the first certificate of the chain ends.
        """
        key = tuple(chain)
        until = self._known.get(key) or self._verify(key, now)
        return until > now.timestamp()

    def _verify(self, chain: tuple[str, ...], now: dt.datetime) -> float:
        try:
            leaf, *between = (x509.load_pem_x509_certificate(one.encode("ascii")) for one in chain)
            verifier = (
                PolicyBuilder()
                .store(self._store)
                .time(now)
                .extension_policies(ee_policy=_LEAVES, ca_policy=_ISSUERS)
                .build_client_verifier()
            )
            verified = verifier.verify(leaf, between).chain
        except (VerificationError, ValueError):
            return 0.0
        until = min(one.not_valid_after_utc for one in verified).timestamp()
        self._known[chain] = until
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        return until
