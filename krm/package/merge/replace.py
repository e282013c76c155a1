"""fast-forward and force-delete-replace: upstream's files instead of the local ones.

Only the root Kptfile is merged, as it says where the package comes from and what it is called.
Source: ``kpt.md`` 3.10 and 3.11.
"""

from collections.abc import Iterator

from krm.package.contents import File
from krm.package.merge.kptfile_merge import merge_package_kptfile
from krm.package.merge.kptfile_text import without_render_status
from krm.package.merge.package_diff import edited_files
from krm.package.merge.subpackages import Subpackages, Trees, inside, outside
from krm.package.merge.update_error import LocallyModified
from krm.package.merge.updated_package import UpdatedPackage

_KPTFILE = "Kptfile"


def fast_forward(trees: Trees, subpackages: Subpackages) -> UpdatedPackage:
    """Replace the package if nobody edited it since origin; its render status goes, as the content does.

    Raises:
        LocallyModified: with the paths that were edited.
        KptfileError: a Kptfile cannot be read.
    """
    origin = outside(subpackages.remote, trees.origin.contents)
    local = outside(subpackages.remote, trees.local.contents)
    edited = [f"{directory} (Package)" for directory in _one_sided(trees, subpackages)] + edited_files(origin, local)
    if edited:
        raise LocallyModified(edited)
    replaced = force_delete_replace(trees, subpackages)
    kptfile = replaced.contents[_KPTFILE]
    return UpdatedPackage(
        {**replaced.contents, _KPTFILE: File(without_render_status(kptfile.data), kptfile.mode)}, replaced.conflicts
    )


def force_delete_replace(trees: Trees, subpackages: Subpackages) -> UpdatedPackage:
    """Replace the package and its local subpackages, edited or not; remote subpackages stay as they are.

    What is lost is what was asked for, so only the Kptfile's conflicts are reported.

    Raises:
        KptfileError: the root Kptfile of a tree cannot be read.
    """
    kptfile, conflicts = merge_package_kptfile(trees)
    contents = {
        **outside(subpackages.remote, trees.updated.contents),
        **inside(subpackages.remote, trees.local.contents),
        _KPTFILE: kptfile,
    }
    return UpdatedPackage(contents, conflicts)


def _one_sided(trees: Trees, subpackages: Subpackages) -> Iterator[str]:
    """Yield the local subpackages that only one of origin and local has."""
    for directory in subpackages.local:
        path = f"{directory}/{_KPTFILE}"
        if (path in trees.origin.contents) != (path in trees.local.contents):
            yield directory
