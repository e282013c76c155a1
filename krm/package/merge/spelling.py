"""Numbers, booleans and nulls that come from upstream are spelled as upstream spells them.

The merge works on data, for which ``1.10`` is ``1.1`` and ``0644`` is ``420``; people see text.
Source: ``kpt.md`` 7.3 and 7.6.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from krm.package.comments import Path
from krm.package.documents import Document
from krm.package.merge.alignment import LOCAL, ORIGIN, UPDATED, Alignment, child
from krm.package.merge.conflicts import ABSENT
from krm.package.merge.field_merge import FieldMerge
from krm.package.yaml_positions import SCALAR, Node, content_start, read_layout
from krm.package.yaml_reader import YamlError, read_document, same

_BOM = "\ufeff"


def keep_spelling(text: str, merged: FieldMerge, states: tuple[Document | None, Document, Document]) -> str:
    """Return ``text``, which reads as ``merged``, with scalars that upstream changed or added spelled as there.

    ``states`` are origin, updated and local. A float of which upstream changed the spelling only has the
    new one, unless local has another than origin.
    """
    origin, updated, local = states
    taken = dict(_taken(merged, updated.data, local.data))
    floats = _floats(merged.value) if _holds_float(updated.data) else []
    if not taken and not floats:
        return text
    body = text.removeprefix(_BOM)
    splices = {**_respelled(body, floats, merged, origin, updated), **_spelled(body, taken, updated)}
    pieces: list[str] = []
    done = 0
    for span, spelling in sorted(splices.items()):
        pieces += [body[done : span.start], spelling]
        done = span.end
    result = text[: len(text) - len(body)] + "".join([*pieces, body[done:]])
    return result if result != text and _reads_as(result, merged.value) else text


class _Span(NamedTuple):
    start: int
    end: int


def _taken(merged: FieldMerge, updated: Any, local: Any) -> Iterator[tuple[Path, Path]]:
    """Yield path and upstream path of each scalar, strings apart, that local had not."""
    upstream, here = Alignment(merged, UPDATED, updated), Alignment(merged, LOCAL, local)
    todo: list[tuple[Path, Path, Any, Any, Any]] = [((), (), merged.value, updated, local)]
    while todo:
        path, source, value, new, old = todo.pop()
        if value is old and isinstance(value, (dict, list)):
            continue
        if isinstance(value, dict):
            todo += [((*path, k), (*source, k), item, child(new, k), child(old, k)) for k, item in value.items()]
        elif isinstance(value, list):
            new_places, old_places = upstream.places(path, new, value), here.places(path, old, value)
            for place, item in enumerate(value):
                then, before = new_places.get(place, -1), old_places.get(place, -1)
                todo.append(((*path, place), (*source, then), item, child(new, then), child(old, before)))
        elif not isinstance(value, str) and new is not ABSENT and same(value, new) and not same(value, old):
            yield path, source


def _spelled(text: str, taken: dict[Path, Path], updated: Document) -> dict[_Span, str]:
    """Return what scalars are to be written as: ``taken`` has their paths in ``text`` and in upstream's."""
    now, then = _plain_scalars(text, taken), _spellings(updated, taken.values())
    return {span: then[taken[path]] for path, span in now.items() if taken[path] in then}


def _respelled(
    text: str, paths: list[Path], merged: FieldMerge, origin: Document | None, updated: Document
) -> dict[_Span, str]:
    """Return the same for the floats at ``paths`` whose spelling, and nothing else, upstream changed."""
    if origin is None or not paths:
        return {}
    before, after = Alignment(merged, ORIGIN, origin.data), Alignment(merged, UPDATED, updated.data)
    places = [(path, before.source(path), after.source(path)) for path in paths]
    known = {path: (old, new) for path, old, new in places if old is not None and new is not None}
    old_spellings = _spellings(origin, [old for old, _ in known.values()])
    new_spellings = _spellings(updated, [new for _, new in known.values()])
    found = {}
    for path, span in _plain_scalars(text, known).items():
        old, new = (
            spellings.get(place) for spellings, place in zip((old_spellings, new_spellings), known[path], strict=True)
        )
        if new is not None and text[span.start : span.end] == old != new:
            found[span] = new
    return found


def _spellings(state: Document, paths: Iterable[Path]) -> dict[Path, str]:
    text = state.text.removeprefix(_BOM)
    return {path: text[span.start : span.end] for path, span in _plain_scalars(text, paths).items()}


def _floats(value: Any) -> list[Path]:
    found: list[Path] = []
    todo: list[tuple[Path, Any]] = [((), value)]
    while todo:
        path, value = todo.pop()
        if isinstance(value, float):
            found.append(path)
        elif isinstance(value, dict):
            todo += [((*path, key), item) for key, item in value.items()]
        elif isinstance(value, list):
            todo += [((*path, place), item) for place, item in enumerate(value)]
    return found


def _holds_float(value: Any) -> bool:
    todo = [value]
    while todo:
        value = todo.pop()
        if isinstance(value, float):
            return True
        if isinstance(value, (dict, list)):
            todo.extend(value.values() if isinstance(value, dict) else value)
    return False


def _plain_scalars(text: str, paths: Iterable[Path]) -> dict[Path, _Span]:
    """Find the plain scalars at the paths that have one, each written on one line."""
    root = read_layout(text)
    found: dict[Path, _Span] = {}
    children: dict[Path, dict[str | int, Node]] = {}
    for path in paths:
        node = root
        for depth, step in enumerate(path):
            if node is None:
                break
            if path[:depth] not in children:
                children[path[:depth]] = {entry.step: entry for entry in node.children}
            node = children[path[:depth]].get(step)
        if node is not None and node.kind == SCALAR and node.style is None:
            span = _Span(content_start(text, node), node.end)
            if span.start < span.end and "\n" not in text[span.start : span.end]:
                found[path] = span
    return found


def _reads_as(text: str, wanted: Any) -> bool:
    try:
        return same(read_document(text), wanted)
    except YamlError:
        return False
