"""The network side of the server process: listen, TLS, and a stop that always ends.

``run`` owns the event loop and ``serve`` the listening socket; what is served is an ASGI application that knows
neither. Source: ``kube-api.md`` 3.4 and 4, issue 3 part 1.
"""

import asyncio
import os
import resource
import signal
import socket
import ssl
import threading
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from math import ceil
from types import FrameType
from typing import Any

import structlog
import uvicorn
import uvloop
from starlette.applications import Starlette

from apiserver.auth.certificates import Files, ensure_certificates
from apiserver.http_protocol import BoundedProtocol
from apiserver.machinery.stopping import SPREAD_SECONDS, Stopping
from apiserver.settings import Settings
from apiserver.tls import ReloadingTls

CLOSING_SECONDS = 2.0
"""For the application's own stop, after its last request."""
MARGIN = 0.3
"""Seconds of those kept back for the interpreter to leave."""
FILES = 65_536
"""Files that may be open besides connections, where the system allows so many."""
BACKLOG = 1024
"""Connections that wait to be accepted."""

Announce = Callable[[int, Files], None]
"""Told the port and the files of the data directory once requests are answered."""
Secured = tuple[ReloadingTls, Callable[[], None] | None]
"""The TLS of a port, and what says that requests are answered there."""
BeforeStop = Callable[[], Coroutine[Any, Any, None]]
"""Awaited when the server was told to stop and still answers; takes little of the time that there is."""

