"""Git trees as bytes: find, splice, write and read packages without parsing big trees into objects.

A tree is a run of ``<octal mode> SP <name> NUL <20 bytes>``; names sort as bytes, directories as if they ended in a
slash. A registered repository's root tree has an entry per package, so everything here stays in C (``find``, ``re``,
slices) for it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from krm.package.contents import EXECUTABLE, REGULAR, SUBMODULE, SYMLINK, Contents, File
from storage.git.errors import CorruptObject, LimitExceeded
from storage.git.objects import GitObject, ObjectSource, blob, git_object
from storage.git.paths import MAX_DEPTH, check_path

DIRECTORY = 0o40000

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

_SHA = 20
_MODES = (b"40000", b"100644", b"100755", b"120000", b"160000", b"100664")
_KNOWN_MODE = rb"(?:40000|100644|100755|120000|160000|100664) "
_ENTRY = re.compile(rb"([0-7]{5,6}) ([^\0/]+)\0(.{20})", re.DOTALL)
_WHOLE_ENTRY = re.compile(rb"[0-7]{5,6} [^\0/]+\0.{20}", re.DOTALL)
_NEXT = re.compile(rb"\0.{20}(?=" + _KNOWN_MODE + rb"[^\0/]+\0)", re.DOTALL)
_MODE_INSIDE = re.compile(rb"[0-7]{5,6} ")


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one package: number of files, bytes of all files together, directory levels."""

    files: int = 10_000
    size: int = 256 << 20
    depth: int = MAX_DEPTH


DEFAULT_LIMITS = Limits()


def entries(tree: bytes) -> Iterator[tuple[int, bytes, str]]:
    """Yield (mode, name, hex id) of every entry.

    Raises:
        CorruptObject: the bytes are no tree.
    """
    for _, mode, name, raw in _walk(tree):
        yield mode, name, raw.hex()


def find_entry(tree: bytes, name: bytes) -> tuple[int, str] | None:
    """Return (mode, hex id) of the entry, or None.

    Raises:
        CorruptObject: the bytes are no tree (noticed only when they had to be walked).
    """
    found = _locate(tree, name)
    if found is None:
        return None
    start, mode = found
    raw = tree.index(b"\0", start) + 1
    return mode, tree[raw : raw + _SHA].hex()


def differing_names(one: bytes, other: bytes) -> set[bytes]:
    """Return the names of the entries that only one of two trees has, or that are not the same in both.

    Raises:
        CorruptObject: the bytes are no trees.
    """
    pieces = _pieces(one) ^ _pieces(other)
    return {piece[piece.index(b" ") + 1 : piece.index(b"\0")] for piece in pieces}


def subtree(source: ObjectSource, root_tree: str, path: str) -> str | None:
    """Return the id of the directory at ``path`` below the root tree; None if there is none.

    Raises:
        ObjectMissing: a tree on the way is not in the source.
    """
    oid = root_tree
    for name in _parts(path):
        found = find_entry(_tree(source, oid), name)
        if found is None or found[0] != DIRECTORY:
            return None
        oid = found[1]
    return oid


def replace_subtree(
    source: ObjectSource, root_tree: str | None, path: str, subtree: str | None
) -> tuple[str, list[GitObject]]:
    """Return the root tree with the directory at ``path`` replaced, and the trees that are new.

    ``subtree`` None removes it; directories that become empty go too, missing ones are made. A file that stands
    where a directory is needed is replaced.

    Raises:
        ObjectMissing: a tree on the way is not in the source.
        UnsafePath: the path is not one a package may have.
    """
    names = _parts(check_path(path)) if path else []
    if not names:
        return _whole(subtree)
    levels = _levels(source, root_tree, names)
    made: list[GitObject] = []
    child = subtree
    for data, name in zip(reversed(levels), reversed(names), strict=True):
        changed = _without(data, name) if child is None else _with(data, name, DIRECTORY, bytes.fromhex(child))
        if changed == data and child is None:
            return _whole(root_tree)
        if not changed:
            child = None
            continue
        tree = git_object("tree", changed)
        if changed != data:
            made.append(tree)
        child = tree.oid
    if child is None:
        return _whole(None)
    return child, made


