"""The API machinery with the core kinds and Repository on a real SQLite store, served over HTTP on loopback.

For contract tests of the HTTP API: no package kinds, no authentication, nothing left running.
"""

import asyncio
import contextlib
import shutil
import socket
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import httpx2
import uvicorn
from starlette.applications import Starlette
from starlette.types import Scope

from apiserver.machinery.definition import Definition
from apiserver.machinery.machinery import ApiMachinery
from apiserver.machinery.rest import Served, User
from apiserver.resources.config import repository_definition
from apiserver.resources.core import core_definitions
from apiserver.resources.custom.controller import CustomResources
from apiserver.resources.custom.definitions import CustomResourceDefinitions
from apiserver.resources.namespaces import NamespaceFinalize, Namespaces, create_protected_namespaces
from apiserver.resources.objects import StatusOf, StoredObjects, stored_namespaces
from apiserver.resources.served_kinds import ServedKinds
from storage.sealing import Sealer
from storage.sql.migrate import upgrade
from storage.sql.sqlite import sqlite_database
from storage.watchcache.store import WatchedStore

USER = User("tester", ("system:masters",))


class Everybody:
    """Takes every request for one from ``USER``, but for those that say ``X-Nobody``."""

    async def authenticate(self, scope: Scope) -> User | None:
        """Return the user."""
        return None if any(name == b"x-nobody" for name, _ in scope["headers"]) else USER


@dataclass
class Api:
    """A running server: its store, its machinery, a client and where it listens."""

    store: WatchedStore
    machinery: ApiMachinery
    client: httpx2.AsyncClient
    url: str
    stopping: asyncio.Event
    kinds: ServedKinds


def lease_like() -> Definition:
    """Return a kind that a PUT may create."""
    repository = repository_definition()
    return replace(
        repository,
        group="test.example",
        kind="Upsert",
        plural="upserts",
        singular="upsert",
        short_names=(),
        create_on_update=True,
        validate=None,
        prepare=None,
    )


@contextlib.asynccontextmanager
async def api_server(
    *, http: bool = True, body_limit: int = 64 * 1024, request_seconds: float = 20.0
) -> AsyncIterator[Api]:
    """Serve until the block ends; without ``http`` the client calls the application directly (no watches then)."""
    with tempfile.TemporaryDirectory(prefix="api-") as folder:
        database = Path(folder) / "log.db"
        shutil.copy(_migrated(), database)
        store = WatchedStore(sqlite_database(database), Sealer(b"k" * 32))
        definitions = CustomResourceDefinitions(store)
        definitions.register()
        kinds = ServedKinds([*_served(store), Served(definitions, {"status": StatusOf(definitions)})])
        custom = CustomResources(store, definitions, kinds, stored_namespaces(store))
        await store.start()
        await create_protected_namespaces(store)
        await custom.start()
        stopping = asyncio.Event()
        machinery = ApiMachinery(
            kinds.all,
            authenticator=Everybody(),
            stopping=stopping,
            version_info={"gitVersion": "v1.34.0+porch", "major": "1", "minor": "34"},
            body_limit=body_limit,
            request_seconds=request_seconds,
        )
        kinds.publish_to(machinery.replace)
        app = Starlette(routes=machinery.routes())
        async with contextlib.AsyncExitStack() as stack:
            url = await stack.enter_async_context(_listening(app)) if http else "http://direct"
            transport = None if http else httpx2.ASGITransport(app)
            client = httpx2.AsyncClient(base_url=url, timeout=30, transport=transport)
            controller = asyncio.create_task(custom.run())
            yield Api(store, machinery, await stack.enter_async_context(client), url, stopping, kinds)
            stopping.set()
            controller.cancel()
            await asyncio.gather(controller, return_exceptions=True)
        await store.stop()


def _served(store: WatchedStore) -> list[Served]:
    namespaces = Namespaces(store)
    namespaces.register()
    served = [Served(namespaces, {"status": StatusOf(namespaces), "finalize": NamespaceFinalize(store)})]
    for definition in [*core_definitions(), repository_definition(), lease_like()]:
        if definition.namespaced:
            objects = StoredObjects(definition, store, namespace_check=stored_namespaces(store))
            objects.register()
            served.append(Served(objects, {"status": StatusOf(objects)} if definition.status else {}))
    return served


@contextlib.asynccontextmanager
async def _listening(app: Starlette) -> AsyncIterator[str]:
    # With the protocol named, asyncio switches Nagle's delay off, as it does for sockets of its own.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_level="error", lifespan="off", loop="asyncio")
    server = uvicorn.Server(config)
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    running = asyncio.create_task(server.serve(sockets=[listener]))
    while not server.started:
        await asyncio.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        await running
        listener.close()


@cache
def _migrated() -> Path:
    path = Path(tempfile.mkdtemp(prefix="api-schema-")) / "log.db"
    upgrade(path)
    return path
