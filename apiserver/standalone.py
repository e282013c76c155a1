"""Composition root of the server without a cluster: every part is chosen and wired here, nowhere else.

Everything is kept in one database (SQLite by default) and one folder; users are certificates of the server's own CA.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from apiserver.access import Access
from apiserver.app import create_app
from apiserver.auth.certificates import Files
from apiserver.background import background
from apiserver.controllers_process import ControllersProcess
from apiserver.engine.engine_metrics import EngineMetrics
from apiserver.engine.repositories import RESOURCE as REPOSITORIES
from apiserver.machinery.in_flight import InFlight
from apiserver.machinery.machinery import ApiMachinery
from apiserver.machinery.rest import Served, Updater
from apiserver.machinery.stopping import Stopping
from apiserver.memory import give_back_regularly, loading_long_lived
from apiserver.metrics_listener import metrics_listener
from apiserver.packages import Packages
from apiserver.previews import Previews
from apiserver.resources.core_kinds import core_kinds
from apiserver.resources.custom.controller import CustomResources
from apiserver.resources.custom.definitions import CustomResourceDefinitions
from apiserver.resources.custom.own import GROUP as CONFIG_GROUP
from apiserver.resources.custom.own import own_definitions
from apiserver.resources.event_expiry import EventExpiry
from apiserver.resources.garbage_collector import GarbageCollector
from apiserver.resources.namespace_contents import EveryOtherKind
from apiserver.resources.namespace_deletion import Contents, ContentsOf, NamespaceDeletion, NamespacedObjects
from apiserver.resources.namespaces import create_protected_namespaces
from apiserver.resources.objects import StatusOf, StoredObjects, stored_namespaces
from apiserver.resources.porch import GROUP as PORCH_GROUP
from apiserver.resources.queued_events import QueuedEvents
from apiserver.resources.served_kinds import ServedKinds
from apiserver.resources.service_accounts import DefaultServiceAccounts
from apiserver.resources.stored_sets import StoredSets
from apiserver.serving import Announce
from apiserver.serving import serve as serve_https
from apiserver.settings import Settings
from apiserver.tracing import traces_exported
from apiserver.wiring import VERSION, Server, create_metrics, database_store, limits
from krm.meta.errors import ResourceName
from storage.leading import Leader
from storage.sealing import Sealer, load_or_create_key
from storage.sql.migrate import upgrade_aside
from storage.watchcache.store import WatchedStore

LED = "controllers"
"""What one of several replicas does for all: it deletes what nobody owns, what is in namespaces that go, and old Events."""


def create_server(settings: Settings) -> Server:
    """Wire a standalone server; nothing is opened before the application's lifespan begins."""
    shutdown = Stopping()
    store = create_store(settings)
    check = stored_namespaces(store)
    metrics = create_metrics(store)
    in_flight = InFlight(limits(settings), package_groups=[PORCH_GROUP])
    metrics.read_in_flight(in_flight.figures)
    access = Access(settings, store, check, metrics)
    core = core_kinds(store, check, access.account_subresources)
    packages = Packages(settings, store, check, QueuedEvents(core_events(core)), EngineMetrics(metrics.registry))
    definitions = CustomResourceDefinitions(store, own_definitions())
    served = [
        *core,
        *access.served,
        *packages.served,
        Served(definitions, {"status": StatusOf(definitions)}),
    ]
    register(served)
    packages.follow()
    access.follow(store)
    kinds = ServedKinds(served)
    previews = Previews(StoredSets(store, packages.revisions_of, lambda: kinds.all), access.authorize, check)
    kinds.add([previews.served])
    served = kinds.all
    custom = CustomResources(store, definitions, kinds, check, built_in={str(REPOSITORIES)})
    led = [
        GarbageCollector(store, kinds, core_events(served)).run,
        NamespaceDeletion(store, emptied_in_order(kinds)).run,
        EventExpiry(store).run,
    ]
    work = [
        custom.run,
        Leader(store, LED, led, metrics.leads.labels(LED).set).run,
        DefaultServiceAccounts(store).run,
        give_back_regularly,
        *access.background,
    ]
    machinery = ApiMachinery(
        served,
        authenticator=access.authenticator,
        authorize=access.authorize,
        impersonate=access.impersonate,
        audit=access.audit,
        documents=access.documents,
        version_info=VERSION,
        health_checks={"database": store.reachable, "watch-cache": lambda: store.synced},
        stopping=shutdown,
        in_flight=in_flight,
        metrics=metrics,
        body_limit=settings.body_limit,
        request_seconds=settings.request_timeout,
        traced=settings.traces,
        log_requests=settings.log_level == "debug",
    )
    kinds.publish_to(machinery.replace)

    @asynccontextmanager
    async def lifespan() -> AsyncIterator[None]:
        with loading_long_lived():
            await store.start()
        await create_protected_namespaces(store)
        await access.start()
        await custom.start()
        packages.start()
        try:
            async with background(work):
                yield
        finally:
            await packages.stop()
            await store.stop()
            await previews.close()
            await packages.close()
            await access.close()

    app = create_app(machinery, machinery.routes(), lifespan)
    return Server(app, shutdown, [*served, *custom.served_from_the_start()], metrics)


