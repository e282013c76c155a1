"""A repository elsewhere: its address, who we are there, whom we trust, and how long we wait.

Source: porch-api.md 6.8; users.md 7.3 rows 3, 4 and 8.
"""

import base64
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from storage.git.address import SshAddress, check_url, ssh_address
from storage.git.network import NetworkPolicy

PATIENCE = 10
"""Whole operations may take this many times the timeout of one wait."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """A user name and a password or token, for basic authentication.

    An empty user name sends the password as a bearer token.
    """

    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class SshKey:
    """A private key in any PEM or OpenSSH form, and the hosts that may be shown its signature.

    ``known_hosts`` is text in OpenSSH's format; a host whose key it does not hold is not talked to.
    """

    private_key: bytes = field(repr=False)
    known_hosts: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class Remote:
    """A repository elsewhere.

    ``ca`` is a PEM bundle trusted besides the system's. ``timeout`` bounds connecting and each wait for the
    remote, in seconds; a whole operation may take ``timeout`` × :data:`PATIENCE`.

    Raises:
        UnsafeAddress: scheme, host or path is not allowed, or the address holds a password.
    """

    url: str
    credentials: Credentials | SshKey | None = field(default=None, repr=False)
    ca: bytes | None = field(default=None, repr=False)
    timeout: float = 60.0
    network: NetworkPolicy = field(default=NetworkPolicy(), repr=False)

    def __post_init__(self) -> None:
        check_url(self.url)

    @property
    def address(self) -> str:
        """The URL as it may be shown."""
        return self.url

    def without_secrets(self, text: str) -> str:
        """Return text of the remote's with our credentials taken out, should it repeat them."""
        if isinstance(self.credentials, Credentials):
            pair = f"{self.credentials.username}:{self.credentials.password}"
            for secret in (base64.b64encode(pair.encode()).decode(), self.credentials.password):
                text = text.replace(secret, "***") if secret else text
        return text

    @property
    def is_local(self) -> bool:
        """Whether the remote is a directory of this machine."""
        return self.url.startswith("file:")

    @property
    def ssh(self) -> SshAddress | None:
        """What an SSH address consists of, None for every other remote."""
        return ssh_address(self.url)

    @property
    def path(self) -> str:
        """The directory of a local remote."""
        return unquote(urlsplit(self.url).path)
