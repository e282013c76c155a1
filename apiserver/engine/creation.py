"""Creating a draft: is the name free, what does it start with, does it render. Source: ``porch-api.md`` 3.1 and 3.6."""

from collections.abc import Sequence
from typing import Any

from apiserver.engine.draft_contents import render_checked, with_metadata
from apiserver.engine.draft_writing import DraftWriter
from apiserver.engine.off_loop import off_loop
from apiserver.engine.package_index import PackageIndex
from apiserver.engine.packages_to_be import PackagesToBe
from apiserver.engine.recording import REVISIONS
from apiserver.engine.refusals import refuse
from apiserver.engine.rendering import Renderer
from apiserver.engine.repositories import Held
from apiserver.engine.revision_body import new_revision
from apiserver.engine.tasks import StartingContents
from apiserver.rules.gate_fields import own_gates
from apiserver.rules.lifecycle import Lifecycle
from apiserver.rules.readiness import PV_GATE
from apiserver.rules.revision_changes import taken_metadata
from krm.api.revision_name import RevisionName, object_name_problem
from krm.meta.errors import AlreadyExists
from storage.git.errors import UnsafePath
from storage.git.paths import check_path
from storage.git.refs import draft_ref
from storage.interfaces import Entry, ObjectStore, StaleWrite

Json = dict[str, Any]


class Creation:
    """Makes drafts. Nothing is visible before everything is done, and nothing is left of what failed."""

    def __init__(
        self,
        store: ObjectStore,
        index: PackageIndex,
        starting: StartingContents,
        renderer: Renderer,
        writer: DraftWriter,
    ) -> None:
        self._packages_to_be = PackagesToBe(store, index)
        self._starting = starting
        self._renderer = renderer
        self._writer = writer

    async def create(
        self, held: Held, name: RevisionName, wanted: Json, user: str, *, dry_run: bool
    ) -> tuple[Entry, Sequence[str]]:
        """Make the draft; return it, and what its author should know of how it came to be."""
        prefix = await self._starting.parent_path(held, name, wanted["spec"].get("parent"))
        task = self._only_task(held, name, wanted["spec"].get("tasks") or [])
        with self._packages_to_be.place(held.repository.settings.namespace, name, task.get("type") or ""):
            return await self._make(held, name, task, prefix, wanted, user, dry_run=dry_run)

    async def _make(
        self, held: Held, name: RevisionName, task: Json, prefix: str, wanted: Json, user: str, *, dry_run: bool
    ) -> tuple[Entry, Sequence[str]]:
        settings = held.repository.settings
        parent = self._writer.base(held)
        start = await self._starting.make(held, name, task, prefix)
        contents = await off_loop(start.contents, with_metadata, name.object_name, start.contents, wanted)
        keeps_failure = PV_GATE in (own_gates(wanted) or ())  # only what its PackageVariant adds may make it renderable
        contents = await render_checked(self._renderer, name.object_name, contents, keeps_failure=keeps_failure)
        body = new_revision(settings.namespace, name, Lifecycle.DRAFT, [task], deployment=settings.deployment)
        body["metadata"] = taken_metadata(body["metadata"], wanted["metadata"])
        try:
            async with self._packages_to_be.confirmed(settings.namespace, name, task.get("type") or ""):
                made = await self._writer.save(held, body, contents, None, parent, task, user, dry_run=dry_run)
        except StaleWrite:
            raise AlreadyExists.of(REVISIONS, name.object_name) from None
        return made, start.notes

    def _only_task(self, held: Held, name: RevisionName, tasks: list[Json]) -> Json:
        if len(tasks) > 1:
            raise refuse(name.object_name, "spec.tasks", "task list must not contain more than one task")
        if problem := object_name_problem(name):
            raise refuse(name.object_name, "metadata.name", f"failed to create packagerevision: {problem}")
        if name.workspace == held.repository.settings.branch:
            why = f'"{name.workspace}" is the registered branch, whose name is kept for the revision that follows it'
            raise refuse(name.object_name, "spec.workspaceName", why)
        _check_place(name, held.repository.settings.full_path(name.package))
        if tasks:
            return tasks[0]
        return {"type": "init", "init": {"description": f"{name.package} description"}}


def _check_place(name: RevisionName, path: str) -> None:
    """Refuse a package for which Git has no directory or no branch, because of its depth or the repository's directory.

    Raises:
        Invalid: with what is wrong with the whole path.
    """
    try:
        draft_ref(check_path(path), name.workspace)
    except UnsafePath as error:
        why = f"failed to create packagerevision: Git cannot keep the package there: {error}"
        raise refuse(name.object_name, "spec.packageName", why) from error
