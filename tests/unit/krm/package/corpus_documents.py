"""The YAML documents of the packages in ``tests/data``, and seeded random edits of single scalars."""

import random
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import yaml

from krm.package.documents import Document, read_file
from krm.package.yaml_edit_text import edit_document
from krm.package.yaml_reader import plain_copy, read_document, same

DATA = Path(__file__).parents[3] / "data"
ARCHIVES = ("kpt-package-examples.tar.xz", "nephio-catalog.tar.xz")
VALUES = ("x", "yes", "a: b", 3, True, "0777", "", None, "two words", "a\nb\n", "é #x", -1.5, "it's", "12:30", "- x")

Path_ = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """A scalar of a document."""

    document: Document
    path: Path_


@cache
def yaml_files() -> list[tuple[str, bytes]]:
    """Return name and content of every YAML file, Kptfiles and JSON among them."""
    return list(_yaml_files())


def _yaml_files() -> Iterator[tuple[str, bytes]]:
    for archive in ARCHIVES:
        with tarfile.open(DATA / archive) as tar:
            for member in tar:
                if member.isfile() and (member.name.endswith((".yaml", ".yml", ".json", "Kptfile"))):
                    content = tar.extractfile(member)
                    assert content is not None
                    yield f"{archive}:{member.name}", content.read()


def seeded(seed: str) -> random.Random:
    """Return a source of choices that are the same in every run."""
    return random.Random(seed)  # noqa: S311 - nothing secret


def places(data: bytes, count: int, chance: random.Random) -> list[Place]:
    """Pick scalars of a file."""
    found = [
        Place(document, path)
        for document in read_file(data)[1]
        if isinstance(document.data, (dict, list))
        for path in _scalars(document.data)
    ]
    return chance.choices(found, k=count) if found else []


def _scalars(root: Any) -> Iterator[Path_]:
    todo: list[tuple[Path_, Any]] = [((), root)]
    while todo:
        path, value = todo.pop()
        if isinstance(value, (dict, list)):
            items = value.items() if isinstance(value, dict) else enumerate(value)
            todo += [((*path, step), item) for step, item in items]
        else:
            yield path


def owner_of(data: Any, path: Path_) -> Any:
    """Return the collection that a path ends in."""
    for step in path[:-1]:
        data = data[step]
    return data


def replaced(place: Place, value: Any) -> tuple[Any, range]:
    """Return the wanted data, and the lines that may change."""
    wanted = plain_copy(place.document.data)
    owner_of(wanted, place.path)[place.path[-1]] = value
    return wanted, lines_of(place.document.text).of(place.path)


def removed(place: Place) -> tuple[Any, range]:
    """The same for a deletion: what an emptied collection becomes changes the line of its key, too."""
    wanted = plain_copy(place.document.data)
    owner = owner_of(wanted, place.path)
    gone = owner.pop(place.path[-1])
    lines = lines_of(place.document.text)
    # Of equal items, the data does not tell which one went.
    is_one_of_many = isinstance(owner, list) and any(same(item, gone) for item in owner)
    return wanted, lines.of(place.path[:-1]) if not owner or is_one_of_many else lines.without(place.path)


def added(place: Place, value: Any) -> tuple[Any, range]:
    """The same for a new neighbour of the place: only the line of a flow collection may change."""
    wanted = plain_copy(place.document.data)
    owner = owner_of(wanted, place.path)
    if isinstance(owner, dict):
        owner["new-key"] = value
    else:
        owner.append(value)
    return wanted, lines_of(place.document.text).of_flow(place.path[:-1])


@lru_cache(maxsize=16)
def lines_of(text: str) -> "Lines":
    """Lay a document out; the places of a file are tried one after the other."""
    return Lines(text)


class Lines:
    """On which lines of a document its values stand, told by PyYAML's own composer."""

    def __init__(self, text: str) -> None:
        self._root: Any = yaml.compose(text.removeprefix("\ufeff"), Loader=yaml.CSafeLoader)

    def of(self, path: Path_) -> range:
        """The lines of a value and its key."""
        key, value, _ = self._entry(path)
        return range((key or value).start_mark.line, _last_line(value) + 1)

    def without(self, path: Path_) -> range:
        """The lines of an entry, and of the one that takes its place behind a dash."""
        here = self.of(path)
        key, value, after = self._entry(path)
        is_first = self._entry(path[:-1])[1].start_mark.line == (key or value).start_mark.line
        return range(here.start, max(here.stop, after.start_mark.line + 1)) if after and is_first else here

    def of_flow(self, path: Path_) -> range:
        """The lines of a flow collection; none for a block."""
        _, value, _ = self._entry(path)
        return range(value.start_mark.line, _last_line(value) + 1) if value.flow_style else range(0)

    def _entry(self, path: Path_) -> tuple[Any, Any, Any]:
        """Return the nodes of a key, of its value, and of the entry after it."""
        key, value, after = None, self._root, None
        for step in path:
            if isinstance(step, int):
                items = value.value
                key, value, after = None, items[step], items[step + 1] if step + 1 < len(items) else None
                continue
            entries = value.value
            index = next(index for index, (name, _) in enumerate(entries) if name.value == step)
            key, value = entries[index]
            after = entries[index + 1][0] if index + 1 < len(entries) else None
        return key, value, after


def _last_line(node: Any) -> int:
    """Return the line of a value's last character; blocks end where the next thing begins."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _last_line(last[1] if isinstance(last, tuple) else last)
    end = node.end_mark
    return int(end.line) - (1 if end.column == 0 and end.line > node.start_mark.line else 0)


def check_edit(document: Document, wanted: Any, lines: range) -> str:
    """Edit a document and say what is wrong about the result; empty when nothing is."""
    edited = edit_document(document.text, wanted, document.data)
    if not same(read_document(edited), wanted):
        return "another result than meant"
    old, new = document.text.splitlines(), edited.splitlines()
    above, below = old[: lines.start] if lines else old, old[lines.stop :] if lines else []
    if lines:
        kept = new[: len(above)] == above and (not below or new[-len(below) :] == below)
        return "" if kept else f"lines outside {lines} changed"
    rest = iter(new)
    return "" if all(line in rest for line in old) else "lines were lost"
