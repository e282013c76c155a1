"""The part of standalone's composition root that is about packages: the engine, its clones, and who renders."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from apiserver.engine.claims import Claims
from apiserver.engine.draft_writing import DraftWriter
from apiserver.engine.engine_metrics import EngineMetrics, MeasuredRenderer
from apiserver.engine.function_options import FunctionOptions
from apiserver.engine.import_rendering import ImportRendering
from apiserver.engine.package_index import RESOURCE, PackageIndex, revision_fields
from apiserver.engine.proposals import Proposals
from apiserver.engine.recording import Recorder
from apiserver.engine.remote_access import AccessOptions
from apiserver.engine.render_pool import RenderPool
from apiserver.engine.rendering import (
    RENDER_CACHE,
    RENDER_SECONDS,
    WAITING_RENDERS,
    CachedRenderer,
    RendererByWork,
    ThreadRenderer,
)
from apiserver.engine.repositories import RESOURCE as REPOSITORIES
from apiserver.engine.repositories import SECRETS, Options, Repositories
from apiserver.engine.repository_claims import RepositoryClaims
from apiserver.engine.service import PackageService
from apiserver.engine.tasks import StartingContents
from apiserver.engine.upstream_clones import UpstreamClones
from apiserver.machinery.rest import Served
from apiserver.resources.config import repository_definition
from apiserver.resources.objects import NamespaceCheck, StatusOf, StoredObjects
from apiserver.resources.packagerevisionresources import PackageRevisionResources
from apiserver.resources.packagerevisions import PackageRevisionApproval, PackageRevisions
from apiserver.resources.porchpackages import PorchPackages
from apiserver.resources.queued_events import QueuedEvents
from apiserver.resources.repositories import RegisteredRepositories
from apiserver.settings import Settings
from krm.functions.render_cache import RenderCache
from storage.git.network import NetworkPolicy
from storage.interfaces import Entry, ObjectStore


class Packages:
    """Everything about packages, wired for one store. Nothing is opened before ``start``."""

    def __init__(
        self,
        settings: Settings,
        store: ObjectStore,
        namespace_check: NamespaceCheck,
        events: QueuedEvents,
        metrics: EngineMetrics,
    ) -> None:
        self._store = store
        self._events = events
        self._pool = ThreadPoolExecutor(settings.git_threads, thread_name_prefix="work")
        self._index, self._claims = PackageIndex(), RepositoryClaims()
        self._proposals = Proposals(metrics.approved)
        functions = _functions(settings)
        self._workers = RenderPool(
            functions,
            size=settings.render_workers,
            waiting=WAITING_RENDERS,
            seconds=RENDER_SECONDS,
            looked_up=metrics.functions_looked_up,
        )
        recorder, claims = Recorder(store, self._index), Claims(metrics.claim_refused, store.claim)
        self._repositories = Repositories(
            store, self._index, recorder, claims, _options(settings), self._pool, events, metrics
        )
        metrics.read_figures(self._repositories.figures)
        metrics.read_longest_wait(self._proposals.longest_wait)
        renderer = MeasuredRenderer(
            RendererByWork(
                quick=ThreadRenderer(self._pool, functions.runner()),
                slow=CachedRenderer(self._pool, self._workers, RenderCache(RENDER_CACHE), metrics.render_looked_up),
            ),
            metrics,
        )
        starting = StartingContents(store, self._repositories, _upstream_clones(settings))
        writer = DraftWriter(recorder, self._repositories, settings.push_drafts)
        service = PackageService(
            store,
            self._index,
            recorder,
            self._repositories,
            claims,
            renderer,
            starting,
            writer,
            events,
            self._proposals,
        )
        self._imports = ImportRendering(store, recorder, self._repositories, claims, renderer, starting, writer, events)
        registered = RegisteredRepositories(
            StoredObjects(repository_definition(), store, namespace_check=namespace_check), self._claims, store
        )
        revisions = PackageRevisions(store, service, namespace_check)
        self.served: Sequence[Served] = [
            Served(registered, {"status": StatusOf(registered.stored)}),
            Served(revisions, {"approval": PackageRevisionApproval(revisions, service)}, deleted_as_object=True),
            Served(PackageRevisionResources(store, service)),
            Served(PorchPackages(store, self._index)),
        ]

    def revisions_of(self, namespace: str, repository: str, package: str) -> Sequence[Entry]:
        """Return the revisions of a package; may be asked in any thread."""
        found = self._index.package(namespace, repository, package)
        return [] if found is None else list(found.revisions.values())

    def follow(self) -> None:
        """Keep up with revisions and Repositories; to be called once Repositories are registered, before the store starts."""
        self._store.register(RESOURCE, revision_fields)
        self._store.observe(RESOURCE, self._index.observe)
        self._store.observe(RESOURCE, self._proposals.observe)
        self._store.observe(RESOURCE, self._imports.observe)
        self._store.observe(REPOSITORIES, self._claims.observe)
        self._store.observe(REPOSITORIES, self._repositories.observe)
        self._store.observe(SECRETS, self._repositories.observe_secret)

    def start(self) -> None:
        """Begin to sync; to be called once the store has started."""
        self._events.start()
        self._repositories.start()
        self._imports.start()

    async def stop(self) -> None:
        """Push what was acknowledged, as far as there is time, and begin no more; before the store stops."""
        await self._imports.stop()
        await self._repositories.stop()
        await self._events.stop()

    async def close(self) -> None:
        """End the worker processes and threads; after the store has stopped."""
        await self._workers.close()
        self._pool.shutdown(wait=False, cancel_futures=True)


def _options(settings: Settings) -> Options:
    return Options(
        folder=settings.data / "clones",
        sync_interval=settings.sync_interval,
        full_sync_interval=settings.full_sync_interval,
        access=remote_access_options(settings),
        push_drafts=settings.push_drafts,
        max_parallel_syncs=settings.max_parallel_syncs,
    )


def remote_access_options(settings: Settings) -> AccessOptions:
    """Return how remotes may be reached."""
    return AccessOptions(
        timeout=settings.git_timeout,
        network=NetworkPolicy(tuple(settings.denied_networks)),
        known_hosts=settings.ssh_known_hosts,
        local=settings.local_repositories,
        private=(settings.data / "clones", settings.data / "upstreams"),
    )


def _upstream_clones(settings: Settings) -> UpstreamClones:
    return UpstreamClones(settings.data / "upstreams", settings.upstream_clones_size)


def _functions(settings: Settings) -> FunctionOptions:
    return FunctionOptions(
        executables=settings.function_executables,
        container_runtime=settings.container_runtime,
        schema_directory=settings.schema_directory,
        environment=settings.function_environment,
    )
