"""Creating a draft: is the name free, what does it start with, does it render. Source: ``porch-api.md`` 3.1 and 3.6."""

from typing import Any

from apiserver.engine.draft_contents import edit_root_kptfile, render_checked
from apiserver.engine.draft_writing import DraftWriter
from apiserver.engine.package_index import PackageIndex
from apiserver.engine.recording import REVISIONS
from apiserver.engine.rendering import Renderer
from apiserver.engine.repositories import Held
from apiserver.engine.revision_body import new_revision
from apiserver.engine.tasks import StartingContents, refuse
from apiserver.rules.lifecycle import Lifecycle
from apiserver.rules.revision_changes import CLIENT_METADATA, INTERNAL
from krm.api.revision_name import RevisionName, object_name_problem
from krm.meta.errors import AlreadyExists, Conflict, StatusError
from krm.package.contents import File
from krm.package.kptfile import KptfileEdit
from storage.interfaces import Entry, StaleWrite

Json = dict[str, Any]


class Creation:
    """Makes drafts. Nothing is visible before everything is done, and nothing is left of what failed."""

    def __init__(
        self, index: PackageIndex, starting: StartingContents, renderer: Renderer, writer: DraftWriter
    ) -> None:
        self._index = index
        self._starting = starting
        self._renderer = renderer
        self._writer = writer

    async def create(self, held: Held, name: RevisionName, wanted: Json, user: str, *, dry_run: bool) -> Entry:
        settings = held.repository.settings
        task = self._only_task(name, wanted["spec"].get("tasks") or [])
        self._check_free(settings.namespace, name, task.get("type") or "")
        parent = self._writer.base(held)
        contents = await self._starting.make(held, name, task, (wanted["spec"].get("parent") or {}).get("name") or "")
        contents = self._with_metadata(name, contents, wanted)
        contents = await render_checked(self._renderer, name.object_name, contents)
        body = new_revision(settings.namespace, name, Lifecycle.DRAFT, [task], deployment=settings.deployment)
        for key in CLIENT_METADATA:
            if value := wanted["metadata"].get(key):
                body["metadata"][key] = value
        try:
            return await self._writer.save(held, body, contents, None, parent, task, user, dry_run=dry_run)
        except StaleWrite:
            raise AlreadyExists.of(REVISIONS, name.object_name) from None

    def _only_task(self, name: RevisionName, tasks: list[Json]) -> Json:
        if len(tasks) > 1:
            raise refuse(name.object_name, "spec.tasks", "task list must not contain more than one task")
        if problem := object_name_problem(name):
            raise refuse(name.object_name, "metadata.name", f"failed to create packagerevision: {problem}")
        if tasks:
            return tasks[0]
        return {"type": "init", "init": {"description": f"{name.package} description"}}

    def _check_free(self, namespace: str, name: RevisionName, task: str) -> None:
        """Refuse what exists or would lie inside or around another package; all on full paths (3.1)."""
        package = self._index.package(namespace, name.repository, name.package)
        problem: str | None = None
        refusal: type[StatusError] = AlreadyExists
        if package is not None:
            if package.by_workspace(name.workspace) is not None:
                problem = (
                    f"package revision workspaceNames must be unique; package revision with name {name.package} in "
                    f"repo {name.repository} with workspaceName {name.workspace} already exists"
                )
            elif task == "clone":
                problem = (
                    f'`clone` cannot create a new revision for package "{name.package}" that already exists in repo '
                    f'"{name.repository}"; make subsequent revisions using `copy`'
                )
            elif task == "init":
                problem = f'package "{name.package}" already exists in repository "{name.repository}"'
        elif other := self._index.nesting_conflict(namespace, name.repository, name.package):
            refusal = Conflict
            problem = (
                f'package path "{name.package}" conflicts with existing package "{other}": packages cannot be nested'
            )
        if problem:
            raise refusal(INTERNAL + problem, name=name.object_name, group=REVISIONS.group, kind=REVISIONS.resource)

    def _with_metadata(self, name: RevisionName, contents: dict[str, File], wanted: Json) -> dict[str, File]:
        """Put package metadata, gates and conditions of a create into the Kptfile (3.6)."""
        metadata = wanted["spec"].get("packageMetadata") or {}
        gates = wanted["spec"].get("readinessGates")
        edit = KptfileEdit(
            labels=metadata.get("labels"),
            annotations=metadata.get("annotations"),
            readiness_gates=None if gates is None else [gate.get("conditionType", "") for gate in gates],
            conditions=(wanted.get("status") or {}).get("conditions"),
        )
        return edit_root_kptfile(name.object_name, contents, edit)
