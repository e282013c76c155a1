"""Two ways to carry Git's stateless protocol: HTTP with pooled connections, and a local git process.

Both answer :class:`Request` with :class:`Answer`; what the bytes mean is ``transport.py``'s business. A local
``git upload-pack --stateless-rpc`` says exactly what a server's HTTP backend relays, so one client serves both.
"""

import functools
import hashlib
import os
import socket
import ssl
import subprocess
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Protocol
from urllib.parse import urljoin, urlsplit

import urllib3
from dulwich.protocol import pkt_line
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from storage.git.deadline import break_on_expiry
from storage.git.errors import AuthenticationFailed, NotARepository, RemoteUnavailable, UnsafeAddress
from storage.git.network import NetworkPolicy, connect
from storage.git.remote import Credentials, Remote
from storage.git.sending import MaySend, parts, require
from storage.spans import trace_headers

MAX_REDIRECTS = 5
CONNECT_SECONDS = 10.0
"""Longest wait for a connection, if the remote's own timeout is not shorter."""

POOLED = 32
"""Connections kept alive per host."""
HOSTS = 64
"""Hosts to which connections are kept alive; the least recently used goes first."""
BUNDLES = 64
"""CA bundles with connections of their own; the same."""

_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class Request:
    """One question: a GET of ``info/refs`` when there is no body, otherwise a POST to a service.

    ``may_send`` is that of a push, and asked before each part of the body leaves, when the remote is ready to take it.
    """

    url: str
    headers: dict[str, str]
    body: bytes | None = field(default=None, repr=False)
    may_send: MaySend | None = None


@dataclass(slots=True)
class Answer:
    """What came back. ``read`` returns at most as many bytes as asked for, none at the end."""

    url: str
    content_type: str
    read: Callable[[int], bytes]
    close: Callable[[], None]


class Carrier(Protocol):
    """Something that takes questions to a remote."""

    def ask(self, remote: Remote, request: Request) -> Answer:
        """Ask and return the answer's head.

        Raises:
            RemoteUnavailable: the remote cannot be reached, or answers with a 5xx code.
            AuthenticationFailed: it wants other credentials.
            NotARepository: there is nothing, or nothing that speaks Git.
            UnsafeAddress: it lies, or leads, where we do not go.
            PushWithdrawn: the body may not leave any more, or not its rest.
        """
        ...


class HttpCarrier:
    """HTTP and HTTPS. Credentials go with the first request; connections stay open between requests.

    One serves all clones of the process: a thousand repositories of one host need no thousand connections to it.
    """

    def __init__(self) -> None:
        self._pools: OrderedDict[tuple[bytes, NetworkPolicy], urllib3.PoolManager] = OrderedDict()
        self._lock = threading.Lock()

    def ask(self, remote: Remote, request: Request) -> Answer:
        """Ask, following redirects of ``info/refs`` on the same host only."""
        url = request.url
        for _ in range(MAX_REDIRECTS + 1):
            answer = self._send(remote, request, url)
            location = answer.headers.get("Location") if answer.status in (301, 302, 303, 307, 308) else None
            if location is None:
                _check_status(remote, answer)
                return _http_answer(answer, url)
            answer.drain_conn()
            answer.release_conn()
            if request.body is not None:
                raise UnsafeAddress(f"{remote.address}: the remote redirects a request that holds data")
            url = _redirected(remote, url, location)
        raise UnsafeAddress(f"{remote.address}: more than {MAX_REDIRECTS} redirects")

    def _send(self, remote: Remote, request: Request, url: str) -> urllib3.BaseHTTPResponse:
        headers = {**request.headers, **trace_headers(), "Pragma": "no-cache", "User-Agent": "git/porch"}
        if isinstance(remote.credentials, Credentials):
            headers["Authorization"] = _authorization(remote.credentials)
        elif remote.credentials is not None:
            raise AuthenticationFailed(f"{remote.address}: an SSH key is of no use at an HTTP address")
        body: bytes | Iterator[bytes] | None = request.body
        if request.body is not None and request.may_send is not None:
            # An iterator is asked for its first part when the connection stands and the headers are sent.
            body = parts(remote.address, request.body, request.may_send)
            headers["Content-Length"] = str(len(request.body))
        try:
            return self._pool(remote).urlopen(
                "GET" if request.body is None else "POST",
                url,
                headers=headers,
                body=body,
                preload_content=False,
                redirect=False,
                # A question without data may meet a connection the server just closed; data is never sent twice.
                retries=urllib3.Retry(1, connect=0, read=1, other=0, redirect=0, raise_on_redirect=False)
                if request.body is None
                else False,
                timeout=urllib3.Timeout(connect=min(CONNECT_SECONDS, remote.timeout), read=remote.timeout),
            )
        except urllib3.exceptions.HTTPError as error:
            sent = request.body is not None and not isinstance(
                error, urllib3.exceptions.NewConnectionError | urllib3.exceptions.ConnectTimeoutError
            )
            raise RemoteUnavailable(remote.address, _problem(error), outcome_unknown=sent) from error

    def _pool(self, remote: Remote) -> urllib3.PoolManager:
        key = hashlib.sha256(remote.ca).digest() if remote.ca else b"", remote.network
        with self._lock:
            pool = self._pools.get(key)
            if pool is None:
                pool = urllib3.PoolManager(num_pools=HOSTS, maxsize=POOLED, ssl_context=_tls(remote.ca))
                pool.pool_classes_by_scheme = _pool_classes(remote.network)
                self._pools[key] = pool
            self._pools.move_to_end(key)
            if len(self._pools) > BUNDLES:
                self._pools.popitem(last=False)[1].clear()
            return pool


