"""Health, readiness and metrics over plain HTTP, for kubelets and scrapers; whoever reaches the port reads them."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

STOP_SECONDS: Final = 1.0
BODY_BYTES: Final = 1024
"""Nobody has to send anything."""

Check = Callable[[], bool]
Handler = Callable[[web.Request], Awaitable[web.Response]]


@asynccontextmanager
async def endpoints(
    host: str, port: int, registry: CollectorRegistry, *, health: Mapping[str, Check], readiness: Mapping[str, Check]
) -> AsyncIterator[int]:
    """Serve ``/healthz``, ``/readyz`` and ``/metrics`` meanwhile; yields the port, a free one for 0.

    Raises:
        OSError: the address is in use or not allowed.
    """
    app = web.Application(client_max_size=BODY_BYTES)
    app.router.add_get("/healthz", _checking(health))
    app.router.add_get("/readyz", _checking(readiness))
    app.router.add_get("/metrics", _showing(registry))
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=STOP_SECONDS)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port)
        await site.start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


def _checking(checks: Mapping[str, Check]) -> Handler:
    async def answer(_: web.Request) -> web.Response:
        failed = [name for name, check in checks.items() if not check()]
        if failed:
            return web.Response(status=503, text="".join(f"[-]{name} failed\n" for name in failed))
        return web.Response(text="ok")

    return answer


def _showing(registry: CollectorRegistry) -> Handler:
    async def answer(request: web.Request) -> web.Response:
        render, content_type = choose_encoder(request.headers.get("Accept", ""))
        return web.Response(body=render(registry), headers={"Content-Type": content_type})

    return answer
