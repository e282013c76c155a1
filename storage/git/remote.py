"""Addresses of remotes: which are allowed, who we are there, and how long we wait.

Source: porch-api.md 6.8; users.md 7.3 rows 3, 4 and 8.
"""

import re
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit, urlunsplit

from storage.git.errors import UnsafeAddress

SCHEMES = frozenset({"file", "http", "https"})

MAX_URL = 2048
"""Characters."""

_HOST = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,252})|[0-9A-Fa-f:.]{2,45}")
_UNPRINTABLE = re.compile(r"[\x00-\x20\x7f]")


@dataclass(frozen=True, slots=True)
class Credentials:
    """A user name and a password or token, for basic authentication.

    An empty user name sends the password as a bearer token.
    """

    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Remote:
    """A repository elsewhere.

    ``ca`` is a PEM bundle trusted instead of the system's. ``timeout`` bounds connecting and each wait for the
    remote, in seconds; a whole operation may take ``timeout`` × :data:`PATIENCE`.

    Raises:
        UnsafeAddress: scheme, host or path is not allowed, or the address holds user information.
    """

    url: str
    credentials: Credentials | None = field(default=None, repr=False)
    ca: bytes | None = field(default=None, repr=False)
    timeout: float = 60.0

    def __post_init__(self) -> None:
        check_url(self.url)

    @property
    def address(self) -> str:
        """The URL as it may be shown."""
        return self.url

    @property
    def is_local(self) -> bool:
        """Whether the remote is a directory of this machine."""
        return self.url.startswith("file:")

    @property
    def path(self) -> str:
        """The directory of a local remote."""
        return unquote(urlsplit(self.url).path)


PATIENCE = 10
"""Whole operations may take this many times the timeout of one wait."""


def check_url(url: str) -> str:
    """Return ``url`` if it may be used as a remote.

    Raises:
        UnsafeAddress: it may not; the message holds no user information.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise UnsafeAddress("the address is not a valid URL") from error
    if len(url) > MAX_URL or _UNPRINTABLE.search(url) or "\\" in url:
        raise UnsafeAddress("the address is too long or holds spaces, backslashes or control characters")
    if parts.scheme not in SCHEMES:
        raise UnsafeAddress(f"addresses must start with file://, http:// or https://, not {parts.scheme[:20]!r}")
    if "@" in parts.netloc:
        raise UnsafeAddress("the address holds user information; put credentials into a Secret")
    if parts.query or parts.fragment:
        raise UnsafeAddress("the address holds a query or a fragment")
    if parts.scheme == "file":
        _check_directory(host, unquote(parts.path))
    elif not _HOST.fullmatch(host) or host.startswith("-") or port == 0:
        raise UnsafeAddress("the address names no valid host")
    return url


def without_userinfo(url: str) -> str:
    """Drop user information from an address, for storing and showing; what cannot be parsed becomes empty."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _check_directory(host: str, path: str) -> None:
    if host not in ("", "localhost") or not path.startswith("/") or "\0" in path or ".." in path.split("/"):
        raise UnsafeAddress("a file address needs an absolute path on this machine")
