"""Finding ``kpt-set`` comments in a document's text: which value each one stands behind.

Works on libyaml's events, whose marks say where values stand in the text. Source: ``kpt.md`` 4.10.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import yaml
from yaml.cyaml import CParser  # type: ignore[attr-defined] # the stubs forgot to export it

_COMMENT = re.compile(r"[ \t]*:?[ \t]+#[ \t]?kpt-set:[ \t]*([^\r\n]*?)[ \t]*(?=\r?$)", re.MULTILINE)

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class SetterComment:
    """One comment and the value it governs; ``start`` and ``end`` are offsets in the text."""

    pattern: str
    path: Path
    start: int
    end: int
    style: str | None
    """Of a scalar: None plain, or its quote; unused for lists."""
    value: Any
    """A scalar's text, or None for a list."""
    is_list: bool = False


@dataclass(slots=True)
class _Level:
    is_mapping: bool
    start: int
    flow: bool
    key: str | None = None
    count: int = 0
    key_pattern: str | None = None
    """The comment behind the key that this collection is the value of."""


def setter_comments(text: str) -> Iterator[SetterComment]:
    """Yield the comments of a document, in the order of the text. The text is known to be sound."""
    if "kpt-set:" not in text:
        return
    following: Callable[[], Any] = CParser(text).get_event
    stack: list[_Level] = []
    pending: str | None = None
    while (event := following()) is not None:
        kind: type = type(event)
        if kind in (yaml.MappingStartEvent, yaml.SequenceStartEvent):
            level = _Level(kind is yaml.MappingStartEvent, event.start_mark.index, bool(event.flow_style))
            level.key_pattern, pending = pending, None
            stack.append(level)
        elif kind in (yaml.MappingEndEvent, yaml.SequenceEndEvent):
            done = stack.pop()
            if not done.is_mapping and (found := _list_comment(text, done, event, _path(stack))):
                yield found
            _advance(stack)
        elif kind in (yaml.ScalarEvent, yaml.AliasEvent):
            level_or_none = stack[-1] if stack else None
            if level_or_none is not None and level_or_none.is_mapping and level_or_none.key is None:
                level_or_none.key = event.value if kind is yaml.ScalarEvent else ""
                pending = _pattern_behind(text, event.end_mark.index)
                continue
            pending = None
            if kind is yaml.ScalarEvent and (found := _scalar_comment(text, event, _path(stack))):
                yield found
            _advance(stack)


def _path(stack: list[_Level]) -> Path:
    return tuple(level.key or "" if level.is_mapping else level.count for level in stack)


def _advance(stack: list[_Level]) -> None:
    """Note that a value of the innermost collection is complete."""
    if stack:
        stack[-1].key = None
        stack[-1].count += 1


def _pattern_behind(text: str, offset: int) -> str | None:
    found = _COMMENT.match(text, offset)
    return found[1] if found else None


def _scalar_comment(text: str, event: Any, path: Path) -> SetterComment | None:
    if event.style in ("|", ">"):
        return None
    pattern = _pattern_behind(text, event.end_mark.index)
    if pattern is None:
        return None
    return SetterComment(pattern, path, event.start_mark.index, event.end_mark.index, event.style, event.value)


def _list_comment(text: str, level: _Level, event: Any, path: Path) -> SetterComment | None:
    """The comment stands behind the key of a block list, and behind a flow list itself."""
    pattern = _pattern_behind(text, event.end_mark.index) if level.flow else level.key_pattern
    if pattern is None:
        return None
    return SetterComment(pattern, path, level.start, event.end_mark.index, None, None, is_list=True)
