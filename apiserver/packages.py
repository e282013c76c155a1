"""The part of standalone's composition root that is about packages: the engine, its clones, and who renders."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from apiserver.engine.claims import Claims
from apiserver.engine.draft_writing import DraftWriter
from apiserver.engine.function_options import FunctionOptions
from apiserver.engine.package_index import RESOURCE, PackageIndex, revision_fields
from apiserver.engine.recording import Recorder
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
from apiserver.engine.repositories import Options, Repositories
from apiserver.engine.service import PackageService
from apiserver.engine.tasks import StartingContents
from apiserver.machinery.rest import Served
from apiserver.resources.config import repository_definition
from apiserver.resources.objects import NamespaceCheck, StatusOf, StoredObjects
from apiserver.resources.packagerevisionresources import PackageRevisionResources
from apiserver.resources.packagerevisions import PackageRevisionApproval, PackageRevisions
from apiserver.resources.repositories import RegisteredRepositories
from apiserver.settings import Settings
from krm.functions.render_cache import RenderCache
from storage.interfaces import ObjectStore


class Packages:
    """Everything about packages, wired for one store. Nothing is opened before ``start``."""

    def __init__(self, settings: Settings, store: ObjectStore, namespace_check: NamespaceCheck) -> None:
        self._store = store
        self._pool = ThreadPoolExecutor(settings.git_threads, thread_name_prefix="work")
        self._index = PackageIndex()
        functions = _functions(settings)
        self._workers = RenderPool(
            functions, size=settings.render_workers, waiting=WAITING_RENDERS, seconds=RENDER_SECONDS
        )
        recorder, claims = Recorder(store, self._index), Claims()
        self._repositories = Repositories(store, self._index, recorder, claims, _options(settings), self._pool)
        service = PackageService(
            store,
            self._index,
            recorder,
            self._repositories,
            claims,
            RendererByWork(
                quick=ThreadRenderer(self._pool, functions.runner()),
                slow=CachedRenderer(self._pool, self._workers, RenderCache(RENDER_CACHE)),
            ),
            StartingContents(store, self._repositories, settings.data / "upstreams", settings.git_timeout),
            DraftWriter(recorder, self._repositories, settings.push_drafts),
        )
        registered = RegisteredRepositories(
            StoredObjects(repository_definition(), store, namespace_check=namespace_check)
        )
        revisions = PackageRevisions(store, service, namespace_check)
        self.served: Sequence[Served] = [
            Served(registered, {"status": StatusOf(registered.stored)}),
            Served(revisions, {"approval": PackageRevisionApproval(revisions, service)}, deleted_as_object=True),
            Served(PackageRevisionResources(store, service)),
        ]

    def follow(self) -> None:
        """Keep up with revisions and Repositories; to be called once Repositories are registered, before the store starts."""
        self._store.register(RESOURCE, revision_fields)
        self._store.observe(RESOURCE, self._index.observe)
        self._store.observe(REPOSITORIES, self._repositories.observe)

    def start(self) -> None:
        """Begin to sync; to be called once the store has started."""
        self._repositories.start()

    async def stop(self) -> None:
        """Push what was acknowledged, as far as there is time, and begin no more; before the store stops."""
        await self._repositories.stop()

    async def close(self) -> None:
        """End the worker processes and threads; after the store has stopped."""
        await self._workers.close()
        self._pool.shutdown(wait=False, cancel_futures=True)


def _options(settings: Settings) -> Options:
    return Options(
        folder=settings.data / "clones",
        sync_interval=settings.sync_interval,
        git_timeout=settings.git_timeout,
        push_drafts=settings.push_drafts,
        max_parallel_syncs=settings.max_parallel_syncs,
    )


def _functions(settings: Settings) -> FunctionOptions:
    return FunctionOptions(
        executables=settings.function_executables,
        container_runtime=settings.container_runtime,
        schema_directory=settings.schema_directory,
        environment=settings.function_environment,
    )
