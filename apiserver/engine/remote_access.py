"""How remotes are reached: who we are there, by a Secret; whom we trust; and where connections may lead.

Secrets are read in the namespace of the object that names them, at each attempt, so one that is exchanged counts from the
next attempt on. Source: ``porch-api.md`` 6.8; ``users.md`` 7.3 rows 4, 8 and 10.
"""

import base64
import binascii
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import orjson

from storage.git.address import MAX_URL
from storage.git.errors import GitError, RemoteUnavailable, UnsafeAddress
from storage.git.network import NetworkPolicy
from storage.git.remote import Credentials, Remote, SshKey
from storage.interfaces import Entry, ObjectKey, ObjectStore, StoreUnavailable

BASIC_AUTH: Final = "kubernetes.io/basic-auth"
SSH_AUTH: Final = "kubernetes.io/ssh-auth"
OPAQUE: Final = "Opaque"
WORKLOAD_IDENTITY: Final = "kpt.dev/workload-identity-auth"
BEARER: Final = "bearerToken"
PRIVATE_KEY: Final = "ssh-privatekey"
KNOWN_HOSTS: Final = "known_hosts"
CA_BUNDLE: Final = "-ca-bundle"
"""The Secret ``<namespace>-ca-bundle`` holds certificates for all remotes of its namespace."""
CA_CERTIFICATE: Final = "ca.crt"
MAX_PRIVATE_KEY: Final = 8192
"""Bytes of a private key: an RSA key of 8,192 bits fits. Signing with a larger one would take seconds from everybody."""
MAX_KNOWN_HOSTS: Final = 1 << 20
"""Bytes of a known_hosts file."""


class CredentialsProblem(GitError):
    """The Secret that an object names does not hold credentials we can use."""


@dataclass(frozen=True, slots=True)
class AccessOptions:
    """What holds for every remote; ``timeout`` is in seconds, see :class:`Remote`.

    ``known_hosts`` is a file in OpenSSH's format, for Secrets that hold no known_hosts of their own; it is read at each
    attempt. ``local`` allows addresses that are directories of this machine, but for those in the ``private`` folders: the
    server's own clones hold what other namespaces' credentials fetched.
    """

    timeout: float = 60.0
    network: NetworkPolicy = field(default_factory=NetworkPolicy)
    known_hosts: Path | None = None
    local: bool = True
    private: tuple[Path, ...] = ()


