"""Comments that a client lost go back to the resources they stood in.

Clients that read YAML into objects and write it again drop comments, and with them the ones that functions and merges
live by (``# kpt-set:``, ``# kpt-merge:``). Source: ``porch-api.md`` 5.2 step 5.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from krm.package.comments import Comment, Path, read_comments, write_comments
from krm.package.contents import Contents, File
from krm.package.documents import Document, read_file
from krm.package.list_alignment import align
from krm.package.resource_identity import identity_of
from krm.package.yaml_reader import YamlError, same

MOST_BYTES = 256 << 10
"""Of the files that changed, before and after together; what is larger is not looked through, which would take more than a second."""
FEW_BYTES = 16 << 10
"""Of the files that changed, before and after together, whose lines are compared in a moment."""
_YAML = (".yaml", ".yml", "Kptfile")
_YTT = ("#@", "#!")
"""Comments that are code to ytt: a file that has them is its author's alone."""

Found = Mapping[tuple[str, ...], list[tuple[str, Document]]]
"""By what names a resource: its file and document before."""


def is_quick(before: Contents, after: Contents) -> bool:
    """Say whether so little changed that :func:`may_have_lost_comments` takes no longer than a moment."""
    changed = [path for path, file in before.items() if _is_yaml(path) and _differs(after.get(path), file)]
    return _size(before, changed) + _size(after, _targets(before, after)) <= FEW_BYTES


def may_have_lost_comments(before: Contents, after: Contents) -> bool:
    """Say whether :func:`heal_comments` could have anything to do; takes 5 ms for 32 KB of lines with comments that changed."""
    targets = _targets(before, after)
    room = MOST_BYTES - _size(after, targets)
    if not targets or room < 0:
        return False
    sources = _sources(before, after)
    return bool(sources) and _size(before, sources) <= room


def heal_comments(before: Contents, after: Contents) -> dict[str, File]:
    """Return ``after`` with the comments of ``before`` in every resource whose fields have none; blocking.

    A resource is the one with the same apiVersion, kind, namespace and name, in whatever file; a list element the one
    with the same name or value. A comment that stands elsewhere in the document now was moved and not lost. Files
    that did not change, are no YAML or are ytt's stay as they are.
    """
    found = _resources(before, _sources(before, after))
    healed = dict(after)
    for path in _targets(before, after) if found else ():
        data = _healed_file(path, after[path].data, found)
        if data is not None:
            healed[path] = replace(after[path], data=data)
    return healed


def _sources(before: Contents, after: Contents) -> list[str]:
    """Return the files with comments that are not all in the same file any more."""
    return [
        path
        for path, file in before.items()
        if _is_yaml(path) and b"#" in file.data and not _has_all(after.get(path), file)
    ]


def _has_all(after: File | None, before: File) -> bool:
    """Say whether whatever follows a ``#`` in a file is in the other as often; most clients lose nothing."""
    if after is None:
        return False
    return not _differs(after, before) or _behind_hashes(before.data) <= _behind_hashes(after.data)


def _differs(one: File | None, other: File) -> bool:
    return one is None or one.data != other.data


def _is_yaml(path: str) -> bool:
    return path.endswith(_YAML)


def _size(contents: Contents, paths: Iterable[str]) -> int:
    return sum(len(contents[path].data) for path in paths)


def _behind_hashes(data: bytes) -> Counter[bytes]:
    return Counter(line[line.index(b"#") :].rstrip() for line in data.splitlines() if b"#" in line)


def _targets(before: Contents, after: Contents) -> list[str]:
    return [path for path, file in after.items() if _is_yaml(path) and _differs(before.get(path), file)]


def _resources(contents: Contents, paths: Iterable[str]) -> Found:
    found: dict[tuple[str, ...], list[tuple[str, Document]]] = defaultdict(list)
    for path in paths:
        for document in _documents(contents[path].data)[1]:
            if "#" in document.text and isinstance(document.data, dict):
                found[_key(document.data)].append((path, document))
    return found


def _documents(data: bytes) -> tuple[list[str], list[Document]]:
    try:
        return read_file(data)
    except YamlError:
        return [], []  # whoever renders it says what is wrong


def _key(data: dict[str, Any]) -> tuple[str, ...]:
    identity = identity_of(data)
    return str(data.get("apiVersion")), identity.kind, identity.namespace, identity.name


def _healed_file(path: str, data: bytes, found: Found) -> bytes | None:
    """Return the file with comments put back, None when there are none to put back."""
    pieces, documents = _documents(data)
    changed = False
    for place, document in enumerate(documents):
        if isinstance(document.data, dict) and (sources := found.get(_key(document.data))):
            source = next((it for where, it in sources if where == path), sources[0][1])
            text = _healed(source, document)
            changed |= text != document.text
            pieces[2 * place] = text
    return "".join(pieces).encode() if changed else None


def _healed(before: Document, after: Document) -> str:
    if before.text == after.text or any(mark in text for mark in _YTT for text in (before.text, after.text)):
        return after.text
    try:
        had, has = read_comments(before.text), read_comments(after.text)
        wanted = dict(_wanted(before.data, after.data, had, has))
        return write_comments(after.text, wanted) if wanted else after.text
    except YamlError:
        return after.text


def _wanted(
    before: Any, after: Any, had: Mapping[Path, Comment], has: Mapping[Path, Comment]
) -> Iterator[tuple[Path, Comment]]:
    """Yield what to write: each comment that is not there any more, at the place where its value is now."""
    present = {text for comment in has.values() for text in (comment.head, comment.line, comment.foot)}
    places = _Places(before, after)
    for path, comment in had.items():
        place = places.now(path)
        if place is None:
            continue
        now = has.get(place, Comment())
        head, line, foot = (
            new or ("" if old in present else old)
            for old, new in ((comment.head, now.head), (comment.line, now.line), (comment.foot, now.foot))
        )
        if (filled := Comment(head, line, foot)) != now:
            yield place, filled


class _Places:
    """Where the values of one document are in another; each pair of lists is matched once."""

    def __init__(self, before: Any, after: Any) -> None:
        self._before = before
        self._after = after
        self._moves: dict[Path, dict[int, int]] = {}

    def now(self, path: Path) -> Path | None:
        """Return the place of the value that was at ``path``, None when it is gone."""
        before, after = self._before, self._after
        place: Path = ()
        for depth, step in enumerate(path):
            moved: str | int | None = None
            if isinstance(before, dict) and isinstance(after, dict) and step in before and step in after:
                moved = step
            elif isinstance(before, list) and isinstance(after, list) and isinstance(step, int):
                moved = self._elements(path[:depth], before, after).get(step)
            if moved is None:
                return None
            before, after = before[step], after[moved]
            place = (*place, moved)
        return place

    def _elements(self, path: Path, before: list[Any], after: list[Any]) -> dict[int, int]:
        if path not in self._moves:
            self._moves[path] = {
                old: new
                for old, new in align(before, after)
                if old is not None and new is not None and _is_same_element(before[old], after[new])
            }
        return self._moves[path]


def _is_same_element(before: Any, after: Any) -> bool:
    if isinstance(before, dict) and isinstance(after, dict):
        return bool(before.get("name") == after.get("name"))
    return same(before, after)
