"""Every registered repository: opened, synced in the background, its Ready condition kept, closed when deleted.

A repository that hangs, refuses or is not Git holds up nobody but itself: it has its own queue and its own thread, is
retried with back-off and can be deleted at any time. Source: ``porch-api.md`` 1.9 and 7.3.
"""

import asyncio
import contextlib
import hashlib
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import structlog

from apiserver.engine.claims import Claims
from apiserver.engine.drafts import DraftJob
from apiserver.engine.package_index import PackageIndex
from apiserver.engine.recording import Recorder, delete_mutation
from apiserver.engine.registered import RegisteredRepository, RepositorySettings, read_settings
from apiserver.engine.remote_queue import RemoteQueue
from apiserver.engine.revision_body import timestamp
from apiserver.engine.sync import Synchronizer
from krm.meta.errors import NotFound, ResourceName, StatusError
from storage.bodies import decode, encode_body
from storage.git.errors import GitError
from storage.interfaces import (
    Entry,
    Event,
    EventType,
    Mutation,
    ObjectKey,
    ObjectStore,
    Op,
    StaleWrite,
    StoreUnavailable,
)

Json = dict[str, Any]
log = structlog.get_logger(__name__)

RESOURCE = "repositories.config.porch.kpt.dev"
NAME = ResourceName("repositories", "config.porch.kpt.dev")
FINALIZER = "config.porch.kpt.dev/repository"
FIRST_RETRY, LAST_RETRY = 1.0, 300.0
"""Seconds between attempts to read a repository that fails; doubled each time."""
WRITE_CHUNK = 500
FLUSH_SECONDS = 5.0
"""How long a repository that is unregistered may take to push its last drafts."""


class Readiness(StrEnum):
    """Reasons of the Ready condition."""

    RECONCILING = "Reconciling"
    READY = "Ready"
    ERROR = "Error"


@dataclass(frozen=True, slots=True)
class Options:
    """How repositories are kept; times in seconds."""

    folder: Path
    sync_interval: float = 60.0
    git_timeout: float = 60.0
    push_drafts: str = "async"
    max_parallel_syncs: int = 4
    push_delay: float = 0.5
    """A draft waits this long for further edits, or its approval, before it is pushed."""


@dataclass(slots=True)
class Held:
    """A repository in use and the tasks that serve it."""

    repository: RegisteredRepository
    queue: RemoteQueue
    synchronizer: Synchronizer
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    dirty: asyncio.Event = field(default_factory=asyncio.Event)
    tasks: list[asyncio.Task[None]] = field(default_factory=list)


