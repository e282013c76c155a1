"""``create-setters``: ``# kpt-set:`` comments on the fields that hold given values. Source: ``kpt.md`` 4.11."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from krm.functions.builtin import Behaviour, Builtin, Option
from krm.functions.catalog.config_values import file_of, text_map
from krm.functions.catalog.field_paths import shown_path
from krm.functions.catalog.line_comments import set_line_comments
from krm.functions.catalog.list_style import write_as_block
from krm.functions.catalog.source_nodes import SourceList, source_nodes
from krm.functions.go_text import quoted
from krm.functions.images import Version
from krm.functions.resource import Resource
from krm.functions.runner import FunctionResult, ResourceList
from krm.package.comments import Path
from krm.package.yaml_reader import YamlError, read_document

_SINGLE_PASS: Version = (0, 1, 1)
"""Older versions look for later setters inside the names of earlier ones, and comment values of several lines."""
_LONGEST_PATTERN = 1 << 16
"""Characters of a comment."""
_MOST_SETTERS = 1000
"""In one configuration: each is looked for in every field."""


class _SetterError(Exception):
    """The setters cannot be created; the text says why."""


@dataclass(frozen=True, slots=True)
class _Setters:
    """What to look for."""

    scalars: tuple[tuple[str, str], ...]
    """Name and value, the longest values first."""
    lists: dict[tuple[str, ...], str]
    """Names by sorted values."""


@dataclass(frozen=True, slots=True)
class _Created:
    """One comment that was added."""

    resource: Resource
    path: Path
    visit: int
    value: str
    pattern: str


def create_setters(resources: ResourceList, version: Version) -> FunctionResult:
    """Run the function."""
    try:
        setters = _configure(resources)
        created = [one for resource in resources.items for one in _comment(resource, setters, version)]
    except (_SetterError, YamlError) as error:
        return _failure(resources, str(error))
    if not created:
        return _failure(resources, "no matches for the input list of setters")
    return FunctionResult(resources.items, list(map(_result, created)))


def _failure(resources: ResourceList, reason: str) -> FunctionResult:
    message = f"failed to create setters: {reason}"
    return FunctionResult.failure(resources, [{"message": message, "severity": "error"}], message)


def _configure(resources: ResourceList) -> _Setters:
    given = text_map(resources.config, "data") if resources.config else {}
    if not given:
        raise _SetterError("config map cannot be empty")
    if len(given) > _MOST_SETTERS:
        raise _SetterError(f"there are more than {_MOST_SETTERS} setters: create them in several steps")
    scalars = []
    lists: dict[tuple[str, ...], str] = {}
    for name, value in sorted(given.items()):
        if (texts := _list_texts(value)) is not None:
            lists.setdefault(tuple(sorted(texts)), name)
        elif value:
            scalars.append((name, value))
    return _Setters(tuple(sorted(scalars, key=lambda setter: -len(setter[1]))), lists)


def _list_texts(value: str) -> list[str] | None:
    """Return the texts of a YAML list of scalars; None when ``value`` is none."""
    try:
        values = read_document(value, as_text=True)
    except YamlError:
        return None
    if not isinstance(values, list) or any(isinstance(item, (dict, list)) for item in values):
        return None
    return [item or "" for item in values]


def _comment(resource: Resource, setters: _Setters, version: Version) -> list[_Created]:
    """Comment what matches in one resource."""
    found: list[_Created] = []
    blocks: set[Path] = set()
    for node in source_nodes(resource.text()):
        if isinstance(node, SourceList):
            found += _list_match(resource, node, setters)
            if node.is_flow and _needs_lines(node, setters, version):
                blocks.add(node.path)
        elif (pattern := _pattern(node.text, setters, version)) is not None:
            found.append(_Created(resource, node.path, node.visit, node.text, pattern))
    if blocks:
        write_as_block(resource, blocks)
    if not found:
        return []
    placed = set_line_comments(resource, {one.path: f"kpt-set: {one.pattern}" for one in found})
    return sorted((one for one in found if one.path in placed), key=lambda one: one.visit)


def _list_match(resource: Resource, node: SourceList, setters: _Setters) -> Iterator[_Created]:
    """Yield the comment of a list that holds a setter's values."""
    if node.texts is not None and (name := setters.lists.get(tuple(sorted(node.texts)))) is not None:
        yield _Created(resource, node.path, node.visit, f"[{', '.join(node.texts)}]", f"${{{name}}}")


def _needs_lines(node: SourceList, setters: _Setters, version: Version) -> bool:
    """Say whether the list or one of its elements gets a comment, for which a flow list has no place."""
    texts = node.texts or ()
    return tuple(sorted(texts)) in setters.lists or any(_pattern(text, setters, version) is not None for text in texts)


def _pattern(text: str, setters: _Setters, version: Version) -> str | None:
    """Return ``text`` with setters in place of their values; None when it holds none or gets no comment."""
    if version < _SINGLE_PASS:
        pattern = text
        for name, value in setters.scalars:
            pattern = pattern.replace(value, f"${{{name}}}")
            _check_length(pattern)
        return None if pattern == text else pattern
    if "\n" in text:
        return None
    # Odd places hold setters, whose names are not searched.
    pieces = [text]
    for name, value in setters.scalars:
        if value in text:
            pieces = [part for place, piece in enumerate(pieces) for part in _split(piece, place, name, value)]
    _check_length(pattern := "".join(pieces))
    return None if len(pieces) == 1 else pattern


def _split(piece: str, place: int, name: str, value: str) -> Iterator[str]:
    if place % 2:
        yield piece
        return
    for count, literal in enumerate(piece.split(value)):
        if count:
            yield f"${{{name}}}"
        yield literal


def _check_length(pattern: str) -> None:
    if len(pattern) > _LONGEST_PATTERN:
        raise _SetterError(f"a setter comment would be longer than {_LONGEST_PATTERN} characters")


def _result(created: _Created) -> dict[str, Any]:
    comment = f"kpt-set: {created.pattern}"
    return {
        "message": f"Added line comment {quoted(comment)} for field with value {quoted(created.value)}",
        "field": {"path": shown_path(created.path)},
        "file": file_of(created.resource.path, None),
    }


FUNCTION = Builtin(
    name="create-setters",
    run=lambda resources, _, version: create_setters(resources, version),
    summary="Adds `# kpt-set:` comments to the fields that hold given values, for apply-setters to change.",
    source="kpt.md 4.11",
    tags=("v0.1.0", "v0.1.1", "v0.2.0"),
    config_kinds=("ConfigMap",),
    options=(
        Option(
            "data.<setter>",
            "the value that marks the setter's fields: text that is found inside fields too, or a YAML list, which "
            "must be the whole list in any order",
            required=True,
        ),
    ),
    behaviours=(
        Behaviour(
            "v0.1.0", "comments values of several lines too; a later setter is looked for in earlier ones' names"
        ),
        Behaviour("v0.1.1 and later, latest", "every value is replaced once, longest first; one line only"),
    ),
)
