"""Bringing the log up to date with a remote: list refs, fetch what changed, read what changed, write the difference.

Runs inside the repository's queue, so it never meets a push of ours half-way. Source: ``porch-api.md`` 6.7, 7;
``decisions.md`` 8 and 9.
"""

import asyncio
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import structlog

from apiserver.engine.discovered import Difference, compare, settle_latest
from apiserver.engine.drafts import wanted_refs
from apiserver.engine.package_index import COMMIT, PACKAGE, REVISION, WORKSPACE, PackageIndex
from apiserver.engine.recording import Recorder, create_mutation, delete_mutation, key_of, update_mutation
from apiserver.engine.registered import RegisteredRepository, RepositorySettings
from apiserver.engine.revision_body import set_self_lock
from apiserver.engine.sync_mark import mark_holds, write_mark
from apiserver.engine.tree_changes import package_tree
from apiserver.memory import give_back
from krm.api.revision_name import RevisionName
from krm.package.contents import File
from storage.bodies import decode
from storage.git.clone import RefUpdate
from storage.git.commits import COMMITTER, build_commit, parse_commit
from storage.git.discovery import Discovery, FoundRevision, discover
from storage.git.errors import BranchMissing, GitError
from storage.git.objects import GitObject
from storage.git.refs import DELETIONS, HEADS, TAGS, draft_ref, parse_ref, proposed_ref
from storage.git.trees import read_package, replace_subtree, write_package
from storage.interfaces import Entry, Mutation, ObjectStore, OutboxChange, StaleWrite

Json = dict[str, Any]
log = structlog.get_logger(__name__)

CHUNK = 500
"""Objects written in one transaction; keeps the event loop and other writers running during a first sync."""
MAX_RETRIES = 5
MANY = 500
"""Revisions read at once after which the memory that it took is given back."""
MAX_PROBLEMS_LOGGED = 20
SYNC_ACTOR = "porch-sync"


