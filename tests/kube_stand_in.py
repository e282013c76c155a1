"""An API server of the test's own, plain HTTP on loopback, that answers as the test says: well, late, wrongly or not at all."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def stand_in(answer: Answer) -> AsyncIterator[str]:
    """Serve every path by ``answer``; yield the address."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def kubeconfig(folder: Path, url: str, cluster: Mapping[str, object] | None = None, **user: object) -> Path:
    """Write a kubeconfig for ``url`` with what ``user`` has, and ``cluster`` beside the address."""
    named = (
        {"cluster": {"server": url, **(cluster or {})}},
        {"user": user},
        {"context": {"cluster": "it", "user": "it"}},
    )
    clusters, users, contexts = ([{"name": "it", **one}] for one in named)
    path = folder / "kubeconfig"
    content = {"clusters": clusters, "users": users, "contexts": contexts, "current-context": "it"}
    path.write_text(json.dumps(content))
    return path


async def start_stream(request: web.Request) -> web.StreamResponse:
    """Begin the answer of a watch."""
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    return response


def event(kind: str, body: dict[str, object]) -> bytes:
    """Return a line of a watch."""
    return json.dumps({"type": kind, "object": body}).encode() + b"\n"
