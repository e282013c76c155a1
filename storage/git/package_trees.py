"""Find the packages in a tree: directories with a Kptfile, and nothing below them. Source: porch-api.md 6.7.

What lies in a package is part of it, Kptfiles of subpackages included.
"""

from storage.git.objects import ObjectSource
from storage.git.trees import DIRECTORY, entries, find_entry

KPTFILE = b"Kptfile"

MAX_PACKAGES = 100_000
"""Packages found below one branch."""

MAX_LEVELS = 32
"""Directories walked down to find a package."""

_FILE_MODES = (0o100644, 0o100755, 0o100664)


def kptfile_entry(tree: bytes) -> str | None:
    """Return the id of the Kptfile in a tree, None where there is none: a link is none."""
    found = find_entry(tree, KPTFILE)
    return found[1] if found is not None and found[0] in _FILE_MODES else None


def changed_packages(source: ObjectSource, new: str | None, old: str | None) -> tuple[dict[str, str], dict[str, str]]:
    """Return the packages of two trees, each as path → tree, without those in directories that are the same in both.

    The trees themselves are no packages, whatever they hold; None stands for a tree that is not there.

    Raises:
        ObjectMissing: a tree is not in the source.
        CorruptObject: one is malformed.
    """
    found: tuple[dict[str, str], dict[str, str]] = ({}, {})
    _walk(source, (new, old), "", found, 1)
    return found


def _walk(
    source: ObjectSource,
    trees: tuple[str | None, str | None],
    path: str,
    found: tuple[dict[str, str], dict[str, str]],
    level: int,
) -> None:
    """Collect the packages of two trees, new and old, skipping directories that are the same in both."""
    if trees[0] == trees[1] or level > MAX_LEVELS or len(found[0]) > MAX_PACKAGES:
        return
    folders: list[dict[str, str]] = []
    for tree, packages in zip(trees, found, strict=True):
        below, is_package = _folders(source, tree, top=level == 1)
        if is_package and tree:
            packages[path] = tree
        folders.append(below)
    for name in sorted(folders[0].keys() | folders[1].keys()):
        pair = (folders[0].get(name), folders[1].get(name))
        _walk(source, pair, f"{path}/{name}" if path else name, found, level + 1)


def _folders(source: ObjectSource, tree: str | None, *, top: bool) -> tuple[dict[str, str], bool]:
    """Return the directories to descend into, and whether the tree is a package (then there are none)."""
    if tree is None:
        return {}, False
    data = source.read(tree).data
    if not top and kptfile_entry(data) is not None:
        return {}, True
    folders: dict[str, str] = {}
    for mode, name, oid in entries(data):
        if mode == DIRECTORY:
            try:
                folders[name.decode()] = oid
            except UnicodeDecodeError:
                continue  # no package can have such a name
    return folders, False
