"""Carries Git's protocol over SSH: one command of the server's per question.

``git-upload-pack`` and ``git-receive-pack`` greet, take one request and answer, which is what their stateless HTTP forms do
in two requests; so the client of ``transport.py`` serves both. A greeting that was not asked for is read and dropped.
"""

import asyncio
from contextlib import suppress
from typing import Any

import asyncssh

from storage.git.advertisement import MAX_BODY
from storage.git.carriers import Answer, Request, service_of
from storage.git.deadline import break_on_expiry
from storage.git.errors import LimitExceeded, NotARepository, PushRejected, RemoteUnavailable
from storage.git.remote import Remote
from storage.git.sending import MaySend, always, parts
from storage.git.ssh_connections import Login, SshConnections, shared_connections

_CHUNK = 1 << 16
_COMPLAINT = 2000
"""Bytes kept of what a server says on its error channel."""
_FLUSH = b"0000"
_VERSION_2 = b"000eversion 2\n"


class SshCarrier:
    """SSH by key. Connections are shared by the whole process and outlive this object by some seconds."""

    def ask(self, remote: Remote, request: Request) -> Answer:
        """Run the service once; its output is the answer."""
        service = service_of(request.url)
        command = _Command(shared_connections(), remote, service)
        try:
            command.start(request.headers.get("Git-Protocol", ""))
            greeting = command.greeting()
            if request.body is not None:
                # Version 2 takes one request after the other; the flush says that there is none.
                body = request.body + (_FLUSH if greeting.startswith(_VERSION_2) else b"")
                command.send(body, request.may_send or always)
        except BaseException:
            command.abandon()
            raise
        if request.body is None:
            command.finish()
            parts = iter((greeting,))
            kind = f"application/x-git-{service}-advertisement"
            return Answer(request.url, kind, lambda _size: next(parts, b""), _nothing)
        return Answer(request.url, f"application/x-git-{service}-result", command.read, command.close)


