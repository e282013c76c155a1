"""The package service wired as in production, in this process, on a real database and a real Git remote."""

import asyncio
import base64
import subprocess
import uuid
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from apiserver.engine.claims import Claims
from apiserver.engine.draft_writing import DraftWriter
from apiserver.engine.engine_metrics import EngineMetrics, MeasuredRenderer
from apiserver.engine.import_rendering import ImportRendering
from apiserver.engine.package_index import RESOURCE, PackageIndex, revision_fields
from apiserver.engine.proposals import Proposals
from apiserver.engine.recording import Recorder
from apiserver.engine.remote_access import AccessOptions
from apiserver.engine.rendering import ThreadRenderer
from apiserver.engine.repositories import RESOURCE as REPOSITORIES
from apiserver.engine.repositories import Held, Options, Repositories
from apiserver.engine.service import PackageService
from apiserver.engine.tasks import StartingContents
from apiserver.engine.upstream_clones import UpstreamClones
from apiserver.resources.revision_ownership import FileManagers
from apiserver.rules.lifecycle import Door
from krm.functions.builtins import BuiltinRunner
from krm.package.contents import File
from storage.bodies import decode, encode_body
from storage.interfaces import Entry, Mutation, ObjectKey, Op
from storage.sealing import Sealer
from storage.sql.log import LogDatabase
from storage.sql.migrate import upgrade
from storage.sql.sqlite import sqlite_database
from storage.watchcache.store import WatchedStore

Json = dict[str, Any]
NAMESPACE = "ns"
SLOW = 20.0
"""Seconds after which something that should happen is given up."""


def git(path: Path, *arguments: str) -> str:
    """Run git in a repository and return what it prints."""
    command = ["git", "-c", "user.name=other", "-c", "user.email=other@example.com", "-C", str(path), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def new_remote(path: Path) -> Path:
    """Make a bare repository with one commit on main."""
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(path)], check=True)
    tree = git(path, "write-tree")
    commit = git(path, "commit-tree", tree, "-m", "Initial commit")
    git(path, "update-ref", "refs/heads/main", commit)
    return path


class CollectedEvents:
    """Keeps what the engine reports: (name of the object, reason, message, warning)."""

    def __init__(self) -> None:
        self.reported: list[tuple[str, str, str, bool]] = []

    def report(self, body: Json, reason: str, message: str, *, warning: bool = False) -> None:
        """Keep a report."""
        self.reported.append((body["metadata"]["name"], reason, message, warning))


@dataclass
class Engine:
    """A running engine and shortcuts to what tests do with it."""

    store: WatchedStore
    index: PackageIndex
    claims: Claims
    repositories: Repositories
    events: CollectedEvents
    service: PackageService
    registry: CollectorRegistry

    async def register(self, name: str, remote: Path, *, deployment: bool = False) -> Held:
        """Register a directory and wait until it was read."""
        return await self.register_url(name, remote.as_uri(), deployment=deployment)

    async def register_url(
        self, name: str, url: str, *, deployment: bool = False, secret: str = "", seconds: float = SLOW
    ) -> Held:
        """Register a repository and wait until it was read."""
        git: Json = {"repo": url, "branch": "main"} | ({"secretRef": {"name": secret}} if secret else {})
        body: Json = {
            "apiVersion": "config.porch.kpt.dev/v1alpha1",
            "kind": "Repository",
            "metadata": {"name": name, "namespace": NAMESPACE, "uid": str(uuid.uuid4()), "generation": 1},
            "spec": {"type": "git", "deployment": deployment, "git": git},
        }
        key = ObjectKey(REPOSITORIES, NAMESPACE, name)
        if self.store.get(key) is None:
            uid = body["metadata"]["uid"]
            await self.store.write([Mutation(key, Op.CREATE, 0, uid, encode_body(body))])
        held = self.repositories.get(NAMESPACE, name)
        await eventually(lambda: held.repository.synced, seconds)
        return held

    async def secret(self, name: str, type_: str, **data: str) -> None:
        """Create a Secret, or replace what is in it."""
        key = ObjectKey("secrets", NAMESPACE, name)
        encoded = {field: base64.b64encode(value.encode()).decode() for field, value in data.items()}
        entry = self.store.get(key)
        uid = entry.uid if entry else str(uuid.uuid4())
        metadata = {"name": name, "namespace": NAMESPACE, "uid": uid}
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": type_, "data": encoded}
        op, rv = (Op.UPDATE, entry.rv) if entry else (Op.CREATE, 0)
        await self.store.write([Mutation(key, op, rv, uid, encode_body(body))])

    async def create(
        self,
        package: str,
        repository: str = "repo",
        workspace: str = "v1",
        task: Json | None = None,
        **spec_fields: Any,
    ) -> Entry:
        """Create a draft, by init unless a task is given."""
        spec: Json = {"repository": repository, "packageName": package, "workspaceName": workspace, **spec_fields}
        if task:
            spec["tasks"] = [task]
        return await self.service.create(NAMESPACE, {"metadata": {}, "spec": spec}, "alice", dry_run=False)

    async def save(self, name: str, **files: str) -> Entry:
        """Add or replace text files of a draft."""

        def resources(entry: Entry, contents: dict[str, File]) -> tuple[Json, list[str], FileManagers]:
            texts = {path: file.data.decode() for path, file in contents.items()}
            texts |= {path.replace("_", "."): text for path, text in files.items()}
            return (
                {"metadata": {"resourceVersion": str(entry.rv)}, "spec": {"resources": texts}},
                [],
                FileManagers([], []),
            )

        return (await self.service.save(NAMESPACE, name, resources, "alice", dry_run=False))[0]

    async def move(self, name: str, lifecycle: str, door: Door = Door.MAIN) -> Entry:
        """Change the lifecycle through a door."""

        def change(body: Json) -> Json:
            body["spec"]["lifecycle"] = lifecycle
            return body

        return await self.service.update(NAMESPACE, name, change, "alice", door, dry_run=False)

    async def approve(self, name: str) -> Entry:
        """Approve a proposal."""
        return await self.move(name, "Published", Door.APPROVAL)

    async def delete(self, name: str) -> None:
        """Delete a revision."""
        await self.service.delete(NAMESPACE, name, lambda _entry: None, "alice", dry_run=False)

    def entry(self, name: str) -> Entry | None:
        """Return a revision."""
        return self.store.get(ObjectKey(RESOURCE, NAMESPACE, name))

    def body(self, name: str) -> Json:
        """Return a revision, decoded; it must exist."""
        entry = self.entry(name)
        assert entry is not None, f"{name} does not exist"
        return decode(entry)

    async def contents(self, name: str) -> dict[str, File]:
        """Return a revision's files."""
        entry = self.entry(name)
        assert entry is not None
        return await self.service.contents(entry)

    async def sync(self, name: str = "repo") -> None:
        """Sync a repository now."""
        await self.repositories.get(NAMESPACE, name).queue.synchronize()


