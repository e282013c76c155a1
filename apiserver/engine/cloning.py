"""The clone task: an upstream package under a new name, which remembers where it came from.

Source: ``porch-api.md`` 3.3; ``variants.md`` R5.
"""

from typing import Any

from apiserver.engine.package_work import CloneWork
from apiserver.engine.refusals import refuse
from apiserver.engine.repositories import Held
from apiserver.engine.sources import Sources, Upstream, refuse_placeholder
from apiserver.engine.work_process import WorkProcesses
from krm.api.revision_name import RevisionName
from krm.package.contents import File

Json = dict[str, Any]
FIELD = "spec.tasks[0].clone.upstreamRef"


class Cloning:
    """Makes clones."""

    def __init__(self, sources: Sources, processes: WorkProcesses) -> None:
        self._sources = sources
        self._processes = processes

    async def contents(self, held: Held, name: RevisionName, clone: Json, prefix: str) -> dict[str, File]:
        """Return what the clone begins with; ``prefix`` is the package path of its parent, or empty.

        Raises:
            StatusError: no source is named, it cannot be used, or it cannot be read.
        """
        upstream = await self._upstream(held, name, clone.get("upstreamRef") or {})
        if "Kptfile" not in upstream.contents:
            raise refuse(name.object_name, FIELD, f'package "{name.package}" is missing Kptfile')
        section, lock = upstream.locks()
        own_path = f"{prefix}/{name.package}" if prefix else name.package
        context = own_path if held.repository.settings.deployment else None
        made = await self._processes.do(CloneWork(upstream.contents, name.package, section, lock, context))
        if made.problem:
            raise refuse(name.object_name, FIELD, f"the upstream package cannot be cloned: {made.problem}")
        return made.contents

    async def _upstream(self, held: Held, name: RevisionName, source: Json) -> Upstream:
        if ref := source.get("upstreamRef"):
            return await self._revision(held, name, ref)
        if git := source.get("git"):
            return await self._sources.git(held, git, name, f"{FIELD}.git")
        if source.get("oci"):
            raise refuse(name.object_name, f"{FIELD}.oci", "clone from OCI is not implemented")
        why = "invalid clone source (neither of git, oci, nor upstream were specified)"
        raise refuse(name.object_name, FIELD, why)

    async def _revision(self, held: Held, name: RevisionName, ref: Json) -> Upstream:
        field = f"{FIELD}.upstreamRef.name"
        wanted = ref.get("name") or ""
        if not wanted:
            raise refuse(name.object_name, field, "upstreamRef.name is required")
        entry = self._sources.find(held, wanted, name, field, "package revision")
        refuse_placeholder(entry, name, field, "upstream revision")
        return await self._sources.revision(entry)
