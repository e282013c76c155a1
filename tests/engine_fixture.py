"""The package service wired as in production, in this process, on a real SQLite file and a real Git remote."""

import asyncio
import subprocess
import uuid
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apiserver.engine.claims import Claims
from apiserver.engine.draft_writing import DraftWriter
from apiserver.engine.package_index import RESOURCE, PackageIndex, revision_fields
from apiserver.engine.recording import Recorder
from apiserver.engine.rendering import ThreadRenderer
from apiserver.engine.repositories import RESOURCE as REPOSITORIES
from apiserver.engine.repositories import Held, Options, Repositories
from apiserver.engine.service import PackageService
from apiserver.engine.tasks import StartingContents
from apiserver.resources.revision_ownership import FileManagers
from apiserver.rules.lifecycle import Door
from krm.functions.builtins import BuiltinRunner
from krm.package.contents import File
from storage.bodies import decode, encode_body
from storage.interfaces import Entry, Mutation, ObjectKey, Op
from storage.sealing import Sealer
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


@dataclass
class Engine:
    """A running engine and shortcuts to what tests do with it."""

    store: WatchedStore
    index: PackageIndex
    claims: Claims
    repositories: Repositories
    service: PackageService

    async def register(self, name: str, remote: Path, *, deployment: bool = False) -> Held:
        """Register a repository and wait until it was read."""
        body: Json = {
            "apiVersion": "config.porch.kpt.dev/v1alpha1",
            "kind": "Repository",
            "metadata": {"name": name, "namespace": NAMESPACE, "uid": str(uuid.uuid4()), "generation": 1},
            "spec": {"type": "git", "deployment": deployment, "git": {"repo": remote.as_uri(), "branch": "main"}},
        }
        key = ObjectKey(REPOSITORIES, NAMESPACE, name)
        if self.store.get(key) is None:
            uid = body["metadata"]["uid"]
            await self.store.write([Mutation(key, Op.CREATE, 0, uid, encode_body(body))])
        held = self.repositories.get(NAMESPACE, name)
        await eventually(lambda: held.repository.synced)
        return held

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


async def eventually(check: Callable[[], object]) -> None:
    """Wait until ``check`` is true."""
    async with asyncio.timeout(SLOW):
        while not check():
            await asyncio.sleep(0.01)


@asynccontextmanager
async def running_engine(
    folder: Path, *, push_drafts: str = "async", push_delay: float = 0.05, sync_interval: float = 3600
) -> AsyncIterator[Engine]:
    """Run an engine on ``folder``; leaving the block ends it as a stopped server would."""
    database = folder / "porch.db"
    upgrade(database)
    store = WatchedStore(sqlite_database(database), Sealer(b"k" * 32))
    pool = ThreadPoolExecutor(4)
    index, claims = PackageIndex(), Claims()
    recorder = Recorder(store, index)
    options = Options(
        folder / "clones", sync_interval=sync_interval, git_timeout=10, push_drafts=push_drafts, push_delay=push_delay
    )
    repositories = Repositories(store, index, recorder, claims, options, pool)
    service = PackageService(
        store,
        index,
        recorder,
        repositories,
        claims,
        ThreadRenderer(pool, BuiltinRunner()),
        StartingContents(store, repositories, folder / "upstreams", 10),
        DraftWriter(recorder, repositories, push_drafts),
    )
    store.register(RESOURCE, revision_fields)
    store.register(REPOSITORIES, lambda body: (body["metadata"].get("labels") or {}, ()))
    store.register("secrets", lambda _body: ({}, ()), sealed=True)
    store.register("namespaces", lambda _body: ({}, ()))
    store.observe(RESOURCE, index.observe)
    store.observe(REPOSITORIES, repositories.observe)
    await store.start()
    repositories.start()
    try:
        yield Engine(store, index, claims, repositories, service)
    finally:
        await repositories.stop()
        await store.stop()
        pool.shutdown()
