"""Composition root of the server behind kube-apiserver: every part is chosen and wired here, nowhere else.

Served is ``porch.kpt.dev`` alone. Repositories, Secrets, namespaces and Events are the cluster's, which also says who somebody
is and what they may do, empties namespaces and collects garbage. Source: ``kube-api.md`` 1.1, 1.10 and 3; ADR 0010 and 0033.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from apiserver.app import create_app
from apiserver.auth.certificates import LOCAL_HOSTS, Files, ensure_serving, is_specific
from apiserver.background import background
from apiserver.cluster.answers import ClusterUnusable
from apiserver.cluster.events import ClusterEvents
from apiserver.cluster.sets import ClusterSets
from apiserver.cluster.shared_certificates import SharedServing
from apiserver.cluster.store import ClusterStore
from apiserver.cluster_access import ClusterAccess
from apiserver.engine.engine_metrics import EngineMetrics
from apiserver.machinery.in_flight import InFlight
from apiserver.machinery.machinery import ApiMachinery
from apiserver.machinery.stopping import Stopping
from apiserver.memory import give_back_regularly, loading_long_lived
from apiserver.metrics_listener import metrics_listener
from apiserver.packages import Packages
from apiserver.previews import Previews
from apiserver.resources.objects import stored_namespaces
from apiserver.resources.porch import GROUP
from apiserver.resources.queued_events import QueuedEvents
from apiserver.serving import Pace, Secured, serve_secured
from apiserver.settings import Settings
from apiserver.tls import ReloadingTls
from apiserver.tracing import traces_exported
from apiserver.wiring import VERSION, Server, create_metrics, database_store, limits
from krm.client.client import KubeClient, connect
from krm.client.kubeconfig import BadKubeconfig
from storage.sql.migrate import upgrade_aside

AGENT = "porch-server"
"""As whom the server writes to the cluster: the field manager of what it says about Repositories."""
WATCHES_END_SECONDS = 10.0
"""Over which the watches end, so that those who watched come to the other servers one after the other."""

Announce = Callable[[int, Path], None]
"""Told the port and the certificate, or its CA, once requests are answered."""


@dataclass(frozen=True, slots=True)
class GivenCertificate:
    """A serving certificate that others make and renew."""

    serving: Path
    serving_key: Path

    @property
    def ca(self) -> Path:
        """Stand for the CA of clients, which the cluster tells; nothing reads it."""
        return self.serving


@dataclass(slots=True)
class ClusterServer:
    """The wired server, and whose client certificates it takes, as PEM."""

    server: Server
    trusted: Callable[[], str]


def create_server(settings: Settings, client: KubeClient) -> ClusterServer:
    """Wire a server of the cluster that ``client`` speaks to; nothing is opened before the application's lifespan begins."""
    shutdown = Stopping()
    own = database_store(settings)
    store = ClusterStore(own, client)
    metrics = create_metrics(own)
    in_flight = InFlight(limits(settings), package_groups=[GROUP])
    metrics.read_in_flight(in_flight.figures)
    access = ClusterAccess(settings, client, metrics)
    packages = Packages(
        settings,
        store,
        stored_namespaces(store),
        QueuedEvents(ClusterEvents(client)),
        EngineMetrics(metrics.registry),
    )
    previews = Previews(ClusterSets(client, packages.revisions_of), access.authorize, stored_namespaces(store))
    served = [*(one for one in packages.served if one.resource.definition.group == GROUP), previews.served]
    packages.follow()
    machinery = ApiMachinery(
        served,
        authenticator=access.authenticator,
        authorize=access.authorize,
        impersonate=access.impersonate,
        audit=access.audit,
        version_info=VERSION,
        health_checks={
            "database": own.reachable,
            "watch-cache": lambda: own.synced,
            "cluster": lambda: store.following and access.trust.following,
        },
        stopping=shutdown,
        in_flight=in_flight,
        metrics=metrics,
        body_limit=settings.body_limit,
        request_seconds=settings.request_timeout,
        traced=settings.traces,
        log_requests=settings.log_level == "debug",
    )

    @asynccontextmanager
    async def lifespan() -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            stack.push_async_callback(access.close)
            await access.start()
            stack.push_async_callback(packages.close)
            stack.push_async_callback(previews.close)
            stack.push_async_callback(store.stop)
            with loading_long_lived():
                await store.start()
            stack.push_async_callback(packages.stop)
            packages.start()
            await stack.enter_async_context(background([give_back_regularly]))
            yield

    app = create_app(machinery, machinery.routes(), lifespan)
    return ClusterServer(Server(app, shutdown, served, metrics), lambda: access.trust.current.pem)


