"""The part of creating tasks that only computes: a clone made of an upstream, an upgrade merged from three packages.

Each is a value that can be sent to another process, where it is run. Source: ``porch-api.md`` 3.3 and 3.5.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from apiserver.engine.refusals import shown
from apiserver.rules.pipeline_gate import RENDERED
from apiserver.rules.readiness import INJECTION, PV_GATE
from krm.package.clone import add_merge_keys, clone_package
from krm.package.contents import Contents, ContentsError, File
from krm.package.kptfile import KptfileEdit, KptfileError, edit_kptfile, parse_kptfile
from krm.package.merge.conflicts import Conflict, Kept
from krm.package.merge.strategies import update_package
from krm.package.merge.update_error import UpdateError
from krm.package.merge.updated_package import UpdatedPackage
from krm.package.package_context import package_path, with_package_context
from krm.package.resource_identity import UPSTREAM_IDENTIFIER
from krm.package.yaml_reader import YamlError

Json = Mapping[str, Any]

MAX_PROBLEM = 4096
"""Characters of what is said to be wrong."""
MAX_NOTES = 20
"""Conflicts that are told one by one; the others are counted."""


@dataclass(frozen=True, slots=True)
class Made:
    """What came of the work: contents, or why there are none."""

    contents: dict[str, File]
    notes: tuple[str, ...] = ()
    """Sentences about what a merge decided."""
    problem: str = ""


class PackageWork(Protocol):
    """Something to compute from packages."""

    @property
    def size(self) -> int:
        """Bytes of all packages that it reads."""
        ...

    def run(self) -> Made:
        """Compute it; what is wrong with the packages is told in the outcome."""
        ...


@dataclass(frozen=True, slots=True)
class CloneWork:
    """An upstream package under a new name."""

    upstream: Contents
    name: str
    section: Json
    """The Kptfile's ``upstream``."""
    lock: Json
    context_path: str | None
    """The package's path for the context of a deployment repository, None elsewhere."""

    @property
    def size(self) -> int:
        return _bytes(self.upstream)

    def run(self) -> Made:
        try:
            return Made(
                clone_package(
                    self.upstream,
                    name=self.name,
                    upstream=self.section,
                    upstream_lock=self.lock,
                    context_path=self.context_path,
                )
            )
        except (KptfileError, ContentsError) as error:
            return Made({}, problem=str(error))


@dataclass(frozen=True, slots=True)
class MergeWork:
    """The difference of two upstreams, brought into a local package by a strategy."""

    name: str
    """Path of the package that is made."""
    strategy: str
    old: Contents
    new: Contents
    local: Contents
    section: Json
    """The Kptfile's ``upstream`` afterwards."""
    lock: Json
    deployment: bool
    moves: bool = False
    """The local package is another one than the one that is made."""

    @property
    def size(self) -> int:
        return sum(map(_bytes, (self.old, self.new, self.local)))

    def run(self) -> Made:
        try:
            updated = self._updated()
            return Made(self._recorded(updated.contents), _notes(updated, self.local))
        except (UpdateError, KptfileError, YamlError, ContentsError) as error:
            return Made({}, problem=_in_short(str(error)))

    def _updated(self) -> UpdatedPackage:
        old, new = self.old, self.new
        if self.deployment and "Kptfile" in self.local and (path := package_path(self.local)):
            # What a clone wrote into this package's context is no edit of its users, and upstream's is not meant for it.
            own_name = parse_kptfile(self.local["Kptfile"].data).name
            old, new = (with_package_context(tree, own_name, path) for tree in (old, new))
        return update_package(old, new, self.local, strategy=self.strategy)

    def _recorded(self, contents: Contents) -> dict[str, File]:
        """Say in the package what it is made from now."""
        kptfile = contents["Kptfile"]
        edit = KptfileEdit(name=self.name if self.moves else None, upstream=self.section, upstream_lock=self.lock)
        recorded = {**contents, "Kptfile": File(edit_kptfile(kptfile.data, edit), kptfile.mode)}
        if self.deployment and self.moves:
            recorded = with_package_context(recorded, self.name, self.name)
        return add_merge_keys(recorded)


def _in_short(problem: str) -> str:
    """Leave out the middle of a sentence that lists thousands of files."""
    if len(problem) <= MAX_PROBLEM:
        return problem
    return f"{problem[: MAX_PROBLEM // 2]} … {problem[-MAX_PROBLEM // 2 :]}"


def _bytes(contents: Contents) -> int:
    return sum(len(file.data) for file in contents.values())


def _notes(updated: UpdatedPackage, local: Contents) -> tuple[str, ...]:
    """Say what the merge decided, and what it left alone."""
    conflicts = [conflict for conflict in updated.conflicts if not _is_of_machines(conflict, local)]
    notes = [_note(conflict) for conflict in conflicts[:MAX_NOTES]]
    if more := len(conflicts) - len(notes):
        notes.append(f"{more} more places were changed upstream and locally")
    notes += [
        f'subpackage "{shown(pending.directory)}" has an upstream of its own, which moved; it was left as it is'
        for pending in updated.pending[:MAX_NOTES]
    ]
    return tuple(notes)


def _is_of_machines(conflict: Conflict, local: Contents) -> bool:
    """Tell whether nobody wrote what differs: renders, clones and controllers leave it, and say it anew."""
    if UPSTREAM_IDENTIFIER in conflict.path:
        return True
    if conflict.file.rpartition("/")[2] != "Kptfile":
        return False
    if conflict.path == "status.conditions" and conflict.file in local:
        types = {condition.get("type", "") for condition in parse_kptfile(local[conflict.file].data).conditions}
        return all(one in (RENDERED, PV_GATE) or one.startswith(INJECTION) for one in types)
    return conflict.path.startswith("status.renderStatus")


def _note(conflict: Conflict) -> str:
    """Say where both sides changed something, and what came of it; not the values, which may be secret."""
    where = ": ".join(shown(part) for part in (conflict.file, conflict.resource, conflict.path) if part)
    kept = "upstream's change" if conflict.kept is Kept.UPDATED else "the local change"
    return f"{where}: changed upstream and locally; {kept} was kept"
