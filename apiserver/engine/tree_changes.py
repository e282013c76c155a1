"""Commits that change one package in a repository's tree. Blocking; runs in Git threads."""

import time
from collections.abc import Iterable, Mapping
from typing import Any

from apiserver.engine.registered import RepositorySettings
from krm.api.revision_name import RevisionName
from krm.package.contents import Contents, File
from storage.git.commits import COMMITTER, Annotation, Identity, build_commit, first_line, format_message, parse_commit
from storage.git.objects import GitObject, ObjectSource
from storage.git.trees import read_package, replace_subtree, subtree, write_package

Json = dict[str, Any]


class Together:
    """An object source with objects that were just built lying over it."""

    def __init__(self, source: ObjectSource, built: Iterable[GitObject]) -> None:
        self._source = source
        self._built = {obj.oid: obj for obj in built}

    def read(self, oid: str) -> GitObject:
        """Read an object, built ones first."""
        built = self._built.get(oid)
        return self._source.read(oid) if built is None else built


def author_of(settings: RepositorySettings, user: str) -> Identity:
    """Return who a commit is by: the repository's own author, else the user. Source: ``porch-api.md`` 6.4."""
    if settings.author is not None:
        return settings.author
    return Identity(user, user) if user else COMMITTER


def package_tree(source: ObjectSource, commit: str, path: str) -> str | None:
    """Return the tree of the package at ``path`` in a commit."""
    return subtree(source, parse_commit(source.read(commit).data).tree, path)


def read_contents(source: ObjectSource, commit: str, path: str) -> dict[str, File]:
    """Return every file of a package in a commit; empty when it has no such directory."""
    tree = package_tree(source, commit, path)
    return read_package(source, tree) if tree else {}


def commit_contents(
    source: ObjectSource,
    settings: RepositorySettings,
    name: RevisionName,
    contents: Contents,
    *,
    parent: str | None,
    task: Mapping[str, Any],
    user: str,
) -> tuple[str, list[GitObject]]:
    """Build the commit that makes ``contents`` the whole package, on ``parent``.

    Returns the commit's id and every object that it may need beyond its parent's.
    """
    path = settings.full_path(name.package)
    tree, objects = write_package(contents)
    root = parse_commit(source.read(parent).data).tree if parent else None
    new_root, trees = replace_subtree(source, root, path, tree)
    annotation = Annotation(path, name.workspace, "0", dict(task))
    message = format_message(first_line(task["type"]), annotation)
    parents = (parent,) if parent else ()
    commit = build_commit(new_root, parents, author_of(settings, user), message, int(time.time()))
    return commit.oid, [*objects, *trees, commit]
