"""resource-merge: the Kptfile, the resources and the other files of a package, each by its own rules.

The root package and every local subpackage are merged one by one, parents first. Source: ``kpt.md`` 3.9.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from krm.package.contents import EXECUTABLE, REGULAR, File
from krm.package.krmignore import KrmIgnore
from krm.package.merge.conflicts import Conflict, Kept
from krm.package.merge.file_merge import file_conflict, merge_files
from krm.package.merge.kptfile_merge import merge_kptfiles
from krm.package.merge.package_diff import edited_files
from krm.package.merge.resource_merge import merge_resources
from krm.package.merge.subpackages import Fate, Subpackages, Trees, fate_of, own_files
from krm.package.merge.updated_package import UpdatedPackage

_KPTFILE = "Kptfile"
_IGNORE_FILE = ".krmignore"
_PLAIN = (REGULAR, EXECUTABLE)

_Files = dict[str, File]


def merge_package(trees: Trees, subpackages: Subpackages) -> UpdatedPackage:
    """Merge the root package and its local subpackages; remote ones stay as they are.

    Raises:
        SubpackageAddedTwice, KptfileError, YamlError: see ``strategies.update_package``.
    """
    origin, updated, local = (
        own_files(tree.contents, subpackages.all) for tree in (trees.origin, trees.updated, trees.local)
    )
    result = dict(trees.local.contents)
    conflicts: list[Conflict] = []
    for directory in ("", *subpackages.local):
        fate = fate_of(directory, trees) if directory else Fate.MERGE
        if fate is Fate.LEAVE:
            continue
        if fate is Fate.DELETE:
            _remove(result, directory, trees.local.below(directory))
        elif fate is Fate.COPY:
            _put(result, directory, updated[directory])
        else:
            merged, found = _merge_own_files(
                origin[directory],
                updated[directory],
                local[directory],
                directory,
                update_upstream=bool(directory) or not trees.is_root,
            )
            _remove(result, directory, local[directory])
            _put(result, directory, merged)
            conflicts += found
    return UpdatedPackage(result, tuple(conflicts))


def _merge_own_files(
    origin: _Files, updated: _Files, local: _Files, directory: str, *, update_upstream: bool
) -> tuple[_Files, list[Conflict]]:
    """Merge one package without its subpackages; paths are relative to it, but complete in conflicts."""
    trees = (origin, updated, local)
    is_resource = _ResourceFiles(trees)
    others = ({p: f for p, f in tree.items() if p != _KPTFILE and not is_resource(p)} for tree in trees)
    merged, conflicts = merge_files(*others)
    resources = merge_resources(*({p: f for p, f in tree.items() if is_resource(p)} for tree in trees))
    merged |= resources.files
    kptfile, found = _merge_kptfile(*trees, directory, update_upstream=update_upstream)
    if kptfile is not None:
        merged[_KPTFILE] = kptfile
    return merged, [_inside(directory, conflict) for conflict in (*found, *resources.conflicts, *conflicts)]


def _merge_kptfile(
    origin: _Files, updated: _Files, local: _Files, directory: str, *, update_upstream: bool
) -> tuple[File | None, Iterable[Conflict]]:
    """Merge the Kptfile of a package, or of a directory that is one in some of the trees only."""
    before, upstream, here = _regular_kptfile(origin), _regular_kptfile(updated), local.get(_KPTFILE)
    if here is None:
        return (upstream if before is None else None), ()
    if here.mode not in _PLAIN:
        return here, ()
    if upstream is None and before is not None and directory:
        # Upstream made a plain directory of the subpackage; whoever edited the Kptfile here still needs it.
        if edited_files({_KPTFILE: before}, {_KPTFILE: here}):
            return here, [file_conflict(_KPTFILE, before, None, here, Kept.LOCAL)]
        return None, ()
    merged = merge_kptfiles(
        before.data if before else None,
        upstream.data if upstream else None,
        here.data,
        update_upstream=update_upstream,
        path=f"{directory}/{_KPTFILE}" if directory else _KPTFILE,
    )
    return replace(here, data=merged.data), merged.conflicts


def _regular_kptfile(files: _Files) -> File | None:
    file = files.get(_KPTFILE)
    return file if file is not None and file.mode in _PLAIN else None


class _ResourceFiles:
    """Says which files of a package are resources in all of the trees, so that none is merged half as a file."""

    def __init__(self, trees: tuple[Mapping[str, File], ...]) -> None:
        self._trees = trees
        found = (tree.get(_IGNORE_FILE) for tree in trees)
        self._ignores = [
            KrmIgnore(file.data.decode(errors="replace")) for file in found if file is not None and file.mode in _PLAIN
        ]

    def __call__(self, path: str) -> bool:
        """Say so for one path."""
        return (
            path.endswith((".yaml", ".yml"))
            and all(tree[path].mode in _PLAIN for tree in self._trees if path in tree)
            and not any(ignore.ignores(path) for ignore in self._ignores)
        )


def _inside(directory: str, conflict: Conflict) -> Conflict:
    return replace(conflict, file=f"{directory}/{conflict.file}") if directory else conflict


def _remove(result: _Files, directory: str, files: Iterable[str]) -> None:
    for path in files:
        result.pop(f"{directory}/{path}" if directory else path, None)


def _put(result: _Files, directory: str, files: Mapping[str, File]) -> None:
    for path, file in files.items():
        result[f"{directory}/{path}" if directory else path] = file
