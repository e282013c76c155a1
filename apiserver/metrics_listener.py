"""A listener of its own for who scrapes metrics and has no certificate: plain HTTP, ``/metrics`` and nothing else.

Off unless a port is set. Whoever reaches the port reads the metrics, which name resources and no objects.
Source: ``kube-api.md`` 1.5.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import uvicorn
from starlette.applications import Starlette

from apiserver.http_protocol import BoundedProtocol
from apiserver.machinery.metrics import Metrics
from apiserver.serving import listen

MAX_CONNECTIONS = 16
"""Scrapers come one at a time; further connections are answered 503."""
KEEP_ALIVE = 75
"""Seconds an idle connection is kept; Prometheus scrapes once a minute by default."""


@asynccontextmanager
async def metrics_listener(metrics: Metrics, host: str, port: int) -> AsyncIterator[int]:
    """Serve the metrics meanwhile; yields the port, which is a free one for 0.

    Raises:
        CannotListen: the address is in use or not allowed.
    """
    listener = listen(host, port)
    # At once, so that a second server finds the port taken.
    listener.listen(MAX_CONNECTIONS)
    config = uvicorn.Config(
        Starlette(routes=metrics.routes()),
        http=BoundedProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=1,
    )
    server = _Quiet(config)
    running = asyncio.create_task(server.serve(sockets=[listener]), name="metrics listener")
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        await running
        listener.close()


class _Quiet(uvicorn.Server):
    """A server that leaves signals to the one that serves the API."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take no signal over."""
        yield
