"""The use cases of package revisions: create, save contents, update, approve, delete.

Everybody who changes a package revision comes through here, whatever the door. A write holds a claim on its one
revision while it runs, and goes on to its end when its client disconnects. Source: ``porch-api.md`` 3 to 5;
``decisions.md`` 8 and 14.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from apiserver.engine.approving import Approving
from apiserver.engine.claims import Claims, stay_unchanged
from apiserver.engine.creation import Creation
from apiserver.engine.deleting import Deleting
from apiserver.engine.draft_writing import DraftWriter
from apiserver.engine.gates import MayBypass, nobody
from apiserver.engine.package_index import LIFECYCLE, REPOSITORY, RESOURCE, PackageIndex
from apiserver.engine.proposals import Proposals
from apiserver.engine.recording import REVISIONS, Recorder
from apiserver.engine.rendering import Renderer
from apiserver.engine.repositories import Repositories
from apiserver.engine.revision_events import CREATED, RevisionEvents, report_notes, report_transition
from apiserver.engine.saving import RESOURCES, Saved, Saving, WantedFiles
from apiserver.engine.tasks import StartingContents
from apiserver.engine.updating import Change, Updating, Warn
from apiserver.rules.gate_bypass import take_bypass
from apiserver.rules.lifecycle import Door, Lifecycle
from apiserver.rules.revision_changes import check_new, repository_of
from krm.api.revision_name import RevisionName
from krm.meta.errors import ServiceUnavailable
from krm.package.contents import File
from storage.bodies import decode
from storage.interfaces import Entry, ObjectKey, ObjectStore, StoreUnavailable
from storage.spans import span

Json = dict[str, Any]
T = TypeVar("T")


class PackageService:
    """Package revisions, as clients may change them."""

    def __init__(
        self,
        store: ObjectStore,
        index: PackageIndex,
        recorder: Recorder,
        repositories: Repositories,
        claims: Claims,
        renderer: Renderer,
        starting: StartingContents,
        writer: DraftWriter,
        events: RevisionEvents,
        proposals: Proposals,
    ) -> None:
        self._store = store
        self._recorder = recorder
        self._repositories = repositories
        self._claims = claims
        self._starting = starting
        self._events = events
        self._creation = Creation(store, index, starting, renderer, writer)
        self._saving = Saving(recorder, repositories, renderer, starting, writer, events)
        self._deleting = Deleting(store, index, recorder, repositories, writer, events)
        approving = Approving(store, recorder, proposals)
        self._updating = Updating(recorder, repositories, renderer, starting, writer, approving, self._deleting, events)

    # --- reading -------------------------------------------------------------------------------

    async def contents(self, entry: Entry) -> dict[str, File]:
        """Return every file of a revision.

        Raises:
            NotFound: its repository is not registered any more.
            ServiceUnavailable: the content cannot be read now.
        """
        held = self._repositories.get(entry.namespace, entry.fields[REPOSITORY])
        return await self._starting.read(held, entry)

    # --- create --------------------------------------------------------------------------------

    async def create(
        self, namespace: str, wanted: Json, user: str, *, dry_run: bool, warn: Warn | None = None
    ) -> Entry:
        """Create a draft from its one task; nothing is visible before everything is done.

        ``warn`` is told what the author should know of it, such as places that both sides of an upgrade had changed.

        Raises:
            NotFound: the repository, or what a task refers to, does not exist.
            Conflict: the revision exists or is being created.
            Invalid: a field, the task or the render is at fault.
        """
        held = self._repositories.get(namespace, repository_of(wanted))
        check_new(wanted)
        take_bypass(wanted)
        spec = wanted["spec"]
        name = RevisionName(spec["repository"], spec["packageName"], spec["workspaceName"])
        doing = (
            f'to create package revision with details namespace="{namespace}", repository="{name.repository}", '
            f'package="{name.package}",workspace="{name.workspace}"'
        )

        async def create() -> Entry:
            claim = self._claims.claim(REVISIONS, namespace, name.object_name, shown_as="(new creation)", doing=doing)
            async with claim:
                await see_other_replicas(self._store)
                made, notes = await self._creation.create(held, name, wanted, user, dry_run=dry_run)
            if warn is not None:
                for note in notes:
                    warn(note)
            if not dry_run:
                self._events.report(decode(made), CREATED, f"created by {user}")
                report_notes(self._events, decode(made), notes)
            return made

        return await _to_the_end(create(), "create", f"{namespace}/{name.object_name}")

    # --- contents ------------------------------------------------------------------------------

    async def save(
        self,
        namespace: str,
        name: str,
        resources: WantedFiles,
        user: str,
        *,
        dry_run: bool,
    ) -> Saved:
        """Replace a draft's files.

        ``resources`` gets the current state and returns the wanted object, the binary files to keep, and who manages
        what after that.

        Returns the entry, the rendered contents, and the function results.

        Raises:
            Conflict: the draft changed since the caller read it, or is being written.
            Invalid: it is not a draft, a path or the Kptfile is at fault, or the render failed.
        """

        async def save() -> Saved:
            async with self._claims.claim(
                RESOURCES, namespace, name, doing=f'on package revision resources "{namespace}/{name}"'
            ):
                await see_other_replicas(self._store)
                return await self._saving.save(namespace, name, resources, user, dry_run=dry_run)

        return await _to_the_end(save(), "save", f"{namespace}/{name}")

    # --- update --------------------------------------------------------------------------------

    async def update(
        self,
        namespace: str,
        name: str,
        change: Change,
        user: str,
        door: Door,
        *,
        dry_run: bool,
        may_bypass: MayBypass = nobody,
        warn: Warn | None = None,
    ) -> Entry:
        """Apply a change that comes through one of the two doors.

        ``may_bypass`` tells whether the user may leave unmet gates behind; it is asked only if the request wants to.
        ``warn`` is told what the author should know of an upgrade in place.

        Raises:
            Conflict: the object changed since the caller read it, or is being written.
            Forbidden: the request bypasses gates, and its author may not.
            Invalid: the transition is not offered, a gate is unmet, or a published spec is changed.
        """

        async def update() -> Entry:
            async with self._claims.claim(REVISIONS, namespace, name):
                await see_other_replicas(self._store)
                before = self._recorder.entry(namespace, name)
                after = await self._updating.update(
                    namespace, name, change, user, door, dry_run=dry_run, may_bypass=may_bypass, warn=warn
                )
                if after.rv == before.rv:
                    await stay_unchanged()
            if not dry_run and before.fields[LIFECYCLE] != after.fields[LIFECYCLE]:
                report_transition(self._events, Lifecycle(before.fields[LIFECYCLE]), decode(after), user)
            return after

        return await _to_the_end(update(), "update", f"{namespace}/{name}")

    # --- delete --------------------------------------------------------------------------------

    async def delete(
        self,
        namespace: str,
        name: str,
        check: Callable[[Entry], None],
        user: str,
        *,
        dry_run: bool,
        finalizers: Callable[[Sequence[str]], list[str]] = list,
    ) -> tuple[Entry, bool]:
        """Delete a revision; ``check`` raises when a precondition of the caller does not hold.

        ``finalizers`` tells which ones the delete leaves of those that are there, those of the garbage collector included.

        Returns the object as it was, and whether it is gone (finalizers may hold it).

        Raises:
            Forbidden: it is published and its deletion is not proposed, or others name it as upstream.
        """

        async def delete() -> tuple[Entry, bool]:
            async with self._claims.claim(REVISIONS, namespace, name):
                await see_other_replicas(self._store)
                entry = self._recorder.entry(namespace, name)
                check(entry)
                return await self._deleting.delete(entry, user, finalizers, dry_run=dry_run)

        return await _to_the_end(delete(), "delete", f"{namespace}/{name}")


async def see_other_replicas(store: ObjectStore) -> None:
    """Bring memory up to what is committed anywhere; costs nothing where nobody else writes.

    Raises:
        ServiceUnavailable: the database cannot be read.
    """
    try:
        await store.get_fresh(ObjectKey(RESOURCE, "", ""))
    except StoreUnavailable as error:
        why = f"the database cannot be read ({error}); nothing was changed, try again"
        raise ServiceUnavailable(why, retry_after=1) from error


async def _to_the_end(work: Awaitable[T], use_case: str, revision: str) -> T:
    """Run a write to its end even if the caller is cancelled (its client is gone)."""
    with span(use_case, revision=revision):
        return await asyncio.shield(asyncio.ensure_future(work))
