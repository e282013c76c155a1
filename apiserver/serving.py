"""The network side of the server process: listen, TLS, and a stop that takes no more than five seconds.

``run`` owns the event loop and ``serve`` the listening socket; what is served is an ASGI application that knows
neither. Source: ``kube-api.md`` 3.4 and 4, issue 3 part 1.
"""

import asyncio
import os
import resource
import socket
import ssl
import threading
from collections.abc import Callable, Coroutine
from functools import partial
from types import FrameType
from typing import Any

import structlog
import uvicorn
import uvloop
from starlette.applications import Starlette

from apiserver.auth.certificates import Files, ensure_certificates
from apiserver.http_protocol import BoundedProtocol
from apiserver.settings import Settings
from apiserver.tls import ReloadingTls

STOP_WITHIN = 5.0
"""Seconds from the first signal to the end of the process, whatever is still going on."""
DRAIN = 3
"""Seconds of those for requests to finish; the application's own stop has the rest."""
MARGIN = 0.3
"""Seconds kept back from STOP_WITHIN for the interpreter to leave."""
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

log = structlog.get_logger()


class CannotListen(Exception):
    """The address is taken, or is not ours to take."""


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run the process's one event loop until ``main`` returns."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())


async def serve(
    app: Starlette,
    settings: Settings,
    shutdown: asyncio.Event,
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
    shutdown: asyncio.Event,
    secure: Callable[[int], Secured],
    *,
    before_stop: BeforeStop | None = None,
) -> None:
    """Serve ``app`` over HTTPS until SIGTERM or SIGINT, or until ``shutdown`` is set by anyone.

    ``secure`` is told the port once it is taken.

    ``shutdown`` is set at once by the first signal: the application then fails its readiness and ends its watches. Open
    requests have DRAIN seconds, then the application's lifespan ends; STOP_WITHIN seconds after a signal the
    process ends regardless, which is safe, because nothing that is not durable was acknowledged. A second signal ends it on the spot.

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
        server = _Server(config, shutdown, announce, before_stop)
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
        shutdown: asyncio.Event,
        announce: Callable[[], None] | None,
        before_stop: BeforeStop | None,
    ) -> None:
        super().__init__(config)
        self._shutdown = shutdown
        self._announce = announce
        self._before_stop = before_stop
        self._loop = asyncio.get_running_loop()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept connections, then say so."""
        await super().startup(sockets=sockets)
        if self.started and self._announce is not None:
            self._announce()

    async def on_tick(self, counter: int) -> bool:
        """Stop also when the application itself asked for it."""
        return await super().on_tick(counter) or self._shutdown.is_set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Tell the application first, so that watches end by themselves, then drain."""
        self._shutdown.set()
        log.info("stopping")
        if self._before_stop is not None:
            await self._before_stop()
        await super().shutdown(sockets=sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 # the signature is uvicorn's
        """Begin to stop; a second signal means it: leave without a look back."""
        if self.should_exit:
            os._exit(128 + sig)
        self.should_exit = True
        # From here and not from the loop, which may be what hangs.
        _end_process_within(STOP_WITHIN - MARGIN)
        self._loop.call_soon_threadsafe(self._shutdown.set)


def _end_process_within(seconds: float) -> None:
    """Kill the process unless it ends by itself; a thread, because the loop or an executor may be stuck."""
    watchdog = threading.Timer(seconds, _end_process)
    watchdog.daemon = True
    watchdog.start()


def _end_process() -> None:
    log.warning("stopped with work unfinished; what was acknowledged is safe", seconds=STOP_WITHIN)
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
        timeout_graceful_shutdown=DRAIN,
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
