"""Putting drafts that no remote has yet on a registered branch that was rewritten under them.

Happens when the branch was forced, or the remote was deleted and created anew: the commit that such a draft was begun on
does not exist there, so the draft could never be pushed. Source: ``decisions.md`` 8.
"""

import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress

import structlog

from apiserver.engine.drafts import wanted_refs
from apiserver.engine.package_index import COMMIT, PACKAGE, REVISION
from apiserver.engine.recording import SYNC_ACTOR, Recorder, key_of, update_mutation
from apiserver.engine.registered import RegisteredRepository
from apiserver.engine.revision_body import set_self_lock
from apiserver.engine.tree_changes import package_tree
from storage.bodies import decode
from storage.git.clone import MAX_ANCESTRY
from storage.git.commits import COMMITTER, build_commit, parse_commit
from storage.git.errors import GitError
from storage.git.objects import GitObject
from storage.git.trees import read_package, replace_subtree, write_package
from storage.interfaces import Entry, ObjectStore, StaleWrite
from storage.outbox import OutboxChange, Parcel

log = structlog.get_logger(__name__)

MAX_RETRIES = 5
"""Edits in a row that are let pass before one draft is put on the new branch."""


class PendingDrafts:
    """The drafts of one repository that the outbox holds."""

    def __init__(self, repository: RegisteredRepository, store: ObjectStore, recorder: Recorder) -> None:
        self._repository = repository
        self._store = store
        self._recorder = recorder

    async def follow_branch(self, before: Mapping[str, str], after: Mapping[str, str]) -> bool:
        """Put them on the new branch if the old one is not part of it; tell whether that is so.

        Raises:
            GitError: a draft's content cannot be read, or is written all the time.
        """
        repository, settings = self._repository, self._repository.settings
        old, new = before.get(settings.branch_ref), after.get(settings.branch_ref)
        if old is None or old == new:
            return False
        if new is not None and await repository.run(repository.clone.is_ancestor, old, new):
            return False
        for parcel in await self._store.outbox.heads(settings.key):
            await self._follow(parcel.revision, new)
        return True

    async def rescue(self, after: Mapping[str, str]) -> None:
        """Put those on the branch that begin nowhere in the remote: the sync that saw the branch rewritten never got to them.

        One that cannot be read stays as it is; the rest of the repository need not suffer for it.
        """
        repository, settings = self._repository, self._repository.settings
        # In this order: what is saved between the two looks is in its parcel, and not taken for what the parcel was begun on.
        entries = [self._entry(parcel.revision) for parcel in await self._store.outbox.heads(settings.key)]
        drafts = {entry.name: entry for entry in entries if entry is not None and int(entry.fields[REVISION]) == 0}
        parcels = await self._store.outbox.parcels(settings.key)
        for name in await repository.run(self._stranded, drafts, parcels, after):
            try:
                await self._follow(name, after.get(settings.branch_ref))
            except GitError as error:
                log.warning("draft cannot be put on the new branch", revision=name, problem=str(error))

    def _entry(self, name: str) -> Entry | None:
        return self._store.get(key_of(self._repository.settings.namespace, name))

    def _stranded(self, drafts: Mapping[str, Entry], parcels: Sequence[Parcel], after: Mapping[str, str]) -> list[str]:
        """Return the drafts whose beginning is in neither the registered branch nor a branch of theirs."""
        settings = self._repository.settings
        begun: dict[str, str] = {}
        heads = {settings.branch_ref}
        for parcel in parcels:
            entry = drafts.get(parcel.revision)
            if entry is None:
                continue
            with suppress(GitError):
                if oid := self._begun(entry, parcel):
                    begun[entry.name] = oid
                    heads |= wanted_refs(settings.full_path(entry.fields[PACKAGE]), entry).keys()
        reached = self._reached({after[ref] for ref in heads if ref in after}, set(begun.values()))
        return [name for name, oid in begun.items() if oid not in reached]

    def _begun(self, entry: Entry, parcel: Parcel) -> str | None:
        """Return the commit that what waits to be pushed was begun on; None for the first of an empty repository."""
        own = {obj.oid for obj in parcel.objects}
        oid: str | None = entry.fields[COMMIT]
        while oid in own:
            oid = next(iter(parse_commit(self._repository.objects.read(oid).data).parents), None)
        return oid

    def _reached(self, heads: set[str], wanted: set[str]) -> set[str]:
        """Return those of the commits that are in the history of the heads; all, where that is too long to tell."""
        found: set[str] = set()
        queue, seen = deque(heads), set(heads)
        while queue and found != wanted:
            oid = queue.popleft()
            found |= {oid} & wanted
            with suppress(GitError):  # where history ends, as a shallow remote's does
                new = set(self._repository.clone.commit(oid).parents) - seen
                queue.extend(new)
                seen |= new
            if len(seen) > MAX_ANCESTRY:
                return wanted
        return found

    async def _follow(self, name: str, head: str | None) -> None:
        """Put one of them on ``head``; once more if it is edited meanwhile, or that edit would be lost with its objects."""
        for _ in range(MAX_RETRIES):
            entry = self._entry(name)
            if entry is None or int(entry.fields[REVISION]) != 0:
                return
            commit, objects = await self._repository.run(self._rebased, entry, head)
            if await self._recorded(entry, commit, objects):
                log.info("draft moved to the new branch", revision=name)
                return
        raise GitError(f"draft {name} is written so often that it could not be put on the new branch")

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
        commit = build_commit(new_root, (head,) if head else (), COMMITTER, old.message, int(time.time()))
        return commit.oid, [*objects, *trees, commit]

    async def _recorded(self, entry: Entry, commit: str, objects: list[GitObject]) -> bool:
        """Write the draft as it is now, and nothing but that for its parcel; False if it has been written meanwhile."""
        settings, body = self._repository.settings, decode(entry)
        path, ref = settings.full_path(entry.fields[PACKAGE]), body["status"]["selfLock"]["git"]["ref"]
        set_self_lock(body, url=settings.url, directory=path, ref=ref, commit=commit)
        change = OutboxChange(settings.key, entry.name, objects=objects, seen={}, drop=True)
        self._repository.objects.add(objects)
        try:
            await self._recorder.write([update_mutation(entry, body, SYNC_ACTOR)], [change])
        except BaseException as error:
            self._repository.objects.discard([obj.oid for obj in objects])
            if isinstance(error, StaleWrite):
                return False
            raise
        return True
