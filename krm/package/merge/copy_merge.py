"""copy-merge: upstream's files over the local ones, with what only local has left in place.

Source: ``kpt.md`` 3.12.
"""

from krm.package.merge.conflicts import Conflict, Kept
from krm.package.merge.file_merge import file_conflict
from krm.package.merge.kptfile_merge import merge_package_kptfile
from krm.package.merge.subpackages import Subpackages, Trees
from krm.package.merge.updated_package import UpdatedPackage

_KPTFILE = "Kptfile"


def copy_merge(trees: Trees, _: Subpackages) -> UpdatedPackage:
    """Copy every file of updated, subpackages of both kinds included, and remove what upstream removed.

    The root Kptfile is merged. Local edits of files that upstream changed or removed are lost; each is
    reported as a conflict that upstream won. Directories are no matter here: one that still
    holds local files simply stays.

    Raises:
        KptfileError: the root Kptfile of a tree cannot be read.
    """
    origin, updated, local = trees.origin.contents, trees.updated.contents, trees.local.contents
    kptfile, conflicts = merge_package_kptfile(trees)
    kept = {path: file for path, file in local.items() if path in updated or path not in origin}
    lost: list[Conflict] = []
    for path in sorted(local.keys() & (updated.keys() | origin.keys())):
        before, upstream, here = origin.get(path), updated.get(path), local[path]
        if path != _KPTFILE and here not in (before, upstream):
            lost.append(file_conflict(path, before, upstream, here, Kept.UPDATED))
    return UpdatedPackage({**kept, **updated, _KPTFILE: kptfile}, (*conflicts, *lost))