class RemoteAccess:
    """Makes remotes of addresses."""

    def __init__(self, store: ObjectStore, options: AccessOptions) -> None:
        self._store = store
        self._options = options

    async def remote(self, namespace: str, url: str, secret: str) -> Remote:
        """Return a repository as it is reached now, with ``secret`` of the namespace (empty: without credentials).

        Raises:
            CredentialsProblem: the Secret is missing, or holds nothing we can use; the message names what to fix.
            RemoteUnavailable: the Secret cannot be read now.
            UnsafeAddress: the address is not one we talk to.
        """
        if url[:MAX_URL].startswith("file:") and not self._options.local:
            raise UnsafeAddress("addresses that begin with file:// are not allowed at this server")
        credentials, ca = None, b""
        if secret:
            type_, data = await self._secret(namespace, secret)
            credentials, ca = self._credentials(f"{namespace}/{secret}", type_, data), data.get(CA_CERTIFICATE, b"")
        ca = ca or await self._bundle(namespace)
        remote = Remote(url, credentials, ca or None, self._options.timeout, self._options.network)
        if remote.is_local and self._is_private(Path(remote.path)):
            raise UnsafeAddress("the address lies in a folder that the server keeps for itself")
        return remote

    def _is_private(self, directory: Path) -> bool:
        found = directory.resolve()
        return any(found.is_relative_to(folder.resolve()) for folder in self._options.private)

    async def _secret(self, namespace: str, name: str) -> tuple[str, dict[str, bytes]]:
        """Return type and contents of a Secret.

        Raises:
            CredentialsProblem: there is none, or it is not what a Secret looks like.
        """
        entry = await self._find(namespace, name)
        if entry is None:
            raise CredentialsProblem(f"failed to obtain credential from secret {namespace}/{name}: it does not exist")
        body = orjson.loads(entry.body)
        try:
            data = {key: base64.b64decode(value, validate=True) for key, value in (body.get("data") or {}).items()}
        except (binascii.Error, TypeError):
            raise _unresolved(f"{namespace}/{name}", "its data is not base64") from None
        return body.get("type") or OPAQUE, data

    async def _find(self, namespace: str, name: str) -> Entry | None:
        """Return a Secret as it is in memory; where Secrets are a cluster's, as that has it."""
        try:
            return await self._store.get_fresh(ObjectKey("secrets", namespace, name), not_older_than=0)
        except StoreUnavailable as error:
            raise RemoteUnavailable(f"secret {namespace}/{name}", f"cannot be read now: {error}") from error

    async def _bundle(self, namespace: str) -> bytes:
        """Return the certificates that hold for a whole namespace, if there are any."""
        name = f"{namespace}{CA_BUNDLE}"
        if await self._find(namespace, name) is None:
            return b""
        certificates = (await self._secret(namespace, name))[1].get(CA_CERTIFICATE)
        if certificates is None:
            raise CredentialsProblem(
                f"secret {namespace}/{name} must hold PEM certificates under the key {CA_CERTIFICATE}"
            )
        return certificates

    def _credentials(self, shown: str, type_: str, data: dict[str, bytes]) -> Credentials | SshKey:
        if type_ == BASIC_AUTH:
            if "password" not in data:
                raise _unresolved(shown, f"a Secret of type {BASIC_AUTH} needs the keys username and password")
            return Credentials(
                _text(shown, "username", data.get("username", b"")), _text(shown, "password", data["password"])
            )
        if type_ == OPAQUE:
            if BEARER not in data:
                raise _unresolved(shown, f"bearer Token secret.Data key must be set as {BEARER}")
            return Credentials("", _token(shown, data[BEARER]))
        if type_ == SSH_AUTH:
            if PRIVATE_KEY not in data:
                raise _unresolved(
                    shown, f"a Secret of type {SSH_AUTH} needs the key {PRIVATE_KEY}, and may have {KNOWN_HOSTS}"
                )
            if len(data[PRIVATE_KEY]) > MAX_PRIVATE_KEY:
                raise _unresolved(shown, f"its {PRIVATE_KEY} is over {MAX_PRIVATE_KEY} bytes")
            return SshKey(data[PRIVATE_KEY], data.get(KNOWN_HOSTS) or self._known_hosts())
        if type_ == WORKLOAD_IDENTITY:
            why = f"type {WORKLOAD_IDENTITY} is not supported; use {BASIC_AUTH}, {SSH_AUTH}, or {OPAQUE} with {BEARER}"
            raise _unresolved(shown, why)
        raise _unresolved(shown, f"no resolver for secret with type {type_}")

    def _known_hosts(self) -> bytes:
        path = self._options.known_hosts
        if path is None:
            return b""
        try:
            with path.open("rb") as file:
                known = file.read(MAX_KNOWN_HOSTS + 1)
        except OSError as error:
            raise CredentialsProblem(
                f"the server's file of known SSH hosts cannot be read: {error.strerror}"
            ) from error
        if len(known) > MAX_KNOWN_HOSTS:
            raise CredentialsProblem(f"the server's file of known SSH hosts is over {MAX_KNOWN_HOSTS} bytes")
        return known


def _text(shown: str, key: str, value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise _unresolved(shown, f"its {key} is not text") from None


def _token(shown: str, value: bytes) -> str:
    """Return a token that can stand in a header; a newline at its end, as ``echo`` leaves it, does not count."""
    token = _text(shown, BEARER, value).strip()
    if not token or not token.isascii() or not token.isprintable():
        raise _unresolved(shown, f"its {BEARER} is not one line of printable characters")
    return token


def _unresolved(shown: str, why: str) -> CredentialsProblem:
    return CredentialsProblem(f"cannot resolve credentials in a secret {shown}: {why}")
