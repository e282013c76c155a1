"""Saving drafts: new Git objects and their log row in one transaction, or pushed before it (``--push-drafts``).

Source: ``decisions.md`` 8.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from apiserver.engine.drafts import SaveJob, seen_refs, wanted_refs
from apiserver.engine.package_index import COMMIT, PACKAGE, WORKSPACE, revision_fields
from apiserver.engine.recording import REVISIONS, Recorder, create_mutation, delete_mutation, key_of, update_mutation
from apiserver.engine.refusals import refuse
from apiserver.engine.repositories import Held, Repositories
from apiserver.engine.revision_body import (
    lifecycle_of,
    name_binary_files,
    pipeline_condition,
    project_kptfile,
    revision_name_of,
    self_commit,
    set_self_lock,
)
from apiserver.engine.tree_changes import Together, commit_contents, package_tree
from apiserver.rules.lifecycle import Lifecycle
from krm.meta.errors import Conflict, ServiceUnavailable
from krm.package.contents import Contents, binary_paths
from krm.package.kptfile import KptfileError, parse_kptfile
from storage.bodies import decode, encode_body, with_revision
from storage.git.commits import CREATING_TASKS
from storage.git.errors import GitError, ObjectMissing, UnsafePath
from storage.git.objects import GitObject
from storage.git.refs import draft_ref, proposed_ref, short_ref
from storage.interfaces import Entry, Mutation, StaleWrite, StoreUnavailable
from storage.outbox import OutboxChange

Json = dict[str, Any]


class DraftWriter:
    """Writes drafts and proposals, and what else only moves branches."""

    def __init__(self, recorder: Recorder, repositories: Repositories, push_drafts: str) -> None:
        self._recorder = recorder
        self._repositories = repositories
        self._sync = push_drafts == "sync"

    def base(self, held: Held) -> str | None:
        """Return the commit that a new draft starts from: the registered branch as last seen.

        Raises:
            ServiceUnavailable: nothing of the remote is known yet.
        """
        held.repository.require_open()
        head = held.repository.branch_head()
        if head is None:
            held.repository.require_synced()
        return head

    async def save(
        self,
        held: Held,
        body: Json,
        contents: Contents,
        entry: Entry | None,
        parent: str | None,
        task: Json,
        user: str,
        *,
        dry_run: bool,
    ) -> Entry:
        """Make ``contents`` the draft's package. The same contents again, and nothing else new, writes nothing.

        A creating task is always committed, for Git to say how the draft came to be.

        Raises:
            StaleWrite: a create found the name taken.
            Conflict: another writer changed the draft meanwhile.
            Invalid: a file has a path that is not safe to write.
        """
        settings = held.repository.settings
        name = revision_name_of(body)
        path = settings.full_path(name.package)
        try:
            commit, objects, changed = await self._built(held, body, contents, parent, task, user)
        except UnsafePath as error:  # somebody else's commit holds the file; what clients send was checked before
            why = f"{error}; the file came from Git, and has to be renamed or removed there"
            raise refuse(name.object_name, "spec.resources", why) from error
        except ObjectMissing as error:  # another replica has just pushed what was read from the outbox
            why = f'the content of package revision "{name.object_name}" has to be read again; nothing was changed, try again'
            raise ServiceUnavailable(why, retry_after=1) from error
        if entry is not None and not changed:
            return await self.move(held, body, entry, user, dry_run=dry_run)
        self._lock(body, settings.url, path, commit)
        if dry_run:
            return preview(body, entry)
        mutation = create_mutation(body, user) if entry is None else update_mutation(entry, body, user)
        return await self._write(held, path, mutation, body, entry, objects)

    async def _built(
        self, held: Held, body: Json, contents: Contents, parent: str | None, task: Json, user: str
    ) -> tuple[str, list[GitObject], bool]:
        """Build the commit; where another replica has pushed meanwhile what was read from the outbox, fetch that and build again.

        Raises:
            ObjectMissing: it is not in the remote either, or that cannot be asked now.
        """
        repository = held.repository
        try:
            return await repository.run(self._build, held, body, contents, parent, task, user)
        except ObjectMissing:
            if not repository.shared:
                raise
            with suppress(GitError, StoreUnavailable):
                await held.queue.look()
            return await repository.run(self._build, held, body, contents, parent, task, user)

    def _build(
        self, held: Held, body: Json, contents: Contents, parent: str | None, task: Json, user: str
    ) -> tuple[str, list[GitObject], bool]:
        """Build the commit, and show in ``body`` what it holds if it has to be written. Runs in a thread."""
        repository = held.repository
        name = revision_name_of(body)
        commit, objects = commit_contents(
            repository.objects, repository.settings, name, contents, parent=parent, task=task, user=user
        )
        changed = not self_commit(body) or task["type"] in CREATING_TASKS
        if not changed:
            path = repository.settings.full_path(name.package)
            source = Together(repository.objects, objects)
            changed = package_tree(source, commit, path) != package_tree(repository.objects, self_commit(body), path)
        if changed:
            show_kptfile(body, contents)
            name_binary_files(body, binary_paths(contents))
        return commit, objects, changed

    async def move(self, held: Held, body: Json, entry: Entry, user: str, *, dry_run: bool) -> Entry:
        """Write a change of metadata or lifecycle; branches follow. Nothing new writes nothing."""
        settings = held.repository.settings
        path = settings.full_path(entry.fields[PACKAGE])
        if not lifecycle_of(body).is_published:
            self._lock(body, settings.url, path, self_commit(body))
        if _without_revision(body) == _without_revision(decode(entry)):
            return entry
        if dry_run:
            return preview(body, entry)
        mutation = update_mutation(entry, body, user)
        if lifecycle_of(body) is lifecycle_of(decode(entry)):
            return await self._plain(mutation)
        return await self._write(held, path, mutation, body, entry, [])

    async def remove(self, held: Held, entry: Entry, user: str) -> None:
        """Remove a draft or proposal; the branch that the remote may have goes with it."""
        settings = held.repository.settings
        held.repository.require_open()
        path = settings.full_path(entry.fields[PACKAGE])
        if self._sync and (seen := seen_refs(held.repository, path, entry)):
            job = SaveJob(entry.name, dict.fromkeys(seen), [], lambda: self._delete(entry, settings.key, {}, user))
            await held.queue.submit(job)
            return
        # A push of the draft may be under way, and nobody may ever learn how it ended: both branches are named that it may
        # have moved, whatever the revision is by now, and the commits stay known that they may be at.
        workspace = entry.fields[WORKSPACE]
        under_way = dict.fromkeys((draft_ref(path, workspace), proposed_ref(path, workspace)), entry.fields[COMMIT])
        commits = await self._repositories.unpushed_commits(settings.key, entry.name)
        seen = seen_refs(held.repository, path, entry)  # read last: a push that ended meanwhile let go of its commits
        await self._delete(entry, settings.key, {**under_way, **seen}, user, commits)
        self._repositories.mark_dirty(settings.namespace, settings.name)

    async def _delete(
        self, entry: Entry, key: str, seen: dict[str, str], user: str, commits: Sequence[GitObject] = ()
    ) -> None:
        change = OutboxChange(key, entry.name, objects=commits, seen=seen or None, drop=True)
        try:
            await self._recorder.write([delete_mutation(entry, user)], [change])
        except StaleWrite:
            # Clients are kept out by the claim; what the server itself noted in the object does not keep it.
            now = self._recorder.entry(entry.namespace, entry.name)
            if now.fields != entry.fields:
                raise Conflict.of(REVISIONS, entry.name) from None
            try:
                await self._recorder.write([delete_mutation(now, user)], [change])
            except StaleWrite:
                raise Conflict.of(REVISIONS, entry.name) from None

    def _lock(self, body: Json, url: str, path: str, commit: str) -> None:
        workspace = body["spec"]["workspaceName"]
        ref = draft_ref if lifecycle_of(body) is Lifecycle.DRAFT else proposed_ref
        set_self_lock(body, url=url, directory=path, ref=short_ref(ref(path, workspace)), commit=commit)

    async def _plain(self, mutation: Mutation) -> Entry:
        try:
            return (await self._recorder.write([mutation]))[0]
        except StaleWrite:
            raise Conflict.of(REVISIONS, mutation.key.name) from None

    async def _write(
        self, held: Held, path: str, mutation: Mutation, body: Json, entry: Entry | None, objects: Sequence[GitObject]
    ) -> Entry:
        if self._sync:
            return await self._push_first(held, path, mutation, body, objects)
        settings = held.repository.settings
        shown = entry if entry is not None else preview(body, None)
        seen = seen_refs(held.repository, path, shown)
        change = OutboxChange(settings.key, mutation.key.name, objects=objects, seen=seen)
        held.repository.objects.add(objects)
        try:
            written = (await self._recorder.write([mutation], [change]))[0]
        except BaseException as error:
            held.repository.objects.discard([obj.oid for obj in objects])
            if isinstance(error, StaleWrite) and entry is not None:
                raise Conflict.of(REVISIONS, entry.name) from None
            raise
        self._repositories.mark_dirty(settings.namespace, settings.name)
        return written

    async def _push_first(
        self, held: Held, path: str, mutation: Mutation, body: Json, objects: Sequence[GitObject]
    ) -> Entry:
        async def record() -> Entry:
            try:
                return (await self._recorder.write([mutation]))[0]
            except StaleWrite:
                # A sync between two attempts of the push may have found, and written, just this.
                entry = self._recorder.entry(mutation.key.namespace, mutation.key.name)
                if entry.fields[COMMIT] != self_commit(body):
                    raise Conflict.of(REVISIONS, mutation.key.name) from None
                return entry

        job = SaveJob(mutation.key.name, wanted_refs(path, preview(body, None)), list(objects), record)
        await held.queue.submit(job)
        if job.saved is None:
            raise Conflict.of(REVISIONS, mutation.key.name)
        return job.saved


def _without_revision(body: Json) -> Json:
    """Return an object as it is compared: without its version, whatever the order of its fields."""
    metadata = {key: value for key, value in body["metadata"].items() if key != "resourceVersion"}
    return {**body, "metadata": metadata}


def show_kptfile(body: Json, contents: Contents) -> None:
    """Show in the object what the root Kptfile of ``contents`` says; without a render the pipeline's condition stays."""
    pipeline = pipeline_condition(body)
    try:
        project_kptfile(body, parse_kptfile(contents["Kptfile"].data), pipeline)
    except (KptfileError, KeyError):
        project_kptfile(body, None, pipeline)


def preview(body: Json, entry: Entry | None) -> Entry:
    """Return an entry that is not stored: the answer to a dry run, or a state to compute refs from.

    The answer to a dry run of an update carries the version in force, as ``kubectl diff`` expects it.
    """
    metadata = body["metadata"]
    labels, fields = revision_fields(body)
    key = key_of(metadata["namespace"], metadata["name"])
    encoded = encode_body(body)
    if entry is None:
        return Entry(key, 0, 0, metadata["uid"], encoded, labels, fields)
    return Entry(key, entry.rv, entry.create_rv, metadata["uid"], with_revision(encoded, entry.rv), labels, fields)
