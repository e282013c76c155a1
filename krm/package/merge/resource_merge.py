"""Three-way merge of the resources of one package: files are read, resources matched, files written.

Resources are matched by upstream identity, first within a file, then across files: one that was moved
on one side is still the same. Everything is looked up in dictionaries. Source: ``kpt.md`` 3.4 and 3.9.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from krm.package.contents import REGULAR, Contents, File
from krm.package.merge.associative_lists import ListKeys
from krm.package.merge.conflicts import Conflict, ConflictLog
from krm.package.merge.document_merge import merge_states
from krm.package.merge.document_row import DocumentRow, Placed
from krm.package.merge.file_merge import merge_files
from krm.package.merge.resource_files import Resource, ResourceFile, readable_files, resources_of
from krm.package.resource_identity import Identity

_TREES = ("original", "updated", "dest")
"""The words that upstream's messages use for origin, updated and local."""
_Files = Mapping[str, ResourceFile]


@dataclass(frozen=True, slots=True)
class MergedResources:
    """The files after a merge; those that are gone are left out."""

    files: dict[str, File]
    conflicts: tuple[Conflict, ...] = ()


def merge_resources(
    origin: Contents, updated: Contents, local: Contents, *, lists: ListKeys | None = None
) -> MergedResources:
    """Merge the ``*.yaml`` and ``*.yml`` files of one package, subpackages left out; other files are ignored.

    ``lists`` knows CustomResourceDefinitions that are elsewhere; those of the three trees count first.

    A file in which some tree has something else than resources is merged as a whole. Documents that
    upstream did not change keep their bytes, files nobody changed here become upstream's byte for byte.
    Merging the result again gives the result.

    Raises:
        DuplicateResource: a file has two resources of one identity.
        UnreadableFile: both sides changed a file that is not YAML.
    """
    trees = dict(zip(_TREES, (origin, updated, local), strict=True))
    read, opaque = readable_files(trees)
    whole = ({path: contents[path] for path in opaque if path in contents} for contents in trees.values())
    files, file_conflicts = merge_files(*whole)
    merge = _Merge([read[tree] for tree in _TREES], lists or ListKeys())
    files |= merge.files()
    return MergedResources(dict(sorted(files.items())), (*file_conflicts, *merge.conflicts))


@dataclass(slots=True)
class _Match:
    """One resource in the trees that have it."""

    origin: Resource | None = None
    updated: Resource | None = None
    local: Resource | None = None

    def states(self) -> tuple[Resource | None, Resource | None, Resource | None]:
        return self.origin, self.updated, self.local

    def identity(self) -> Identity:
        """Return the identity, the same in every tree."""
        return next(state.identity for state in self.states() if state)

    def place_in(self, path: str, *, in_local: bool) -> int | None:
        """Return its place in local's file, or else upstream's, of this path; None when it is not there."""
        state = self.local if in_local else self.updated
        return state.place if state and state.path == path else None

    def add(self, other: "_Match") -> None:
        """Take the states that ``other`` has and this has not."""
        self.origin, self.updated, self.local = (
            mine or theirs for mine, theirs in zip(self.states(), other.states(), strict=True)
        )


@dataclass(frozen=True, slots=True)
class _Outcome:
    """A resource that is in the result."""

    match: _Match
    path: str
    index: int
    text: str


