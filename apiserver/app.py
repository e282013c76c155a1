"""The ASGI application: FastAPI around the Kubernetes routes, built from parts that a composition root chose.

Resource routes are plain Starlette routes that answer with bytes; FastAPI brings routing, lifespan and a place for the
product's own endpoints. Its body models, OpenAPI page and telemetry are off: Kubernetes clients need their own shapes.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from fastapi import FastAPI
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

KUBERNETES_PATHS = ("/api/", "/apis/")
"""Below these nothing but the Kubernetes API is served."""

Lifespan = Callable[[], AbstractAsyncContextManager[None]]


class Application(FastAPI):
    """FastAPI, with a short way to the Kubernetes API: its requests need none of the middlewares in between."""

    kubernetes: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or the lifespan."""
        if scope["type"] == "http" and scope["path"].startswith(KUBERNETES_PATHS):
            await self.kubernetes(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


def create_app(kubernetes: ASGIApp, routes: Sequence[BaseRoute], lifespan: Lifespan) -> FastAPI:
    """Build the application around the Kubernetes API and the ``routes`` of everything else it serves.

    ``lifespan`` brackets its life: storage and background work.
    """

    @asynccontextmanager
    async def life(_app: FastAPI) -> AsyncIterator[None]:
        async with lifespan():
            yield

    app = Application(
        title="Porch",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=life,
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    app.kubernetes = kubernetes
    app.router.routes.extend(routes)
    return app
