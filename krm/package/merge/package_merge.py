"""resource-merge: the Kptfile, the resources and the other files of a package, each by its own rules.

The root package and every local subpackage are merged one by one, parents first. Source: ``kpt.md`` 3.9.
"""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from krm.package.contents import EXECUTABLE, REGULAR, Contents, File
from krm.package.krmignore import KrmIgnore
from krm.package.merge.associative_lists import ListKeys
from krm.package.merge.conflicts import Conflict, Kept
from krm.package.merge.file_merge import file_conflict, merge_files
from krm.package.merge.kptfile_merge import merge_kptfiles
from krm.package.merge.package_diff import edited_files
from krm.package.merge.resource_merge import merge_resources
from krm.package.merge.subpackages import Fate, Subpackages, Trees, fate_of, is_kptfile, own_files
from krm.package.merge.updated_package import UpdatedPackage
from krm.package.yaml_reader import YamlError, read_documents

_KPTFILE = "Kptfile"
_IGNORE_FILE = ".krmignore"
_RESOURCE_SUFFIXES = (".yaml", ".yml")

_Files = dict[str, File]


def merge_package(trees: Trees, subpackages: Subpackages) -> UpdatedPackage:
    """Merge the root package and its local subpackages; remote ones stay as they are.

    Raises:
        SubpackageAddedTwice, DuplicateResource, KptfileError, YamlError: see ``strategies.update_package``.
    """
    packages = subpackages.all
    versions = (trees.origin, trees.updated, trees.local)
    origin, updated, local = (own_files(tree.contents, packages) for tree in versions)
    # A package's own definitions are found when it is merged; only those of others have to be looked for.
    lists = _defined_lists(tree.contents for tree in versions) if subpackages.local else None
    result = dict(trees.local.contents)
    conflicts: list[Conflict] = []
    for directory in ("", *subpackages.local):
        fate = fate_of(directory, trees, packages) if directory else Fate.MERGE
        if fate is Fate.DELETE:
            for path in trees.local.below(directory):
                result.pop(f"{directory}/{path}", None)
        elif fate is Fate.COPY:
            result |= updated[directory]
        elif fate is Fate.MERGE:
            merged, found = _merge_own_files(
                _Own(directory, origin[directory], updated[directory], local[directory]),
                lists,
                update_upstream=bool(directory) or not trees.is_root,
            )
            for path in local[directory].keys() - merged.keys():
                result.pop(path, None)
            result |= merged
            conflicts += found
    return UpdatedPackage(result, tuple(conflicts))


@dataclass(frozen=True, slots=True)
class _Own:
    """The files of one package in the three trees, without its subpackages; paths are the root's."""

    directory: str
    origin: _Files
    updated: _Files
    local: _Files

    def trees(self) -> tuple[_Files, _Files, _Files]:
        return self.origin, self.updated, self.local

    def path_of(self, name: str) -> str:
        return f"{self.directory}/{name}" if self.directory else name


def _merge_own_files(own: _Own, lists: ListKeys | None, *, update_upstream: bool) -> tuple[_Files, list[Conflict]]:
    """Merge one package without its subpackages."""
    path = own.path_of(_KPTFILE)
    if own.origin == own.updated:
        # Not even read: what upstream did not change stays as it is, whatever it is.
        merged = {name: file for name, file in own.local.items() if name != path}
        conflicts: list[Conflict] = []
    else:
        merged, conflicts = _merge_files(own, lists)
    kptfile, found = _merge_kptfile(path, own, update_upstream=update_upstream)
    if kptfile is not None:
        merged[path] = kptfile
    return merged, [*found, *conflicts]


def _merge_files(own: _Own, lists: ListKeys | None) -> tuple[_Files, list[Conflict]]:
    """Merge all files but the Kptfile."""
    is_resource = _ResourceFiles(own)
    kptfile = own.path_of(_KPTFILE)
    others = ({p: f for p, f in tree.items() if p != kptfile and not is_resource(p)} for tree in own.trees())
    merged, conflicts = merge_files(*others)
    resources = merge_resources(
        *({p: f for p, f in tree.items() if is_resource(p)} for tree in own.trees()), lists=lists
    )
    return merged | resources.files, [*resources.conflicts, *conflicts]


def _merge_kptfile(path: str, own: _Own, *, update_upstream: bool) -> tuple[File | None, Iterable[Conflict]]:
    """Merge the Kptfile of a package, or of a directory that is one in some of the trees only."""
    before, upstream = (file if is_kptfile(file := tree.get(path)) else None for tree in (own.origin, own.updated))
    here = own.local.get(path)
    if here is None:
        return (upstream if before is None else None), ()
    if not is_kptfile(here):
        return here, ()
    if upstream is None and before is not None and own.directory:
        # Upstream made a plain directory of the subpackage; whoever edited the Kptfile here still needs it.
        if edited_files({path: before}, {path: here}):
            return here, [file_conflict(path, before, None, here, Kept.LOCAL)]
        return None, ()
    merged = merge_kptfiles(
        before.data if before else None,
        upstream.data if upstream else None,
        here.data,
        update_upstream=update_upstream,
        path=path,
    )
    return replace(here, data=merged.data), merged.conflicts


class _ResourceFiles:
    """Says which files of a package are resources in all of the trees, so that none is merged half as a file."""

    def __init__(self, own: _Own) -> None:
        self._trees = own.trees()
        self._start = len(own.path_of(""))
        found = (tree.get(own.path_of(_IGNORE_FILE)) for tree in self._trees)
        self._ignores = [KrmIgnore(file.data.decode(errors="replace")) for file in found if file and _is_plain(file)]

    def __call__(self, path: str) -> bool:
        """Say so for one path."""
        return (
            path.endswith(_RESOURCE_SUFFIXES)
            and all(_is_plain(tree[path]) for tree in self._trees if path in tree)
            and not any(ignore.ignores(path[self._start :]) for ignore in self._ignores)
        )


def _is_plain(file: File) -> bool:
    return file.mode in (REGULAR, EXECUTABLE)


def _defined_lists(trees: Iterable[Contents]) -> ListKeys:
    """Return the list keys of all CustomResourceDefinitions in the trees, so that subpackages know each other's."""
    seen: set[bytes] = set()
    definitions: list[Any] = []
    for tree in trees:
        for path, file in tree.items():
            if path.endswith(_RESOURCE_SUFFIXES) and b"CustomResourceDefinition" in file.data and _is_plain(file):
                if file.data in seen:
                    continue
                seen.add(file.data)
                with suppress(YamlError):  # what cannot be read defines nothing; who merges it says so
                    definitions += read_documents(file.data)
    return ListKeys.of_resources(definitions)