class Synchronizer:
    """Syncs one repository; its first sync in a process compares everything, later ones only what the refs say changed.

    ``reading`` bounds how many repositories are read at the same time. Waiting for a remote is not bounded: one that
    hangs must not hold up the others.
    """

    def __init__(
        self,
        repository: RegisteredRepository,
        store: ObjectStore,
        index: PackageIndex,
        recorder: Recorder,
        reading: asyncio.Semaphore,
    ) -> None:
        self._repository = repository
        self._marked: Mapping[str, str] = {}
        self._healed = False
        """Everything was fetched again once; what is still missing then is missing in the remote."""
        self._reading = reading
        self._store = store
        self._index = index
        self._recorder = recorder

    async def sync(self) -> bool:
        """Sync once; return whether anything was read anew.

        Raises:
            GitError: the remote could not be read; the log is as it was.
        """
        repository = self._repository
        before = dict(repository.clone.refs)
        after = await repository.converse(self._fetch, before)
        full = not repository.synced and not await repository.run(mark_holds, repository.folder, before, self._store.rv)
        known, repository.synced = repository.synced, False  # should reading fail, the next sync compares everything
        if full or before != after:
            await self._read(before, after, full=full)
        if self._marked != after:
            await repository.run(write_mark, repository.folder, after, self._store.rv)
            self._marked = after
        repository.synced = True
        return before != after or not known

    async def _read(self, before: Mapping[str, str], after: Mapping[str, str], *, full: bool) -> None:
        """Read what the refs say and write the difference."""
        repository = self._repository
        async with self._reading:
            await self._rebase_pending(before, after)
            discovery = await repository.run(self._discover, before, after, full)
            if discovery.incomplete and not self._healed:
                self._healed = repository.damaged = True
                raise GitError("the clone lacks objects that its refs need; everything is fetched again")
            for problem in discovery.problems[:MAX_PROBLEMS_LOGGED]:
                log.warning("left out of a repository", repository=repository.settings.key, problem=problem)
            await self._apply(before, after, discovery, full=full)
        if len(discovery.revisions) >= MANY:
            del discovery
            await repository.run(give_back)

    def _fetch(self, before: Mapping[str, str]) -> dict[str, str]:
        """List and fetch, in a thread of its own; create the registered branch when asked to."""
        repository, settings = self._repository, self._repository.settings
        remote = repository.remote()
        refs = repository.clone.list_remote(remote)
        if settings.branch_ref not in refs:
            if settings.create_branch:
                self._create_branch(remote)
                refs = repository.clone.list_remote(remote)
            elif any(ref.startswith(HEADS) for ref in refs):
                raise BranchMissing(settings.branch)
        if refs != before or repository.damaged:
            repository.clone.fetch(remote, refs, complete=repository.damaged)
            repository.damaged = False
        return refs

    def _create_branch(self, remote: Any) -> None:
        """Push the first commit of the registered branch. Source: ``porch-api.md`` 6.2."""
        clone = self._repository.clone
        tree, objects = write_package({"README.md": File(b"Created by porch\n")})
        message = "Initial commit: Creating main branch"
        commit = build_commit(tree, (), COMMITTER, message, int(time.time()))
        clone.add_objects([*objects, commit])
        clone.push(remote, [RefUpdate(self._repository.settings.branch_ref, None, commit.oid)], [*objects, commit])

    def _discover(self, before: Mapping[str, str], after: Mapping[str, str], full: bool) -> Discovery:
        """Read what the changed refs hold; a deletion branch stands for what it proposes to delete."""
        settings, objects = self._repository.settings, self._repository.objects
        where = {"directory": settings.directory, "branch": settings.branch}
        if full:
            return discover(objects, after, **where)
        changed = {ref for ref in before.keys() | after.keys() if before.get(ref) != after.get(ref)}
        branch_was = before.get(settings.branch_ref)
        for ref in [ref for ref in changed if ref.startswith(DELETIONS)]:
            meaning = parse_ref(ref, settings.directory)
            if meaning is not None and meaning.name == settings.branch:
                changed.add(settings.branch_ref)
                branch_was = None
            elif meaning is not None:
                changed.add(f"{TAGS}{settings.full_path(meaning.package)}/{meaning.name}")
        return discover(objects, after, **where, only=changed, branch_was=branch_was)

    async def _apply(
        self, before: Mapping[str, str], after: Mapping[str, str], discovery: Discovery, *, full: bool
    ) -> None:
        """Write the difference; when another writer was first, compare again."""
        repository, settings = self._repository, self._repository.settings
        for _ in range(MAX_RETRIES):
            pending = {parcel.revision for parcel in await self._store.outbox.parcels(settings.key)}
            existing = {entry.name: entry for entry in self._index.revisions(settings.namespace, settings.name)}
            difference = await repository.run(self._compare, discovery.revisions, existing, pending)
            difference.gone = self._gone(before, after, discovery, existing, pending, full=full)
            settle_latest(difference, existing)
            try:
                await self._write(difference, existing)
            except StaleWrite:
                continue
            return
        raise GitError("package revisions are written so often that the sync could not finish")

    def _compare(self, found: list[FoundRevision], existing: Mapping[str, Entry], pending: set[str]) -> Difference:
        settings = self._repository.settings
        return compare(settings, self._without_unchanged(found, existing), existing, pending)

    def _without_unchanged(
        self, found: Iterable[FoundRevision], existing: Mapping[str, Entry]
    ) -> Iterable[FoundRevision]:
        """Leave out branch packages whose content is what the log knows: only the branch's head moved."""
        settings = self._repository.settings
        for revision in found:
            entry = existing.get(object_name(settings, revision))
            moved = entry is not None and revision.revision < 0 and entry.fields[COMMIT] != revision.commit
            if moved and entry is not None and self._tree(entry) == revision.tree:
                yield replace(revision, commit=entry.fields[COMMIT])
            else:
                yield revision

    def _tree(self, entry: Entry) -> str | None:
        try:
            path = self._repository.settings.full_path(entry.fields[PACKAGE])
            return package_tree(self._repository.objects, entry.fields[COMMIT], path)
        except GitError:
            return None

    def _gone(
        self,
        before: Mapping[str, str],
        after: Mapping[str, str],
        discovery: Discovery,
        existing: Mapping[str, Entry],
        kept: set[str],
        *,
        full: bool,
    ) -> list[Entry]:
        """Return the revisions whose branch or tag is no longer there.

        A revision with an outbox parcel is never gone: its branch was not pushed yet, or has edits that were not.
        """
        settings = self._repository.settings
        found = {object_name(settings, revision) for revision in discovery.revisions}
        removed_refs, removed = before.keys() - after.keys(), set(discovery.removed)
        if not (full or removed_refs or removed):
            return []
        gone = []
        for entry in existing.values():
            if entry.name in found or entry.name in kept:
                continue
            ref = own_ref(settings.full_path(entry.fields[PACKAGE]), entry, settings.branch)
            left_branch = ref == settings.branch_ref and entry.fields[PACKAGE] in removed
            if full or ref in removed_refs or left_branch:
                gone.append(entry)
        return gone

    async def _write(self, difference: Difference, existing: Mapping[str, Entry]) -> None:
        mutations: list[Mutation] = [delete_mutation(entry, SYNC_ACTOR) for entry in difference.gone]
        for name, body in difference.written.items():
            entry = existing.get(name)
            mutations.append(
                create_mutation(body, SYNC_ACTOR) if entry is None else update_mutation(entry, body, SYNC_ACTOR)
            )
        key = self._repository.settings.key
        outbox = [OutboxChange(key, name, drop=True) for name in difference.settled]
        for start in range(0, len(mutations), CHUNK):
            await self._recorder.write(mutations[start : start + CHUNK], outbox if start == 0 else ())

    async def _rebase_pending(self, before: Mapping[str, str], after: Mapping[str, str]) -> None:
        """Put drafts that were never pushed on the new branch when the old one is not part of it any more.

        Happens when the branch was forced, or the remote was deleted and created anew: the commit that the draft
        was begun on does not exist there, so the draft could never be pushed.
        """
        repository, settings = self._repository, self._repository.settings
        old, new = before.get(settings.branch_ref), after.get(settings.branch_ref)
        if old is None or old == new:
            return
        if new is not None and await repository.run(repository.clone.is_ancestor, old, new):
            return
        for parcel in await self._store.outbox.parcels(settings.key):
            entry = self._store.get(key_of(settings.namespace, parcel.revision))
            if entry is None or int(entry.fields[REVISION]) != 0:
                continue
            commit, objects = await repository.run(self._rebased, entry, new)
            await self._record_rebase(entry, commit, objects)

    def _rebased(self, entry: Entry, head: str | None) -> tuple[str, list[GitObject]]:
        """Build the draft's package anew on ``head``, with every object it needs."""
        source, settings = self._repository.objects, self._repository.settings
        path = settings.full_path(entry.fields[PACKAGE])
        old = parse_commit(source.read(entry.fields[COMMIT]).data)
        tree = package_tree(source, entry.fields[COMMIT], path)
        contents = read_package(source, tree) if tree else {}
        package, objects = write_package(contents)
        root = parse_commit(source.read(head).data).tree if head else None
        new_root, trees = replace_subtree(source, root, path, package)
        author = COMMITTER
        commit = build_commit(new_root, (head,) if head else (), author, old.message, int(time.time()))
        return commit.oid, [*objects, *trees, commit]

    async def _record_rebase(self, entry: Entry, commit: str, objects: list[GitObject]) -> None:
        settings = self._repository.settings
        path = settings.full_path(entry.fields[PACKAGE])

        def move(body: Json) -> None:
            if body["status"]["selfLock"]["git"]["commit"] == entry.fields[COMMIT]:
                ref = body["status"]["selfLock"]["git"]["ref"]
                set_self_lock(body, url=settings.url, directory=path, ref=ref, commit=commit)

        self._repository.objects.add(objects)
        change = OutboxChange(settings.key, entry.name, objects=objects, seen={}, drop=True)
        await self._recorder.change(settings.namespace, entry.name, move, SYNC_ACTOR, [change])
        log.info("draft moved to the new branch", revision=entry.name)


def object_name(settings: RepositorySettings, revision: FoundRevision) -> str:
    """Return the name of a discovered revision's object."""
    return RevisionName(settings.name, revision.package, revision.workspace).object_name


def own_ref(path: str, entry: Entry, branch: str) -> str:
    """Return the ref that makes a revision exist in its remote."""
    workspace, revision = entry.fields[WORKSPACE], int(entry.fields[REVISION])
    if revision > 0:
        return _tag_of(entry, path)
    if revision < 0:
        return HEADS + branch if workspace == branch else f"{TAGS}{path}/{workspace}"
    wanted = wanted_refs(path, entry)
    return draft_ref(path, workspace) if wanted[draft_ref(path, workspace)] else proposed_ref(path, workspace)


def _tag_of(entry: Entry, path: str) -> str:
    lock = decode(entry)["status"].get("selfLock", {}).get("git", {})
    return TAGS + (lock.get("ref") or f"{path}/v{entry.fields[REVISION]}")
