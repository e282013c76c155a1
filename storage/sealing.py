"""Encryption at rest of the bodies of sealed resources (Secrets): AES-256-GCM under one key from a file.

A sealed body is bound to the key of its object, so a row cannot be passed off as another one's.
Source: issue 3 part 2; ``kube-api.md`` 2.16.
"""

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from storage.interfaces import ObjectKey

KEY_BYTES = 32
"""AES-256."""
_VERSION = b"\x01"
"""First byte of the format: version, key id, nonce, ciphertext with its tag."""
_ID_BYTES = 4
_NONCE_BYTES = 12
"""What GCM is defined for; random nonces are safe for 2**32 messages under one key (NIST SP 800-38D, 8.3)."""


class SealBroken(Exception):
    """A sealed body cannot be opened: wrong key, changed bytes, or a body of another object."""

    def __init__(self, key: ObjectKey, why: str) -> None:
        super().__init__(f"the stored body of {key} cannot be decrypted: {why}")
        self.key = key


class Sealer:
    """Seals under the first key and opens under any, so that keys can be rotated.

    Keys are 32 bytes each.

    Raises:
        ValueError: no key is given, or one has the wrong length.
    """

    def __init__(self, key: bytes, older: Iterable[bytes] = ()) -> None:
        keys = [key, *older]
        if any(len(one) != KEY_BYTES for one in keys):
            raise ValueError(f"a sealing key has {KEY_BYTES} bytes")
        self._ciphers = {_key_id(one): AESGCM(one) for one in reversed(keys)}
        self._current = _key_id(key)

    def seal(self, key: ObjectKey, body: bytes) -> bytes:
        """Encrypt a body for the log."""
        nonce = os.urandom(_NONCE_BYTES)
        sealed = self._ciphers[self._current].encrypt(nonce, body, _bound_to(key))
        return _VERSION + self._current + nonce + sealed

    def open(self, key: ObjectKey, sealed: bytes) -> bytes:
        """Decrypt a body from the log.

        Raises:
            SealBroken: it was not sealed for this object under a key we hold.
        """
        if sealed[:1] != _VERSION:
            raise SealBroken(key, "it is not in a sealed form that this version knows")
        nonce_at, text_at = 1 + _ID_BYTES, 1 + _ID_BYTES + _NONCE_BYTES
        cipher = self._ciphers.get(sealed[1:nonce_at])
        if cipher is None:
            raise SealBroken(key, "it was sealed under a key that is not configured")
        try:
            return cipher.decrypt(sealed[nonce_at:text_at], sealed[text_at:], _bound_to(key))
        except (InvalidTag, ValueError) as error:
            raise SealBroken(key, "its bytes were changed, or belong to another object") from error


def load_or_create_key(path: Path) -> bytes:
    """Read the sealing key from a file; create it with a random key, mode 0600, when there is none.

    Two processes that create it at once agree on one key. A crash never leaves a short file.

    Raises:
        ValueError: the file does not hold exactly one key, or others may read it.
        OSError: it cannot be read or written.
    """
    if not path.exists():
        _create_key(path)
    if path.stat().st_mode & 0o077:
        raise ValueError(f"{path} holds a secret key and may be read by others; chmod it to 0600")
    key = path.read_bytes()
    if len(key) != KEY_BYTES:
        raise ValueError(f"{path} must hold {KEY_BYTES} bytes and holds {len(key)}")
    return key


def _create_key(path: Path) -> None:
    draft = path.with_name(f"{path.name}.{os.getpid()}.new")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(handle, os.urandom(KEY_BYTES))
        os.fsync(handle)
    finally:
        os.close(handle)
    try:
        # A hard link does not replace what another process created first.
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()


def _key_id(key: bytes) -> bytes:
    return hashlib.sha256(b"sealing key id" + key).digest()[:_ID_BYTES]


def _bound_to(key: ObjectKey) -> bytes:
    # NUL cannot occur in any part, so the three cannot be cut differently.
    return f"{key.resource}\0{key.namespace}\0{key.name}".encode()
