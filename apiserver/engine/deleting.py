"""Deleting revisions: what may be deleted, what finalizers hold, and who does it. Source: ``porch-api.md`` 4.7 and 2.5."""

from collections.abc import Callable, Sequence
from typing import Any

from apiserver.engine.deletion import DeletePublishedJob
from apiserver.engine.draft_writing import DraftWriter, preview
from apiserver.engine.package_index import REPOSITORY, PackageIndex
from apiserver.engine.recording import REVISIONS, Recorder, update_mutation
from apiserver.engine.repositories import Held, Repositories
from apiserver.engine.revision_body import lifecycle_of, timestamp
from apiserver.engine.revision_events import DELETED, RevisionEvents
from apiserver.engine.terminating_namespaces import is_terminating_now
from apiserver.rules.lifecycle import Lifecycle
from krm.meta.errors import Conflict, Forbidden
from storage.bodies import decode
from storage.interfaces import Entry, ObjectStore, StaleWrite
from storage.outbox import OutboxChange

Json = dict[str, Any]


class Deleting:
    """Deletes revisions. The caller holds the claim on the revision."""

    def __init__(
        self,
        store: ObjectStore,
        index: PackageIndex,
        recorder: Recorder,
        repositories: Repositories,
        writer: DraftWriter,
        events: RevisionEvents,
    ) -> None:
        self._store = store
        self._index = index
        self._recorder = recorder
        self._repositories = repositories
        self._writer = writer
        self._events = events

    def _check_deletable(self, entry: Entry) -> None:
        if lifecycle_of(decode(entry)) is Lifecycle.PUBLISHED:
            why = (
                "published PackageRevisions must be proposed for deletion by setting spec.lifecycle to "
                "'DeletionProposed' prior to deletion"
            )
            raise Forbidden.of(REVISIONS, entry.name, why)
        if users := self._index.referenced_by(entry.namespace, entry.name):
            why = f"cannot delete package revision, it is referenced as upstream by: {', '.join(users[:20])}"
            raise Forbidden.of(REVISIONS, entry.name, why)

    async def delete(
        self, entry: Entry, user: str, finalizers: Callable[[Sequence[str]], list[str]], *, dry_run: bool
    ) -> tuple[Entry, bool]:
        """Delete a revision, or mark it when finalizers hold it; see ``PackageService.delete``."""
        if await is_terminating_now(self._store, entry.namespace):
            if not dry_run:  # only the API forgets it; Git is never touched then (``decisions.md`` 4)
                forget = OutboxChange(f"{entry.namespace}/{entry.fields[REPOSITORY]}", entry.name, drop=True)
                await self._recorder.removed(entry, [forget], user)
            return entry, True
        self._check_deletable(entry)
        body = decode(entry)
        if left := finalizers(body["metadata"].get("finalizers") or ()):
            body["metadata"]["finalizers"] = left
            return await self._mark_deleted(entry, body, user, dry_run=dry_run), False
        held = self._repositories.get(entry.namespace, entry.fields[REPOSITORY])
        await self.remove(held, entry, user, dry_run=dry_run)
        return entry, True

    async def _mark_deleted(self, entry: Entry, body: Json, user: str, *, dry_run: bool) -> Entry:
        """Say that the revision goes as soon as its finalizers let it."""
        metadata = body["metadata"]
        if not metadata.get("deletionTimestamp"):
            metadata["deletionTimestamp"] = timestamp()
            metadata["deletionGracePeriodSeconds"] = 0
        if body == decode(entry):
            return entry
        if dry_run:
            return preview(body, entry)
        try:
            return (await self._recorder.write([update_mutation(entry, body, user)]))[0]
        except StaleWrite:
            raise Conflict.of(REVISIONS, entry.name) from None

    async def remove(self, held: Held, entry: Entry, user: str, *, dry_run: bool) -> Entry:
        """Remove a revision that nothing holds any more, from Git and from the log; returns what it was."""
        if dry_run:
            return entry
        held.repository.require_open()
        if lifecycle_of(decode(entry)).is_published:
            await held.queue.submit(DeletePublishedJob(held.repository, self._recorder, entry, user))
        else:
            await self._writer.remove(held, entry, user)
        self._events.report(decode(entry), DELETED, f"deleted by {user}")
        return entry
