"""The keys that sign service-account tokens, and the documents by which others can check such tokens.

One PEM file with ES256 private keys: the first signs, all of them verify, so a key is replaced by putting the new
one in front and dropping the old one when its last token has expired. Source: ``kube-api.md`` 3.6 (c).
"""

import base64
import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

ALGORITHM = "ES256"
_COORDINATE_BYTES = 32
_PEM = re.compile(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----.+?-----END [A-Z ]*PRIVATE KEY-----\n?", re.DOTALL)


class UnusableKey(Exception):
    """The key file cannot be used and must not be replaced silently: tokens that it signed are in use."""


@dataclass(frozen=True, slots=True)
class SigningKeys:
    """Private keys by key id; the first one signs."""

    keys: dict[str, ec.EllipticCurvePrivateKey]

    @property
    def signing(self) -> tuple[str, ec.EllipticCurvePrivateKey]:
        """The key id and the key that sign."""
        return next(iter(self.keys.items()))

    def public(self, key_id: str) -> ec.EllipticCurvePublicKey | None:
        """Return the key that verifies what ``key_id`` signed."""
        key = self.keys.get(key_id)
        return None if key is None else key.public_key()

    def key_set(self) -> dict[str, Any]:
        """Return the public keys as a JSON Web Key Set (RFC 7517)."""
        return {"keys": [_web_key(key_id, key) for key_id, key in self.keys.items()]}


def load_or_create_signing_keys(path: Path) -> SigningKeys:
    """Read the keys at ``path``, or make one there on the first start, readable by its owner only.

    Raises:
        UnusableKey: the file holds no P-256 private key, or something that is none.
    """
    if not path.exists():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write_once(path, _pem(ec.generate_private_key(ec.SECP256R1())))
    try:
        found = _PEM.findall(path.read_bytes())
        loaded = [serialization.load_pem_private_key(pem, password=None) for pem in found]
    except (OSError, ValueError, TypeError) as error:
        raise UnusableKey(
            f"{path} cannot be read as private keys; restore it, or remove it to make a new one"
        ) from error
    keys = {}
    for key in loaded:
        if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
            raise UnusableKey(f"{path} holds a key that is not for ES256 (P-256)")
        keys[_key_id(key)] = key
    if not keys:
        raise UnusableKey(f"{path} holds no private key; restore it, or remove it to make a new one")
    return SigningKeys(keys)


def _write_once(path: Path, content: bytes) -> None:
    """Create the file whole; when another process was first, its key is the one."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(temporary, path)
    except FileExistsError:
        pass
    finally:
        temporary.unlink()


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _key_id(key: ec.EllipticCurvePrivateKey) -> str:
    der = key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return _base64url(hashlib.sha256(der).digest())


def _web_key(key_id: str, key: ec.EllipticCurvePrivateKey) -> dict[str, Any]:
    numbers = key.public_key().public_numbers()
    x, y = (_base64url(number.to_bytes(_COORDINATE_BYTES, "big")) for number in (numbers.x, numbers.y))
    return {"use": "sig", "kty": "EC", "kid": key_id, "crv": "P-256", "alg": ALGORITHM, "x": x, "y": y}


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
