"""Requests and streams over HTTP to one server, with deadlines and bounds; knows nothing of objects.

One aiohttp session: no redirects are followed, no cookies kept, nothing is compressed, and certificates are verified. That
the session of kubernetes-asyncio is not used has a price as its reason: it looks for a proxy and for a netrc file in
threads at each request.
"""

import socket
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import aiohttp
import structlog
from aiohttp.abc import AbstractStreamWriter
from yarl import URL

from krm.client.errors import TooLong, Unanswered, Unreachable, WriteRefused, error_of
from krm.client.kubeconfig import Access, BadKubeconfig, read_access
from krm.client.resources import SHORT_SECONDS
from krm.client.warnings import hear
from krm.version import porch_version

CONNECT_SECONDS: Final = 10.0
KEEP_SECONDS: Final = 50.0
"""An idle connection is kept so long: less than load balancers (60 s) and servers (90 s and more) keep theirs, or the next
request could meet a closed one."""
RESPONSE_BYTES: Final = 64 << 20
"""The largest answer that is read."""
LINE_BYTES: Final = 16 << 20
"""The longest line of a stream that is read."""
ERROR_BYTES: Final = 1 << 20
"""The largest answer to a stream's request that is read when it is not the stream."""
READ_BUFFER: Final = 1 << 19

JSON: Final = "application/json"

_PROBE_OPTIONS: Final = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))
"""Seconds of silence until a peer is probed, between probes, and how many must fail: a dead one is noticed in a minute."""

log = structlog.get_logger(__name__)

Observer = Callable[[str, str, int], None]
"""Is told of each answer: method, path and code; 0 where there was none."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer as it is, and who gave it."""

    code: int
    headers: Mapping[str, str]
    body: bytes
    certificate: bytes | None
    """The server's, in DER form; None over plain HTTP, or through a proxy."""


class Connection:
    """Kept connections to the server of ``access``; made by :func:`open_connection`."""

    def __init__(
        self,
        access: Access,
        session: aiohttp.ClientSession,
        observe: Observer | None,
        *,
        metadata_only: bool = False,
    ) -> None:
        self._access = access
        self._session = session
        self._observe = observe
        self._metadata_only = metadata_only

    def of_metadata(self) -> "Connection":
        """Return these connections for one who wants the metadata of objects alone, where the server knows how."""
        return Connection(self._access, self._session, self._observe, metadata_only=True)

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        seconds: float = SHORT_SECONDS,
        may_send: Callable[[], bool] | None = None,
    ) -> bytes:
        """Send one request and return the body of an answer that says it succeeded.

        What could not be sent, or was refused for lack of credentials, is tried once more if the configuration was read again
        for that. When cancelled, the outcome of what was sent is unknown. ``may_send`` is asked in the
        moment in which a body leaves.

        Raises:
            StatusError: The server's answer, by code and reason.
            Unanswered: No usable answer within ``seconds``; it may be done.
            Unreachable: It was not sent.
            WriteRefused: It was not sent, since ``may_send`` said no.

        """
        end = time.monotonic() + seconds

        async def exchange(within: float) -> tuple[int, bytes]:
            sent = body if body is None or may_send is None else _GuardedBody(body, may_send)
            return await self._exchange(method, path, query, sent, content_type, within)

        try:
            code, answer = await exchange(seconds)
        except Unreachable:
            if not await self._refreshed():
                raise
            code, answer = await exchange(max(1.0, end - time.monotonic()))
        if code == HTTPStatus.UNAUTHORIZED and await self._refreshed():
            code, answer = await exchange(max(1.0, end - time.monotonic()))
        if code >= HTTPStatus.MULTIPLE_CHOICES:
            raise error_of(code, answer)
        return answer

    async def probe(
        self, path: str, *, query: Mapping[str, str] | None = None, seconds: float = SHORT_SECONDS
    ) -> Answer:
        """Ask once, and return what is answered, whatever it says.

        Raises:
            Unanswered: No answer within ``seconds``.
            Unreachable: No connection could be made.

        """
        async with self._send("GET", path, query, None, {"Accept": "*/*"}, seconds) as response:
            transport = response.connection.transport if response.connection is not None else None
            tls = transport.get_extra_info("ssl_object") if transport is not None else None
            certificate = tls.getpeercert(binary_form=True) if tls is not None else None
            body = await _bounded(response, RESPONSE_BYTES)
            return Answer(response.status, dict(response.headers), body, certificate)

    async def _exchange(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        body: "bytes | _GuardedBody | None",
        content_type: str,
        seconds: float,
    ) -> tuple[int, bytes]:
        headers = {"Content-Type": content_type} if body is not None else self._accepted("PartialObjectMetadataList")
        async with self._send(method, path, query, body, headers, seconds) as response:
            hear(response.headers.getall("Warning", ()))
            return response.status, await _bounded(response, RESPONSE_BYTES)

    def _accepted(self, kind: str) -> dict[str, str]:
        return {"Accept": f"{JSON};as={kind};g=meta.k8s.io;v=v1, {JSON}"} if self._metadata_only else {}

    async def _refreshed(self) -> bool:
        try:
            return await self._access.refresh()
        except BadKubeconfig as error:
            log.warning("credentials cannot be read again", error=str(error))
            return False

    async def lines(self, path: str, *, query: Mapping[str, str], seconds: float) -> AsyncGenerator[list[bytes]]:
        """Stream the lines of an answer as they arrive, those of one read together; end when the server ends it.

        Raises:
            StatusError: The server's answer instead of the stream.
            Unanswered: ``seconds`` are over, or the connection broke.
            TooLong: A line is longer than 16 MiB.
            Unreachable: No connection could be made.

        """
        headers = self._accepted("PartialObjectMetadata")
        async with self._send("GET", path, query, None, headers, seconds) as response:
            if response.status == HTTPStatus.UNAUTHORIZED:
                await self._refreshed()  # for the next try, which is the caller's
            if response.status != HTTPStatus.OK:
                raise error_of(response.status, await _bounded(response, ERROR_BYTES))
            async with aclosing(_split(response.content.iter_any())) as batches:
                async for batch in batches:
                    yield batch

    @asynccontextmanager
    async def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        body: "bytes | _GuardedBody | None",
        headers: dict[str, str],
        seconds: float,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        code = 0
        try:
            if authorization := await self._access.authorization():
                headers["Authorization"] = authorization
            async with self._session.request(
                method,
                URL(f"{self._access.url}{path}{_query(query)}", encoded=True),
                data=body,
                headers=headers,
                allow_redirects=False,
                proxy=self._access.proxy,
                server_hostname=self._access.server_name,
                timeout=aiohttp.ClientTimeout(total=seconds, connect=CONNECT_SECONDS),
            ) as response:
                code = response.status
                try:
                    yield response
                finally:
                    _break_off(response)
        except BadKubeconfig as error:
            raise Unreachable(f"{method} {path}: {error}") from error
        except aiohttp.ConnectionTimeoutError as error:
            raise Unreachable(f"{method} {path}: no connection within {CONNECT_SECONDS:g} s") from error
        except aiohttp.ClientConnectorError as error:
            raise Unreachable(f"{method} {path}: {error}") from error
        except TimeoutError as error:
            raise Unanswered(f"{method} {path}: no answer within {seconds:g} s") from error
        except aiohttp.ClientError as error:
            if isinstance(body, _GuardedBody) and body.was_refused:
                raise WriteRefused(f"{method} {path}: the lease ran out while it was being sent") from error
            raise Unanswered(f"{method} {path}: {_words(error)}") from error
        finally:
            if self._observe is not None:
                self._observe(method, path, code)