class _Merge:
    """One merge of resources."""

    def __init__(self, trees: list[_Files], lists: ListKeys) -> None:
        self._origin, self._updated, self._local = trees
        resources = [list(resources_of(files, tree)) for files, tree in zip(trees, _TREES, strict=True)]
        self._matches = _moved_together(_matched(*resources))
        own = ListKeys.of_resources(resource.document.data for side in reversed(resources) for resource in side)
        self._lists = ListKeys({**lists.kinds, **own.kinds}, lists.infer)
        self._log = ConflictLog()

    @property
    def conflicts(self) -> list[Conflict]:
        return self._log.conflicts

    def files(self) -> dict[str, File]:
        """Merge, and return the files."""
        by_path: dict[str, list[_Outcome]] = {path: [] for path in self._local}
        for match in self._matches:
            outcome = self._outcome(match)
            if outcome is not None:
                by_path.setdefault(outcome.path, []).append(outcome)
        files = {path: self._file(path, outcomes) for path, outcomes in by_path.items()}
        return {path: file for path, file in files.items() if file is not None}

    def _outcome(self, match: _Match) -> _Outcome | None:
        path, index = _position(match)
        origin, updated, local = (state.document if state else None for state in match.states())
        if origin and updated and local and origin.text == local.text and not _has_null(updated.data):
            # Nobody edited it here. A null, however, may be meant to clear a field.
            return _Outcome(match, path, index, updated.text)
        report = self._log.within(file=path, resource=str(match.identity()))
        text = merge_states(origin, updated, local, lists=self._lists, on_conflict=report)
        return None if text is None else _Outcome(match, path, index, text)

    def _file(self, path: str, outcomes: list[_Outcome]) -> File | None:
        """Put a file together on local's text, or on upstream's where local has none."""
        outcomes.sort(key=lambda outcome: outcome.index)
        before, upstream, here = self._origin.get(path), self._updated.get(path), self._local.get(path)
        base = here or upstream
        mode = _mode(before, upstream, here)
        is_untouched = here is None or (before is not None and before.file.data == here.file.data)
        if upstream and is_untouched and _is_as_upstream(outcomes, upstream):
            # Of a file that lost all its resources upstream, what else it held is left.
            return File(upstream.file.data, mode)
        if base is None or not outcomes:
            return base.file if base and base is here and not here.resources else None
        placed = [Placed(outcome.text, outcome.match.place_in(path, in_local=here is not None)) for outcome in outcomes]
        return File(DocumentRow(base.pieces, base.documents).text(placed).encode(), mode)


def _matched(origin: Iterable[Resource], updated: Iterable[Resource], local: Iterable[Resource]) -> list[_Match]:
    """Match resources of the same file, in the order of origin, then of upstream's new ones, then of local's."""
    matches: dict[tuple[str, Identity], _Match] = {}
    for resource in origin:
        matches[resource.path, resource.identity] = _Match(origin=resource)
    for resource in updated:
        matches.setdefault((resource.path, resource.identity), _Match()).updated = resource
    for resource in local:
        matches.setdefault((resource.path, resource.identity), _Match()).local = resource
    return list(matches.values())


def _moved_together(matches: list[_Match]) -> list[_Match]:
    """Join the matches of a resource that was moved to another file, if no tree has it twice."""
    by_identity: dict[Identity, list[_Match]] = {}
    for match in matches:
        by_identity.setdefault(match.identity(), []).append(match)
    joined: set[int] = set()
    for identity, group in by_identity.items():
        home = next((match for match in group if match.origin), None)
        if home is None or len(group) == 1 or not identity.name or not _is_once_per_tree(group):
            continue
        for match in group:
            if match is not home:
                home.add(match)
                joined.add(id(match))
    return [match for match in matches if id(match) not in joined]


def _is_once_per_tree(group: list[_Match]) -> bool:
    return all(sum(state is not None for state in side) <= 1 for side in zip(*(m.states() for m in group), strict=True))


def _position(match: _Match) -> tuple[str, int]:
    """Return file and index of the merged resource: merged as fields are, but a local move stays."""
    origin, updated, local = match.states()
    if local is None or updated is None:
        here = local or updated or origin
        return (here.path, here.place) if here else ("", 0)
    if origin is None:
        return local.path, updated.place
    is_moved_here, is_moved_upstream = local.path != origin.path, updated.path != origin.path
    if is_moved_upstream and not is_moved_here:
        return updated.path, updated.place
    is_reordered = not is_moved_here and not is_moved_upstream and updated.place != origin.place
    return local.path, updated.place if is_reordered else local.place


def _is_as_upstream(outcomes: list[_Outcome], upstream: ResourceFile) -> bool:
    return len(outcomes) == len(upstream.resources) and all(
        outcome.match.updated is resource and outcome.text == resource.document.text
        for outcome, resource in zip(outcomes, upstream.resources, strict=True)
    )


def _mode(origin: ResourceFile | None, updated: ResourceFile | None, local: ResourceFile | None) -> int:
    """Merge the modes of a file: upstream's, unless it was changed here."""
    before, upstream, here = (state.file.mode if state else None for state in (origin, updated, local))
    if upstream is None or (here is not None and here != before):
        return here or REGULAR
    return upstream


def _has_null(data: Any) -> bool:
    todo = [data]
    while todo:
        value = todo.pop()
        if value is None:
            return True
        if isinstance(value, dict):
            todo.extend(value.values())
        elif isinstance(value, list):
            todo.extend(value)
    return False
