"""Updating a package to a new upstream: the four strategies, and what is common to them.

Works on the three trees in memory. Whoever calls writes ``upstream`` and ``upstreamLock`` of the root
Kptfile, and merge keys if resources are to have them. Source: ``kpt.md`` 3.1, 3.2 and 3.9–3.12.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from krm.package.clone import add_merge_keys
from krm.package.contents import Contents, File, check_contents
from krm.package.kptfile_edit import KptfileEdit, edit_kptfile
from krm.package.kptfile_error import KptfileError
from krm.package.merge.copy_merge import copy_merge
from krm.package.merge.package_merge import merge_package
from krm.package.merge.replace import fast_forward, force_delete_replace
from krm.package.merge.subpackages import (
    Fate,
    Subpackages,
    Tree,
    Trees,
    fate_of,
    find_subpackages,
    is_kptfile,
    upstream_of,
)
from krm.package.merge.update_error import UnknownStrategy
from krm.package.merge.updated_package import PendingSubpackage, UpdatedPackage

RESOURCE_MERGE = "resource-merge"
FAST_FORWARD = "fast-forward"
FORCE_DELETE_REPLACE = "force-delete-replace"
COPY_MERGE = "copy-merge"

_Strategy = Callable[[Trees, Subpackages], UpdatedPackage]
_STRATEGIES: Mapping[str, _Strategy] = {
    RESOURCE_MERGE: merge_package,
    FAST_FORWARD: fast_forward,
    FORCE_DELETE_REPLACE: force_delete_replace,
    COPY_MERGE: copy_merge,
}


def update_package(
    origin: Contents,
    updated: Contents,
    local: Contents,
    *,
    strategy: str = RESOURCE_MERGE,
    is_root: bool = True,
) -> UpdatedPackage:
    """Bring the changes from ``origin`` to ``updated`` into ``local``; no argument is changed.

    An empty ``strategy`` is resource-merge. ``is_root`` is False for a remote subpackage that is updated by
    itself: its ``upstream`` and lock come from ``updated``, and one that was pointed elsewhere locally is
    left as it is. Running it again on its own result, with ``updated`` as the origin, changes nothing.

    Raises:
        UnknownStrategy: there is no such strategy.
        SubpackageAddedTwice: both sides added a subpackage at the same path.
        LocallyModified: fast-forward, and files were edited.
        KptfileError: a Kptfile cannot be read, or local has none.
        YamlError: a file of resources cannot be read.
        ContentsError: the result would be no package, e.g. a file and a directory of one name.

    Source: ``kpt.md`` 3.1 and 3.2.
    """
    chosen = _STRATEGIES.get(strategy or RESOURCE_MERGE)
    if chosen is None:
        raise UnknownStrategy(strategy)
    if not is_kptfile(local.get("Kptfile")):
        raise KptfileError("Kptfile", "the local package has no Kptfile; `porch pkg init` makes one")
    if not is_root and _is_pointed_elsewhere(origin, local):
        return UpdatedPackage(dict(local))
    trees = Trees(Tree(origin), Tree(updated), Tree(local), is_root)
    subpackages = find_subpackages(trees)
    result = chosen(trees, subpackages)
    if chosen is not copy_merge:  # which has copied them as the files they are
        result = _with_remote_subpackages(result, trees, subpackages)
    check_contents(result.contents)
    return replace(
        result,
        contents=dict(sorted(result.contents.items())),
        conflicts=tuple(sorted(result.conflicts, key=lambda conflict: conflict.file)),
    )


def with_resource_keys(contents: Contents) -> dict[str, File]:
    """Return the package with merge keys on the resources that have none; Kptfiles stay as they are.

    Source: ``kpt.md`` 3.3.
    """
    resources = {path: file for path, file in contents.items() if path.rpartition("/")[2] != "Kptfile"}
    return {**contents, **add_merge_keys(resources)}


def with_strategy(contents: Contents, strategy: str) -> dict[str, File]:
    """Return the package with the strategy of its last update in the Kptfile, if that has an upstream.

    Raises:
        KptfileError: the Kptfile cannot be read.

    Source: ``kpt.md`` 3.1 step 2.
    """
    upstream = upstream_of(contents, "", "local")
    if upstream is None or upstream.get("updateStrategy") == strategy:
        return dict(contents)
    kptfile = contents["Kptfile"]
    edit = KptfileEdit(upstream={**upstream, "updateStrategy": strategy})
    return {**contents, "Kptfile": File(edit_kptfile(kptfile.data, edit), kptfile.mode)}


def _is_pointed_elsewhere(origin: Contents, local: Contents) -> bool:
    before, here = (
        (upstream_of(tree, "", name) or {}).get("git") for tree, name in ((origin, "origin"), (local, "local"))
    )
    return before != here


def _with_remote_subpackages(result: UpdatedPackage, trees: Trees, subpackages: Subpackages) -> UpdatedPackage:
    """Add, remove or report the remote subpackages. Source: ``kpt.md`` 3.1 step 5."""
    contents = dict(result.contents)
    packages = subpackages.all
    pending = []
    for directory in subpackages.remote:
        fate = fate_of(directory, trees, packages)
        if fate is Fate.DELETE:
            for path in trees.local.below(directory):
                del contents[f"{directory}/{path}"]
        elif fate is Fate.COPY:
            for path, file in trees.updated.below(directory).items():
                contents[f"{directory}/{path}"] = file
        elif fate is Fate.MERGE:
            before = upstream_of(trees.origin.contents, directory, "origin")
            upstream = upstream_of(trees.updated.contents, directory, "updated")
            if upstream and upstream != before:
                pending.append(PendingSubpackage(directory, upstream))
    return replace(result, contents=contents, pending=tuple(pending))
