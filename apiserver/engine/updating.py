"""Updating a revision: its metadata, gates, conditions, package metadata and lifecycle, through one of two doors.

Source: ``porch-api.md`` 4.1 to 4.3; ``decisions.md`` 14.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from apiserver.engine.approving import Approving
from apiserver.engine.deleting import Deleting
from apiserver.engine.draft_editing import DraftEditing, EditedDraft
from apiserver.engine.draft_writing import DraftWriter, show_kptfile
from apiserver.engine.gates import GateRequest, Gates, MayBypass
from apiserver.engine.off_loop import off_loop
from apiserver.engine.package_index import REPOSITORY
from apiserver.engine.recording import REVISIONS, Recorder, set_latest_label
from apiserver.engine.rendering import Renderer
from apiserver.engine.repositories import Held, Repositories
from apiserver.engine.revision_body import lifecycle_of, self_commit, set_managers
from apiserver.engine.revision_events import RevisionEvents, report_notes
from apiserver.engine.tasks import StartingContents
from apiserver.rules.gate_bypass import BYPASS, take_bypass
from apiserver.rules.lifecycle import GATED, Door, Lifecycle, check_transition, parse_lifecycle
from apiserver.rules.managed_labels import LATEST
from apiserver.rules.revision_changes import (
    asks_for_content,
    check_published_spec,
    check_version,
    content_change,
    with_client_metadata,
)
from apiserver.rules.task_changes import appended_upgrade
from apiserver.rules.terminating import check_not_published_while_going
from krm.package.contents import Contents
from storage.bodies import decode
from storage.interfaces import Entry

Json = dict[str, Any]
Change = Callable[[Json], Json]
Warn = Callable[[str], None]

NOT_A_DRAFT: Final = (
    "readiness gates, conditions and package metadata of a package revision with lifecycle {lifecycle} cannot be changed; "
    "what the request says of them was ignored"
)


@dataclass(frozen=True, slots=True)
class _Asked:
    """One request, understood: what it wants of which revision, and through which door it came."""

    held: Held
    entry: Entry
    stored: Json
    wanted: Json
    door: Door
    current: Lifecycle
    desired: Lifecycle
    user: str
    dry_run: bool


class Updating:
    """Applies changes of clients. The caller holds the claim on the revision."""

    def __init__(
        self,
        recorder: Recorder,
        repositories: Repositories,
        renderer: Renderer,
        starting: StartingContents,
        writer: DraftWriter,
        approving: Approving,
        deleting: Deleting,
        events: RevisionEvents,
    ) -> None:
        self._recorder = recorder
        self._repositories = repositories
        self._renderer = renderer
        self._starting = starting
        self._writer = writer
        self._approving = approving
        self._deleting = deleting
        self._editing = DraftEditing(starting, renderer)
        self._events = events
        self._gates = Gates(events)

    async def update(
        self,
        namespace: str,
        name: str,
        change: Change,
        user: str,
        door: Door,
        *,
        dry_run: bool,
        may_bypass: MayBypass,
        warn: Warn | None = None,
    ) -> Entry:
        """Apply a change; raises what ``PackageService.update`` does."""
        entry = self._recorder.entry(namespace, name)
        stored = decode(entry)
        stored["metadata"]["resourceVersion"] = str(entry.rv)
        wanted = change(decode_again(stored))
        bypass = take_bypass(wanted)
        check_version(REVISIONS, "PackageRevision", name, wanted, entry.rv, entry.uid)
        del stored["metadata"]["resourceVersion"]
        held = self._repositories.get(namespace, entry.fields[REPOSITORY])
        current = lifecycle_of(stored)
        desired = parse_lifecycle((wanted.get("spec") or {}).get("lifecycle") or "", current, name)
        check_transition(current, desired, door, name)
        check_not_published_while_going(stored, current, desired, name)
        asked = _Asked(held, entry, stored, wanted, door, current, desired, user, dry_run)
        edited = await self._edited(asked)
        future = stored
        if edited is not None and (current, desired) in GATED:
            future = await off_loop(edited.contents, _future, stored, edited.contents)
        request = GateRequest(user, held.repository.settings.deployment, bypass, may_bypass)
        passage = await self._gates.passage(name, future, current, desired, request)
        if warn is not None:
            _warn(warn, asked, bypassed_nothing=bypass is not None and passage is None)
        written = await self._write(asked, edited)
        if edited is not None:
            self._tell(decode(written), edited.notes, warn, dry_run=dry_run)
        return self._gates.passed(passage, written, dry_run=dry_run)

    async def _edited(self, asked: _Asked) -> EditedDraft | None:
        """Return the files of a draft whose content changes; None where only the object does."""
        if asked.current is not Lifecycle.DRAFT or asked.door is not Door.MAIN:
            return None
        edits = content_change(asked.stored, asked.wanted)
        if (upgrade := appended_upgrade(asked.stored, asked.wanted)) is not None:
            return await self._editing.upgrade(asked.held, asked.entry, asked.stored, edits, upgrade)
        return await self._editing.edit(asked.held, asked.entry, edits) if edits.changes_kptfile else None

    async def _write(self, asked: _Asked, edited: EditedDraft | None) -> Entry:
        """Publish, remove or write the revision, whichever the request comes down to."""
        held, entry, body, dry_run = asked.held, asked.entry, asked.stored, asked.dry_run
        if asked.door is Door.APPROVAL and (managers := asked.wanted["metadata"].get("managedFields")):
            set_managers(body, managers)
        if asked.desired is Lifecycle.PUBLISHED and asked.current is Lifecycle.PROPOSED:
            return await self._approving.approve(held, entry, body, asked.user, dry_run=dry_run)
        if asked.door is Door.MAIN:
            body = with_client_metadata(body, asked.wanted, entry.name)
            if asked.current.is_published:
                check_published_spec(body, asked.wanted, entry.name)
        set_latest_label(body, latest=LATEST in entry.labels)
        if body["metadata"].get("deletionTimestamp") and not body["metadata"].get("finalizers"):
            return await self._deleting.remove(held, entry, asked.user, dry_run=dry_run)
        body["spec"]["lifecycle"] = str(asked.desired)
        if edited is None:
            return await self._writer.move(held, body, entry, asked.user, dry_run=dry_run)
        if edited.creating_task is not None:
            body["spec"]["tasks"] = [edited.creating_task]
        return await self._writer.save(
            held, body, edited.contents, entry, self_commit(body), edited.task, asked.user, dry_run=dry_run
        )

    def _tell(self, body: Json, notes: Sequence[str], warn: Warn | None, *, dry_run: bool) -> None:
        """Pass on what a merge decided."""
        if warn is not None:
            for note in notes:
                warn(note)
        if not dry_run:
            report_notes(self._events, body, notes)


def _warn(warn: Warn, asked: _Asked, *, bypassed_nothing: bool) -> None:
    """Tell the author what of the request has no effect."""
    if bypassed_nothing:
        warn(f"annotation {BYPASS} had no effect and is not stored: no unmet gate holds this request")
    if asked.door is Door.APPROVAL or asked.current is Lifecycle.DRAFT:
        return
    if asks_for_content(asked.stored, asked.wanted):
        warn(NOT_A_DRAFT.format(lifecycle=asked.current))


def _future(stored: Json, contents: Contents) -> Json:
    """Return the object with the gates and conditions that it will have: one update may set a condition and propose."""
    body = decode_again(stored)
    show_kptfile(body, contents)
    return body


def decode_again(body: Json) -> Json:
    """Return an independent copy of a decoded object."""
    copy: Json = orjson.loads(orjson.dumps(body))
    return copy
