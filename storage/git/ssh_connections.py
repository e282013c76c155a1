"""Connections to SSH servers, kept for a while and used by one conversation at a time.

asyncssh wants an event loop; everybody who talks to a remote is a thread. So one loop runs in a thread of its own, from
the first SSH address on, and threads hand it coroutines. Nothing is read of a user's configuration: no files, no agent, no
environment; a server whose key nobody vouched for is not logged in at.
"""

import asyncio
import concurrent.futures
import getpass
import os
import socket
import threading
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

import asyncssh

from storage.git.address import SSH_USER, SshAddress
from storage.git.errors import AuthenticationFailed, GitError, HostKeyUnknown, RemoteUnavailable
from storage.git.network import NetworkPolicy, connect
from storage.git.remote import Remote, SshKey

T = TypeVar("T")

CONNECT_SECONDS = 10.0
"""Longest wait for a TCP connection, if the remote's own timeout is not shorter."""
IDLE_SECONDS = 30.0
"""How long a connection is kept for the next conversation; a host may think less of those kept longer."""
MAX_IDLE = 4
"""Connections kept for one user of one host."""


@dataclass(frozen=True, slots=True)
class Login:
    """Whom a connection was made for: only conversations that would log in the same way may share it."""

    address: SshAddress
    key: SshKey = field(repr=False)
    network: NetworkPolicy


class _Client(asyncssh.SSHClient):
    """Remembers the key that a server showed, for the message."""

    shown = ""

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:  # noqa: ARG002
        """Refuse: asyncssh asks about keys that are not among the known ones."""
        self.shown = f"{key.get_algorithm()} {key.get_fingerprint()}"
        return False


class SshConnections:
    """The loop and its idle connections. Safe from many threads; ``_idle`` is touched on the loop only."""

    def __init__(self) -> None:
        _name_the_user()
        self._loop = asyncio.new_event_loop()
        self._idle: dict[Login, list[asyncssh.SSHClientConnection]] = {}
        threading.Thread(target=self._loop.run_forever, name="ssh", daemon=True).start()

    def call(self, work: Coroutine[Any, Any, T], seconds: float) -> "concurrent.futures.Future[T]":
        """Run ``work`` on the loop; it is given up after ``seconds`` with a ``TimeoutError``."""

        async def bounded() -> T:
            async with asyncio.timeout(seconds):
                return await work

        return asyncio.run_coroutine_threadsafe(bounded(), self._loop)

    def take(self, remote: Remote) -> tuple[Login, asyncssh.SSHClientConnection]:
        """Return a connection that nobody else uses, logged in; to be given back or closed.

        Raises:
            GitError: of the type that says why there is none.
        """
        login = _login(remote)
        kept = self.call(self._kept(login), remote.timeout).result()
        return login, kept or self._opened(remote, login)

    def give_back(self, login: Login, connection: asyncssh.SSHClientConnection) -> None:
        """Keep a connection for the next conversation, for :data:`IDLE_SECONDS`."""
        self._loop.call_soon_threadsafe(self._keep, login, connection)

    def end(self, connection: asyncssh.SSHClientConnection) -> None:
        """Close a connection, whatever is going on in it."""
        self._loop.call_soon_threadsafe(connection.abort)

    def _opened(self, remote: Remote, login: Login) -> asyncssh.SSHClientConnection:
        address = login.address
        try:
            dialled = connect(address.host, address.port, login.network, min(CONNECT_SECONDS, remote.timeout))
        except socket.gaierror as error:
            raise RemoteUnavailable(remote.address, "the host name cannot be resolved") from error
        except TimeoutError as error:
            raise RemoteUnavailable(remote.address, "no answer in time") from error
        except OSError as error:
            raise RemoteUnavailable(remote.address, "connection refused") from error
        dialled.setblocking(False)
        client = _Client()
        try:
            return self.call(_log_in(dialled, client, login), remote.timeout).result()
        except (asyncssh.Error, OSError, ValueError) as error:
            dialled.close()
            raise _translated(remote, client, error) from error
        except GitError:
            dialled.close()
            raise

    async def _kept(self, login: Login) -> asyncssh.SSHClientConnection | None:
        idle = self._idle.get(login, [])
        while idle:
            connection = idle.pop()
            if not connection.is_closed():
                return connection
        self._idle.pop(login, None)
        return None

    def _keep(self, login: Login, connection: asyncssh.SSHClientConnection) -> None:
        idle = self._idle.setdefault(login, [])
        if connection.is_closed() or len(idle) >= MAX_IDLE:
            connection.close()
            return
        idle.append(connection)
        self._loop.call_later(IDLE_SECONDS, self._expire, login, connection)

    def _expire(self, login: Login, connection: asyncssh.SSHClientConnection) -> None:
        """Close a connection unless somebody took it meanwhile; one that came back since is merely closed early."""
        idle = self._idle.get(login, [])
        if connection in idle:
            idle.remove(connection)
            connection.close()
        if not idle:
            self._idle.pop(login, None)


