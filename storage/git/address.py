"""Addresses of repositories: which may be used, and what an SSH address consists of.

Source: porch-api.md 6.8; users.md 7.3 rows 3 and 8. Both forms of SSH addresses are read, ``ssh://user@host:port/path``
and ``user@host:path``. What could be taken for an option or for more than one word by whoever gets it is refused.
"""

import re
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from storage.git.errors import UnsafeAddress

SCHEMES = frozenset({"file", "http", "https", "ssh"})

MAX_URL = 2048
"""Characters."""

SSH_PORT = 22
SSH_USER = "git"
"""Who we are at a host when the address does not say; every large host uses it."""

_HOST = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,252})|[0-9A-Fa-f:.]{2,45}")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+@-]{0,127}")
_SSH_PATH = re.compile(r"(?!-)[\w./~+@=,%:-]+")
"""What needs no quoting in any shell; the server's login shell reads the command."""
_SHORT = re.compile(r"([^@/:]+)@([^@/:\[\]]+|\[[0-9A-Fa-f:.]+\]):(?!:)(.+)")
_UNPRINTABLE = re.compile(r"[\x00-\x20\x7f]")


@dataclass(frozen=True, slots=True)
class SshAddress:
    """A repository that is reached over SSH; a relative ``path`` begins in the user's home there."""

    user: str
    host: str
    port: int
    path: str


def check_url(url: str) -> str:
    """Return ``url`` if it may be used as a remote.

    Raises:
        UnsafeAddress: it may not; the message holds no password.
    """
    if len(url) > MAX_URL or _UNPRINTABLE.search(url) or "\\" in url:
        raise UnsafeAddress("the address is too long or holds spaces, backslashes or control characters")
    if short := _SHORT.fullmatch(url):
        _check_ssh(SshAddress(short[1], short[2].strip("[]"), SSH_PORT, short[3]))
        return url
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise UnsafeAddress("the address is not a valid URL") from error
    # Whether an address is a directory is decided by its first letters in more than one place: there is one spelling.
    if parts.scheme not in SCHEMES or (parts.scheme == "file" and not url.startswith("file:")):
        allowed = "file://, http://, https:// or ssh://, or have the form user@host:path"
        raise UnsafeAddress(f"addresses must start with {allowed}, not with {url[: len(parts.scheme)][:20]!r}")
    if holds_credentials(url):
        raise UnsafeAddress("the address holds user information; put credentials into a Secret")
    if parts.query or parts.fragment:
        raise UnsafeAddress("the address holds a query or a fragment")
    if parts.scheme == "file":
        _check_directory(host, unquote(parts.path))
    elif not _HOST.fullmatch(host) or port == 0:
        raise UnsafeAddress("the address names no valid host")
    elif parts.scheme == "ssh":
        _check_ssh(_from_url(url))
    return url


def holds_credentials(url: str) -> bool:
    """Tell whether an address names a user or holds a password, other than the user that every SSH address has."""
    scheme, separator, rest = url.partition("://")
    user, at, _ = rest.partition("/")[0].rpartition("@")
    return bool(separator and at) and (scheme != "ssh" or ":" in user)


def ssh_address(url: str) -> SshAddress | None:
    """Return what an SSH address consists of, None for every other one."""
    if short := _SHORT.fullmatch(url):
        return SshAddress(short[1], short[2].strip("[]"), SSH_PORT, short[3])
    return _from_url(url) if url.startswith("ssh://") else None


def _from_url(url: str) -> SshAddress:
    parts = urlsplit(url)
    path = unquote(parts.path)
    # /~user/path means that user's home, as git has it.
    return SshAddress(
        parts.username or SSH_USER,
        parts.hostname or "",
        parts.port or SSH_PORT,
        path[1:] if path.startswith("/~") else path,
    )


def _check_ssh(address: SshAddress) -> None:
    if not _HOST.fullmatch(address.host):
        raise UnsafeAddress("the address names no valid host")
    if not _USER.fullmatch(address.user):
        raise UnsafeAddress("the address names no valid user")
    if not _SSH_PATH.fullmatch(address.path) or address.path.strip("/") == "" or ".." in address.path.split("/"):
        raise UnsafeAddress(
            "the path of an SSH address may hold letters, digits and ./~+@=,%:-_ only, and must name a repository"
        )


def _check_directory(host: str, path: str) -> None:
    if host not in ("", "localhost") or not path.startswith("/") or "\0" in path or ".." in path.split("/"):
        raise UnsafeAddress("a file address needs an absolute path on this machine")
