"""TLS of the server: which protocol, whose client certificates, and a serving certificate that changes while serving.

The files are looked at every few seconds. New connections get what lies there; those that are open keep what they
began with. Source: ``kube-api.md`` 3.4 and 4.
"""

import asyncio
import ssl
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import structlog

from apiserver.auth.certificates import UnusableCertificate

LOOK_SECONDS = 2.0
"""Seconds between two looks at the files: how long a new certificate may go unnoticed."""
RENEW_SECONDS = 6 * 3600.0
"""Seconds between two looks at how much of the certificates' life is left."""

log = structlog.get_logger()


class ServingFiles(Protocol):
    """Where the serving certificate is, its key, and the CA whose client certificates are welcome."""

    @property
    def serving(self) -> Path: ...
    @property
    def serving_key(self) -> Path: ...
    @property
    def ca(self) -> Path: ...


def tls_context(files: ServingFiles, trusted: str | None = None) -> ssl.SSLContext:
    """Build the server's TLS: 1.2 or newer, client certificates welcome but only of our CA.

    With ``trusted``, certificates in PEM, they are of those instead; empty: of nobody. A certificate of any other CA
    fails the handshake, so the application never sees one it would have to doubt.

    Raises:
        OSError: a file is missing, or certificate and key do not belong together (``ssl.SSLError`` is one).
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(files.serving, files.serving_key)
    if trusted is None:
        context.load_verify_locations(files.ca)
    elif trusted:
        context.load_verify_locations(cadata=trusted)
        # A cluster may name an authority between and not its root, which is trusted then as kube-apiserver itself trusts it.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    # Also while nobody is trusted: whether to ask is decided by the listener's first context, and never again.
    context.verify_mode = ssl.CERT_OPTIONAL
    # No tickets: a session that is taken up by one has lost the certificates between a client's and its authority, and is never
    # verified anew, also after that authority has gone. Those of TLS 1.2 that we keep ourselves are whole, and end after two hours.
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
    context.set_alpn_protocols(["http/1.1"])
    return context


class ReloadingTls:
    """The TLS context of one listener; ``renew`` replaces certificates that near their end, and may block.

    ``trusted`` returns the authorities of client certificates of the moment, in PEM; without, they are those of ``files``.
    """

    def __init__(
        self, files: ServingFiles, renew: Callable[[], object], trusted: Callable[[], str] | None = None
    ) -> None:
        self._files = files
        self._renew = renew
        self._trusted = trusted
        self._watched = (files.serving, files.serving_key, *(() if trusted else (files.ca,)))
        self._seen = self._look_of_now()
        self._current = self._new_context()
        self.context = self._new_context()
        """What the listener is given; it hands each connection on to the newest context before the handshake."""
        self.context.sni_callback = self._hand_over

    async def follow(self) -> None:
        """Look at the files, and renew what is due, until cancelled."""
        clock = asyncio.get_running_loop().time
        renewed = clock()
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            if clock() - renewed >= RENEW_SECONDS:
                renewed = clock()
                await self._renew_now()
            self.look()

    def look(self) -> bool:
        """Take over changed files; tell whether there was anything new that can be used.

        What cannot be used, such as a certificate whose key is not there yet, leaves what was read before in force.
        """
        now = self._look_of_now()
        if now == self._seen:
            return False
        self._seen = now
        try:
            self._current = self._new_context()
        except OSError as error:
            log.warning("certificate not taken over", path=str(self._files.serving), error=str(error))
            return False
        log.info("certificate taken over", path=str(self._files.serving))
        return True

    def _look_of_now(self) -> tuple[object, ...]:
        """Return what differs when there is something new."""
        return (*_stamps(self._watched), self._trusted() if self._trusted else None)

    def _new_context(self) -> ssl.SSLContext:
        return tls_context(self._files, self._trusted() if self._trusted else None)

    async def _renew_now(self) -> None:
        try:
            await asyncio.to_thread(self._renew)
        except (OSError, UnusableCertificate) as error:
            log.warning("certificates not renewed", error=str(error))

    def _hand_over(self, connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        connection.context = self._current


def _stamps(paths: Sequence[Path]) -> tuple[tuple[int, int] | None, ...]:
    return tuple(_stamp(path) for path in paths)


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_ino