@functools.cache
def shared_http() -> HttpCarrier:
    """Return the process's connections."""
    return HttpCarrier()


class ProcessCarrier:
    """A directory of this machine, asked through a git binary in a fixed environment."""

    def __init__(self, git: str) -> None:
        self._git = git

    def ask(self, remote: Remote, request: Request) -> Answer:
        """Run the service once; its output is the answer."""
        path = remote.path
        if not Path(path).is_dir():
            raise NotARepository(f"{remote.address}: there is no such directory")
        service = service_of(request.url)
        argv = [self._git, service, "--stateless-rpc"]
        if request.body is None:
            argv.append("--advertise-refs")
        process, errors = _start_git(remote, [*argv, "--", path], request)
        greeting = pkt_line(b"# service=git-" + service.encode() + b"\n") + b"0000" if request.body is None else b""
        reading = _ProcessReading(remote, process, errors, greeting)
        kind = "advertisement" if request.body is None else "result"
        return Answer(request.url, f"application/x-git-{service}-{kind}", reading.read, reading.close)


def git_environment(protocol: str = "") -> dict[str, str]:
    """Return the whole environment of a git process: no user's configuration, no prompts, no other transports."""
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": os.devnull,
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_OPTIONAL_LOCKS": "0",
    }
    return {**environment, "GIT_PROTOCOL": protocol} if protocol else environment


def _start_git(remote: Remote, argv: list[str], request: Request) -> tuple["subprocess.Popen[bytes]", IO[bytes]]:
    """Start a git process whose input is the request's body; the deadline of the operation kills it."""
    environment = git_environment(request.headers.get("Git-Protocol", ""))
    with ExitStack() as begun, tempfile.TemporaryFile() as source:
        errors = begun.enter_context(tempfile.TemporaryFile())
        source.write(request.body or b"")
        source.seek(0)
        if request.may_send is not None:
            require(remote.address, request.may_send)
        process = subprocess.Popen(argv, stdin=source, stdout=subprocess.PIPE, stderr=errors, env=environment, cwd="/")
        begun.pop_all()  # from here on it lives as long as the process, see _ProcessReading.close
    break_on_expiry(process.kill)
    return process, errors


class _ProcessReading:
    def __init__(self, remote: Remote, process: "subprocess.Popen[bytes]", errors: IO[bytes], greeting: bytes) -> None:
        self._remote = remote
        self._process = process
        self._errors = errors
        self._greeting = greeting
        self._started = False

    def read(self, size: int) -> bytes:
        if self._process.stdout is None:
            return b""
        data = os.read(self._process.stdout.fileno(), min(size, _CHUNK))
        if not data and not self._started:
            raise NotARepository(f"{self._remote.address}: {self._complaint()}")
        if not self._started:
            self._started = True
            return self._greeting + data
        return data

    def close(self) -> None:
        if self._process.stdout is not None:
            self._process.stdout.close()
        if self._process.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(1)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._errors.close()

    def _complaint(self) -> str:
        self._process.wait()
        self._errors.seek(0)
        return self._errors.read(300).decode("utf-8", "replace").strip() or "git gave no answer"