def create_store(settings: Settings) -> WatchedStore:
    """Return the object store of the configured database; it is opened by its ``start``."""
    return database_store(settings, Sealer(load_or_create_key(settings.secret_key)))


def register(served: Sequence[Served]) -> None:
    """Tell the store of every stored kind; its resources know which store that is."""
    for one in served:
        stored = getattr(one.resource, "stored", one.resource)
        if isinstance(stored, StoredObjects):
            stored.register()


def core_events(served: Sequence[Served]) -> Updater:
    """Return the resource that Events are written to."""
    (events,) = (
        one.resource
        for one in served
        if one.resource.definition.resource == ResourceName("events") and isinstance(one.resource, Updater)
    )
    return events


def emptied_in_order(kinds: ServedKinds) -> list[Contents]:
    """Return what empties a namespace: Repositories first (their revisions go with them), Events last."""
    first = [ResourceName("repositories", CONFIG_GROUP), ResourceName("packagerevisions", PORCH_GROUP)]
    last = [ResourceName("events")]
    others = EveryOtherKind(kinds, besides=[*first, *last])
    return [*_contents(kinds, first), others, *_contents(kinds, last)]


def _contents(kinds: ServedKinds, resources: Sequence[ResourceName]) -> list[Contents]:
    found = [kinds.find(resource)[0].resource for resource in resources]
    return [ContentsOf(resource) for resource in found if isinstance(resource, NamespacedObjects)]


async def serve(settings: Settings, *, announce: Announce) -> None:
    """Migrate the database, then serve until told to stop.

    Raises:
        CannotListen: the address is in use.
        StoreUnavailable: the database cannot be used.
    """
    settings.data.mkdir(mode=0o700, parents=True, exist_ok=True)
    target = settings.database if settings.database.startswith("postgres") else settings.data / "porch.db"
    await asyncio.to_thread(upgrade_aside, target)
    server = create_server(settings)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(traces_exported(settings))
        if settings.metrics_port is not None:
            await stack.enter_async_context(metrics_listener(server.metrics, settings.host, settings.metrics_port))
        before_stop = None
        if settings.controllers:
            controllers = ControllersProcess(settings)
            stack.push_async_callback(controllers.stop)
            announce, before_stop = _then(announce, controllers.server_answers), controllers.ask_to_stop
        await serve_https(server.app, settings, server.shutdown, announce=announce, before_stop=before_stop)


def _then(announce: Announce, start: Callable[[], None]) -> Announce:
    def both(port: int, files: Files) -> None:
        announce(port, files)
        start()

    return both