async def serve(settings: Settings, *, announce: Announce) -> None:
    """Migrate the database, then serve until told to stop.

    Raises:
        CannotListen: the address is in use.
        ClusterUnusable: the cluster cannot be spoken to, or does not let the server do its work.
        StoreUnavailable: the database cannot be used.
        UnusableCertificate: the server's own CA cannot be used.
    """
    settings.data.mkdir(mode=0o700, parents=True, exist_ok=True)
    target = settings.database if settings.database.startswith("postgres") else settings.data / "porch.db"
    await asyncio.to_thread(upgrade_aside, target)
    async with AsyncExitStack() as stack:
        try:
            client = await stack.enter_async_context(connect(settings.kubeconfig, agent=AGENT))
        except BadKubeconfig as error:
            raise ClusterUnusable(f"{error}; name a kubeconfig with --kubeconfig, or run in a pod") from error
        made = create_server(settings, client)
        await stack.enter_async_context(traces_exported(settings))
        if settings.metrics_port is not None:
            listener = metrics_listener(made.server.metrics, settings.host, settings.metrics_port)
            await stack.enter_async_context(listener)
        if settings.tls_secret:
            await stack.enter_async_context(_shared_certificate(settings, client))
        secure = partial(_secure, settings, made.trusted, announce)
        await serve_secured(made.server.app, settings, made.server.shutdown, secure, pace=_pace(settings))


def _pace(settings: Settings) -> Pace:
    """Return how a server in a cluster stops: clients learn of it first, and what they asked for is finished."""
    return Pace(delay=settings.shutdown_delay, watches=WATCHES_END_SECONDS, requests=settings.request_timeout)


def _secure(settings: Settings, trusted: Callable[[], str], announce: Announce, port: int) -> Secured:
    """Return the TLS of the port: certificates as given or of our own, clients as the cluster says."""
    given = _given_certificate(settings)
    if given is not None:
        return ReloadingTls(given, lambda: None, trusted), lambda: announce(port, given.serving)
    renew = partial(ensure_serving, settings.data, _names(settings))
    files: Files = renew()
    return ReloadingTls(files, renew, trusted), lambda: announce(port, files.ca)


def _given_certificate(settings: Settings) -> GivenCertificate | None:
    if settings.tls_secret:  # of which there is a copy
        files = Files.under(settings.data)
        return GivenCertificate(files.serving, files.serving_key)
    if settings.tls_cert_file and settings.tls_private_key_file:
        return GivenCertificate(settings.tls_cert_file, settings.tls_private_key_file)
    return None


@asynccontextmanager
async def _shared_certificate(settings: Settings, client: KubeClient) -> AsyncIterator[None]:
    """Have a certificate that is shared with the other servers, and look after it.

    Raises:
        ClusterUnusable: the Secret cannot be used.
    """
    namespace, name = settings.tls_secret.split("/")
    shared = SharedServing(client, namespace, name, _names(settings), settings.data)
    await shared.start()
    looking = asyncio.create_task(shared.run())
    try:
        yield
    finally:
        looking.cancel()


def _names(settings: Settings) -> tuple[str, ...]:
    hosts = (settings.host,) if is_specific(settings.host) else ()
    return tuple(dict.fromkeys((*LOCAL_HOSTS, *hosts, *settings.tls_names)))