def write_package(contents: Contents) -> tuple[str, list[GitObject]]:
    """Return the tree of a package and every blob and tree in it; deeper trees come first.

    Raises:
        UnsafePath: a path is not safe, or one file stands where another needs a directory.
    """
    objects: dict[str, GitObject] = {}
    root: _Node = {}
    for path, file in contents.items():
        *folders, leaf = check_path(path).encode("utf-8", "surrogateescape").split(b"/")
        node = root
        for folder in folders:
            following = node.setdefault(folder, {})
            if not isinstance(following, dict):
                raise CorruptObject(f"{path!r} lies below another file")
            node = following
        if leaf in node:
            raise CorruptObject(f"{path!r} is a file and a directory")
        node[leaf] = _leaf(file, objects)
    return _write_node(root, objects), list(objects.values())


def read_package(source: ObjectSource, tree: str, *, limits: Limits = DEFAULT_LIMITS) -> dict[str, File]:
    """Return every file of a package with its mode, in path order; links and submodules are opaque.

    A submodule's data is its commit id in hex.

    Raises:
        ObjectMissing: an object is not in the source.
        LimitExceeded: the package has more files, bytes or levels than allowed.
    """
    reading = _Reading(source, limits)
    reading.descend(tree, b"", 1)
    return dict(sorted(reading.files.items()))


_Node = dict[bytes, "tuple[int, str] | _Node"]


@dataclass(slots=True)
class _Reading:
    source: ObjectSource
    limits: Limits
    files: dict[str, File] = field(default_factory=dict)
    size: int = 0

    def descend(self, oid: str, prefix: bytes, depth: int) -> None:
        if depth > self.limits.depth:
            raise LimitExceeded(f"a package has more than {self.limits.depth} levels of directories")
        for mode, name, child in entries(_tree(self.source, oid)):
            if mode == DIRECTORY:
                self.descend(child, prefix + name + b"/", depth + 1)
                continue
            data = child.encode() if mode == SUBMODULE else self.source.read(child).data
            self.size += len(data)
            if self.size > self.limits.size or len(self.files) >= self.limits.files:
                raise LimitExceeded(f"a package is over {self.limits.files} files or {self.limits.size} bytes")
            self.files[(prefix + name).decode("utf-8", "surrogateescape")] = File(data, mode)


def _tree(source: ObjectSource, oid: str) -> bytes:
    if oid == EMPTY_TREE:
        return b""
    found = source.read(oid)
    if found.kind != "tree":
        raise CorruptObject(f"object {oid} is a {found.kind}, not a tree")
    return found.data


def _parts(path: str) -> list[bytes]:
    return [part.encode("utf-8", "surrogateescape") for part in path.split("/") if part]


def _whole(tree: str | None) -> tuple[str, list[GitObject]]:
    return (tree, []) if tree else (EMPTY_TREE, [git_object("tree", b"")])


def _levels(source: ObjectSource, root_tree: str | None, names: list[bytes]) -> list[bytes]:
    """Return the tree data from the root down to the parent of the last name; missing trees are empty."""
    data = _tree(source, root_tree) if root_tree else b""
    levels = [data]
    for name in names[:-1]:
        found = find_entry(data, name) if data else None
        data = _tree(source, found[1]) if found is not None and found[0] == DIRECTORY else b""
        levels.append(data)
    return levels


def _leaf(file: File, objects: dict[str, GitObject]) -> tuple[int, str]:
    if file.mode == SUBMODULE:
        oid = file.data.decode("ascii", "replace")
        if not re.fullmatch(r"[0-9a-f]{40}", oid):
            raise CorruptObject("a submodule entry holds no commit id")
        return SUBMODULE, oid
    made = blob(file.data)
    objects[made.oid] = made
    mode = file.mode if file.mode in (REGULAR, EXECUTABLE, SYMLINK) else REGULAR
    return mode, made.oid


