"""Every registered repository: opened, synced in the background, its Ready condition kept, closed when deleted.

A repository that hangs, refuses or is not Git holds up nobody but itself: it has its own queue and its own thread, is
retried with back-off and can be deleted at any time. Source: ``porch-api.md`` 1.9 and 7.3.
"""

import asyncio
import contextlib
import hashlib
import shutil
import time
from collections import Counter
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import structlog

from apiserver.engine.back_off import BackOff, UnsupportedRepository
from apiserver.engine.claims import Claims
from apiserver.engine.draft_adoption import adopt_drafts
from apiserver.engine.draft_pushing import DraftPusher
from apiserver.engine.engine_metrics import EngineFigures, EngineMetrics
from apiserver.engine.held_repository import Held, Options
from apiserver.engine.log_context import enter_background
from apiserver.engine.package_index import PackageIndex
from apiserver.engine.push_refusals import PushRefusals
from apiserver.engine.recording import SYNC_ACTOR, Recorder, delete_mutation
from apiserver.engine.registered import RegisteredRepository, RepositorySettings, read_settings, turn_at
from apiserver.engine.remote_access import CA_BUNDLE, RemoteAccess
from apiserver.engine.remote_queue import RemoteQueue
from apiserver.engine.repository_status import FINALIZER, RESOURCE, RepositoryStatus, SyncOutcome
from apiserver.engine.revision_events import SYNC_FAILED, RevisionEvents
from apiserver.engine.sync import Synchronizer
from apiserver.rules.sync_plan import Rhythm, SyncWishes, Work, due, next_full, pause, read_wishes
from krm.meta.errors import NotFound, ResourceName, StatusError
from storage.bodies import decode
from storage.git.errors import GitError
from storage.git.objects import GitObject
from storage.interfaces import (
    Entry,
    Event,
    EventType,
    Mutation,
    NotOurTurn,
    ObjectKey,
    ObjectStore,
    StaleWrite,
    StoreUnavailable,
)
from storage.outbox import OutboxChange
from storage.turns import Turn

__all__ = ["FINALIZER", "RESOURCE", "Held", "Options", "Repositories"]

log = structlog.get_logger(__name__)

