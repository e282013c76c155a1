"""Answers as bytes: headers composed once, large lists sent in chunks, gzip where it pays.

Source: ``kube-api.md`` 1.8 and 6.4.
"""

import asyncio
import contextlib
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from typing import Any

import orjson
import yaml
from starlette.types import Receive, Scope, Send

from apiserver.machinery.negotiate import Form
from apiserver.machinery.request import header

CHUNK = 256 * 1024
"""Bytes of one body message of a large answer; other requests run in between."""
WHOLE = 1024 * 1024
"""Bytes up to which an answer is sent as one message with its Content-Length."""
GZIP_ABOVE = 128 * 1024
"""Bytes from which an answer is compressed for clients that offer it."""
SEND_SECONDS = 60.0
"""Seconds a client may leave one chunk unread before its connection is given up."""
_IN_THREAD = 256 * 1024
"""Bytes from which re-formatting an answer leaves the event loop."""
_GZIP_WINDOW = 31
"""zlib's code for the gzip container with the full window."""

JSON_TYPE = b"application/json"
YAML_TYPE = b"application/yaml"
Headers = Sequence[tuple[bytes, bytes]]


class Reply:
    """An ASGI application that sends one answer; ``parts`` are joined or streamed by their size."""

    __slots__ = ("_headers", "_media_type", "_parts", "_status")

    def __init__(
        self, parts: Sequence[bytes], *, status: int = 200, media_type: bytes = JSON_TYPE, headers: Headers = ()
    ) -> None:
        self._parts = parts
        self._status = status
        self._media_type = media_type
        self._headers = headers

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        size = sum(map(len, self._parts))
        headers = [(b"content-type", self._media_type), *self._headers]
        compress = size > GZIP_ABOVE and _accepts_gzip(scope)
        if size > GZIP_ABOVE:
            headers.append((b"vary", b"Accept-Encoding"))
        if compress:
            headers.append((b"content-encoding", b"gzip"))
        elif size <= WHOLE:
            headers.append((b"content-length", str(size).encode()))
        await send({"type": "http.response.start", "status": self._status, "headers": headers})
        if scope["method"] == "HEAD":
            await send({"type": "http.response.body", "body": b""})
        elif compress:
            await _send_all(_compressed(self._parts), send)
        elif size <= WHOLE:
            await send({"type": "http.response.body", "body": b"".join(self._parts)})
        else:
            await _send_all(_plain(self._parts), send)


class StreamedReply:
    """An ASGI application that sends an answer while it is being made; ``first`` is made, ``rest`` is not."""

    __slots__ = ("_first", "_rest")

    def __init__(self, first: Sequence[bytes], rest: AsyncGenerator[bytes, None]) -> None:
        self._first = first
        self._rest = rest

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        headers = [(b"content-type", JSON_TYPE), (b"vary", b"Accept-Encoding")]
        compress = _accepts_gzip(scope)
        if compress:
            headers.append((b"content-encoding", b"gzip"))
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        async with contextlib.aclosing(self._rest):
            if scope["method"] == "HEAD":
                await send({"type": "http.response.body", "body": b""})
                return
            pieces = _gathered(self._first, self._rest)
            await _send_all(_packed(pieces) if compress else pieces, send)


async def streamed(parts: AsyncGenerator[bytes, None]) -> Reply | StreamedReply:
    """Return the answer for a JSON document that is made piece by piece; a small one is sent whole."""
    first: list[bytes] = []
    size = 0
    async for part in parts:
        first.append(part)
        size += len(part)
        if size > GZIP_ABOVE:
            return StreamedReply(first, parts)
    return Reply(first)


async def formatted(parts: Sequence[bytes], form: Form, *, status: int = 200, headers: Headers = ()) -> Reply:
    """Return the answer for a JSON document given in pieces, in the format agreed on."""
    if not form.yaml and not form.pretty:
        return Reply([*parts, b"\n"], status=status, headers=headers)
    document = b"".join(parts)
    large = len(document) > _IN_THREAD
    shown = await asyncio.to_thread(_reformat, document, form) if large else _reformat(document, form)
    return Reply([shown], status=status, media_type=YAML_TYPE if form.yaml else JSON_TYPE, headers=headers)


def plain(text: str, *, status: int) -> Reply:
    """Return an answer of plain text."""
    nosniff = (b"x-content-type-options", b"nosniff")
    return Reply([text.encode()], status=status, media_type=b"text/plain; charset=utf-8", headers=[nosniff])


def chunks(parts: Iterable[bytes], size: int = CHUNK) -> Iterable[bytes]:
    """Join ``parts`` into pieces of about ``size`` bytes."""
    pending: list[bytes] = []
    length = 0
    for part in parts:
        pending.append(part)
        length += len(part)
        if length >= size:
            yield b"".join(pending)
            pending.clear()
            length = 0
    if pending:
        yield b"".join(pending)


def _reformat(document: bytes, form: Form) -> bytes:
    decoded: Any = orjson.loads(document)
    if form.yaml:
        shown = yaml.dump(decoded, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True, width=2**31 - 1)
        return str(shown).encode()
    return orjson.dumps(decoded, option=orjson.OPT_INDENT_2) + b"\n"


def _accepts_gzip(scope: Scope) -> bool:
    for clause in header(scope, b"accept-encoding").split(","):
        coding, _, quality = clause.partition(";")
        if coding.strip().lower() == "gzip":
            return quality.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


async def _plain(parts: Sequence[bytes]) -> AsyncIterator[bytes]:
    for piece in chunks(parts):
        yield piece
        await asyncio.sleep(0)


async def _gathered(first: Sequence[bytes], rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Join pieces as they come to some of about ``CHUNK`` bytes."""
    pending, length = list(first), sum(map(len, first))
    async for part in rest:
        if length >= CHUNK:
            yield b"".join(pending)
            pending, length = [], 0
        pending.append(part)
        length += len(part)
    yield b"".join(pending)


def _compressed(parts: Sequence[bytes]) -> AsyncIterator[bytes]:
    return _packed(_plain(parts))


async def _packed(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    packer = zlib.compressobj(level=1, wbits=_GZIP_WINDOW)
    async for piece in pieces:
        if packed := await asyncio.to_thread(packer.compress, piece):
            yield packed
    yield packer.flush()


async def _send_all(pieces: AsyncIterator[bytes], send: Send) -> None:
    async for piece in pieces:
        async with asyncio.timeout(SEND_SECONDS):
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