class Repositories:
    """The registered repositories by (namespace, name)."""

    def __init__(
        self,
        store: ObjectStore,
        index: PackageIndex,
        recorder: Recorder,
        claims: Claims,
        options: Options,
        pool: ThreadPoolExecutor,
    ) -> None:
        self._store = store
        self._index = index
        self._recorder = recorder
        self._claims = claims
        self._options = options
        self._pool = pool
        self._held: dict[tuple[str, str], Held] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._running = False
        self._reading = asyncio.Semaphore(options.max_parallel_syncs)

    # --- asked by the service ------------------------------------------------------------

    def get(self, namespace: str, name: str) -> Held:
        """Return a registered repository that is not being deleted.

        Raises:
            NotFound: there is none of that name in the namespace.
        """
        held = self._held.get((namespace, name))
        if held is None:
            raise NotFound.of(NAME, name)
        return held

    def mark_dirty(self, namespace: str, name: str) -> None:
        """Say that the outbox of a repository holds something new."""
        if held := self._held.get((namespace, name)):
            held.dirty.set()

    # --- life ------------------------------------------------------------------------------

    def observe(self, event: Event) -> None:
        """Follow Repository objects; called by the store for each event."""
        if self._running:
            self._follow(event)

    def start(self) -> None:
        """Begin to serve every Repository in the store."""
        self._running = True
        registered = set()
        for entry in self._store.snapshot(RESOURCE):
            registered.add((entry.namespace, entry.name))
            self._follow(Event(entry.rv, EventType.ADDED, entry, None))
        for key in set(self._index.repositories()) - registered:
            self._forget(key, None, None)  # the server stopped while the repository was being removed

    async def stop(self) -> None:
        """End all background work; what is acknowledged stays in the outbox."""
        self._running = False
        tasks = [task for held in self._held.values() for task in held.tasks] + list(self._closing)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _follow(self, event: Event) -> None:
        key = (event.entry.namespace, event.entry.name)
        if event.type is EventType.DELETED:
            self._close(key, None)
            return
        body = decode(event.entry)
        if body["metadata"].get("deletionTimestamp"):
            self._close(key, event.entry)
            return
        settings = read_settings(body)
        held = self._held.get(key)
        if held is None:
            self._held[key] = self._open(settings)
        elif held.repository.settings != settings:
            held.repository.settings = settings
            held.wake.set()

    def _open(self, settings: RepositorySettings) -> Held:
        folder = self._folder(settings)
        repository = RegisteredRepository(settings, folder, self._store, self._pool, self._options.git_timeout)
        synchronizer = Synchronizer(repository, self._store, self._index, self._recorder, self._reading)
        held = Held(repository, RemoteQueue(repository, synchronizer.sync), synchronizer)
        held.tasks.append(asyncio.create_task(self._keep_synced(held)))
        if self._options.push_drafts != "sync":
            held.tasks.append(asyncio.create_task(self._keep_pushed(held)))
        held.dirty.set()
        return held

    def _folder(self, settings: RepositorySettings) -> Path:
        """Return where the clone lies; a repository registered anew under the same name gets a new one."""
        digest = hashlib.sha256(f"{settings.key}\n{settings.uid}".encode()).hexdigest()[:16]
        return self._options.folder / f"{settings.name}-{digest}.git"

    def _close(self, key: tuple[str, str], entry: Entry | None) -> None:
        """Stop serving a repository; ``entry`` is its object when a finalizer has to be taken off."""
        held = self._held.pop(key, None)
        if held is None and entry is None:
            return
        folder = held.repository.folder if held else self._folder(read_settings(decode(entry))) if entry else None
        self._forget(key, held, folder)

    def _forget(self, key: tuple[str, str], held: Held | None, folder: Path | None) -> None:
        task = asyncio.create_task(self._unregister(key, held, folder))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    # --- background ------------------------------------------------------------------------

    async def _keep_synced(self, held: Held) -> None:
        retry = FIRST_RETRY
        await self._begin(held)
        while True:
            held.wake.clear()
            try:
                changed = await self._sync(held)
            except (GitError, StatusError, StoreUnavailable) as error:
                await self._report(held, ready=False, message=str(error), synced=False)
                delay, retry = retry, min(retry * 2, LAST_RETRY)
            except Exception:
                log.exception("sync failed unexpectedly", repository=held.repository.settings.key)
                await self._report(
                    held, ready=False, message="unexpected error; the server's log says why", synced=False
                )
                delay, retry = retry, min(retry * 2, LAST_RETRY)
            else:
                await self._report(held, ready=True, message="Repository Ready", synced=changed)
                delay, retry = self._options.sync_interval, FIRST_RETRY
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(delay):
                    await held.wake.wait()

    async def _sync(self, held: Held) -> bool:
        settings = held.repository.settings
        if settings.type != "git":
            raise GitError(f"repositories of type {settings.type} are not supported; register a Git repository")
        await held.repository.open()
        before = held.repository.synced
        refs = dict(held.repository.clone.refs)
        await held.queue.synchronize()
        return not before or refs != dict(held.repository.clone.refs)

    async def _keep_pushed(self, held: Held) -> None:
        """Push parcels soon after they were written, and again after a failure."""
        retry = FIRST_RETRY
        while True:
            await held.dirty.wait()
            await asyncio.sleep(self._options.push_delay)
            if not held.repository.synced:
                await asyncio.sleep(self._options.push_delay)
                continue
            held.dirty.clear()
            try:
                again = await self._push_parcels(held)
            except (StatusError, GitError, StoreUnavailable) as error:
                log.warning("drafts wait for their remote", repository=held.repository.settings.key, problem=str(error))
            except Exception:
                log.exception("drafts could not be pushed", repository=held.repository.settings.key)
            else:
                retry = FIRST_RETRY
                if again:
                    held.dirty.set()
                continue
            # A new save does not wait for what the remote refused.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(retry):
                    await held.dirty.wait()
            retry = min(retry * 2, LAST_RETRY)
            held.dirty.set()

    async def _push_parcels(self, held: Held) -> bool:
        """Push what the outbox holds; return whether something was postponed."""
        settings = held.repository.settings
        parcels = await self._store.outbox.parcels(settings.key)
        if self._options.push_drafts == "never":
            parcels = [parcel for parcel in parcels if parcel.seen]
        jobs = [DraftJob(held.repository, self._store, self._recorder, self._claims, parcel) for parcel in parcels]
        results = await asyncio.gather(*(held.queue.submit(job) for job in jobs), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return any(job.postponed for job in jobs)

    async def _unregister(self, key: tuple[str, str], held: Held | None, folder: Path | None) -> None:
        """Push the last drafts if the remote answers, forget everything of the repository, leave Git as it is."""
        namespace, name = key
        if held is not None:
            for task in held.tasks:
                task.cancel()
            await asyncio.gather(*held.tasks, return_exceptions=True)
            if held.repository.synced and self._options.push_drafts != "never":
                await self._push_last(held)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(FLUSH_SECONDS):
                    await held.queue.close()
        await self._forget_revisions(namespace, name)
        await self._store.outbox.drop_repository(f"{namespace}/{name}")
        await self._release(namespace, name)
        if folder is not None:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    async def _push_last(self, held: Held) -> None:
        """Push what is acknowledged and not in the remote yet; the repository goes even when that fails."""
        try:
            async with asyncio.timeout(FLUSH_SECONDS):
                await self._push_parcels(held)
        except (StatusError, GitError, StoreUnavailable, TimeoutError) as error:
            key = held.repository.settings.key
            problem = str(error) or "the remote did not answer in time"
            log.warning("unregistered with drafts that were never pushed", repository=key, problem=problem)

    async def _forget_revisions(self, namespace: str, name: str) -> None:
        while entries := list(self._index.revisions(namespace, name))[:WRITE_CHUNK]:
            with contextlib.suppress(StaleWrite):
                await self._recorder.write([delete_mutation(entry, "porch-sync") for entry in entries])

    async def _release(self, namespace: str, name: str) -> None:
        """Take our finalizer off; the object goes with its last one."""

        def release(body: Json) -> bool:
            finalizers = body["metadata"].get("finalizers") or []
            body["metadata"]["finalizers"] = [f for f in finalizers if f != FINALIZER]
            return not body["metadata"]["finalizers"]

        await self._rewrite(namespace, name, release)

    # --- status ------------------------------------------------------------------------------

    async def _begin(self, held: Held) -> None:
        """Say of a repository that was never read that it is being read; a remote that hangs takes long to fail."""
        settings = held.repository.settings

        def begin(body: Json) -> bool:
            status = body.setdefault("status", {})
            if not status.get("conditions"):
                set_ready(status, Readiness.RECONCILING, "Repository reconciliation in progress", settings.generation)
            return False

        await self._write_status(settings, begin)

    async def _report(self, held: Held, *, ready: bool, message: str, synced: bool) -> None:
        """Write the Ready condition and counters, only when they change."""
        settings = held.repository.settings
        head = held.repository.branch_head() if held.repository.synced else None
        count = sum(1 for _ in self._index.revisions(settings.namespace, settings.name))

        def report(body: Json) -> bool:
            status = body.setdefault("status", {})
            status["observedGeneration"] = settings.generation
            if ready:
                status["packageCount"] = count
                if head:
                    status["gitCommitHash"] = head
                if synced:
                    status["lastFullSyncTime"] = timestamp()
            set_ready(status, Readiness.READY if ready else Readiness.ERROR, message, settings.generation)
            return False

        await self._write_status(settings, report)

    async def _write_status(self, settings: RepositorySettings, change: Callable[[Json], bool]) -> None:
        try:
            await self._rewrite(settings.namespace, settings.name, change)
        except (StoreUnavailable, StatusError) as error:
            log.warning("a repository's status could not be written", repository=settings.key, problem=str(error))

    async def _rewrite(self, namespace: str, name: str, change: Callable[[Json], bool]) -> None:
        """Change a Repository object; ``change`` returns whether the object is to be removed."""
        while True:
            entry = self._store.get(ObjectKey(RESOURCE, namespace, name))
            if entry is None:
                return
            body = decode(entry)
            remove = change(body) and bool(body["metadata"].get("deletionTimestamp"))
            encoded = encode_body(body)
            if encoded == encode_body(decode(entry)) and not remove:
                return
            op = Op.DELETE if remove else Op.UPDATE
            with contextlib.suppress(StaleWrite):
                await self._store.write([Mutation(entry.key, op, entry.rv, entry.uid, encoded, "porch-sync")])
                return


def set_ready(status: Json, readiness: Readiness, message: str, generation: int) -> None:
    """Set the Ready condition; the transition time moves only with the status."""
    conditions = [c for c in status.get("conditions") or [] if c.get("type") != "Ready"]
    old = next((c for c in status.get("conditions") or [] if c.get("type") == "Ready"), None)
    value = "True" if readiness is Readiness.READY else "False"
    moved = old is None or old.get("status") != value
    conditions.append(
        {
            "type": "Ready",
            "status": value,
            "reason": str(readiness),
            "message": message,
            "observedGeneration": generation,
            "lastTransitionTime": timestamp() if moved or old is None else old["lastTransitionTime"],
        }
    )
    status["conditions"] = conditions