class _Command:
    """One run of a service in a session of its own. Blocking; every wait is bounded by the remote's timeout."""

    def __init__(self, connections: SshConnections, remote: Remote, service: str) -> None:
        self._connections = connections
        self._remote = remote
        self._service = service
        self._login: Login | None = None
        self._connection: asyncssh.SSHClientConnection | None = None
        self._process: asyncssh.SSHClientProcess[bytes] | None = None
        self._complaining: asyncio.Task[bytes] | None = None
        self._sent = False
        self._ended = False

    def start(self, protocol: str) -> None:
        """Begin to run; a connection that was kept and is broken is replaced once."""
        for attempt in (1, 2):
            self._login, self._connection = self._connections.take(self._remote)
            try:
                self._process = self._wait(self._run(self._connection, protocol))
            except RemoteUnavailable:
                self._connections.end(self._connection)
                if attempt == 2:  # noqa: PLR2004 -- the second and last
                    raise
            else:
                break_on_expiry(self.abandon)
                return

    async def _run(self, connection: asyncssh.SSHClientConnection, protocol: str) -> "asyncssh.SSHClientProcess[bytes]":
        # The address allows no character that a shell would read as anything else; the quotes are what hosts expect.
        path = self._login.address.path if self._login else ""
        environment = {"GIT_PROTOCOL": protocol} if protocol else {}
        process = await connection.create_process(
            f"git-{self._service} '{path}'",
            encoding=None,
            env=environment,
        )
        self._complaining = asyncio.ensure_future(_listen(process.stderr))
        return process

    def greeting(self) -> bytes:
        """Return the advertisement.

        Raises:
            NotARepository: the server ended without one.
            PushRejected: the same where we came to push; reading is another matter.
            RemoteUnavailable: the connection broke, which says nothing of what the server would let us do.
        """
        said = self._wait(self._read_greeting())
        if not said:
            self._wait(self._running.wait_closed())
            if self._running.exit_status is None:
                raise RemoteUnavailable(self._remote.address, "the connection broke")
            why = f"{self._remote.address}: {self._complaint()}"
            raise PushRejected({"*": why}) if self._service == "receive-pack" else NotARepository(why)
        return bytes(said)

    async def _read_greeting(self) -> bytes:
        stdout = self._running.stdout
        buffer, at = bytearray(), 0
        while True:
            at, complete = _skip_lines(buffer, at)
            if complete:
                return bytes(buffer)
            data = await stdout.read(_CHUNK)
            if not data:
                return bytes(buffer)
            buffer += data
            if len(buffer) > MAX_BODY:
                raise LimitExceeded(f"the remote's greeting is over {MAX_BODY} bytes")

    def send(self, body: bytes, may_send: MaySend = always) -> None:
        """Send a request, each part of it only if it may still leave."""
        self._sent = True
        self._wait(self._send(body, may_send))

    async def _send(self, body: bytes, may_send: MaySend) -> None:
        for part in parts(self._remote.address, body, may_send):
            self._running.stdin.write(part)
            await self._running.stdin.drain()

    def finish(self) -> None:
        """Say that nothing follows the greeting; the command ends by itself."""
        self.send(_FLUSH)
        self._release()

    def read(self, size: int) -> bytes:
        """Return the next bytes of the answer, none at its end.

        Raises:
            RemoteUnavailable: the answer is cut short.
        """
        if self._ended:
            return b""
        data = self._wait(self._running.stdout.read(min(size, _CHUNK)))
        if not data:
            self._check_end()
            self._ended = True
        return bytes(data)

    def _check_end(self) -> None:
        """Tell an end from a connection that broke: only the former has an exit status."""
        self._wait(self._running.wait_closed())
        status = self._running.exit_status
        # A receive-pack may count refused refs as its failure; what became of them is in its report.
        if status is None or (status != 0 and self._service != "receive-pack"):
            raise RemoteUnavailable(self._remote.address, self._complaint(), outcome_unknown=self._sent)

    def close(self) -> None:
        """Give the connection back when the server has ended the command; otherwise end it."""
        if self._ended:
            self._release()
        else:
            self.abandon()

    def abandon(self) -> None:
        """End the command whatever it does, and its connection: who knows what is wrong with it. Safe to repeat, from any thread."""
        process, self._process = self._process, None
        if process is not None and self._connection is not None:
            self._connections.end(self._connection)

    def _release(self) -> None:
        """Let the next conversation have the connection."""
        process, self._process = self._process, None
        if process is not None and self._login is not None and self._connection is not None:
            self._connections.give_back(self._login, self._connection)

    @property
    def _running(self) -> "asyncssh.SSHClientProcess[bytes]":
        if self._process is None:
            raise RemoteUnavailable(self._remote.address, "the conversation was ended", outcome_unknown=self._sent)
        return self._process

    def _wait(self, work: Any) -> Any:
        try:
            return self._connections.call(work, self._remote.timeout).result()
        except TimeoutError as error:
            raise RemoteUnavailable(self._remote.address, "no answer in time", outcome_unknown=self._sent) from error
        except (asyncssh.Error, OSError) as error:
            raise RemoteUnavailable(self._remote.address, "the connection broke", outcome_unknown=self._sent) from error

    def _complaint(self) -> str:
        if self._complaining is None:
            return "the remote gave no answer"
        said = self._wait(asyncio.wait_for(self._complaining, self._remote.timeout))
        text = "".join(c if c.isprintable() else " " for c in said.decode("utf-8", "replace"))
        return " ".join(text.split())[:300] or "the remote gave no answer"


async def _listen(errors: "asyncssh.SSHReader[bytes]") -> bytes:
    """Read the error channel to its end, lest it fills the window, and keep the beginning."""
    kept = bytearray()
    with suppress(asyncssh.Error, OSError):  # whoever reads the answer meets the same, and reports it
        while data := await errors.read(_CHUNK):
            kept += data[: _COMPLAINT - len(kept)]
    return bytes(kept)


def _skip_lines(buffer: bytearray, at: int) -> tuple[int, bool]:
    """Return the offset behind the whole lines from ``at`` on, and whether the last was the flush that ends them."""
    while len(buffer) - at >= len(_FLUSH):
        try:
            size = int(buffer[at : at + 4], 16)
        except ValueError as error:
            raise NotARepository("the server does not speak Git's protocol") from error
        if size == 0:
            return at + 4, True
        if at + size > len(buffer):
            break
        at += max(size, 4)
    return at, False


def _nothing() -> None:
    """Nothing is left to close."""