async def eventually(check: Callable[[], object], seconds: float = SLOW) -> None:
    """Wait until ``check`` is true."""
    async with asyncio.timeout(seconds):
        while not check():
            await asyncio.sleep(0.01)


@asynccontextmanager
async def running_engine(
    folder: Path,
    *,
    push_drafts: str = "async",
    push_delay: float = 0.05,
    sync_interval: float = 3600,
    database: LogDatabase | None = None,
) -> AsyncIterator[Engine]:
    """Run an engine on ``folder``; leaving the block ends it as a stopped server would.

    ``database`` is migrated already; without one it is a SQLite file in the folder.
    """
    if database is None:
        upgrade(folder / "porch.db")
        database = sqlite_database(folder / "porch.db")
    store = WatchedStore(database, Sealer(b"k" * 32))
    pool = ThreadPoolExecutor(4)
    index, events = PackageIndex(), CollectedEvents()
    recorder = Recorder(store, index)
    registry = CollectorRegistry()
    metrics = EngineMetrics(registry)
    claims, proposals = Claims(metrics.claim_refused, store.claim), Proposals(metrics.approved)
    options = Options(
        folder / "clones",
        sync_interval=sync_interval,
        access=AccessOptions(timeout=10),
        push_drafts=push_drafts,
        push_delay=push_delay,
    )
    repositories = Repositories(store, index, recorder, claims, options, pool, events, metrics)
    renderer, writer = (
        MeasuredRenderer(ThreadRenderer(pool, BuiltinRunner()), metrics),
        DraftWriter(recorder, repositories, push_drafts),
    )
    starting = StartingContents(store, repositories, UpstreamClones(folder / "upstreams"))
    service = PackageService(
        store, index, recorder, repositories, claims, renderer, starting, writer, events, proposals
    )
    imports = ImportRendering(store, recorder, repositories, claims, renderer, starting, writer, events)
    store.register(RESOURCE, revision_fields)
    store.register(REPOSITORIES, lambda body: (body["metadata"].get("labels") or {}, ()))
    store.register("secrets", lambda _body: ({}, ()), sealed=True)
    store.register("namespaces", lambda _body: ({}, ()))
    store.observe(RESOURCE, index.observe)
    store.observe(RESOURCE, proposals.observe)
    store.observe(RESOURCE, imports.observe)
    store.observe(REPOSITORIES, repositories.observe)
    store.observe("secrets", repositories.observe_secret)
    await store.start()
    repositories.start()
    imports.start()
    try:
        metrics.read_figures(repositories.figures)
        metrics.read_longest_wait(proposals.longest_wait)
        yield Engine(store, index, claims, repositories, events, service, registry)
    finally:
        await imports.stop()
        await repositories.stop()
        await store.stop()
        pool.shutdown()
