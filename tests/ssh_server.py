"""An SSH server for tests that runs ``git-upload-pack`` and ``git-receive-pack``, with its own keys and known_hosts lines.

It runs in an event loop in a thread of its own. Used as ``with ssh_server(root) as server: ...``; repositories lie at ``root/<path>``.
"""

import asyncio
import os
import shlex
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncssh

STOP_SECONDS = 60.0
"""A moment, on a machine that has time."""


@dataclass
class SshFaults:
    """What goes wrong with every command from now on."""

    hang: bool = False
    """Take commands and never answer."""
    garbage: bytes = b""
    """Say this instead of running git."""
    cut_after: int = 0
    """Send this many bytes of the answer, then close the connection."""
    read_only: bool = False
    """Refuse to receive packs, as a host does for a key that may only read."""


@dataclass
class SshServer:
    """A running server."""

    root: Path
    port: int = 0
    key: bytes = b""
    """The private key that may log in, as ``git``."""
    host_key: asyncssh.SSHKey | None = None
    allowed: list[asyncssh.SSHKey] = field(default_factory=list)
    faults: SshFaults = field(default_factory=SshFaults)
    logins: int = 0
    commands: list[str] = field(default_factory=list)
    protocols: list[str] = field(default_factory=list)
    accepts_protocol: bool = True
    """Whether the server takes GIT_PROTOCOL from clients; many do not."""
    connections: list[asyncssh.SSHServerConnection] = field(default_factory=list)
    loop: asyncio.AbstractEventLoop | None = None

    @property
    def known_hosts(self) -> bytes:
        """The line that vouches for the server."""
        assert self.host_key is not None
        return f"[127.0.0.1]:{self.port} {self.host_key.export_public_key().decode()}".encode()

    def url(self, path: str) -> str:
        """Return the address of a repository below the root."""
        return f"ssh://git@127.0.0.1:{self.port}{self.root / path}"

    def drop_connections(self) -> None:
        """Close every connection, as a server that is restarted does."""
        assert self.loop is not None
        asyncio.run_coroutine_threadsafe(_drop(self), self.loop).result(STOP_SECONDS)

    def new_key(self) -> bytes:
        """Let another key in, and only that."""
        key = asyncssh.generate_private_key("ssh-ed25519")
        self.allowed[:] = [key.convert_to_public()]
        return key.export_private_key()


@contextmanager
def ssh_server(root: Path) -> Iterator[SshServer]:
    """Serve the repositories below ``root`` on a free port of the loopback until the block ends."""
    server = SshServer(root, host_key=asyncssh.generate_private_key("ssh-ed25519"))
    server.key = server.new_key()
    server.loop = loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    acceptor = asyncio.run_coroutine_threadsafe(_listen(server), loop).result(STOP_SECONDS)
    server.port = acceptor.get_port()
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(_stop(server, acceptor), loop).result(STOP_SECONDS)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(STOP_SECONDS)
        loop.close()


async def _listen(server: SshServer) -> asyncssh.SSHAcceptor:
    class Connection(asyncssh.SSHServer):
        def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
            server.connections.append(conn)

        def begin_auth(self, username: str) -> bool:
            return True

        def public_key_auth_supported(self) -> bool:
            return True

        def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
            allowed = username == "git" and key in server.allowed
            server.logins += allowed
            return allowed

    return await asyncssh.listen(
        "127.0.0.1",
        0,
        server_factory=Connection,
        server_host_keys=[server.host_key],
        process_factory=lambda process: _serve(server, process),
        encoding=None,
        config=None,
        gss_host=None,
    )


async def _stop(server: SshServer, acceptor: asyncssh.SSHAcceptor) -> None:
    # What was just accepted is not a connection yet, and asyncio forgets its socket when nobody listens any more.
    while accepting := [task for task in asyncio.all_tasks() if _is_accepting(task)]:
        await asyncio.gather(*accepting, return_exceptions=True)
    acceptor.close()
    await acceptor.wait_closed()
    await _drop(server)
    while others := [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]:
        for task in others:
            if task.get_name() != LAST_WORDS:
                task.cancel()
        await asyncio.gather(*others, return_exceptions=True)


def _is_accepting(task: "asyncio.Task[Any]") -> bool:
    """Tell whether the event loop makes a connection of an accepted socket with the task."""
    return getattr(task.get_coro(), "__name__", "") == "_accept_connection2"


async def _drop(server: SshServer) -> None:
    while server.connections:
        connection = server.connections.pop()
        connection.abort()
        await connection.wait_closed()


async def _serve(server: SshServer, process: "asyncssh.SSHServerProcess[bytes]") -> None:
    command, faults = process.command or "", server.faults
    server.commands.append(command)
    protocol = process.env.get("GIT_PROTOCOL", "") if server.accepts_protocol else ""
    server.protocols.append(protocol)
    if faults.hang:
        await asyncio.sleep(3600)
    if faults.garbage:
        process.stdout.write(faults.garbage)
        process.exit(0)
        return
    argv = shlex.split(command)
    if len(argv) != 2 or argv[0] not in ("git-upload-pack", "git-receive-pack"):
        process.stderr.write(b"no such command\n")
        process.exit(127)
        return
    if faults.read_only and argv[0] == "git-receive-pack":
        process.stderr.write(b"ERROR: this key may only read\n")
        process.exit(1)
        return
    await _run(process, argv, protocol, faults)


async def _run(process: Any, argv: list[str], protocol: str, faults: SshFaults) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_PROTOCOL": protocol}
    pipe = asyncio.subprocess.PIPE
    git = await asyncio.create_subprocess_exec(
        "git", argv[0].removeprefix("git-"), argv[1], stdin=pipe, stdout=pipe, stderr=pipe, env=environment
    )
    assert git.stdin is not None
    assert git.stdout is not None
    taking = asyncio.create_task(_pass_on(process.stdin, git.stdin))
    try:
        await _answer(process, git.stdout, faults)
    finally:
        taking.cancel()
        await asyncio.gather(taking, return_exceptions=True)
        git.stdin.close()
        if git.returncode is None and faults.cut_after:
            git.kill()
        complaint = await asyncio.shield(asyncio.create_task(_last_words(git), name=LAST_WORDS))
    process.stderr.write(complaint)
    process.exit(git.returncode or 0)


LAST_WORDS = "last words"
"""The name of tasks that a stop waits for instead of ending them."""


async def _last_words(git: asyncio.subprocess.Process) -> bytes:
    """Wait for the end of git, also when nobody waits for its answer any more."""
    _, complaint = await git.communicate()
    return complaint


async def _answer(process: Any, source: asyncio.StreamReader, faults: SshFaults) -> None:
    sent = 0
    while data := await source.read(1 << 15):
        if faults.cut_after and sent + len(data) > faults.cut_after:
            process.stdout.write(data[: faults.cut_after - sent])
            await process.stdout.drain()
            process.channel.get_connection().abort()
            return
        sent += len(data)
        process.stdout.write(data)
        await process.stdout.drain()


async def _pass_on(source: Any, sink: asyncio.StreamWriter) -> None:
    while data := await source.read(1 << 15):
        sink.write(data)
        await sink.drain()
    sink.close()
