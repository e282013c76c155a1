"""uvicorn's HTTP/1.1 protocol, with what a server on a network needs besides: the peer's certificate and limits.

The certificate is put where the ASGI TLS extension puts it (``scope["extensions"]["tls"]``), and only if the
server has not put it there itself: a uvicorn that learns the extension simply takes over. The limits bound what
one client may cost before the application is asked: the size of a request's head, the number of its
fields, the time it takes to arrive; and after it was: how long it may leave an answer unread. A connection that has become
old is closed with the answer to its next request. Source: ``kube-api.md`` 3.4, ``libraries.md`` 1.4, ``users.md`` 7.3 (14).
"""

import asyncio
import random
import ssl
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from apiserver.machinery.watch import WRITABLE

MAX_HEAD = 64 * 1024
"""Bytes of request line and header fields; kubectl sends under 1 KiB."""
MAX_FIELDS = 1024
"""Header fields of one request; an aggregator sends one per group of the user, and directories put people into hundreds."""
HEAD_TIMEOUT = 32.0
"""Seconds from connecting, or from a request's first byte, to its complete head; kube-apiserver's figure."""
UNREAD_SECONDS = 75.0
"""Seconds a peer may leave what was written unread; longer than the application itself waits for one piece."""
UNREAD_CHECK_SECONDS = 15.0
"""Seconds between two looks at such a peer."""
CONNECTION_SECONDS = 3600.0
"""A connection that is older takes no further request, so that a certificate that was replaced is not in use for ever."""
SPREAD = 0.1
"""Share of that by which connections differ, or all that were made after a restart would end together."""
MAX_BETWEEN = 8
"""Certificates between a client's and its CA that are looked at."""
_DER = 2
"""What ``ssl`` calls the encoding of certificates as bytes."""
FIELD_OVERHEAD = 4
"""Bytes a field has on the wire beside its name and value: colon, space, line end."""

_VERSIONS = ("1.1", "1.0")
_REFUSAL = b"request header fields too large"


class HeadTooLarge(Exception):
    """A request line with its header fields exceeds the limits."""


class UnknownVersion(Exception):
    """A request of HTTP/0.9, which has no answers with a head, or of one that is not known."""


class BoundedProtocol(HttpToolsProtocol):
    """One connection: knows its client certificate, refuses endless heads, closes when none arrives."""

    _tls: dict[str, Any] | None = None
    _last_request_at = 0.0
    _head_open = True
    _head_size = 0
    _unparsed = 0
    _too_large = False
    _head_timer: asyncio.TimerHandle | None = None
    _unread_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn types it
        """Read the peer's certificate once; every request of the connection shares it."""
        super().connection_made(transport)
        connection = transport.get_extra_info("ssl_object")
        self._tls = None if connection is None else _tls_extension(connection)
        age = CONNECTION_SECONDS * random.uniform(1 - SPREAD, 1)  # noqa: S311 - spreads load, keeps no secret
        self._last_request_at = self.loop.time() + age
        self._start_head_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Drop the timer with the connection."""
        self._stop_head_timer()
        self._stop_unread_timer()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Note that the peer reads too slowly for what was written so far."""
        super().pause_writing()
        self._stop_unread_timer()
        self._look_at_peer_until(self.loop.time() + UNREAD_SECONDS)

    def resume_writing(self) -> None:
        """Note that it has caught up."""
        self._stop_unread_timer()
        super().resume_writing()

    def data_received(self, data: bytes) -> None:
        """Parse; count what does not complete a head, because the parser would buffer it for ever."""
        was_open = self._head_open
        super().data_received(data)
        if was_open and self._head_open and not self.transport.is_closing():
            self._unparsed += len(data)
            if self._unparsed > MAX_HEAD:
                self._refuse()

    def on_message_begin(self) -> None:
        """Begin a request; the connection's certificate joins its scope."""
        super().on_message_begin()
        self._head_open, self._head_size, self._unparsed = True, 0, 0
        extensions = cast("dict[str, Any]", self.scope).setdefault("extensions", {})
        extensions[WRITABLE] = self._writable
        if self._tls is not None:
            extensions.setdefault("tls", self._tls)
        self._start_head_timer()

    def on_url(self, url: bytes) -> None:
        """Take a piece of the request target."""
        self._measure(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take one field; a trailer is ignored, or it would change headers already acted upon."""
        if not self._head_open:
            return
        self._measure(len(name) + len(value) + FIELD_OVERHEAD)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Hand the request on, if it is one of a version that we speak; an old connection is closed with its answer."""
        if self.parser.get_http_version() not in _VERSIONS:
            raise UnknownVersion
        self._head_open = False
        self._stop_head_timer()
        super().on_headers_complete()
        if self.loop.time() >= self._last_request_at and self.cycle is not None:
            self.cycle.keep_alive = False

    def send_400_response(self, msg: str) -> None:
        """Answer a request that cannot be parsed, or whose head is too large."""
        if self._too_large:
            self._refuse()
        else:
            super().send_400_response(msg)

    def _writable(self) -> bool:
        return not self.flow.write_paused

    def _measure(self, size: int) -> None:
        self._head_size += size
        if self._head_size > MAX_HEAD or len(self.headers) >= MAX_FIELDS:
            self._too_large = True
            # The parser reports any error of a callback as a parse error, which ends in send_400_response.
            raise HeadTooLarge

    def _refuse(self) -> None:
        self.transport.write(
            b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
            b"content-type: text/plain; charset=utf-8\r\n"
            b"content-length: %d\r\nconnection: close\r\n\r\n%s" % (len(_REFUSAL), _REFUSAL)
        )
        self.transport.close()

    def _start_head_timer(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(HEAD_TIMEOUT, self.timeout_keep_alive_handler)

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _look_at_peer_until(self, end: float) -> None:
        self._unread_timer = self.loop.call_later(UNREAD_CHECK_SECONDS, self._check_peer, end)

    def _check_peer(self, end: float) -> None:
        """Cut a peer off that reads nothing; to close would wait for it to read, for ever."""
        if self.transport.is_closing() or self.loop.time() >= end:
            self.transport.abort()
        else:
            self._look_at_peer_until(end)

    def _stop_unread_timer(self) -> None:
        if self._unread_timer is not None:
            self._unread_timer.cancel()
            self._unread_timer = None


def _tls_extension(connection: ssl.SSLObject) -> dict[str, Any]:
    """Describe a connection as the ASGI TLS extension does, with what we know and anyone reads."""
    der = connection.getpeercert(binary_form=True)
    if der is None:
        return {"client_cert_chain": ()}
    return {"client_cert_chain": tuple(map(ssl.DER_cert_to_PEM_cert, (der, *_between(connection, der))))}


def _between(connection: ssl.SSLObject, own: bytes) -> list[bytes]:
    """Return the certificates that the peer showed besides its own, to those of whom its CA is not the root.

    Before Python 3.13 they are to be had from the object below alone; where that changed, there are none.
    """
    below = getattr(connection, "_sslobj", None)
    shown = getattr(connection, "get_unverified_chain", None) or getattr(below, "get_unverified_chain", None)
    certificates = (shown() if shown else None) or ()
    chain = [one if isinstance(one, bytes) else one.public_bytes(_DER) for one in certificates]
    return [der for der in chain if der != own][:MAX_BETWEEN]
