"""The ASGI application: FastAPI around the Kubernetes routes, built from parts that a composition root chose.

Resource routes are plain Starlette routes that answer with bytes; FastAPI brings routing, lifespan and a place for the
product's own endpoints. Its body models, OpenAPI page and telemetry are off: Kubernetes clients need their own shapes.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from fastapi import FastAPI
from starlette.routing import BaseRoute

Lifespan = Callable[[], AbstractAsyncContextManager[None]]


def create_app(routes: Sequence[BaseRoute], lifespan: Lifespan) -> FastAPI:
    """Build the application. ``lifespan`` brackets its life: storage and background work."""

    @asynccontextmanager
    async def life(_app: FastAPI) -> AsyncIterator[None]:
        async with lifespan():
            yield

    app = FastAPI(
        title="Porch",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=life,
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    app.router.routes.extend(routes)
    return app