NAME = ResourceName("repositories", "config.porch.kpt.dev")
SECRETS = "secrets"
WRITE_CHUNK = 500
LOOKS_PER_SECOND = 50.0
"""Remotes that are looked at in a second after a start. A thousand at once kept the server from answering for half a minute;
until its turn a repository serves what the log and its clone hold."""
TURN_SECONDS = 1.0
"""Until a sync is begun anew that another replica overtook."""
RETRY_SECONDS = 2.0
"""Between attempts to forget a repository while the database cannot be written."""
FLUSH_SECONDS = 5.0
"""How long a repository that is unregistered may take to push its last drafts."""


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
        events: RevisionEvents,
        metrics: EngineMetrics,
    ) -> None:
        self._store = store
        self._index = index
        self._recorder = recorder
        self._options = options
        self._pool = pool
        self._events = events
        self._metrics = metrics
        self._status = RepositoryStatus(store)
        self.access = RemoteAccess(store, options.access)
        """How remotes are reached, registered ones and others."""
        self._claims = claims
        self._pusher = DraftPusher(store, recorder, claims, options)
        self._rhythm = Rhythm(timedelta(seconds=options.sync_interval), timedelta(seconds=options.full_sync_interval))
        self._held: dict[tuple[str, str], Held] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._leaving: dict[tuple[str, str], asyncio.Task[None]] = {}
        """Who is being unregistered."""
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

    def figures(self) -> EngineFigures:
        """Return the engine's state in numbers; may be called from any thread."""
        states: Counter[str] = Counter()
        drafts = size = 0
        oldest = oldest_sync = 0.0
        for held in list(self._held.values()):
            states["failing" if held.problem else "ready" if held.repository.synced else "starting"] += 1
            drafts, size = drafts + held.outbox.drafts, size + held.outbox.size
            oldest = max(oldest, held.outbox.waits())
            oldest_sync = max(oldest_sync, time.monotonic() - held.looked)
        lifecycles, claims = self._index.lifecycles.copy(), self._claims.count()
        return EngineFigures(lifecycles, states, oldest_sync, drafts, size, oldest, claims, self._store.rv)

    def _pushing(self) -> list[str]:
        """Return the repositories whose drafts are about to be pushed from here."""
        return [
            held.repository.settings.key
            for held in self._held.values()
            if held.outbox.drafts or held.dirty.is_set() or not held.repository.synced
        ]

    def _push_all(self, key: str) -> None:
        namespace, _, name = key.partition("/")
        self.mark_dirty(namespace, name)

    async def unpushed_commits(self, key: str, revision: str) -> list[GitObject]:
        """Return the commits of a draft that its remote is not known to have."""
        parcel = await self._store.outbox.parcel(key, revision)
        return [obj for obj in parcel.objects if obj.kind == "commit"] if parcel else []

    # --- life ------------------------------------------------------------------------------

    def observe(self, event: Event) -> None:
        """Follow Repository objects; called by the store for each event."""
        if self._running:
            self._follow(event)

    def observe_secret(self, event: Event) -> None:
        """Try again what failed in repositories whose credentials or certificates changed; called by the store."""
        if not self._running:
            return
        where, name = event.entry.namespace, event.entry.name
        for (namespace, _), held in self._held.items():
            concerned = name in (held.repository.settings.secret, f"{namespace}{CA_BUNDLE}")
            if namespace != where or not concerned:
                continue
            if held.problem:
                held.wake.set()
            if held.outbox.drafts:
                held.push_all_again()

    def start(self) -> None:
        """Begin to serve every Repository in the store."""
        self._running = True
        registered = set()
        for number, entry in enumerate(self._store.snapshot(RESOURCE)):
            registered.add((entry.namespace, entry.name))
            self._follow(Event(entry.rv, EventType.ADDED, entry, None), first_look=number / LOOKS_PER_SECOND)
        for key in set(self._index.repositories()) - registered:
            self._forget(key, None, None)  # the server stopped while the repository was being removed
        self._remove_clones({held.repository.folder for held in self._held.values()})
        if self._options.push_drafts != "never":
            self._aside(adopt_drafts(self._store, self._pushing, self._push_all))

    async def stop(self) -> None:
        """End all background work; what is acknowledged stays in the outbox."""
        self._running = False
        tasks = [task for held in self._held.values() for task in held.tasks] + list(self._closing)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _follow(self, event: Event, *, first_look: float = 0.0) -> None:
        key = (event.entry.namespace, event.entry.name)
        if event.type is EventType.DELETED:
            self._close(key, None)
            return
        body = decode(event.entry)
        if body["metadata"].get("deletionTimestamp"):
            self._close(key, event.entry)
            return
        settings, wishes = read_settings(body), read_wishes(body)
        held = self._held.get(key)
        if held is None:
            self._held[key] = self._open(settings, wishes, first_look)
            return
        # What the server itself wrote, a finished wish among it, is no reason to look again.
        told = (body.get("status") or {}).get("observedGeneration")
        changed = held.repository.settings != settings and told != settings.generation
        if changed or wishes.schedule != held.wishes.schedule or wishes.requested not in ("", held.wishes.requested):
            held.wake.set()
        held.repository.settings, held.wishes = settings, wishes

    def _open(self, settings: RepositorySettings, wishes: SyncWishes, first_look: float) -> Held:
        folder = self._folder(settings)
        repository = RegisteredRepository(settings, folder, self._store, self._pool, self.access)
        wake, dirty = asyncio.Event(), asyncio.Event()
        synchronizer = Synchronizer(
            repository, self._store, self._index, self._recorder, self._reading, self._events, dirty.set
        )
        refusals = PushRefusals(repository, self._store, self._status, self._events)
        queue = RemoteQueue(
            repository,
            self._metrics.measured_sync(synchronizer.sync),
            refusals,
            self._metrics,
            wake.set,
            synchronizer.read_ahead,
        )
        held = Held(repository, queue, synchronizer, wishes, wake=wake, dirty=dirty)
        held.tasks.append(asyncio.create_task(self._keep_synced(held, first_look)))
        # Also where drafts are pushed before they are acknowledged: the setting may have been another one before.
        held.tasks.append(asyncio.create_task(self._pusher.keep_pushed(held)))
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
        uid = held.repository.settings.uid if held else entry.uid if entry else ""
        self._forget(key, held, folder, uid)

    def _forget(self, key: tuple[str, str], held: Held | None, folder: Path | None, uid: str = "") -> None:
        task = self._leaving[key] = self._aside(self._unregister(key, held, folder, uid))
        task.add_done_callback(lambda _: self._left(key, task))

    def _left(self, key: tuple[str, str], task: asyncio.Task[None]) -> None:
        if self._leaving.get(key) is task:
            del self._leaving[key]

    def _aside(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Do something beside everything else, until it is done or the server stops."""
        task = asyncio.create_task(work)
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
        return task

    # --- syncing ---------------------------------------------------------------------------

    async def _keep_synced(self, held: Held, first_look: float) -> None:
        """Attend to a repository as long as it is registered, for the first time after ``first_look`` seconds."""
        settings = held.repository.settings
        enter_background(settings.key)
        back_off = BackOff()
        if (leaving := self._leaving.get((settings.namespace, settings.name))) is not None:
            await asyncio.wait([leaving])  # one of the same name, whose revisions are still being forgotten
        await self._status.begin(settings)
        if first_look:
            # A clone that cannot be opened is tried again, and reported, at the first look.
            with contextlib.suppress(GitError, StoreUnavailable):
                await held.repository.open()
            await _rest(held, first_look)
        while True:
            held.wake.clear()
            try:
                await self._attend(held)
            except NotOurTurn as error:
                log.info("another replica was first", repository=settings.key, problem=str(error))
                delay = TURN_SECONDS
            except (GitError, StatusError, StoreUnavailable) as error:
                await self._failed(held, str(error))
                delay = back_off.after(error)
            except Exception as error:
                log.exception("sync failed unexpectedly", repository=held.repository.settings.key)
                await self._failed(held, "unexpected error; the server's log says why")
                delay = back_off.after(error)
            else:
                back_off.reset()
                delay = self._pause(held)
            await _rest(held, delay)

    async def _attend(self, held: Held) -> None:
        """Do with a repository what is due, and say so in its status."""
        repository, wishes, began = held.repository, held.wishes, datetime.now(UTC)
        settings = repository.settings
        if settings.type != "git":
            raise UnsupportedRepository(
                f"repositories of type {settings.type} are not supported; register a Git repository"
            )
        await repository.open()
        work = due(wishes, self._rhythm, held.last_full, began)
        if work is Work.HEALTH and repository.synced and not repository.damaged:
            await held.synchronizer.check()
            changed = False
        else:
            if work is Work.EVERYTHING:
                held.synchronizer.compare_everything()
            changed = await self._sync(held)
        if work in (Work.FULL, Work.EVERYTHING) or changed:
            held.last_full = datetime.now(UTC)
        held.looked = time.monotonic()
        if held.problem:
            held.problem = ""
            held.push_all_again()
        await self._status.synced(settings, self._outcome(held, wishes, work, began))

    async def _sync(self, held: Held) -> bool:
        """Sync; return whether anything was read."""
        known, before = held.repository.synced, held.repository.clone.refs
        await held.queue.synchronize()
        return not known or before != held.repository.clone.refs

    def _outcome(self, held: Held, wishes: SyncWishes, work: Work, began: datetime) -> SyncOutcome:
        settings, last = held.repository.settings, held.last_full
        return SyncOutcome(
            revisions=self._index.count(settings.namespace, settings.name),
            head=held.repository.branch_head(),
            full_at=last,
            next_full_at=next_full(held.wishes, self._rhythm, last) if last else None,
            done=wishes.fulfilled(began) if work is Work.EVERYTHING else None,
        )

    def _pause(self, held: Held) -> float:
        """Return the seconds until something is to be done again."""
        now = datetime.now(UTC)
        return pause(held.wishes, self._rhythm, held.last_full or now, now).total_seconds()

    async def _failed(self, held: Held, message: str) -> None:
        settings = held.repository.settings
        held.last_full = None
        if message != held.problem:
            held.problem = message
            if (body := self._status.body(settings.namespace, settings.name)) is not None:
                self._events.report(body, SYNC_FAILED, message, warning=True)
        await self._status.failed(settings, message)

    # --- unregistering ---------------------------------------------------------------------

    async def _unregister(self, key: tuple[str, str], held: Held | None, folder: Path | None, uid: str) -> None:
        """Push the last drafts if the remote answers, forget everything of the repository, leave Git as it is."""
        namespace, name = key
        if held is not None:
            for task in held.tasks:
                task.cancel()
            await asyncio.gather(*held.tasks, return_exceptions=True)
            await self._pusher.push_last(held, FLUSH_SECONDS)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(FLUSH_SECONDS):
                    await held.queue.close()
        await self._forget_everything(namespace, name, uid)
        if folder is not None:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    async def _forget_everything(self, namespace: str, name: str, uid: str) -> None:
        """Forget a repository's revisions and let its object go, as soon as the database lets us."""
        while True:
            try:
                async with self._store.turn(turn_at(f"{namespace}/{name}")) as turn:
                    if await self._registered_anew(namespace, name, uid):
                        return
                    await self._forget_drafts(f"{namespace}/{name}", turn)
                    await self._forget_revisions(namespace, name, turn)
                    await self._status.release(namespace, name, uid)
            except (StoreUnavailable, StatusError) as error:
                key = f"{namespace}/{name}"
                log.warning("a repository cannot be unregistered yet", repository=key, problem=str(error))
                await asyncio.sleep(RETRY_SECONDS)
            else:
                return

    async def _registered_anew(self, namespace: str, name: str, uid: str) -> bool:
        """Tell whether another replica has forgotten the repository already, and its name is in use again.

        Whoever has the object is asked: news of a cluster may come later than what other replicas did upon them.

        Raises:
            StoreUnavailable: that cannot be told now.
        """
        if not self._store.shared:
            return False
        entry = await self._store.get_fresh(ObjectKey(RESOURCE, namespace, name))
        return entry is not None and entry.uid != uid

    def _remove_clones(self, used: set[Path]) -> None:
        """Remove the clones of repositories that are no longer registered, beside everything else."""
        unused = [path for path in self._options.folder.glob("*.git") if path not in used]
        if unused:
            self._aside(asyncio.to_thread(_remove_all, unused))

    async def _forget_drafts(self, key: str, turn: Turn) -> None:
        """Let go of what waits for the remote. Raises NotOurTurn: another replica goes on."""
        # The database writes in turn: what a sync that was just ended had begun to write is there after this one.
        await self._recorder.write([], [OutboxChange(key, "", drop=True)], turn)
        while heads := (await self._store.outbox.heads(key))[:WRITE_CHUNK]:
            await self._recorder.write([], [OutboxChange(key, head.revision, drop=True) for head in heads], turn)

    async def _forget_revisions(self, namespace: str, name: str, turn: Turn) -> None:
        while entries := list(islice(self._index.revisions(namespace, name), WRITE_CHUNK)):
            mutations = await asyncio.to_thread(_deletions, entries)
            with contextlib.suppress(StaleWrite):
                await self._recorder.write(mutations, (), turn)


async def _rest(held: Held, seconds: float) -> None:
    """Leave a repository alone for some seconds, or until something happens to it."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await held.wake.wait()


def _remove_all(folders: Sequence[Path]) -> None:
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def _deletions(entries: Sequence[Entry]) -> list[Mutation]:
    return [delete_mutation(entry, SYNC_ACTOR) for entry in entries]
