"""The upgrade task: the local package with the changes between two upstream revisions merged into it.

It creates a new revision of the package, or is appended to the tasks of a draft and upgrades it in place. Source:
``porch-api.md`` 3.1 item 10 and 3.5; ``variants.md`` R4 and R5.
"""

from dataclasses import dataclass
from typing import Any

from apiserver.engine.package_work import MergeWork
from apiserver.engine.recording import is_published
from apiserver.engine.refusals import refuse, shown
from apiserver.engine.repositories import Held
from apiserver.engine.sources import Sources, Upstream, is_of_package, refuse_placeholder
from apiserver.engine.starting import Start
from apiserver.engine.work_process import WorkProcesses
from krm.api.revision_name import RevisionName
from krm.meta.errors import Cause, Invalid
from krm.package.contents import Contents
from krm.package.merge.strategies import COPY_MERGE, FAST_FORWARD, FORCE_DELETE_REPLACE, RESOURCE_MERGE
from storage.interfaces import Entry

Json = dict[str, Any]

STRATEGIES = (RESOURCE_MERGE, FAST_FORWARD, FORCE_DELETE_REPLACE, COPY_MERGE)


@dataclass(frozen=True, slots=True)
class _Sides:
    """The three packages of an upgrade."""

    old: Upstream
    new: Upstream
    local: Contents
    moves: bool
    """The local package is another one than the one that is made."""


class Upgrading:
    """Makes upgrades."""

    def __init__(self, sources: Sources, processes: WorkProcesses) -> None:
        self._sources = sources
        self._processes = processes

    async def start(self, held: Held, name: RevisionName, upgrade: Json) -> Start:
        """Return what a new revision begins with.

        Raises:
            StatusError: the strategy is unknown, a revision is missing, unpublished or a placeholder, or the merge fails.
        """
        field = "spec.tasks[0].upgrade"
        _check_strategy(name, upgrade, field)
        self._check_published(held, name, upgrade, field)
        old, new = await self._upstreams(held, name, upgrade, field)
        local = self._local(held, name, upgrade, f"{field}.localPackageRevisionRef.name")
        sides = _Sides(old, new, await self._sources.contents(local), not is_of_package(local, name))
        return await self._merge(held, name, upgrade, field, sides)

    async def in_place(self, held: Held, name: RevisionName, upgrade: Json, place: int, draft: Contents) -> Start:
        """Return what the draft ``name`` becomes by an upgrade of itself, whose files are ``draft`` now.

        ``place`` is the index of the task in the request. The upgrade is the ``upgrade`` block of the one task that
        :func:`apiserver.rules.task_changes.appended_upgrade` found. Nothing is written here.

        Raises:
            StatusError: as :meth:`start`.
        """
        field = f"spec.tasks[{place}].upgrade"
        _check_strategy(name, upgrade, field)
        self._check_published(held, name, upgrade, field, besides=name.object_name)
        old, new = await self._upstreams(held, name, upgrade, field)
        return await self._merge(held, name, upgrade, field, _Sides(old, new, draft, moves=False))

    # --- what is upgraded from, to, and what ---------------------------------------------------

    def _check_published(self, held: Held, name: RevisionName, upgrade: Json, field: str, *, besides: str = "") -> None:
        """Refuse drafts of the package itself as sources; ``besides`` is the draft that is upgraded in place.

        Upstreams may be drafts of other packages, as for a clone (3.3).
        """
        for key in ("oldUpstreamRef", "newUpstreamRef", "localPackageRevisionRef"):
            wanted = _named(upgrade, key)
            if not wanted or (key == "localPackageRevisionRef" and wanted == besides):
                continue
            entry = self._sources.lookup(held.repository.settings.namespace, wanted)
            if entry is not None and is_of_package(entry, name) and not is_published(entry):
                why = f'all source PackageRevisions of upgrade task must be published, "{wanted}" is not'
                raise refuse(name.object_name, f"{field}.{key}.name", why)

    async def _upstreams(self, held: Held, name: RevisionName, upgrade: Json, field: str) -> tuple[Upstream, Upstream]:
        old = await self._upstream(held, name, upgrade, field, "oldUpstreamRef")
        new = await self._upstream(held, name, upgrade, field, "newUpstreamRef")
        if "Kptfile" not in new.contents:
            raise refuse(name.object_name, f"{field}.newUpstreamRef", f'package "{new.title}" is missing Kptfile')
        return old, new

    async def _upstream(self, held: Held, name: RevisionName, upgrade: Json, field: str, key: str) -> Upstream:
        ref, wanted = upgrade.get(key) or {}, _named(upgrade, key)
        git = ref.get("git")
        if bool(wanted) == bool(git):
            why = f"{key} must name a package revision, or a package in a Git repository (git: repo, ref, directory)"
            raise refuse(name.object_name, f"{field}.{key}", why if not git else f"{why}, not both")
        if git:
            return await self._sources.git(held, git, name, f"{field}.{key}.git")
        entry = self._sources.find(held, wanted, name, f"{field}.{key}.name", "package revision")
        if key == "newUpstreamRef":
            refuse_placeholder(entry, name, f"{field}.{key}.name", "target upstream revision")
        return await self._sources.revision(entry)

    def _local(self, held: Held, name: RevisionName, upgrade: Json, field: str) -> Entry:
        wanted = _named(upgrade, "localPackageRevisionRef")
        if not wanted:
            raise refuse(name.object_name, field, "localPackageRevisionRef.name is required")
        entry = self._sources.find(held, wanted, name, field, "package revision")
        refuse_placeholder(entry, name, field, "source revision")
        return entry

    # --- merging ---------------------------------------------------------------------------------

    async def _merge(self, held: Held, name: RevisionName, upgrade: Json, field: str, sides: _Sides) -> Start:
        section, lock = sides.new.locks()
        work = MergeWork(
            name.package,
            upgrade.get("strategy") or RESOURCE_MERGE,
            sides.old.contents,
            sides.new.contents,
            sides.local,
            section,
            lock,
            deployment=held.repository.settings.deployment,
            moves=sides.moves,
        )
        made = await self._processes.do(work)
        if made.problem:
            why = f'error updating the package "{name.package}" to revision "{sides.new.title}": {made.problem}'
            raise refuse(name.object_name, field, why)
        return Start(made.contents, made.notes)


def _named(upgrade: Json, key: str) -> str:
    return str((upgrade.get(key) or {}).get("name") or "")


def _check_strategy(name: RevisionName, upgrade: Json, field: str) -> None:
    """Refuse a strategy that nobody knows; upstream silently takes another one, and loses local edits or keeps them.

    Raises:
        Invalid: with the strategies that there are.
    """
    strategy = upgrade.get("strategy") or RESOURCE_MERGE
    if strategy not in STRATEGIES:
        supported = ", ".join(f'"{known}"' for known in STRATEGIES)
        why = f'Unsupported value: "{shown(str(strategy))}": supported values: {supported}'
        cause = Cause("FieldValueNotSupported", why, f"{field}.strategy")
        raise Invalid.of("PackageRevision", "porch.kpt.dev", name.object_name, [cause])
