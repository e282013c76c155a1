"""The API machinery with the core kinds and Repository on a real SQLite store, served over HTTP on loopback.

For contract tests of the HTTP API: no package kinds, no authentication, nothing left running.
"""

import asyncio
import contextlib
import shutil
import socket
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import httpx2
import uvicorn
from starlette.applications import Starlette
from starlette.types import Scope

from apiserver.http_protocol import BoundedProtocol
from apiserver.machinery.definition import Definition
from apiserver.machinery.machinery import ApiMachinery
from apiserver.machinery.rest import Served, User
from apiserver.machinery.stopping import Stopping
from apiserver.resources.config import repository_definition
from apiserver.resources.core_kinds import core_kinds
from apiserver.resources.custom.controller import CustomResources
from apiserver.resources.custom.definitions import CustomResourceDefinitions
from apiserver.resources.garbage_collector import GarbageCollector
from apiserver.resources.namespace_contents import EveryOtherKind
from apiserver.resources.namespace_deletion import NamespaceDeletion
from apiserver.resources.namespaces import create_protected_namespaces
from apiserver.resources.objects import StatusOf, StoredObjects, stored_namespaces
from apiserver.resources.served_kinds import ServedKinds
from apiserver.resources.service_accounts import DefaultServiceAccounts
from krm.meta.errors import ResourceName
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
    stopping: Stopping
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
    *, http: bool = True, body_limit: int = 64 * 1024, request_seconds: float = 20.0, controllers: bool = False
) -> AsyncIterator[Api]:
    """Serve until the block ends; without ``http`` the client calls the application directly (no watches then).

    ``controllers`` adds those of namespaces, service accounts and owners.
    """
    with tempfile.TemporaryDirectory(prefix="api-") as folder:
        database = Path(folder) / "log.db"
        shutil.copy(_migrated(), database)
        store = WatchedStore(sqlite_database(database), Sealer(b"k" * 32))
        definitions = CustomResourceDefinitions(store)
        definitions.register()
        kinds = ServedKinds([*_served(store), Served(definitions, {"status": StatusOf(definitions)})])
        custom = CustomResources(store, definitions, kinds, stored_namespaces(store))
        running = [custom.run, *(_controllers(store, kinds) if controllers else ())]
        await store.start()
        await create_protected_namespaces(store)
        await custom.start()
        stopping = Stopping()
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
            tasks = [asyncio.create_task(run()) for run in running]
            yield Api(store, machinery, await stack.enter_async_context(client), url, stopping, kinds)
            stopping.set()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        await store.stop()


def _served(store: WatchedStore) -> list[Served]:
    check = stored_namespaces(store)
    served = core_kinds(store, check)
    for definition in (repository_definition(), lease_like()):
        objects = StoredObjects(definition, store, namespace_check=check)
        served.append(Served(objects, {"status": StatusOf(objects)}))
    for one in served:
        assert isinstance(one.resource, StoredObjects)
        one.resource.register()
    return served


def _controllers(store: WatchedStore, kinds: ServedKinds) -> list[Callable[[], Coroutine[Any, Any, None]]]:
    """Return what empties namespaces, collects garbage and makes service accounts; before the store starts."""
    (events,) = kinds.find(ResourceName("events"))
    assert isinstance(events.resource, StoredObjects)
    return [
        NamespaceDeletion(store, [EveryOtherKind(kinds, besides=())]).run,
        GarbageCollector(store, kinds, events.resource).run,
        DefaultServiceAccounts(store).run,
    ]


@contextlib.asynccontextmanager
async def _listening(app: Starlette) -> AsyncIterator[str]:
    # With the protocol named, asyncio switches Nagle's delay off, as it does for sockets of its own.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_level="error", lifespan="off", loop="asyncio", http=BoundedProtocol)
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
