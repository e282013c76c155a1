"""The subpackages of three trees that are merged, and what happens to each of them as a whole.

A subpackage with an ``upstream`` of its own is remote and updated by itself; every other is local and
updated with the package it is in. Source: ``kpt.md`` 1.9, 3.1 step 5 and 3.9.
"""

from bisect import bisect_left
from collections.abc import Collection, Container, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, TypeGuard

from krm.package.contents import EXECUTABLE, REGULAR, Contents, File
from krm.package.kptfile import parse_kptfile
from krm.package.merge.package_diff import edited_files
from krm.package.merge.update_error import SubpackageAddedTwice


class Tree:
    """One version of a package, with its directories; nothing of it is changed."""

    __slots__ = ("_paths", "contents", "directories")

    def __init__(self, contents: Contents) -> None:
        self.contents = contents
        self.directories = frozenset(_directories(contents))
        """Those that hold anything, the root apart."""
        self._paths = sorted(contents)

    def below(self, directory: str) -> dict[str, File]:
        """Return what a directory holds at any depth, paths relative to it."""
        prefix = f"{directory}/"
        # "0" follows "/", so that this is the first path behind all that begin with the prefix.
        paths = self._paths[bisect_left(self._paths, prefix) : bisect_left(self._paths, f"{directory}0")]
        return {path[len(prefix) :]: self.contents[path] for path in paths}


@dataclass(frozen=True, slots=True)
class Trees:
    """The three versions of a package."""

    origin: Tree
    """As it was when local was last taken from upstream."""
    updated: Tree
    """The new upstream."""
    local: Tree
    is_root: bool = True
    """Whether this is the package the caller updates, and not a remote subpackage of one."""


@dataclass(frozen=True, slots=True)
class Subpackages:
    """The directories of subpackages in any of three trees, parents first."""

    local: tuple[str, ...]
    remote: tuple[str, ...]
    """What lies below one of these belongs to it and is in neither list."""

    @property
    def all(self) -> frozenset[str]:
        """Every directory of the two lists."""
        return frozenset((*self.local, *self.remote))


class Fate(Enum):
    """What an update does with a subpackage."""

    COPY = auto()
    """Take it from updated."""
    LEAVE = auto()
    DELETE = auto()
    MERGE = auto()


def find_subpackages(trees: Trees) -> Subpackages:
    """Return the subpackages of all three trees; one that is remote in any tree is remote.

    Raises:
        KptfileError: a subpackage's Kptfile that speaks of an upstream cannot be read.
    """
    remote: set[str] = set()
    found: set[str] = set()
    for name, tree in (("origin", trees.origin), ("updated", trees.updated), ("local", trees.local)):
        directories = list(_package_directories(tree.contents))
        found.update(directories)
        remote.update(directory for directory in directories if upstream_of(tree.contents, directory, name))
    nested = {directory for directory in found if any(parent in remote for parent in parents(directory))}
    return Subpackages(tuple(sorted(found - remote - nested)), tuple(sorted(remote - nested)))


def upstream_of(contents: Contents, directory: str, tree: str) -> dict[str, Any] | None:
    """Return the ``upstream`` section of a package, None when it has none; ``tree`` is for messages.

    Raises:
        KptfileError: the Kptfile cannot be read.
    """
    path = f"{directory}/Kptfile" if directory else "Kptfile"
    file = contents.get(path)
    # Reading it strictly takes a hundred times longer than seeing that the word is not there.
    if not is_kptfile(file) or b"upstream" not in file.data:
        return None
    return parse_kptfile(file.data, f"{path} ({tree})").upstream


def is_kptfile(file: File | None) -> TypeGuard[File]:
    """Say whether what stands at a Kptfile's path makes a package: a link does not."""
    return file is not None and file.mode in (REGULAR, EXECUTABLE)


def fate_of(directory: str, trees: Trees, packages: Container[str]) -> Fate:
    """Decide about one subpackage; ``MERGE`` when all three trees have it.

    What upstream adds below a subpackage that was deleted here stays out with it. ``packages`` are the
    directories of all subpackages.

    Raises:
        SubpackageAddedTwice: both sides added one at the same place.

    Source: the tables of ``kpt.md`` 3.1 step 5 and 3.9.
    """
    in_origin, in_updated, in_local = (
        directory in tree.directories for tree in (trees.origin, trees.updated, trees.local)
    )
    if not in_origin:
        if in_updated and in_local:
            raise SubpackageAddedTwice(directory)
        is_wanted = in_updated and not any(
            parent in packages and parent in trees.origin.directories and parent not in trees.local.directories
            for parent in parents(directory)
        )
        return Fate.COPY if is_wanted else Fate.LEAVE
    if not in_local:
        return Fate.LEAVE
    if in_updated:
        return Fate.MERGE
    unchanged = not edited_files(trees.origin.below(directory), trees.local.below(directory))
    return Fate.DELETE if unchanged else Fate.LEAVE


def own_files(contents: Contents, packages: Iterable[str]) -> dict[str, dict[str, File]]:
    """Split a tree by package: directory, empty for the root → the files it has without subpackages."""
    groups: dict[str, dict[str, File]] = {"": {}, **{directory: {} for directory in packages}}
    for path, file in contents.items():
        owner = next((parent for parent in parents(path) if parent in groups), "")
        groups[owner][path] = file
    return groups


def parents(path: str) -> Iterator[str]:
    """Yield the directories a path lies in, the nearest first, without the root."""
    end = path.rfind("/")
    while end > 0:
        yield path[:end]
        end = path.rfind("/", 0, end)


def inside(directories: Collection[str], contents: Contents) -> dict[str, File]:
    """Return the files that lie in any of the directories."""
    chosen = frozenset(directories)
    return {path: file for path, file in contents.items() if any(parent in chosen for parent in parents(path))}


def outside(directories: Collection[str], contents: Contents) -> dict[str, File]:
    """Return the files that lie in none of the directories."""
    within = inside(directories, contents)
    return {path: file for path, file in contents.items() if path not in within}


def _package_directories(contents: Contents) -> Iterator[str]:
    for path, file in contents.items():
        if path.endswith("/Kptfile") and is_kptfile(file):
            yield path.rpartition("/")[0]


def _directories(contents: Contents) -> set[str]:
    found: set[str] = set()
    for path in contents:
        for parent in parents(path):
            if parent in found:
                break
            found.add(parent)
    return found