def _write_node(node: _Node, objects: dict[str, GitObject]) -> str:
    rows: list[tuple[bytes, bytes]] = []
    for name, value in node.items():
        mode, oid = (DIRECTORY, _write_node(value, objects)) if isinstance(value, dict) else value
        rows.append((_key(name, mode), b"%o %s\0" % (mode, name) + bytes.fromhex(oid)))
    tree = git_object("tree", b"".join(row for _, row in sorted(rows)))
    objects[tree.oid] = tree
    return tree.oid


def _key(name: bytes, mode: int) -> bytes:
    return name + b"/" if mode == DIRECTORY else name


def _pieces(tree: bytes) -> frozenset[bytes]:
    """Return the entries as the bytes that they are; ten times as fast as reading each."""
    pieces = _WHOLE_ENTRY.findall(tree)
    if sum(map(len, pieces)) != len(tree):
        raise CorruptObject("a tree is malformed")
    return frozenset(pieces)


def _walk(tree: bytes) -> Iterator[tuple[int, int, bytes, bytes]]:
    """Yield (start, mode, name, raw id) of every entry, strictly."""
    position, end = 0, len(tree)
    while position < end:
        found = _ENTRY.match(tree, position)
        if found is None:
            raise CorruptObject("a tree is malformed")
        yield position, int(found[1], 8), found[2], found[3]
        position = found.end()


def _locate(tree: bytes, name: bytes) -> tuple[int, int] | None:
    """Return (start, mode) of an entry.

    The bytes may also occur inside an id or in a longer name that contains a mode; a hit counts at once only if an
    id provably ends where the entry starts, otherwise the tree is walked.
    """
    space = tree.find(b" " + name + b"\0")
    if space < 0:
        return None
    for mode in _MODES:
        start = space - len(mode)
        if start >= 0 and tree.startswith(mode, start) and _is_boundary(tree, start):
            return start, int(mode, 8)
    return next(((start, mode) for start, mode, found, _ in _walk(tree) if found == name), None)


def _is_boundary(tree: bytes, start: int) -> bool:
    if start == 0:
        return True
    before = start - _SHA - 1
    return before > 0 and tree[before] == 0 and _MODE_INSIDE.search(tree, before + 1, start) is None


def _without(tree: bytes, name: bytes) -> bytes:
    found = _locate(tree, name) if tree else None
    if found is None:
        return tree
    start = found[0]
    end = tree.index(b"\0", start) + 1 + _SHA
    return tree[:start] + tree[end:]


def _with(tree: bytes, name: bytes, mode: int, raw: bytes) -> bytes:
    found = _locate(tree, name) if tree else None
    if found is not None and found[1] == mode:
        at = tree.index(b"\0", found[0]) + 1
        return tree[:at] + raw + tree[at + _SHA :]
    if found is not None:
        tree = _without(tree, name)
    at = _insertion_point(tree, _key(name, mode))
    return tree[:at] + b"%o %s\0" % (mode, name) + raw + tree[at:]


def _insertion_point(tree: bytes, key: bytes) -> int:
    """Bisect for the entry boundary before which an entry with this sort key belongs."""
    low, high = 0, len(tree)  # both are boundaries; everything before low sorts lower, from high on higher
    while low < high:
        start = _boundary_after(tree, low, (low + high) // 2, high)
        entry = _ENTRY.match(tree, start)
        if entry is None:
            raise CorruptObject("a tree is malformed")
        if _key(entry[2], int(entry[1], 8)) < key:
            low = entry.end()
        elif start == low:
            return low
        else:
            high = start
    return low


def _boundary_after(tree: bytes, low: int, middle: int, high: int) -> int:
    """Return a boundary in [low, high), at or after ``middle`` if one is found there."""
    position = middle
    while (hit := _NEXT.search(tree, position, high)) is not None:
        if _is_boundary(tree, hit.end()):
            return hit.end()
        position = hit.start() + 1
    return low
