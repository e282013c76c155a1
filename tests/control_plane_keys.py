"""The keys and certificates of a real Kubernetes control plane, written as PEM files into one folder.

Two authorities, as a cluster has them: one for servers and clients, one for the front proxy alone. Nothing here
outlives the folder; the files are good for a day.
"""

import datetime as dt
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFE = dt.timedelta(days=1)
Span = tuple[dt.timedelta, dt.timedelta]
SERVING_NAMES = ("localhost", "kubernetes.default.svc")
SERVING_ADDRESSES = ("127.0.0.1", "10.0.0.1")
"""Loopback, and the first address of the service range, which is kube-apiserver's own."""


@dataclass(frozen=True)
class KeyPair:
    """A certificate and its private key, as files."""

    certificate: Path
    key: Path


@dataclass(frozen=True)
class Authority:
    """A certificate authority that signs for one folder."""

    folder: Path
    name: str
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @classmethod
    def new(cls, folder: Path, name: str, *, valid: Span | None = None) -> "Authority":
        """Make an authority and write ``<name>.crt``; its key stays in memory. ``valid`` is as for :meth:`client`."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate = (
            _builder(subject, subject, key, key, valid)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(key, hashes.SHA256())
        )
        authority = cls(folder, name, certificate, key)
        authority.file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        return authority

    def intermediate(self, name: str) -> "Authority":
        """Make an authority that this one vouches for; write ``<name>.crt``."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate = (
            _builder(subject, self.certificate.subject, key, self.key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .sign(self.key, hashes.SHA256())
        )
        authority = Authority(self.folder, name, certificate, key)
        authority.file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        return authority

    @property
    def file(self) -> Path:
        """The authority's certificate."""
        return self.folder / f"{self.name}.crt"

    def client(self, user: str, groups: Sequence[str] = (), *, valid: Span | None = None) -> KeyPair:
        """Sign a client certificate for ``user`` in ``groups``; ``valid`` from when until when, seen from now."""
        organisations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        subject = x509.Name([*organisations, x509.NameAttribute(NameOID.COMMON_NAME, user)])
        return self._issue(user, subject, x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), valid=valid)

    def server(self, name: str, hosts: Sequence[str] = SERVING_NAMES) -> KeyPair:
        """Sign a serving certificate for loopback and ``hosts``, by default the names that a cluster gives its API server."""
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        names = [
            *(x509.DNSName(host) for host in hosts),
            *(x509.IPAddress(ipaddress.ip_address(address)) for address in SERVING_ADDRESSES),
        ]
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
        return self._issue(name, subject, usage, x509.SubjectAlternativeName(names))

    def _issue(
        self, name: str, subject: x509.Name, *extensions: x509.ExtensionType, valid: Span | None = None
    ) -> KeyPair:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(subject, self.certificate.subject, key, self.key, valid)
        for extension in extensions:
            builder = builder.add_extension(extension, critical=False)
        certificate = builder.sign(self.key, hashes.SHA256())
        pair = KeyPair(self.folder / f"{name}.crt", self.folder / f"{name}.key")
        pair.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        _write_key(pair.key, key)
        return pair


def signing_key(folder: Path, name: str) -> KeyPair:
    """Write a key pair that signs tokens; the "certificate" is the bare public key."""
    key = ec.generate_private_key(ec.SECP256R1())
    pair = KeyPair(folder / f"{name}.pub", folder / f"{name}.key")
    public = key.public_key()
    pair.certificate.write_bytes(
        public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    _write_key(pair.key, key)
    return pair


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    issuer_key: ec.EllipticCurvePrivateKey,
    valid: Span | None = None,
) -> x509.CertificateBuilder:
    """Begin a certificate. The identifiers of both keys tell authorities of the same name apart, as those of kubeadm do."""
    now = dt.datetime.now(dt.UTC)
    begin, end = valid or (dt.timedelta(minutes=-5), LIFE)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + begin)
        .not_valid_after(now + end)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
    )


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