class _Watched(HTTPConnection):
    """A connection that the operation's deadline can break, and that refuses peers nobody may reach."""

    network = NetworkPolicy()

    def request(self, *args: Any, **kwargs: Any) -> None:
        break_on_expiry(self._break)
        super().request(*args, **kwargs)

    def _new_conn(self) -> socket.socket:
        try:
            return connect(self.host, self.port or self.default_port, self.network, self.timeout)
        except socket.gaierror as error:
            raise urllib3.exceptions.NameResolutionError(self.host, self, error) from error
        except TimeoutError as error:
            raise urllib3.exceptions.ConnectTimeoutError(self, "no answer in time") from error
        except OSError as error:
            raise urllib3.exceptions.NewConnectionError(self, "connection refused") from error

    def _break(self) -> None:
        held = self.sock
        if held is not None:
            with suppress(OSError):
                held.shutdown(socket.SHUT_RDWR)


class _WatchedTls(_Watched, HTTPSConnection):
    """The same over TLS."""


def _pool_classes(policy: NetworkPolicy) -> dict[str, type[HTTPConnectionPool]]:
    """Return the classes of connections under one policy; urllib3 has no other way to hand something to a connection."""
    plain = type("_Plain", (_Watched,), {"network": policy})
    tls = type("_Tls", (_WatchedTls,), {"network": policy})
    return {
        "http": type("_PlainPool", (HTTPConnectionPool,), {"ConnectionCls": plain}),
        "https": type("_TlsPool", (HTTPSConnectionPool,), {"ConnectionCls": tls}),
    }


@functools.lru_cache(maxsize=64)
def _tls(ca: bytes | None) -> ssl.SSLContext:
    """Return a context that trusts the system's CAs and ``ca``. Reading the former takes 50 ms and a megabyte, so it is kept."""
    context = ssl.create_default_context()
    # Also an authority that a bundle has without its root, as git does.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if ca:
        try:
            context.load_verify_locations(cadata=ca.decode("ascii", "replace"))
        except ssl.SSLError as error:
            raise UnsafeAddress("the CA bundle holds no valid certificate") from error
    return context


def _authorization(credentials: Credentials) -> str:
    if not credentials.username:
        return f"Bearer {credentials.password}"
    pair = f"{credentials.username}:{credentials.password}"
    return str(urllib3.make_headers(basic_auth=pair)["authorization"])


def _check_status(remote: Remote, answer: urllib3.BaseHTTPResponse) -> None:
    if answer.status == 200:  # noqa: PLR2004 -- HTTP's OK
        return
    answer.close()
    if answer.status in (401, 403, 407):
        raise AuthenticationFailed(f"{remote.address}: the remote refuses the credentials (HTTP {answer.status})")
    if answer.status >= 500 or answer.status in (408, 429):  # noqa: PLR2004 -- HTTP's server errors
        raise RemoteUnavailable(remote.address, f"HTTP {answer.status}")
    raise NotARepository(f"{remote.address}: no Git repository here (HTTP {answer.status})")


def _http_answer(answer: urllib3.BaseHTTPResponse, url: str) -> Answer:
    def read(size: int) -> bytes:
        return bytes(answer.read1(min(size, _CHUNK)))

    def close() -> None:
        # Read to its end, the connection went back to the pool by itself; otherwise it is of no use any more.
        answer.close()

    return Answer(url, answer.headers.get("Content-Type", ""), read, close)


def _redirected(remote: Remote, url: str, location: str) -> str:
    target = urljoin(url, location)
    old, new = urlsplit(url), urlsplit(target)
    upgrade = (old.scheme, new.scheme) in (("http", "http"), ("https", "https"), ("http", "https"))
    if not upgrade or (old.hostname, old.port) != (new.hostname, new.port) or "@" in new.netloc:
        raise UnsafeAddress(f"{remote.address}: the remote redirects to another host")
    return target


def service_of(url: str) -> str:
    """Return what is asked for at an address: receive-pack or upload-pack."""
    return "receive-pack" if "git-receive-pack" in url.rpartition("/")[2] else "upload-pack"


def _problem(error: BaseException) -> str:
    """Name what went wrong without quoting a request; types decide, never text."""
    reason = getattr(error, "reason", None)
    if isinstance(reason, BaseException):
        error = reason
    if isinstance(error, urllib3.exceptions.NameResolutionError):
        return "the host name cannot be resolved"
    if isinstance(error, urllib3.exceptions.SSLError | ssl.SSLError):
        inner = error.args[0] if error.args else error
        return f"TLS failed: {getattr(inner, 'verify_message', '') or getattr(inner, 'reason', '') or 'handshake'}"
    if isinstance(error, urllib3.exceptions.NewConnectionError):
        return "connection refused"
    if isinstance(error, urllib3.exceptions.TimeoutError):
        return "no answer in time"
    return "the connection broke"
