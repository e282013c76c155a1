"""A Git server over HTTP for tests: ``git http-backend`` in a thread of this process, with faults to switch on.

Used as ``with git_server(root) as server: ...``; repositories lie at ``root/<path>.git`` and are served at
``server.url/<path>`` with or without ``.git``. Reading is open; pushing wants ``credentials`` (``user:password``) when there are some.
"""

import base64
import contextlib
import gzip
import os
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


@dataclass
class Faults:
    """What goes wrong with every request from now on."""

    delay: float = 0.0
    """Seconds before each answer."""
    status: int = 0
    """An HTTP code to answer with instead of asking git."""
    hang: bool = False
    """Take requests and never answer, until :meth:`GitServer.stop`."""
    refuse: bool = False
    """Close each connection without an answer."""
    trickle: bool = False
    """Send one byte of the body at a time, 50 ms apart."""
    redirect: str = ""
    """Answer with a redirect to this address followed by the path."""
    body: bytes | None = None
    """Send these bytes instead of what git says, with the right content type."""
    drop_after_push: bool = False
    """Do what a push asks, then close the connection without saying so."""
    private: bool = False
    """Want credentials for reading, too."""
    gzip: bool = False
    """Compress answers, as a proxy in between may."""
    chunked: bool = False
    """Send answers in chunks, without saying how long they are."""
    protocol: int | None = None
    """Speak this version of Git's protocol, whatever the client asks for."""
    before_greeting: list[Any] = field(default_factory=list)
    """Called, each once, before a push is told which refs there are: it is planned, and nothing of it was sent."""
    before_push: list[Any] = field(default_factory=list)
    """Called, each once, between a push's listing and its update: another writer's chance."""
    before_fetch: list[Any] = field(default_factory=list)
    """Called, each once, before objects are sent: time for others."""
    after_push: list[Any] = field(default_factory=list)
    """Called, each once, when a push was done and has not been answered."""


@dataclass
class GitServer:
    """A running server."""

    root: Path
    port: int
    credentials: str | None
    faults: Faults = field(default_factory=Faults)
    requests: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    """Method, path and headers of every request so far."""
    connections: int = 0
    scheme: str = "http"
    _stopping: threading.Event = field(default_factory=threading.Event)
    _http: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def stop(self) -> None:
        """Stop listening and wake requests that hang."""
        self._stopping.set()
        if self._http is not None:
            self._http.shutdown()
            self._http.server_close()
            self._http = None


def create_repository(path: Path, *, empty: bool = False) -> Path:
    """Make a bare repository that accepts pushes over HTTP, with one commit on main unless ``empty``."""
    run_git(None, "init", "-q", "--bare", "-b", "main", str(path))
    run_git(path, "config", "http.receivepack", "true")
    if not empty:
        readme = run_git(path, "hash-object", "-w", "--stdin", data=b"# test\n")
        tree = run_git(path, "mktree", data=f"100644 blob {readme}\tREADME.md\n".encode())
        commit = run_git(path, "commit-tree", tree, "-m", "Initial commit")
        run_git(path, "update-ref", "refs/heads/main", commit)
    return path


def run_git(path: Path | None, *arguments: str, data: bytes = b"") -> str:
    """Run git in a fixed environment and return what it prints, stripped."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        **{f"GIT_{who}_{what}": "test@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    }
    argv = ["git", *(["-C", str(path)] if path else []), *arguments]
    done = subprocess.run(argv, env=environment, input=data, capture_output=True, check=False)
    assert done.returncode == 0, (arguments, done.stderr.decode())
    return done.stdout.decode().strip()


@contextmanager
def git_server(root: Path, credentials: str | None = None, tls: ssl.SSLContext | None = None) -> Iterator[GitServer]:
    """Serve the repositories below ``root`` on a free port of the loopback until the block ends."""
    server = GitServer(root, 0, credentials)
    http = _Http(("127.0.0.1", 0), _handler(server))
    server._http = http
    server.scheme = "https" if tls else "http"
    if tls:
        http.socket = tls.wrap_socket(http.socket, server_side=True, do_handshake_on_connect=False)
    server.port = http.server_address[1]
    threading.Thread(target=http.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield server
    finally:
        server.stop()


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._open: set[socket.socket] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def server_close(self) -> None:
        """Stop listening, and end the connections that clients keep for later."""
        super().server_close()
        for request in list(self._open):
            with contextlib.suppress(OSError):
                request.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Broken connections are what these tests are about; nothing is printed."""


