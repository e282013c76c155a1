"""Which commit of a branch last touched each of some directories: one walk down the branch for all of them.

The branch's head moves with every package; this tells when just one did. Source: ``variants.md`` R11. The walk follows
first parents, so what came by a merge (an approval is one) is the merge's.
"""

from collections.abc import Collection, Iterator
from contextlib import suppress

from storage.git.commits import CommitInfo, parse_commit
from storage.git.errors import CorruptObject, LimitExceeded, ObjectMissing
from storage.git.objects import ObjectSource
from storage.git.trees import DIRECTORY, differing_names, find_entry

MAX_COMMITS = 5000
"""Commits walked down."""

MAX_BYTES = 64 << 20
"""Bytes of the trees that are looked at; the root of a repository with 10,000 packages has half a million."""

FEW = 16
"""Up to so many names are looked up in two trees one by one, above it the trees are compared first."""


def last_touching(source: ObjectSource, head: str, paths: Collection[str]) -> dict[str, str]:
    """Return path → id of the newest commit, from ``head`` down, that made the directory what it is at ``head``.

    ``paths`` are directories that ``head`` has, none of them inside another. One that did not change within the bounds, or
    before history ends (as that of a shallow remote does), is not in the answer.
    """
    walk = _Walk(source, paths)
    with suppress(ObjectMissing, CorruptObject, LimitExceeded):
        walk.down(head)
    return walk.found


class _Walk:
    def __init__(self, source: ObjectSource, paths: Collection[str]) -> None:
        self._source = source
        self.found: dict[str, str] = {}
        self._left = set(paths)
        self._below: dict[str, set[str]] = {}
        """Directory → the names in it that lead to what is looked for."""
        self._read = 0
        for path in paths:
            self._expect(path)

    def down(self, head: str) -> None:
        oid, commit = head, self._commit(head)
        for _ in range(MAX_COMMITS):
            if not self._left or self._read > MAX_BYTES:
                break
            older = commit.parents[0] if commit.parents else None
            before = self._commit(older) if older is not None else None
            for path in list(self._changed(commit.tree, before.tree if before else None, "")):
                self.found[path] = oid
                self._forget(path)
            if older is None or before is None:
                break
            oid, commit = older, before

    def _commit(self, oid: str) -> CommitInfo:
        return parse_commit(self._source.read(oid).data)

    def _expect(self, path: str) -> None:
        while path:
            path, _, name = path.rpartition("/")
            self._below.setdefault(path, set()).add(name)

    def _forget(self, path: str) -> None:
        self._left.discard(path)
        while path:
            path, _, name = path.rpartition("/")
            names = self._below[path]
            names.discard(name)
            if names:
                return
            del self._below[path]

    def _changed(self, new: str | None, old: str | None, path: str) -> Iterator[str]:
        """Yield those of the paths left that differ between two trees."""
        if new == old:
            return
        if path in self._left:
            yield path
            return
        names = self._below.get(path, set())
        after, before = self._data(new), self._data(old)
        if len(names) > FEW:
            names = names & {name.decode("utf-8", "surrogateescape") for name in differing_names(after, before)}
        for name in names:
            yield from self._changed(_folder(after, name), _folder(before, name), f"{path}/{name}" if path else name)

    def _data(self, tree: str | None) -> bytes:
        data = self._source.read(tree).data if tree else b""
        self._read += len(data)
        return data


def _folder(tree: bytes, name: str) -> str | None:
    """Return the tree of the directory of that name."""
    found = find_entry(tree, name.encode("utf-8", "surrogateescape"))
    return found[1] if found is not None and found[0] == DIRECTORY else None