CLOSE = (b"connection", b"close")
"""Header of answers after which a client shall connect anew, to another server if there is one."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Pace:
    """How long the steps of a stop may take, in seconds."""

    delay: float = 0.0
    """Everything is served on, but the server is unready: what sends requests to it learns that it ends."""
    watches: float = SPREAD_SECONDS
    """The watches end, each at a moment of its own, while no new connections are taken."""
    requests: float = 3.0
    """From the same moment: for requests to finish, and what is then still going on is given up."""

    @property
    def drain(self) -> int:
        """Seconds after which connections that are still open are given up."""
        return ceil(max(self.watches, self.requests))

    @property
    def whole(self) -> float:
        """Seconds from the signal to the end of the process, whatever is still going on."""
        return self.delay + self.drain + CLOSING_SECONDS


QUICK = Pace()
"""What Ctrl-C asks for, and what a server without a cluster always does: five seconds."""


class CannotListen(Exception):
    """The address is taken, or is not ours to take."""


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run the process's one event loop until ``main`` returns."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())


async def serve(
    app: Starlette,
    settings: Settings,
    shutdown: Stopping,
    *,
    announce: Announce | None = None,
    before_stop: BeforeStop | None = None,
) -> None:
    """Serve ``app`` with certificates of the data directory, made when missing; see :func:`serve_secured`.

    Raises:
        UnusableCertificate: the CA in the data directory cannot be used.
    """

    def own(port: int) -> Secured:
        files = ensure_certificates(settings.data, port, settings.host)
        tls = ReloadingTls(files, partial(ensure_certificates, settings.data, port, settings.host))
        return tls, announce and (lambda: announce(port, files))

    await serve_secured(app, settings, shutdown, own, before_stop=before_stop)


async def serve_secured(
    app: Starlette,
    settings: Settings,
    shutdown: Stopping,
    secure: Callable[[int], Secured],
    *,
    before_stop: BeforeStop | None = None,
    pace: Pace = QUICK,
) -> None:
    """Serve ``app`` over HTTPS until SIGTERM or SIGINT, or until ``shutdown`` is set by anyone.

    ``secure`` is told the port once it is taken.

    The first signal tells ``shutdown``, which fails the application's readiness; SIGTERM stops at the given ``pace``, SIGINT quickly. When the
    delay is over, no connection is taken any more, the watches end and requests have their time; then the application's lifespan ends. After
    the whole of it the process ends regardless, which is safe, because nothing that is not durable was acknowledged. A second signal ends
    it on the spot.

    Raises:
        CannotListen: the address is in use or not allowed; nothing was started.
        Exception: whatever ``secure`` raises, or the application's lifespan raises when it begins.
    """
    listener = listen(settings.host, settings.port)
    try:
        port: int = listener.getsockname()[1]
        tls, announce = secure(port)
        _raise_file_limit(settings.max_connections)
        config = _configure(app, settings, tls.context)
        server = _Server(config, shutdown, announce, before_stop, pace)
        # The lifespan runs here and not in uvicorn, which would turn its failures into log lines; signals are
        # taken over around it, so that one that comes while the application starts or ends is heeded too.
        with server.capture_signals():
            async with app.router.lifespan_context(app):
                tls.look()  # whose certificates are welcome may have been learned only now
                following = asyncio.create_task(tls.follow())
                try:
                    await server.serve(sockets=[listener])
                finally:
                    following.cancel()
    finally:
        listener.close()


class _Server(uvicorn.Server):
    """uvicorn's server with our way to stop."""

    def __init__(
        self,
        config: uvicorn.Config,
        shutdown: Stopping,
        announce: Callable[[], None] | None,
        before_stop: BeforeStop | None,
        pace: Pace,
    ) -> None:
        super().__init__(config)
        self._shutdown = shutdown
        self._announce = announce
        self._before_stop = before_stop
        self._orderly = pace
        self._pace = QUICK
        self._drain_at: float | None = None
        self._loop = asyncio.get_running_loop()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept connections, then say so."""
        await super().startup(sockets=sockets)
        if self.started and self._announce is not None:
            self._announce()

    async def on_tick(self, counter: int) -> bool:
        """Stop also when the application itself asked for it, and once the delay is over; until then send clients elsewhere."""
        asked = await super().on_tick(counter) or self._shutdown.is_set()
        if not asked:
            return False
        now = self._loop.time()
        if self._drain_at is None:
            self._drain_at = now + self._pace.delay
            log.info("stopping", delay=self._pace.delay)
        state = self.server_state
        if CLOSE not in state.default_headers:
            state.default_headers = [*state.default_headers, CLOSE]
        return now >= self._drain_at

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Tell the application first, so that watches end by themselves, then drain."""
        self._shutdown.set(self._pace.watches)
        self.config.timeout_graceful_shutdown = self._pace.drain
        if self._before_stop is not None:
            await self._before_stop()
        await super().shutdown(sockets=sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 # the signature is uvicorn's
        """Begin to stop; a second signal means it: leave without a look back."""
        if self.should_exit:
            os._exit(128 + sig)
        self.should_exit = True
        # Who was never answered need not be sent elsewhere.
        self._pace = self._orderly if sig != signal.SIGINT and self.started else QUICK
        # From here and not from the loop, which may be what hangs.
        _end_process_after(self._pace.whole - MARGIN)
        self._loop.call_soon_threadsafe(self._shutdown.tell)


def _end_process_after(seconds: float) -> None:
    """Kill the process unless it ends by itself; a thread, because the loop or an executor may be stuck."""
    watchdog = threading.Timer(seconds, _end_process, (seconds,))
    watchdog.daemon = True
    watchdog.start()


def _end_process(seconds: float) -> None:
    log.warning("stopped with work unfinished; what was acknowledged is safe", seconds=seconds)
    os._exit(1)


def _configure(app: Starlette, settings: Settings, tls: ssl.SSLContext) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=BoundedProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=BACKLOG,
        limit_concurrency=settings.max_connections,
        timeout_keep_alive=int(settings.keep_alive),
        timeout_graceful_shutdown=QUICK.drain,
        ssl_context_factory=lambda _config, _default: tls,
    )


def listen(host: str, port: int) -> socket.socket:
    """Bind a listening socket; port 0 takes a free one.

    Raises:
        CannotListen: the address is in use or not ours to take.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise CannotListen(f"cannot listen on {host}: {error.strerror}; give another address with --host") from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        raise CannotListen(
            f"cannot listen on {host} port {port}: {error.strerror}; stop what uses it or choose another with --port"
        ) from error
    return listener


def _raise_file_limit(connections: int) -> None:
    """Allow a descriptor per connection and what the system allows for files; the usual soft limit of 1,024 is for ``select``.

    A clone in use has its packs open, up to some twenty; a thousand busy repositories need as many thousand.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + FILES if hard == resource.RLIM_INFINITY else min(connections + FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
