"""Approving a proposal: its revision becomes part of the registered branch and gets a tag and a number.

Source: ``porch-api.md`` 4.4; ``decisions.md`` 8.
"""

import time
from collections.abc import Sequence
from typing import Any

from apiserver.engine.draft_writing import preview
from apiserver.engine.proposals import Proposals
from apiserver.engine.publish import PublishJob
from apiserver.engine.recording import Recorder, set_latest_label
from apiserver.engine.registered import RegisteredRepository
from apiserver.engine.repositories import Held
from apiserver.engine.revision_body import revision_name_of, self_commit, set_published
from storage.git.objects import GitObject
from storage.interfaces import Entry, ObjectStore

Json = dict[str, Any]


class Approving:
    """Publishes proposals. The caller holds the claim on the revision."""

    def __init__(self, store: ObjectStore, recorder: Recorder, proposals: Proposals) -> None:
        self._store = store
        self._recorder = recorder
        self._proposals = proposals

    async def approve(self, held: Held, entry: Entry, body: Json, user: str, *, dry_run: bool) -> Entry:
        """Publish ``body``; it is in the remote before this returns.

        Raises:
            Conflict: the package was published by somebody else meanwhile.
            ServiceUnavailable: the remote cannot be reached.
        """
        repository = held.repository
        name = revision_name_of(body)
        if dry_run:
            number = self._recorder.next_revision(entry.namespace, name.repository, name.package)
            set_published(body, number, by=user, at=time.time())
            set_latest_label(body, latest=True)
            return preview(body, entry)
        repository.require_open()
        pending = await self._pending(repository, entry.name)
        job = PublishJob(
            repository,
            self._recorder,
            name,
            commit=self_commit(body),
            pending=pending,
            user=user,
            managers=body["metadata"].get("managedFields"),
        )
        with self._proposals.approval(entry.key):
            await held.queue.submit(job)
        return job.published if job.published is not None else self._recorder.entry(entry.namespace, entry.name)

    async def _pending(self, repository: RegisteredRepository, name: str) -> Sequence[GitObject]:
        parcel = await self._store.outbox.parcel(repository.settings.key, name)
        return parcel.objects if parcel else ()
