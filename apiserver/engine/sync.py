"""Bringing the log up to date with a remote: list refs, fetch what changed, read what changed, write the difference.

Runs inside the repository's queue, so it never meets a push of ours half-way. What takes long is done before, while others
have their turn (:meth:`Synchronizer.read_ahead`). Source: ``porch-api.md`` 6.7, 7; ``decisions.md`` 8 and 9.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import structlog

from apiserver.engine.discovered import Difference, compare, settle_latest
from apiserver.engine.drafts import wanted_refs
from apiserver.engine.package_index import COMMIT, PACKAGE, REVISION, WORKSPACE, PackageIndex
from apiserver.engine.rebasing import PendingDrafts
from apiserver.engine.recording import (
    SYNC_ACTOR,
    Recorder,
    create_mutation,
    delete_mutation,
    is_published,
    update_mutation,
)
from apiserver.engine.registered import RegisteredRepository, RepositorySettings
from apiserver.engine.revision_events import RevisionEvents
from apiserver.engine.sync_mark import mark_holds, noted_ahead, remove_mark, write_mark
from apiserver.engine.sync_reports import SyncReports
from apiserver.engine.tree_changes import package_tree
from apiserver.memory import give_back
from krm.api.revision_name import RevisionName
from krm.package.contents import File
from storage.bodies import decode
from storage.git.clone import RefUpdate
from storage.git.commits import COMMITTER, build_commit
from storage.git.discovery import Discovery, FoundRevision, discover
from storage.git.errors import BranchMissing, GitError
from storage.git.rediscovery import moved_refs, renewed
from storage.git.refs import DELETIONS, DRAFTS, HEADS, PROPOSED, TAGS, draft_ref, parse_ref, proposed_ref
from storage.git.remote import Remote
from storage.git.trees import write_package
from storage.interfaces import Entry, Mutation, ObjectStore, StaleWrite
from storage.outbox import OutboxChange

Json = dict[str, Any]
log = structlog.get_logger(__name__)

CHUNK = 500
"""Objects written in one transaction; keeps the event loop and other writers running during a first sync."""
MAX_RETRIES = 5
MANY = 500
"""Revisions read at once after which the memory that it took is given back."""


@dataclass(frozen=True, slots=True)
class _Found:
    """What one sync found: the refs of the remote before and now, and what they hold."""

    before: Mapping[str, str]
    after: Mapping[str, str]
    discovery: Discovery
    full: bool


@dataclass(frozen=True, slots=True)
class _Ahead:
    """All that refs hold, as it was found before there was a turn to write it in."""

    settings: RepositorySettings
    refs: Mapping[str, str]
    discovery: Discovery


class Synchronizer:
    """Syncs one repository; its first sync in a process compares everything, later ones only what the refs say changed.

    ``reading`` bounds how many repositories are read at the same time. Waiting for a remote is not bounded: one that
    hangs must not hold up the others. ``owes_remote`` is told that the outbox has something new.
    """

    def __init__(
        self,
        repository: RegisteredRepository,
        store: ObjectStore,
        index: PackageIndex,
        recorder: Recorder,
        reading: asyncio.Semaphore,
        events: RevisionEvents,
        owes_remote: Callable[[], None] = lambda: None,
    ) -> None:
        self._repository = repository
        self._owes_remote = owes_remote
        self._pending = PendingDrafts(repository, store, recorder)
        self._reports = SyncReports(store, events)
        self._marked: Mapping[str, str] = {}
        self._ahead: _Ahead | None = None
        self._everything = False
        self._healed = False
        """Everything was fetched again; what is still missing then is missing in the remote."""
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
        before = repository.clone.refs
        full = self._everything or not (repository.synced or await self._mark_holds(before))
        after = await repository.converse(self._fetch, await repository.remote(), before)
        known, repository.synced = repository.synced, False  # should reading fail, the next sync compares everything
        if full or before != after:
            await self._read(before, after, full=full)
        self._everything = False
        if self._marked != after:
            await repository.run(write_mark, repository.folder, after, self._store.rv, self._store.incarnation)
            self._marked = after
        repository.synced = True
        return before != after or not known

    async def read_ahead(self) -> bool:
        """List and fetch, and read if everything is to be read, before there is a turn at the remote; tell whether to sync.

        Only objects are written, to the clone. The sync that follows looks again, and at what moved since. Safe to repeat, and
        to be cancelled.

        Raises:
            GitError: the remote could not be read.
        """
        repository, settings = self._repository, self._repository.settings
        before = repository.clone.refs
        refs = await repository.converse(self._fetch_ahead, await repository.remote(), before)
        if repository.synced and not self._everything:
            return refs != before
        if self._everything or not await self._mark_holds(before):
            async with self._reading:
                found = await repository.run(self._discover, before, refs, True)
            self._ahead = _Ahead(settings, refs, found)
        return True

    def _fetch_ahead(self, remote: Remote, before: Mapping[str, str]) -> dict[str, str]:
        """List and fetch objects, in a thread of its own."""
        repository = self._repository
        refs = repository.clone.list_remote(remote)
        damaged = repository.damaged
        if refs != before or damaged:
            repository.clone.fetch_ahead(remote, refs, complete=damaged)
            repository.damaged = False
        return refs

    async def check(self) -> None:
        """See whether the remote answers and has the registered branch; nothing is read.

        Raises:
            GitError: it does not.
        """
        repository, settings = self._repository, self._repository.settings
        refs = await repository.converse(repository.clone.list_remote, await repository.remote())
        if not settings.create_branch:
            _require_branch(settings, refs)

    def compare_everything(self) -> None:
        """Have the next sync compare everything, whatever the refs say."""
        self._everything = True

    async def _mark_holds(self, refs: Mapping[str, str]) -> bool:
        """Tell whether the log is known to hold what the clone's refs say; if not, the note about it is of no use."""
        folder, rv = self._repository.folder, self._store.rv
        if await self._repository.run(mark_holds, folder, refs, rv, self._store.incarnation):
            return True
        if noted := await self._repository.run(noted_ahead, folder, rv, self._store.incarnation):
            log.error(
                "the database was replaced by an older state: what came after is lost, and its revisions are given again. "
                "Stop all servers and type porch restore, as the guide for backups says",
                repository=self._repository.settings.key,
                revision=rv,
                noted=noted,
            )
        await self._repository.run(remove_mark, folder)
        return False

    async def _read(self, before: Mapping[str, str], after: Mapping[str, str], *, full: bool) -> None:
        """Read what the refs say, unless that was done ahead, and write the difference."""
        repository, settings = self._repository, self._repository.settings
        async with self._reading:
            branch = settings.branch_ref
            if await self._pending.follow_branch(before, after):
                self._reports.branch_rewritten(settings, before[branch], after.get(branch))
            elif full:
                await self._pending.rescue(after)
            discovery = await repository.run(self._discover_all if full else self._discover, before, after, full)
            if discovery.incomplete and not self._healed:
                self._healed = repository.damaged = True
                raise GitError("the clone lacks objects that its refs need; everything is fetched again")
            if full and not discovery.incomplete:
                self._healed = False
            self._reports.left_out(settings, discovery.problems)
            await self._apply(_Found(before, after, discovery, full))
        if len(discovery.revisions) >= MANY:
            del discovery
            await repository.run(give_back)

    def _fetch(self, remote: Remote, before: Mapping[str, str]) -> dict[str, str]:
        """List and fetch, in a thread of its own; create the registered branch when asked to."""
        repository, settings = self._repository, self._repository.settings
        refs = repository.clone.list_remote(remote)
        if settings.branch_ref not in refs:
            if settings.create_branch:
                self._create_branch(remote)
                refs = repository.clone.list_remote(remote)
            else:
                _require_branch(settings, refs)
        if refs != before or repository.damaged:
            repository.clone.fetch(remote, refs, complete=repository.damaged)
            repository.damaged = False
        return refs

    def _create_branch(self, remote: Remote) -> None:
        """Push the first commit of the registered branch. Source: ``porch-api.md`` 6.2."""
        clone = self._repository.clone
        tree, objects = write_package({"README.md": File(b"Created by porch\n")})
        message = "Initial commit: Creating main branch"
        commit = build_commit(tree, (), COMMITTER, message, int(time.time()))
        clone.add_objects([*objects, commit])
        clone.push(remote, [RefUpdate(self._repository.settings.branch_ref, None, commit.oid)], [*objects, commit])

    def _discover_all(self, before: Mapping[str, str], after: Mapping[str, str], full: bool) -> Discovery:
        """Read what the refs hold, of what was read ahead only those that moved since."""
        ahead, self._ahead = self._ahead, None
        if ahead is None or ahead.settings != self._repository.settings:
            return self._discover(before, after, full)
        found = self._discover(ahead.refs, after, False)
        return renewed(ahead.discovery, found, ahead.refs, after, ahead.settings.branch_ref)

    def _discover(self, before: Mapping[str, str], after: Mapping[str, str], full: bool) -> Discovery:
        """Read what the changed refs hold; a deletion branch stands for what it proposes to delete."""
        settings, objects = self._repository.settings, self._repository.objects
        where = {"directory": settings.directory, "branch": settings.branch}
        if full:
            return discover(objects, after, **where)
        changed = moved_refs(before, after)
        branch_was = before.get(settings.branch_ref)
        # A draft that a proposal outdid counts again when the proposal is gone.
        changed |= {DRAFTS + ref.removeprefix(PROPOSED) for ref in changed if ref.startswith(PROPOSED)} & after.keys()
        for ref in [ref for ref in changed if ref.startswith(DELETIONS)]:
            meaning = parse_ref(ref, settings.directory)
            if meaning is not None and meaning.name == settings.branch:
                changed.add(settings.branch_ref)
                branch_was = None
            elif meaning is not None:
                changed.add(f"{TAGS}{settings.full_path(meaning.package)}/{meaning.name}")
        return discover(objects, after, **where, only=changed, branch_was=branch_was)

    async def _apply(self, found: _Found) -> None:
        """Write the difference; when another writer was first, compare again."""
        repository, settings = self._repository, self._repository.settings
        touched = None if found.full else self._touched(found)
        for _ in range(MAX_RETRIES):
            # In this order: a draft saved between the two looks is then stale, and not taken for one that Git outran.
            existing = {entry.name: entry for entry in (self._all() if touched is None else self._of(touched))}
            pending = {parcel.revision for parcel in await self._store.outbox.heads(settings.key)}
            difference, mutations = await repository.run(self._difference, found, existing, pending)
            try:
                await self._write(difference, mutations)
            except StaleWrite:
                continue
            self._reports.left_out(settings, difference.unnamed)
            self._reports.changes(difference, existing)
            return
        raise GitError("package revisions are written so often that the sync could not finish")

    def _touched(self, found: _Found) -> set[str] | None:
        """Return the packages that may have to change; None for all of them, when their branch is gone."""
        settings = self._repository.settings
        touched = {revision.package for revision in found.discovery.revisions} | set(found.discovery.removed)
        for ref in found.before.keys() - found.after.keys():
            if ref == settings.branch_ref:
                return None
            meaning = parse_ref(ref, settings.directory)
            if meaning is not None:
                touched.add(meaning.package)
        return touched

    def _all(self) -> Iterable[Entry]:
        return self._index.revisions(self._repository.settings.namespace, self._repository.settings.name)

    def _of(self, packages: Iterable[str]) -> Iterable[Entry]:
        settings = self._repository.settings
        for path in packages:
            package = self._index.package(settings.namespace, settings.name, path)
            yield from list(package.revisions.values()) if package else ()

    def _difference(
        self, found: _Found, existing: Mapping[str, Entry], pending: set[str]
    ) -> tuple[Difference, list[Mutation]]:
        """Return what has to change, and as the log takes it; in a thread, for it may be about thousands of revisions."""
        shown = self._not_outdone(found.discovery.revisions, existing, found.after)
        unchanged_left_out = self._without_unchanged(shown, existing)
        difference = compare(self._repository.settings, unchanged_left_out, existing, pending, thorough=found.full)
        difference.gone = self._gone(found, existing, pending)
        settle_latest(difference, existing)
        mutations = [delete_mutation(entry, SYNC_ACTOR) for entry in difference.gone]
        for name, body in difference.written.items():
            entry = existing.get(name)
            mutations.append(
                create_mutation(body, SYNC_ACTOR) if entry is None else update_mutation(entry, body, SYNC_ACTOR)
            )
        return difference, mutations

    def _not_outdone(
        self, found: Iterable[FoundRevision], existing: Mapping[str, Entry], refs: Mapping[str, str]
    ) -> list[FoundRevision]:
        """Leave out branches that others keep of a workspace that is further already: a tag outdoes them, a proposal a draft."""
        settings, found = self._repository.settings, list(found)
        published = {object_name(settings, one) for one in found if one.lifecycle == "Published"}
        shown = []
        for one in found:
            if one.lifecycle == "Published":
                shown.append(one)
                continue
            name, path = object_name(settings, one), settings.full_path(one.package)
            entry = existing.get(name)
            tagged = entry is not None and is_published(entry) and own_ref(path, entry, settings.branch) in refs
            proposed = one.lifecycle == "Draft" and proposed_ref(path, one.workspace) in refs
            if not (name in published or tagged or proposed):
                shown.append(one)
        return shown

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

    def _gone(self, seen: _Found, existing: Mapping[str, Entry], kept: set[str]) -> list[Entry]:
        """Return the revisions whose branch or tag is no longer there.

        A draft or proposal with an outbox parcel is never gone: its branch was not pushed yet, or has edits that were
        not. A parcel of a published revision only says what is proposed for it, so without its tag it is gone: a crash
        kept its deletion, which had reached the remote, from being recorded.
        """
        settings = self._repository.settings
        found = {object_name(settings, revision) for revision in seen.discovery.revisions}
        removed_refs, removed = seen.before.keys() - seen.after.keys(), set(seen.discovery.removed)
        if not (seen.full or removed_refs or removed):
            return []
        gone = []
        for entry in existing.values():
            if entry.name in found or (entry.name in kept and not is_published(entry)):
                continue
            ref = own_ref(settings.full_path(entry.fields[PACKAGE]), entry, settings.branch)
            left_branch = ref == settings.branch_ref and entry.fields[PACKAGE] in removed
            if seen.full or ref in removed_refs or left_branch:
                gone.append(entry)
        return gone

    async def _write(self, difference: Difference, mutations: list[Mutation]) -> None:
        key = self._repository.settings.key
        outbox = [OutboxChange(key, name, drop=True) for name in difference.settled]
        moot = {entry.name: change for entry in difference.gone if (change := self._moot_proposal(entry)) is not None}
        for start in range(0, len(mutations), CHUNK):
            chunk = mutations[start : start + CHUNK]
            outbox += [moot[mutation.key.name] for mutation in chunk if mutation.key.name in moot]
            await self._recorder.write(chunk, outbox, self._repository.turn)
            if outbox:
                self._owes_remote()
            outbox = []

    def _moot_proposal(self, entry: Entry) -> OutboxChange | None:
        """Return what has the branch removed that proposes to delete a revision which is gone; None where none was proposed.

        It is gone because its deletion reached the remote, and its answer did not reach us; or somebody removed its tag.
        """
        if not is_published(entry):
            return None
        path = self._repository.settings.full_path(entry.fields[PACKAGE])
        proposed = {ref: commit for ref, commit in wanted_refs(path, entry).items() if commit is not None}
        return OutboxChange(self._repository.settings.key, entry.name, seen=proposed, drop=True) if proposed else None


def _require_branch(settings: RepositorySettings, refs: Mapping[str, str]) -> None:
    """Refuse a remote that has branches, but not the registered one; an empty one gets it with the first package."""
    if settings.branch_ref not in refs and any(ref.startswith(HEADS) for ref in refs):
        raise BranchMissing(settings.branch)


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
