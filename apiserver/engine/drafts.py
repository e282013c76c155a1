"""Bringing acknowledged drafts to their remote: outbox parcels as push jobs.

A parcel says that the remote has to be told something about one revision; what exactly follows from the revision's
state now, so a parcel may be pushed any number of times. Source: ``decisions.md`` 8.
"""

import time
from typing import Any

from apiserver.engine.claims import Claims
from apiserver.engine.package_index import COMMIT, LIFECYCLE, PACKAGE, REVISION, WORKSPACE
from apiserver.engine.push_jobs import RefView
from apiserver.engine.recording import Recorder, key_of
from apiserver.engine.registered import RegisteredRepository
from apiserver.engine.revision_body import self_commit
from apiserver.engine.terminating_namespaces import is_terminating
from apiserver.engine.tree_changes import author_of
from apiserver.rules.lifecycle import Lifecycle
from krm.meta.errors import NotFound
from storage.git.commits import build_commit, first_line, format_message, parse_commit
from storage.git.refs import deletion_ref, draft_ref, proposed_ref
from storage.interfaces import Entry, ObjectStore
from storage.outbox import OutboxChange, Parcel

Json = dict[str, Any]


def wanted_refs(path: str, entry: Entry) -> dict[str, str | None]:
    """Return every branch that a revision may have, with the commit it should be at now (None: no branch)."""
    workspace, revision = entry.fields[WORKSPACE], int(entry.fields[REVISION])
    commit, lifecycle = entry.fields[COMMIT], Lifecycle(entry.fields[LIFECYCLE])
    deletion = deletion_ref(path, revision if revision > 0 else workspace)
    return {
        draft_ref(path, workspace): commit if lifecycle is Lifecycle.DRAFT else None,
        proposed_ref(path, workspace): commit if lifecycle is Lifecycle.PROPOSED else None,
        deletion: commit if lifecycle is Lifecycle.DELETION_PROPOSED else None,
    }


def seen_refs(repository: RegisteredRepository, path: str, entry: Entry) -> dict[str, str]:
    """Return the branches of a revision that the remote is known to have."""
    known = repository.clone.refs
    return {ref: known[ref] for ref in wanted_refs(path, entry) if ref in known}


class DraftJob:
    """Push what one parcel stands for."""

    def __init__(
        self, repository: RegisteredRepository, store: ObjectStore, recorder: Recorder, claims: Claims, parcel: Parcel
    ) -> None:
        self.name = parcel.revision
        self.package = parcel.revision
        self.postponed = False
        """The revision was being written, or deleted meanwhile; there is something left for the next round."""
        self._repository = repository
        self._store = store
        self._recorder = recorder
        self._claims = claims
        self._parcel = parcel
        self._merged: tuple[str, str] | None = None
        self._pushed: dict[str, str] = {}

    def plan(self, view: RefView) -> None:
        """Move the revision's branches to where its state wants them."""
        settings = self._repository.settings
        self._merged, self._pushed = None, {}
        self.postponed = self._claims.held(settings.namespace, self.name)
        if self.postponed:
            return
        entry = self._store.get(key_of(settings.namespace, self.name))
        if entry is None:
            seen = {} if is_terminating(self._store, settings.namespace) else self._parcel.seen
            ours = {*seen.values(), *(obj.oid for obj in self._parcel.objects)}
            view.add({ref: None for ref in seen if view.get(ref) in ours}, [])
            return
        wanted = wanted_refs(settings.full_path(entry.fields[PACKAGE]), entry)
        objects = list(self._parcel.objects)
        commit = entry.fields[COMMIT]
        if not self._carries(commit):
            self.postponed = True
            return
        if foreign := self._foreign(view, wanted, commit):
            merge = self._merge(view, commit, foreign, objects)
            self._merged = (commit, merge)
            wanted = {ref: merge if value == commit else value for ref, value in wanted.items()}
        changes = {ref: value for ref, value in wanted.items() if view.get(ref) != value}
        self._pushed = {ref: value for ref, value in wanted.items() if value is not None}
        view.add(changes, objects)

    def _carries(self, commit: str) -> bool:
        """Tell whether the remote will have everything: an edit made after the parcel was read is not in it."""
        return any(obj.oid == commit for obj in self._parcel.objects) or self._repository.clone.has(commit)

    def _foreign(self, view: RefView, wanted: dict[str, str | None], commit: str) -> list[str]:
        """Return commits that somebody else pushed to the revision's branches meanwhile."""
        if not any(value == commit for value in wanted.values()):
            return []
        ours = [obj for obj in self._parcel.objects if obj.kind == "commit"]
        # What ours were built on is no other line: another replica may have pushed it, and its parcel is forgotten.
        built_on = {parent for obj in ours for parent in parse_commit(obj.data).parents}
        known = {commit, *self._parcel.seen.values(), *(obj.oid for obj in self._parcel.objects), *built_on}
        actual = (view.get(ref) for ref in list(wanted)[:2])
        return [oid for oid in actual if oid is not None and oid not in known]

    def _merge(self, view: RefView, commit: str, foreign: list[str], objects: list[Any]) -> str:
        """Join the other line of edits: our content, both histories, so that neither side loses a commit."""
        view.add({}, objects)
        tree = parse_commit(view.read(commit).data).tree
        message = format_message(first_line("push"), None)
        author = author_of(self._repository.settings, "")
        merge = build_commit(tree, (*foreign, commit), author, message, int(time.time()))
        objects.append(merge)
        return merge.oid

    async def settle(self) -> None:
        """Forget the parcel; a version that changed meanwhile keeps it for the next round."""
        if self.postponed:
            return
        if self._merged is not None:
            await self._record_merge(*self._merged)
        await self._store.outbox.forget([self._parcel])
        namespace = self._repository.settings.namespace
        gone = self._store.get(key_of(namespace, self.name)) is None
        if self._pushed and gone and not is_terminating(self._store, namespace):
            # Deleted while it was pushed: the branch that just appeared has to go again.
            self.postponed = True
            change = OutboxChange(self._repository.settings.key, self.name, seen=self._pushed, drop=True)
            await self._recorder.write([], [change])
        self._repository.objects.discard([obj.oid for obj in self._parcel.objects])

    async def _record_merge(self, ours: str, merge: str) -> None:
        def move(body: Json) -> None:
            if self_commit(body) == ours:
                body["status"]["selfLock"]["git"]["commit"] = merge

        try:
            await self._recorder.change(self._repository.settings.namespace, self.name, move, "")
        except NotFound:
            return


class SaveJob:
    """``--push-drafts=sync``: the draft's branch is in the remote before the log says so."""

    def __init__(self, name: str, refs: dict[str, str | None], objects: list[Any], record: Any) -> None:
        self.name = name
        self.package = name
        self.saved: Entry | None = None
        self._refs = refs
        self._objects = objects
        self._record = record

    def plan(self, view: RefView) -> None:
        """Move the draft's branches."""
        view.add({ref: value for ref, value in self._refs.items() if view.get(ref) != value}, self._objects)

    async def settle(self) -> None:
        """Write the log row."""
        self.saved = await self._record()
