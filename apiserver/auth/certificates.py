"""The standalone server's own certificates: its CA, its serving certificate, the administrator's kubeconfig.

Everything lies as files under the data directory, is made on the first start and reused by later ones.
Nothing here speaks TLS; ``apiserver.serving`` does. Source: ``kube-api.md`` 3.6 (a) and 4.
"""

import contextlib
import datetime as dt
import ipaddress
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from apiserver.auth.bootstrap_token import is_still_good, new_token
from apiserver.auth.kubeconfig import kubeconfig_for, same_access, token_in

CA_LIFE = dt.timedelta(days=3650)
LEAF_LIFE = dt.timedelta(days=365)
RENEW_AFTER = 2 / 3
"""Share of its life after which a certificate of ours is replaced at the next start."""
CLOCK_SKEW = dt.timedelta(minutes=5)
"""How far behind a client's clock may be and still accept a certificate made just now."""
LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
ADMIN = "admin"
ADMIN_GROUPS = ("system:masters",)

_PRIVATE = 0o600
_PUBLIC = 0o644


class UnusableCertificate(Exception):
    """A file of the data directory cannot be used and must not be replaced silently."""


@dataclass(frozen=True, slots=True)
class Files:
    """Where the data directory keeps its certificates, keys and kubeconfig."""

    ca: Path
    ca_key: Path
    serving: Path
    serving_key: Path
    admin: Path
    admin_key: Path
    kubeconfig: Path
    token_record: Path

    @classmethod
    def under(cls, data: Path) -> "Files":
        """Name the files of one data directory."""
        return cls(
            ca=data / "ca.crt",
            ca_key=data / "ca.key",
            serving=data / "tls.crt",
            serving_key=data / "tls.key",
            admin=data / "admin.crt",
            admin_key=data / "admin.key",
            kubeconfig=data / "kubeconfig",
            token_record=data / "bootstrap-token.json",
        )


