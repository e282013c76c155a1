"""TLS, client certificates and limits of the network side, over real sockets on loopback."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from apiserver import http_protocol, serving
from apiserver.auth.authenticate import CertificateAuthenticator
from apiserver.auth.certificates import Files, ensure_certificates, issue_client, issue_serving, load_authority
from apiserver.machinery.stopping import Stopping
from apiserver.settings import Settings

pytestmark = pytest.mark.asyncio(loop_scope="module")

authenticator = CertificateAuthenticator()


async def whoami(request: Request) -> Response:
    user = await authenticator.authenticate(request.scope)
    headers = {name: request.headers.getlist(name) for name in request.headers}
    body = await request.body()
    return JSONResponse({"user": user and [user.name, *user.groups], "headers": headers, "body": len(body)})


@asynccontextmanager
async def lifespan(_: Starlette) -> AsyncIterator[None]:
    yield


class Running:
    """A server in this event loop, and raw access to it."""

    def __init__(self, port: int, files: Files) -> None:
        self.port = port
        self.files = files

    def context(self, pair: tuple[bytes, bytes] | None = None, folder: Path | None = None) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.files.ca))
        if pair is not None and folder is not None:
            (folder / "client.pem").write_bytes(b"".join(pair))
            context.load_cert_chain(folder / "client.pem")
        return context

    async def connect(self, context: ssl.SSLContext) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port, ssl=context, server_hostname="localhost")

    async def exchange(self, request: bytes, context: ssl.SSLContext | None = None) -> tuple[int, bytes]:
        reader, writer = await self.connect(context or self.context())
        writer.write(request)
        await writer.drain()
        answer = await asyncio.wait_for(reader.read(), 60)
        writer.close()
        if not answer:
            raise ConnectionResetError("hung up without an answer")
        head, _, body = answer.partition(b"\r\n\r\n")
        return int(head.split()[1]), body


def get(*headers: str, target: str = "/whoami") -> bytes:
    lines = [f"GET {target} HTTP/1.1", "host: localhost", "connection: close", *headers, "", ""]
    return "\r\n".join(lines).encode()


@asynccontextmanager
async def running(data: Path, **settings: Any) -> AsyncIterator[Running]:
    app = Starlette(routes=[Route("/whoami", whoami, methods=["GET", "POST"])], lifespan=lifespan)
    shutdown = Stopping()
    started: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    task: asyncio.Future[Any] = asyncio.create_task(
        serving.serve(
            app,
            Settings(data=data, port=0, **settings),
            shutdown,
            announce=lambda port, files: started.set_result(Running(port, files)),
        )
    )
    await asyncio.wait([task, started], return_when=asyncio.FIRST_COMPLETED, timeout=60)
    try:
        yield started.result()
    finally:
        shutdown.set()
        await asyncio.wait_for(task, 60)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    async with running(tmp_path_factory.mktemp("porch") / "data") as server:
        yield server


async def test_a_certificate_of_our_ca_is_its_user(server: Running, tmp_path: Path) -> None:
    pair = issue_client(load_authority(server.files), "alice", ["team-a"])

    status, body = await server.exchange(get(), server.context(pair, tmp_path))

    assert status == 200
    assert json.loads(body)["user"] == ["alice", "team-a", "system:authenticated"]


async def test_no_certificate_is_welcome_and_nobody(server: Running) -> None:
    status, body = await server.exchange(get("x-remote-user: admin"))

    assert status == 200
    assert json.loads(body)["user"] is None


async def test_every_request_of_a_connection_has_its_user(server: Running, tmp_path: Path) -> None:
    pair = issue_client(load_authority(server.files), "alice")
    reader, writer = await server.connect(server.context(pair, tmp_path))

    users = []
    for _ in range(3):
        writer.write(b"GET /whoami HTTP/1.1\r\nhost: x\r\n\r\n")
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(int(line.split(b":")[1]) for line in head.splitlines() if line.startswith(b"content-length"))
        users.append(json.loads(await reader.readexactly(length))["user"][0])
    writer.close()

    assert users == ["alice"] * 3


@pytest.mark.parametrize(("version", "is_resumed"), [(ssl.TLSVersion.TLSv1_2, True), (ssl.TLSVersion.TLSv1_3, False)])
async def test_a_client_that_comes_back_is_who_it_was(
    server: Running, tmp_path: Path, version: ssl.TLSVersion, is_resumed: bool
) -> None:
    """A session that is taken up again has its certificate; there are tickets for none (ADR 0011)."""
    pair = issue_client(load_authority(server.files), "alice")
    context = server.context(pair, tmp_path)
    context.minimum_version = context.maximum_version = version

    first, again = await asyncio.to_thread(_two_requests, server.port, context)

    assert not first[0]
    assert again[0] is is_resumed
    assert json.loads(again[1])["user"][0] == "alice"


def _two_requests(port: int, context: ssl.SSLContext) -> list[tuple[bool | None, bytes]]:
    import socket

    answers: list[tuple[bool | None, bytes]] = []
    session = None
    for _ in range(2):
        with (
            socket.create_connection(("127.0.0.1", port), timeout=60) as plain,
            context.wrap_socket(plain, server_hostname="localhost", session=session) as connection,
        ):
            connection.sendall(get())
            answer = b""
            while piece := connection.recv(65536):
                answer += piece
            session = connection.session
            answers.append((connection.session_reused, answer.partition(b"\r\n\r\n")[2]))
    return answers


async def test_a_certificate_of_another_ca_fails_the_handshake(server: Running, tmp_path: Path) -> None:
    """Even one whose CA has the same name as ours; the application never sees it."""
    other = load_authority(ensure_certificates(tmp_path / "other", 1))

    with pytest.raises((ssl.SSLError, ConnectionError)):
        await server.exchange(get(), server.context(issue_client(other, "admin", ["system:masters"]), tmp_path))


async def test_a_serving_certificate_is_no_identity(server: Running, tmp_path: Path) -> None:
    """Its extended key usage does not allow it, although our CA signed it."""
    pair = issue_serving(load_authority(server.files), ["localhost"])

    with pytest.raises((ssl.SSLError, ConnectionError)):
        await server.exchange(get(), server.context(pair, tmp_path))


async def test_tls_below_1_2_is_refused(server: Running) -> None:
    context = server.context()
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context.minimum_version = ssl.TLSVersion.TLSv1_1
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context.maximum_version = ssl.TLSVersion.TLSv1_1

    with pytest.raises((ssl.SSLError, ConnectionError)):
        await server.connect(context)


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        pytest.param(get("x: " + "a" * 60_000), 200, id="60-KB-field-served"),
        pytest.param(get("x: " + "a" * 66_000), 431, id="66-KB-field"),
        pytest.param(get("x: " + "a" * 3_000_000), 431, id="3-MB-field"),
        pytest.param(get(*[f"x-{n}: " + "a" * 1000 for n in range(70)]), 431, id="70-fields-of-1-KB"),
        pytest.param(get(*[f"x-{n}: y" for n in range(1000)]), 200, id="1000-fields-served"),
        pytest.param(get(*[f"x-{n}: y" for n in range(1025)]), 431, id="1025-fields"),
        pytest.param(get(target="/whoami?" + "q" * 66_000), 431, id="66-KB-target"),
        pytest.param(b"NONSENSE\r\n\r\n", 400, id="not-http"),
    ],
)
async def test_heads_are_bounded(server: Running, request_: bytes, status: int) -> None:
    answered, _ = await server.exchange(request_)

    assert answered == status


async def test_an_endless_field_is_cut_off_while_it_arrives(server: Running) -> None:
    """The parser hands out a field when it is complete and buffers it until then."""
    reader, writer = await server.connect(server.context())
    writer.write(b"GET /whoami HTTP/1.1\r\nx: ")

    sent = 0
    try:
        while not reader.at_eof() and sent < 50_000_000:
            writer.write(b"a" * 16_384)
            await writer.drain()
            sent += 16_384
            await asyncio.sleep(0)
    except ConnectionError:
        pass

    assert sent < 5_000_000
    writer.transport.abort()


async def test_a_trailer_cannot_add_a_header(server: Running) -> None:
    body = b"4\r\nbody\r\n0\r\nx-remote-user: admin\r\n\r\n"
    head = b"POST /whoami HTTP/1.1\r\nhost: x\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n"

    status, answer = await server.exchange(head + body)

    assert status == 200
    assert json.loads(answer)["body"] == 4
    assert "x-remote-user" not in json.loads(answer)["headers"]


async def test_a_large_body_is_not_taken_for_a_head(server: Running) -> None:
    head = b"POST /whoami HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 1000000\r\n\r\n"

    status, answer = await server.exchange(head + b"a" * 1_000_000)

    assert (status, json.loads(answer)["body"]) == (200, 1_000_000)


@contextmanager
def head_timeout(seconds: float, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setattr(http_protocol, "HEAD_TIMEOUT", seconds)
        yield


@pytest.mark.parametrize("sent", [b"", b"GET /who", b"GET /whoami HTTP/1.1\r\nhost: x\r\n"])
async def test_a_head_that_does_not_come_is_not_waited_for(
    server: Running, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    with head_timeout(0.2, monkeypatch):
        reader, writer = await server.connect(server.context())
        writer.write(sent)

        answer = await asyncio.wait_for(reader.read(), 60)

        assert answer == b""
        writer.close()


async def test_a_connection_that_answers_is_not_closed_by_the_head_timer(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    with head_timeout(1.5, monkeypatch):
        reader, writer = await server.connect(server.context())
        for _ in range(2):
            writer.write(b"GET /whoami HTTP/1.1\r\nhost: x\r\n\r\n")
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)
            length = next(int(line.split(b":")[1]) for line in head.splitlines() if line.startswith(b"content-length"))
            await reader.readexactly(length)
            await asyncio.sleep(2)

        assert head.startswith(b"HTTP/1.1 200")
        writer.close()


async def test_an_old_connection_is_closed_with_its_next_answer(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_protocol, "CONNECTION_SECONDS", 0.0)
    reader, writer = await server.connect(server.context())
    writer.write(b"GET /whoami HTTP/1.1\r\nhost: x\r\n\r\n")

    answer = await asyncio.wait_for(reader.read(), 60)  # until the server closes

    assert answer.startswith(b"HTTP/1.1 200")
    assert b"\r\nconnection: close\r\n" in answer
    writer.close()


async def test_a_taken_port_is_refused_with_what_to_do(server: Running, tmp_path: Path) -> None:
    shutdown = Stopping()
    settings = Settings(data=tmp_path / "second", port=server.port)

    with pytest.raises(serving.CannotListen, match=f"port {server.port}.*--port"):
        await serving.serve(Starlette(), settings, shutdown)

    assert not (tmp_path / "second").exists()


async def test_an_application_that_cannot_start_says_why(tmp_path: Path) -> None:
    """uvicorn would log a traceback and exit; the caller wants to name the cause."""

    class NoDisk(Exception):
        pass

    @asynccontextmanager
    async def failing(_: Starlette) -> AsyncIterator[None]:
        raise NoDisk
        yield

    with pytest.raises(NoDisk):
        await serving.serve(Starlette(lifespan=failing), Settings(data=tmp_path, port=0), Stopping())