class _GuardedBody(aiohttp.BytesPayload):
    """A body that is written only while ``may_send`` says yes.

    A request that was begun waits for credentials, a connection and its turn in the event loop, and the process may be stopped
    meanwhile: so the question is asked where nothing is waited for any more. The headers go together with the body.
    """

    def __init__(self, content: bytes, may_send: Callable[[], bool]) -> None:
        super().__init__(content)
        self._may_send = may_send
        self.was_refused = False

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        """Write the body, or fail, which closes the connection."""
        if not self._may_send():
            self.was_refused = True
            raise WriteRefused
        await super().write_with_length(writer, content_length)


@asynccontextmanager
async def open_connection(
    kubeconfig: Path | None, *, agent: str, observe: Observer | None = None
) -> AsyncIterator[Connection]:
    """Open the connection that a kubeconfig describes, or without one that of the pod we run in; close it at the end.

    Raises:
        BadKubeconfig: The configuration cannot be used. That the server can be reached is not tried.

    """
    access = await read_access(kubeconfig)
    connector = aiohttp.TCPConnector(
        ssl=access.tls, limit=0, keepalive_timeout=KEEP_SECONDS, socket_factory=_probing_socket
    )
    async with aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"User-Agent": f"{agent}/{porch_version()}", "Accept": JSON, "Accept-Encoding": "identity"},
        read_bufsize=READ_BUFFER,
        auto_decompress=False,
        middlewares=(_no_second_write,),
    ) as session:
        yield Connection(access, session, observe)


def _query(query: Mapping[str, str] | None) -> str:
    return f"?{urlencode(query)}" if query else ""


def _break_off(response: aiohttp.ClientResponse) -> None:
    """Close the connection of an answer that is not read to its end; closing in order would wait for the server."""
    if response.connection is not None and response.connection.transport is not None:
        response.connection.transport.abort()


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__


def _probing_socket(address: Any) -> socket.socket:
    """Return a socket that finds out when the other machine is gone: a watch may wait for minutes without sending."""
    family, kind, protocol, _, _ = address
    probing = socket.socket(family, kind, protocol)
    probing.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _PROBE_OPTIONS:
        if option := getattr(socket, name, None):
            probing.setsockopt(socket.IPPROTO_TCP, option, value)
    return probing


async def _no_second_write(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Keep aiohttp from sending PUT and DELETE again when a kept connection breaks: the first may have been done."""
    try:
        return await send(request)
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError):
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        if request.method == "GET":
            raise
        raise Unanswered(f"{request.method} {request.url.path}: {_words(error)}") from error


async def _bounded(response: aiohttp.ClientResponse, limit: int) -> bytes:
    if response.content_length is not None and response.content_length <= limit:
        return await response.read()
    chunks, size = [], 0
    async for chunk in response.content.iter_any():
        size += len(chunk)
        if size > limit:
            raise TooLong(f"{response.method} {response.url.path}: an answer of more than {limit >> 20} MiB")
        chunks.append(chunk)
    return b"".join(chunks)


async def _split(chunks: AsyncIterator[bytes]) -> AsyncGenerator[list[bytes]]:
    """Cut a stream into lines; what follows the last newline is dropped, being half a line."""
    held: list[bytes] = []
    size = 0
    async for chunk in chunks:
        first, *others = chunk.split(b"\n")
        size += len(first)
        if size > LINE_BYTES:
            raise TooLong(f"a line of more than {LINE_BYTES >> 20} MiB")
        held.append(first)
        if others:
            lines = [b"".join(held), *others[:-1]]
            held, size = [others[-1]], len(others[-1])
            yield [line for line in lines if line]