@dataclass(frozen=True, slots=True)
class Authority:
    """The certificate authority that signs everything of one data directory."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def ensure_certificates(data: Path, port: int, host: str = "127.0.0.1") -> Files:
    """Make what is missing or due for renewal under ``data``; leave everything else untouched.

    ``host`` is the address listened on; it joins the serving certificate's names unless it is a wildcard.
    Each file is replaced in one step, so a start that is killed half-way is completed by the next one.

    Raises:
        UnusableCertificate: the CA is unreadable, incomplete or expired; clients trust it, so only a person may
            throw it away.
    """
    reachable = host if is_specific(host) else "127.0.0.1"
    files = ensure_serving(data, tuple(dict.fromkeys((*LOCAL_HOSTS, reachable))))
    authority = load_authority(files)
    if not _is_current(files.admin, files.admin_key, authority):
        store_leaf(files.admin, files.admin_key, issue_client(authority, ADMIN, ADMIN_GROUPS))
    _ensure_kubeconfig(files, reachable, port)
    return files


def ensure_serving(data: Path, names: Sequence[str]) -> Files:
    """Make a CA and a serving certificate for ``names`` under ``data``, where missing or due; nothing for clients.

    Raises:
        UnusableCertificate: the CA is unreadable, incomplete or expired.
    """
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    files = Files.under(data)
    authority = _ensure_authority(files)
    if not _is_current(files.serving, files.serving_key, authority, names):
        store_leaf(files.serving, files.serving_key, issue_serving(authority, names))
    return files


def load_authority(files: Files) -> Authority:
    """Read the CA of a data directory.

    Raises:
        UnusableCertificate: a file is missing, damaged or expired, or the two do not belong together.
    """
    certificate, key = _read_certificate(files.ca), _read_key(files.ca_key)
    if certificate is None or key is None:
        raise _unusable(files, "is missing or damaged")
    if certificate.public_key() != key.public_key():
        raise _unusable(files, "and its key do not belong together")
    if certificate.not_valid_after_utc <= _now():
        raise _unusable(files, "has expired")
    return Authority(certificate, key)


def issue_client(
    authority: Authority, name: str, groups: Sequence[str] = (), life: dt.timedelta = LEAF_LIFE
) -> tuple[bytes, bytes]:
    """Sign a client certificate for user ``name`` in ``groups``; return certificate and key in PEM."""
    organisations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    subject = x509.Name([*organisations, x509.NameAttribute(NameOID.COMMON_NAME, name)])
    return _issue(authority, subject, ExtendedKeyUsageOID.CLIENT_AUTH, life=life)


def write_private(path: Path, content: bytes) -> None:
    """Replace ``path`` in one step by a file that only its owner can read."""
    _write(path, content, _PRIVATE)


def _ensure_authority(files: Files) -> Authority:
    if not files.ca.exists():
        # A key without its certificate is a first start that was killed: the same key is certified again.
        key = _read_key(files.ca_key)
        if key is None:
            if files.ca_key.exists():
                raise _unusable(files, "is missing, and its key is damaged")
            key = ec.generate_private_key(ec.SECP256R1())
            _write(files.ca_key, key_pem(key), _PRIVATE)
        _write(files.ca, _self_signed(key).public_bytes(serialization.Encoding.PEM), _PUBLIC)
    authority = load_authority(files)
    # Copies and restores tend to lose permissions; a readable CA key gives everyone every right.
    files.ca_key.chmod(_PRIVATE)
    return authority


def _self_signed(key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    now = _now()
    # The serial number keeps two servers' CAs apart in a trust store that looks them up by name.
    serial = x509.random_serial_number()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"porch-ca-{serial % 0xFFFFFFFF:08x}")])
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(serial)
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + CA_LIFE)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .add_extension(identifier, critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), critical=False)
        .sign(key, hashes.SHA256())
    )


def new_authority() -> Authority:
    """Make an authority that nobody trusts yet."""
    key = ec.generate_private_key(ec.SECP256R1())
    return Authority(_self_signed(key), key)


def issue_serving(authority: Authority, names: Sequence[str]) -> tuple[bytes, bytes]:
    """Sign a serving certificate for ``names``, hosts and addresses; return certificate and key in PEM."""
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "porch")])
    alternative = x509.SubjectAlternativeName([_general_name(name) for name in names])
    return _issue(authority, subject, ExtendedKeyUsageOID.SERVER_AUTH, alternative)


def _issue(
    authority: Authority,
    subject: x509.Name,
    usage: x509.ObjectIdentifier,
    alternative: x509.SubjectAlternativeName | None = None,
    life: dt.timedelta = LEAF_LIFE,
) -> tuple[bytes, bytes]:
    key = ec.generate_private_key(ec.SECP256R1())
    now = _now()
    issuer = authority.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(authority.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(min(now + life, authority.certificate.not_valid_after_utc))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(issuer), critical=False)
    )
    if alternative is not None:
        builder = builder.add_extension(alternative, critical=False)
    certificate = builder.sign(authority.key, hashes.SHA256())
    return certificate.public_bytes(serialization.Encoding.PEM), key_pem(key)


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def is_specific(host: str) -> bool:
    """Tell whether clients can connect to ``host``: not to "" or a wildcard address."""
    try:
        return not ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return bool(host)


def _is_current(path: Path, key_path: Path, authority: Authority, names: Sequence[str] = ()) -> bool:
    return is_current(_read_certificate(path), _read_key(key_path), authority, names)


def is_current(
    certificate: x509.Certificate | None,
    key: ec.EllipticCurvePrivateKey | None,
    authority: Authority,
    names: Sequence[str] = (),
) -> bool:
    """Tell whether a leaf can be kept: whole, of this CA, not near its end, and good for ``names``."""
    if certificate is None or key is None or certificate.public_key() != key.public_key():
        return False
    try:
        certificate.verify_directly_issued_by(authority.certificate)
    except (ValueError, TypeError, InvalidSignature):
        return False
    if is_due(certificate):
        return False
    return not names or {_general_name(name) for name in names} <= _names_of(certificate)


def is_due(certificate: x509.Certificate) -> bool:
    """Tell whether a certificate is to be replaced: two thirds of its life are over."""
    life = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    return _now() >= certificate.not_valid_before_utc + life * RENEW_AFTER


def _names_of(certificate: x509.Certificate) -> set[x509.GeneralName]:
    try:
        return set(certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
    except x509.ExtensionNotFound:
        return set()


def _ensure_kubeconfig(files: Files, host: str, port: int) -> None:
    existing = files.kubeconfig.read_bytes() if files.kubeconfig.exists() else b""
    wanted = kubeconfig_for(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        ca=files.ca.read_bytes(),
        certificate=files.admin.read_bytes(),
        key=files.admin_key.read_bytes(),
        token=_ensure_token(files, token_in(existing)),
    )
    # One that still gives the same access is kept, with whatever its owner changed in it.
    if not same_access(existing, wanted):
        _write(files.kubeconfig, wanted, _PRIVATE)


def _ensure_token(files: Files, known: str) -> str:
    """Return the administrator's token: the known one while it is good, else a new one, whose record is kept."""
    if is_still_good(files.token_record, known):
        return known
    token, record = new_token(ADMIN, ADMIN_GROUPS)
    _write(files.token_record, record.encode(), _PRIVATE)
    return token


def store_leaf(path: Path, key_path: Path, pem: tuple[bytes, bytes]) -> None:
    """Replace a certificate and its key, each in one step; whoever reads between finds two that do not belong together."""
    certificate, key = pem
    _write(key_path, key, _PRIVATE)
    _write(path, certificate, _PUBLIC)


def _read_certificate(path: Path) -> x509.Certificate | None:
    try:
        return certificate_in(path.read_bytes())
    except FileNotFoundError:
        return None


def _read_key(path: Path) -> ec.EllipticCurvePrivateKey | None:
    try:
        return key_in(path.read_bytes())
    except FileNotFoundError:
        return None


def certificate_in(pem: bytes) -> x509.Certificate | None:
    """Read the first certificate of a PEM text, None where there is none."""
    try:
        return x509.load_pem_x509_certificate(pem)
    except ValueError:
        return None


def key_in(pem: bytes) -> ec.EllipticCurvePrivateKey | None:
    """Read a private key of the kind that we make, None where there is none."""
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except (ValueError, TypeError):
        return None
    return key if isinstance(key, ec.EllipticCurvePrivateKey) else None


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Return a private key in PEM, not encrypted."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _write(path: Path, content: bytes, mode: int) -> None:
    """Replace ``path`` in one step; the content never exists with wider permissions than ``mode``."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            Path(temporary).unlink()
        raise


def _unusable(files: Files, what: str) -> UnusableCertificate:
    return UnusableCertificate(
        f"the CA certificate {files.ca} {what}; restore {files.ca.name} and {files.ca_key.name} from a backup, or "
        f"remove both to have a new CA made (clients then need the new kubeconfig)"
    )


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)
