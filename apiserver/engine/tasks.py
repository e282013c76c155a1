"""The contents a new package revision starts with: its one creating task is run, and nothing is written.

Source: ``porch-api.md`` 3.2 to 3.5.
"""

from typing import Any

from apiserver.engine.cloning import Cloning
from apiserver.engine.recording import REVISIONS, is_published
from apiserver.engine.refusals import refuse, shown
from apiserver.engine.repositories import Held, Repositories
from apiserver.engine.sources import Sources, is_of_package, refuse_placeholder
from apiserver.engine.starting import Start
from apiserver.engine.upgrading import Upgrading
from apiserver.engine.upstream_clones import UpstreamClones
from apiserver.engine.work_process import WorkProcesses
from krm.api.revision_name import RevisionName
from krm.meta.errors import Cause, Invalid, NotFound
from krm.package.contents import ContentsError, File, check_contents
from krm.package.init import init_package
from krm.package.package_context import package_path
from storage.interfaces import Entry, ObjectStore

Json = dict[str, Any]
TYPES = ("init", "clone", "edit", "upgrade")


class StartingContents:
    """Runs creating tasks."""

    def __init__(self, store: ObjectStore, repositories: Repositories, upstreams: UpstreamClones) -> None:
        self._sources = Sources(store, repositories, upstreams)
        processes = WorkProcesses()
        self._cloning = Cloning(self._sources, processes)
        self.upgrading = Upgrading(self._sources, processes)
        """Also upgrades drafts in place."""

    async def make(self, held: Held, name: RevisionName, task: Json, prefix: str = "") -> Start:
        """Return what ``task`` starts the revision with; ``prefix`` precedes the package path in a clone's context.

        Raises:
            StatusError: the task is unknown or incomplete, or its source cannot be used.
        """
        kind = task.get("type") or ""
        block = task.get(kind) or {}
        match kind:
            case "init":
                return Start(_init(name, block))
            case "clone":
                return Start(await self._cloning.contents(held, name, block, prefix))
            case "edit":
                return Start(await self._edit(held, name, block))
            case "upgrade":
                return await self.upgrading.start(held, name, block)
        supported = ", ".join(f'"{known}"' for known in TYPES)
        why = f'Unsupported value: "{shown(str(kind))}": supported values: {supported}'
        cause = Cause("FieldValueNotSupported", why, "spec.tasks[0].type")
        raise Invalid.of("PackageRevision", "porch.kpt.dev", name.object_name, [cause])

    async def read(self, held: Held, entry: Entry) -> dict[str, File]:
        """Return the contents of a revision of a registered repository.

        Raises:
            ServiceUnavailable: they cannot be read now.
        """
        return await self._sources.read(held, entry)

    async def _edit(self, held: Held, name: RevisionName, edit: Json) -> dict[str, File]:
        wanted = (edit.get("sourceRef") or {}).get("name") or ""
        field = "spec.tasks[0].edit.sourceRef.name"
        source = self._sources.find(held, wanted, name, field, "package")
        if not is_of_package(source, name):
            why = f"source revision must be from same package {name.repository}/{name.package}"
            raise refuse(name.object_name, field, why)
        refuse_placeholder(source, name, field, "source revision")
        if not is_published(source):
            raise refuse(name.object_name, field, "source revision must be published")
        return await self._sources.read(held, source)

    async def parent_path(self, held: Held, name: RevisionName, ref: Json | None) -> str:
        """Return the package path of the parent that ``ref`` names (deprecated ``spec.parent``), "" without one.

        Raises:
            Invalid: there is no such revision.
            ServiceUnavailable: it cannot be read now.
        """
        if ref is None:
            return ""
        parent = str(ref.get("name") or "")
        entry = self._sources.lookup(held.repository.settings.namespace, parent)
        if entry is None:
            why = f'cannot get parent package "{shown(parent)}": {NotFound.of(REVISIONS, shown(parent)).message}'
            raise refuse(name.object_name, "spec.parent.name", why)
        return package_path(await self._sources.contents(entry))


def _init(name: RevisionName, init: Json) -> dict[str, File]:
    """Make an empty package; when the task names a subpackage, an empty one in it, which the rest of the task describes.

    Upstream leaves the package without a Kptfile then, and cannot store it ([QUIRK] of 3.2).

    Raises:
        Invalid: the subpackage's path cannot be one in a package.
    """
    told = init.get("description") or "", init.get("keywords") or [], init.get("site") or ""
    subpackage = str(init.get("subpackage") or "").strip("/")
    if not subpackage:
        return init_package(name.package, *told)
    nested = init_package(subpackage.rpartition("/")[2], *told)
    contents = init_package(name.package, "", [], "") | {f"{subpackage}/{path}": f for path, f in nested.items()}
    try:
        check_contents(contents)
    except ContentsError as error:
        field = "spec.tasks[0].init.subpackage"
        raise refuse(name.object_name, field, f"the subpackage cannot be made: {shown(error.problem)}") from error
    return contents