def _handler(server: GitServer) -> type[BaseHTTPRequestHandler]:
    class Handler(_GitHandler):
        git = server

    return Handler


class _GitHandler(BaseHTTPRequestHandler):
    git: GitServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def setup(self) -> None:
        super().setup()
        self.git.connections += 1

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 -- the base class's name
        """Say nothing."""

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def _serve(self) -> None:
        body = self._body()
        self.git.requests.append((self.command, self.path, dict(self.headers)))
        if self._fault():
            return
        faults = self.git.faults
        if ("git-receive-pack" in self.path or faults.private) and not self._allowed():
            self._answer(401, [("WWW-Authenticate", 'Basic realm="git"')], b"")
            return
        if self.command == "GET" and self.path.endswith("service=git-receive-pack") and faults.before_greeting:
            faults.before_greeting.pop(0)()
        if self.command == "POST" and self.path.endswith("git-receive-pack") and faults.before_push:
            faults.before_push.pop(0)()
        fetching = self.path.endswith("git-upload-pack") and b"command=ls-refs" not in body
        if self.command == "POST" and fetching and faults.before_fetch:
            faults.before_fetch.pop(0)()
        status, headers, data = self._backend(body)
        if self.command == "POST" and self.path.endswith("git-receive-pack") and faults.after_push:
            faults.after_push.pop(0)()
        if faults.drop_after_push and self.command == "POST" and self.path.endswith("git-receive-pack"):
            self.close_connection = True
            return
        self._answer(status, headers, data if faults.body is None else faults.body)

    def _fault(self) -> bool:
        """Misbehave as asked; True when there is nothing left to answer."""
        faults = self.git.faults
        if faults.hang:
            self.git._stopping.wait()
        if faults.refuse or faults.hang:
            self.close_connection = True
            return True
        if faults.delay:
            time.sleep(faults.delay)
        if faults.redirect:
            self._answer(302, [("Location", faults.redirect + self.path)], b"")
            return True
        if faults.status:
            self._answer(faults.status, [], b"fault")
            return True
        return False

    def _allowed(self) -> bool:
        if self.git.credentials is None:
            return True
        token = base64.b64encode(self.git.credentials.encode()).decode()
        return self.headers.get("Authorization") == f"Basic {token}"

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        data = b""
        while size := int(self.rfile.readline().strip() or b"0", 16):
            data += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return data

    def _backend(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        path, _, query = self.path.partition("?")
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_PROJECT_ROOT": str(self.git.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": _on_disk(self.git.root, path),
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self._protocol(),
            "REMOTE_USER": "test",
            "REMOTE_ADDR": "127.0.0.1",
        }
        done = subprocess.run(["git", "http-backend"], input=body, env=environment, capture_output=True, check=False)
        head, _, data = done.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line)
        status = int(fields.pop("Status", "200").split()[0])
        return status, list(fields.items()), data

    def _protocol(self) -> str:
        pinned = self.git.faults.protocol
        return self.headers.get("Git-Protocol", "") if pinned is None else f"version={pinned}" if pinned else ""

    def _answer(self, status: int, headers: list[tuple[str, str]], data: bytes) -> None:
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if self.git.faults.gzip:
            data = gzip.compress(data)
            self.send_header("Content-Encoding", "gzip")
        if self.git.faults.chunked:
            self.send_header("Transfer-Encoding", "chunked")
            data = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in _parts(data)) + b"0\r\n\r\n"
        else:
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if not self.git.faults.trickle:
            self.wfile.write(data)
            return
        for at in range(len(data)):
            if self.git._stopping.wait(0.05):
                return
            self.wfile.write(data[at : at + 1])


def _parts(data: bytes) -> list[bytes]:
    return [data[at : at + 1000] for at in range(0, len(data), 1000)]


def _on_disk(root: Path, path: str) -> str:
    """Add ``.git`` to the part of the path that names a repository without it."""
    parts = path.strip("/").split("/")
    for count in range(1, len(parts) + 1):
        if (root.joinpath(*parts[:count]).with_name(parts[count - 1] + ".git")).is_dir():
            parts[count - 1] += ".git"
    return "/" + "/".join(parts)
