"""The use cases of package revisions: create, save contents, update, approve, delete.

Everybody who changes a package revision comes through here, whatever the door. A write holds a claim on its one
revision while it runs, and goes on to its end when its client disconnects. Source: ``porch-api.md`` 3 to 5;
``decisions.md`` 8 and 14.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeVar

import orjson

from apiserver.engine.claims import Claims
from apiserver.engine.creation import Creation
from apiserver.engine.deletion import DeletePublishedJob
from apiserver.engine.draft_contents import (
    NOT_PUSHED,
    check_package,
    check_rendered,
    edit_root_kptfile,
    refuse_save,
    render_checked,
)
from apiserver.engine.draft_writing import DraftWriter, preview
from apiserver.engine.package_index import REPOSITORY, PackageIndex
from apiserver.engine.publish import PublishJob
from apiserver.engine.recording import REVISIONS, Recorder, set_latest_label, update_mutation
from apiserver.engine.registered import RegisteredRepository
from apiserver.engine.rendering import Renderer
from apiserver.engine.repositories import Held, Repositories
from apiserver.engine.revision_body import (
    lifecycle_of,
    revision_name_of,
    self_commit,
    set_managers,
    set_published,
    timestamp,
)
from apiserver.engine.tasks import StartingContents
from apiserver.rules.lifecycle import Door, Lifecycle, check_transition, parse_lifecycle
from apiserver.rules.managed_labels import LATEST
from apiserver.rules.readiness import require_ready
from apiserver.rules.revision_changes import (
    ContentChange,
    check_new,
    check_published_spec,
    check_version,
    content_change,
    with_client_metadata,
)
from krm.api.revision_name import RevisionName
from krm.meta.errors import (
    Conflict,
    Forbidden,
    ResourceName,
)
from krm.package.contents import ContentsError, File, replace_texts
from krm.package.kptfile import KptfileEdit
from storage.bodies import decode
from storage.git.objects import GitObject
from storage.interfaces import Entry, ObjectKey, ObjectStore, StaleWrite

Json = dict[str, Any]
Change = Callable[[Json], Json]
T = TypeVar("T")

RESOURCES = ResourceName("packagerevisionresources", "porch.kpt.dev")


class NewManagers(Protocol):
    """The managedFields of a revision after its files were written."""

    @property
    def if_changed(self) -> list[Json]: ...
    @property
    def if_same(self) -> list[Json]: ...


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
    ) -> None:
        self._store = store
        self._index = index
        self._recorder = recorder
        self._repositories = repositories
        self._claims = claims
        self._renderer = renderer
        self._starting = starting
        self._writer = writer
        self._creation = Creation(index, starting, renderer, writer)

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

    async def create(self, namespace: str, wanted: Json, user: str, *, dry_run: bool) -> Entry:
        """Create a draft from its one task; nothing is visible before everything is done.

        Raises:
            NotFound: the repository, or what a task refers to, does not exist.
            Conflict: the revision exists or is being created.
            Invalid: a field, the task or the render is at fault.
        """
        check_new(wanted)
        spec = wanted["spec"]
        held = self._repositories.get(namespace, spec["repository"])
        name = RevisionName(spec["repository"], spec["packageName"], spec["workspaceName"])
        doing = (
            f'to create package revision with details namespace="{namespace}", repository="{name.repository}", '
            f'package="{name.package}",workspace="{name.workspace}"'
        )

        async def create() -> Entry:
            claim = self._claims.claim(REVISIONS, namespace, name.object_name, shown_as="(new creation)", doing=doing)
            with claim:
                return await self._creation.create(held, name, wanted, user, dry_run=dry_run)

        return await _to_the_end(create())

    # --- contents ------------------------------------------------------------------------------

    async def save(
        self,
        namespace: str,
        name: str,
        resources: Callable[[Entry, dict[str, File]], tuple[Json, list[str], NewManagers]],
        user: str,
        *,
        dry_run: bool,
    ) -> tuple[Entry, dict[str, File], Json]:
        """Replace a draft's files.

        ``resources`` gets the current state and returns the wanted object, the binary files to keep, and who manages
        what after that.

        Returns the entry, the rendered contents, and the function results.

        Raises:
            Conflict: the draft changed since the caller read it, or is being written.
            Invalid: it is not a draft, a path or the Kptfile is at fault, or the render failed.
        """

        async def save() -> tuple[Entry, dict[str, File], Json]:
            with self._claims.claim(
                RESOURCES, namespace, name, doing=f'on package revision resources "{namespace}/{name}"'
            ):
                return await self._save(namespace, name, resources, user, dry_run=dry_run)

        return await _to_the_end(save())

    async def _save(
        self, namespace: str, name: str, resources: Any, user: str, *, dry_run: bool
    ) -> tuple[Entry, dict[str, File], Json]:
        entry = self._recorder.entry(namespace, name)
        body = decode(entry)
        held = self._repositories.get(namespace, entry.fields[REPOSITORY])
        old = await self._starting.read(held, entry)
        wanted, keep, managers = resources(entry, old)
        check_version(RESOURCES, "PackageRevisionResources", name, wanted, entry.rv, entry.uid)
        lifecycle = lifecycle_of(body)
        if lifecycle is not Lifecycle.DRAFT:
            why = f'cannot update a package revision with lifecycle value "{lifecycle}"; package must be Draft'
            raise refuse_save(name, "spec.lifecycle", why)
        try:
            contents = replace_texts(old, (wanted.get("spec") or {}).get("resources") or {}, keep)
        except ContentsError as error:
            raise refuse_save(name, "spec.resources", str(error)) from error
        check_package(name, contents)
        rendered = await self._renderer.render(contents)
        if rendered.failed:
            raise refuse_save(name, "spec.resources", f"error {NOT_PUSHED}{rendered.error}")
        check_rendered(name, rendered)
        set_managers(body, managers.if_same if rendered.contents == old else managers.if_changed)
        task = {"type": "render"}
        saved = await self._writer.save(
            held, body, rendered.contents, entry, self_commit(body), task, user, dry_run=dry_run
        )
        return saved, rendered.contents, rendered.results

    # --- update --------------------------------------------------------------------------------

    async def update(self, namespace: str, name: str, change: Change, user: str, door: Door, *, dry_run: bool) -> Entry:
        """Apply a change that comes through one of the two doors.

        Raises:
            Conflict: the object changed since the caller read it, or is being written.
            Invalid: the transition is not offered, a gate is unmet, or a published spec is changed.
        """

        async def update() -> Entry:
            with self._claims.claim(REVISIONS, namespace, name):
                return await self._update(namespace, name, change, user, door, dry_run=dry_run)

        return await _to_the_end(update())

    async def _update(
        self, namespace: str, name: str, change: Change, user: str, door: Door, *, dry_run: bool
    ) -> Entry:
        entry = self._recorder.entry(namespace, name)
        stored = decode(entry)
        stored["metadata"]["resourceVersion"] = str(entry.rv)
        wanted = change(decode_again(stored))
        check_version(REVISIONS, "PackageRevision", name, wanted, entry.rv, entry.uid)
        del stored["metadata"]["resourceVersion"]
        held = self._repositories.get(namespace, entry.fields[REPOSITORY])
        current = lifecycle_of(stored)
        desired = parse_lifecycle((wanted.get("spec") or {}).get("lifecycle") or "", current, name)
        check_transition(current, desired, door, name)
        gates, conditions = _gates_wanted(stored, wanted, current, door)
        require_ready(name, current, desired, gates, conditions)
        if door is Door.APPROVAL and (managers := wanted["metadata"].get("managedFields")):
            set_managers(stored, managers)
        if desired is Lifecycle.PUBLISHED and current is Lifecycle.PROPOSED:
            return await self._approve(held, entry, stored, user, dry_run=dry_run)
        body = stored
        if door is Door.MAIN:
            body = with_client_metadata(stored, wanted, name)
            if current.is_published:
                check_published_spec(stored, wanted, name)
        set_latest_label(body, latest=LATEST in entry.labels)
        if body["metadata"].get("deletionTimestamp") and not body["metadata"].get("finalizers"):
            return await self._remove(held, entry, user, dry_run=dry_run)
        edits = content_change(stored, wanted) if current is Lifecycle.DRAFT and door is Door.MAIN else ContentChange()
        return await self._store_update(held, entry, body, desired, edits, user, dry_run=dry_run)

    async def _store_update(
        self,
        held: Held,
        entry: Entry,
        body: Json,
        desired: Lifecycle,
        edits: ContentChange,
        user: str,
        *,
        dry_run: bool,
    ) -> Entry:
        body["spec"]["lifecycle"] = str(desired)
        if not edits.changes_kptfile:
            return await self._writer.move(held, body, entry, user, dry_run=dry_run)
        edit = KptfileEdit(
            labels=edits.labels,
            annotations=edits.annotations,
            replace_metadata=True,
            readiness_gates=edits.gates,
            conditions=edits.conditions,
        )
        contents = edit_root_kptfile(entry.name, await self._starting.read(held, entry), edit)
        if edits.renders:
            contents = await render_checked(self._renderer, entry.name, contents)
        task = {"type": "render"}
        return await self._writer.save(held, body, contents, entry, self_commit(body), task, user, dry_run=dry_run)

    async def _approve(self, held: Held, entry: Entry, body: Json, user: str, *, dry_run: bool) -> Entry:
        repository = held.repository
        name = revision_name_of(body)
        if dry_run:
            number = self._recorder.next_revision(entry.namespace, name.repository, name.package)
            set_published(body, number, by=user, at=time.time())
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
        await held.queue.submit(job)
        return job.published if job.published is not None else self._recorder.entry(entry.namespace, entry.name)

    async def _pending(self, repository: RegisteredRepository, name: str) -> Sequence[GitObject]:
        parcel = await self._store.outbox.parcel(repository.settings.key, name)
        return parcel.objects if parcel else ()

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
            with self._claims.claim(REVISIONS, namespace, name):
                entry = self._recorder.entry(namespace, name)
                check(entry)
                return await self._delete(entry, user, finalizers, dry_run=dry_run)

        return await _to_the_end(delete())

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

    def _namespace_terminating(self, namespace: str) -> bool:
        entry = self._store.get(ObjectKey("namespaces", "", namespace))
        return entry is not None and bool(decode(entry)["metadata"].get("deletionTimestamp"))

    async def _delete(
        self, entry: Entry, user: str, finalizers: Callable[[Sequence[str]], list[str]], *, dry_run: bool
    ) -> tuple[Entry, bool]:
        if self._namespace_terminating(entry.namespace):
            if not dry_run:  # only the API forgets it; Git is never touched then (``decisions.md`` 4)
                await self._recorder.removed(entry, [], user)
            return entry, True
        self._check_deletable(entry)
        body = decode(entry)
        if left := finalizers(body["metadata"].get("finalizers") or ()):
            body["metadata"]["finalizers"] = left
            return await self._mark_deleted(entry, body, user, dry_run=dry_run), False
        held = self._repositories.get(entry.namespace, entry.fields[REPOSITORY])
        await self._remove(held, entry, user, dry_run=dry_run)
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

    async def _remove(self, held: Held, entry: Entry, user: str, *, dry_run: bool) -> Entry:
        if dry_run:
            return entry
        if lifecycle_of(decode(entry)).is_published:
            await held.queue.submit(DeletePublishedJob(held.repository, self._recorder, entry, user))
        else:
            await self._writer.remove(held, entry, user)
        return entry


def _gates_wanted(stored: Json, wanted: Json, current: Lifecycle, door: Door) -> tuple[list[Json], list[Json]]:
    """Return gates and conditions as they will be: one update may set a condition and propose."""
    gates, conditions = stored["spec"].get("readinessGates"), stored["status"].get("conditions")
    if current is Lifecycle.DRAFT and door is Door.MAIN:
        new_gates = (wanted.get("spec") or {}).get("readinessGates")
        new_conditions = (wanted.get("status") or {}).get("conditions")
        gates = gates if new_gates is None else new_gates
        conditions = conditions if new_conditions is None else new_conditions
    return gates or [], conditions or []


def decode_again(body: Json) -> Json:
    """Return an independent copy of a decoded object."""
    copy: Json = orjson.loads(orjson.dumps(body))
    return copy


async def _to_the_end(work: Awaitable[T]) -> T:
    """Run a write to its end even if the caller is cancelled (its client is gone)."""
    return await asyncio.shield(asyncio.ensure_future(work))