_lock = threading.Lock()
_shared: list[SshConnections] = []


def shared_connections() -> SshConnections:
    """Return the process's connections; the loop begins to run when they are first asked for."""
    with _lock:
        if not _shared:
            _shared.append(SshConnections())
        return _shared[0]


def _name_the_user() -> None:
    """Give the process's user a name where it has none, as in a container under any number.

    asyncssh asks for it before each connection and fails without, although an address always says who to log in as.
    """
    try:
        getpass.getuser()
    except (KeyError, OSError):
        os.environ["LOGNAME"] = SSH_USER


def _login(remote: Remote) -> Login:
    address = remote.ssh
    if address is None or not isinstance(remote.credentials, SshKey):
        raise AuthenticationFailed(
            f"{remote.address}: an SSH address needs a key; name a Secret of type kubernetes.io/ssh-auth in secretRef"
        )
    return Login(address, remote.credentials, remote.network)


async def _log_in(dialled: socket.socket, client: _Client, login: Login) -> asyncssh.SSHClientConnection:
    """Log in by key and nothing else, at a server whose key is known."""
    try:
        known = asyncssh.import_known_hosts(login.key.known_hosts.decode("utf-8", "replace"))
    except ValueError as error:
        raise HostKeyUnknown(
            f"known_hosts for {login.address.host} cannot be read; write lines as ssh-keyscan does"
        ) from error

    def known_keys(host: str, address: str, port: int | None) -> Any:
        # A function, because asyncssh would look into the user's files instead of an empty list.
        return asyncssh.match_known_hosts(known, host, address, port)

    return await asyncssh.connect(
        login.address.host,
        login.address.port,
        sock=dialled,
        config=None,
        client_factory=lambda: client,
        username=login.address.user,
        client_keys=[asyncssh.import_private_key(login.key.private_key)],
        known_hosts=known_keys,
        agent_path=None,
        preferred_auth="publickey",
        password_auth=False,
        kbdint_auth=False,
        gss_auth=False,
        gss_kex=False,
        host_based_auth=False,
        x509_trusted_certs=None,
        x509_trusted_cert_paths=None,
        disable_trivial_auth=True,
        compression_algs=None,  # packs are compressed, and what a server inflates would not be bounded
        keepalive_interval=0,
        client_version="porch",
    )


def _translated(remote: Remote, client: _Client, error: Exception) -> GitError:
    if isinstance(error, asyncssh.HostKeyNotVerifiable):
        shown = f"{client.shown} " if client.shown else ""
        return HostKeyUnknown(
            f"{remote.address}: the host's key {shown}is not in known_hosts; compare it with what the host publishes, then "
            "add its line to the key known_hosts of the Secret"
        )
    if isinstance(error, asyncssh.PermissionDenied):
        return AuthenticationFailed(f"{remote.address}: the remote refuses the key of the Secret")
    if isinstance(error, asyncssh.KeyImportError | asyncssh.KeyEncryptionError):
        return AuthenticationFailed(
            f"{remote.address}: the Secret's ssh-privatekey is no private key without a passphrase"
        )
    if isinstance(error, TimeoutError):
        return RemoteUnavailable(remote.address, "no answer in time")
    return RemoteUnavailable(remote.address, "the SSH connection broke before anybody was logged in")
