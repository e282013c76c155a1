"""A Kptfile for merging: what it means to a decoder, beside what stands in its text.

Merging compares meaning: all scalars are text, and what is empty is not there. Writing must not touch what
means the same, so a merged value is traced back to the file it came from. Source: ``kpt.md`` 1.1 and 3.5.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from krm.package.documents import Document, read_file
from krm.package.kptfile import parse_kptfile
from krm.package.kptfile_schema import ANY, KPTFILE, TEXT, TEXT_MAP, ListOf, Shape, Struct
from krm.package.merge.conflicts import ABSENT
from krm.package.yaml_edit_text import edit_document
from krm.package.yaml_reader import plain_copy

_RENDERED = "Rendered"


@dataclass(frozen=True, slots=True)
class Version:
    """One state of a Kptfile or of a part of it."""

    meaning: Any
    """Text, lists and maps, without what is empty; ABSENT when nothing is meant."""
    values: Any
    """The same part as the file has it: typed scalars, nulls, empty lists."""

    def part(self, key: str | int) -> "Version | None":
        """Return a field or an element, None when the file does not have it."""
        return Version(_part(self.meaning, key), values) if (values := _part(self.values, key)) is not ABSENT else None


def read_version(data: bytes | None, path: str) -> Version:
    """Read a Kptfile strictly; one that is not there means nothing. ``path`` is for messages.

    Raises:
        KptfileError: it cannot be read.
    """
    if data is None:
        return Version({}, {})
    raw = parse_kptfile(data, path).raw
    return Version(_meaning(raw, KPTFILE), only_document(data).data)


def restored(merged: Any, shape: Shape, local: Version | None, updated: Version | None) -> Any:
    """Return the values to write for a merged meaning: local's where they mean it, else updated's.

    What means nothing to the merge, such as a null, stays in local. New fields of objects go where the
    schema has them, new keys of a sorted map where they sort.
    """
    if local is not None and local.meaning == merged:
        return plain_copy(local.values)
    if updated is not None and updated.meaning == merged:
        return _writable(updated.meaning, updated.values)
    if isinstance(merged, dict):
        return _restored_map(merged, shape, local, updated)
    if isinstance(merged, list):
        item = shape.item if isinstance(shape, ListOf) else ANY
        known = (_Elements(local), _Elements(updated))
        return [restored(element, item, *(elements.like(element) for elements in known)) for element in merged]
    return merged


def rewritten(data: bytes, change: Callable[[Document], str]) -> bytes:
    """Return a Kptfile whose document ``change`` has given a new text.

    Raises:
        YamlError: the text is not YAML.
    """
    pieces, documents = read_file(data)
    place = documents.index(_only(documents))
    pieces[2 * place] = change(documents[place])
    return "".join(pieces).encode()


def only_document(data: bytes) -> Document:
    """Return the document of a Kptfile.

    Raises:
        YamlError: the text is not YAML.
    """
    return _only(read_file(data)[1])


def without_render_status(data: bytes) -> bytes:
    """Return a Kptfile without the ``Rendered`` condition and ``status.renderStatus``; else as it was.

    Raises:
        YamlError: the text is not YAML.
    """
    values = plain_copy(only_document(data).data)
    status = values.get("status")
    if not isinstance(status, dict):
        return data
    had_status = status.pop("renderStatus", None) is not None
    conditions = status.get("conditions") or []
    kept = [one for one in conditions if not isinstance(one, dict) or one.get("type") != _RENDERED]
    if not had_status and len(kept) == len(conditions):
        return data
    if kept:
        status["conditions"] = kept
    else:
        status.pop("conditions", None)
    if not status:
        del values["status"]
    return rewritten(data, lambda document: edit_document(document.text, values, document.data))


def _part(data: Any, key: str | int) -> Any:
    if isinstance(data, list) and isinstance(key, int):
        return data[key]
    return data.get(key, ABSENT) if isinstance(data, dict) else ABSENT


def _only(documents: list[Document]) -> Document:
    return next(document for document in documents if document.data is not None)


def _meaning(data: Any, shape: Shape) -> Any:
    """Return decoded data as an encoder would write it again: without empty fields, but for objects."""
    if isinstance(shape, Struct):
        fields = {key: _meaning(value, shape.fields[key]) for key, value in data.items() if value is not None}
        return {key: value for key, value in fields.items() if value or isinstance(shape.fields[key], Struct)}
    if isinstance(shape, ListOf):
        return [_meaning(item or {}, shape.item) for item in data]
    if shape == ANY:
        return _without_nulls(data)
    if isinstance(data, dict):
        return {key: value or "" for key, value in data.items()}
    return [item or "" for item in data] if isinstance(data, list) else data


def _without_nulls(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _without_nulls(value) for key, value in data.items() if value is not None}
    return [_without_nulls(item) for item in data if item is not None] if isinstance(data, list) else data


def _restored_map(
    merged: Mapping[str, Any], shape: Shape, local: Version | None, updated: Version | None
) -> dict[str, Any]:
    def value_of(key: str) -> Any:
        parts = (None if version is None else version.part(key) for version in (local, updated))
        field = shape.fields.get(key, ANY) if isinstance(shape, Struct) else TEXT if shape == TEXT_MAP else ANY
        return restored(merged[key], field, *parts)

    result: dict[str, Any] = {}
    if local is not None and isinstance(local.values, dict):
        meant = local.meaning if isinstance(local.meaning, dict) else {}
        for key, value in local.values.items():
            if key in merged:
                result[key] = value_of(key)
            elif key not in meant:
                result[key] = value
    order = list(shape.fields) if isinstance(shape, Struct) else None
    new = [key for key in merged if key not in result]
    if updated is not None and isinstance(updated.values, dict):
        places = {key: place for place, key in enumerate(updated.values)}
        new.sort(key=lambda key: places.get(key, len(places)))
    for key in new:
        result = _with_field(result, key, value_of(key), order)
    return result


def _with_field(result: dict[str, Any], key: str, value: Any, order: list[str] | None) -> dict[str, Any]:
    """Add a field: behind those that come before it in ``order``; without one, sorted if the others are."""
    names = list(result)
    if order is not None:
        before = set(order[: order.index(key)]) if key in order else set(names)
        place = max((i + 1 for i, name in enumerate(names) if name in before), default=0)
    elif len(names) > 1 and names == sorted(names):
        place = sum(name < key for name in names)
    else:
        place = len(names)
    items = list(result.items())
    items.insert(place, (key, value))
    return dict(items)


class _Elements:
    """The elements of one version of a list, found by name or else by what they mean."""

    def __init__(self, version: Version | None) -> None:
        self._version = version
        self._places: dict[str, int] = {}
        if version is not None and isinstance(version.meaning, list):
            for place, element in enumerate(version.meaning):
                for key in _element_keys(element):
                    self._places.setdefault(key, place)

    def like(self, element: Any) -> Version | None:
        """Return the element that is the same, None when there is none."""
        for key in _element_keys(element):
            if self._version is not None and key in self._places:
                return self._version.part(self._places[key])
        return None


def _element_keys(element: Any) -> Iterator[str]:
    yield json.dumps(element, sort_keys=True)
    if isinstance(element, dict) and isinstance(element.get("name"), str):
        yield "name:" + element["name"]


def _writable(meaning: Any, values: Any) -> Any:
    """Return the values of another file; a scalar that would not be written as it stands there, as text."""
    if isinstance(meaning, dict):
        return {key: _writable(meaning[key], value) for key, value in values.items() if key in meaning}
    if isinstance(meaning, list) and len(meaning) == len(values):
        return [_writable(*pair) for pair in zip(meaning, values, strict=True)]
    if isinstance(values, bool):
        return values if meaning == str(values).lower() else meaning
    return values if isinstance(values, int) and meaning == str(values) else meaning
