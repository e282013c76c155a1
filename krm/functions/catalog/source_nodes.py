"""Where the scalars and lists of a YAML document stand in its text, with what is written there.

For functions that work on the text of values rather than on what it stands for: ``1.10`` is a float, but
whoever searches for it means these four characters. Reads libyaml's events, whose marks are offsets.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml
from yaml.cyaml import CParser  # type: ignore[attr-defined] # the stubs forgot to export it

from krm.package.comments import Path

_BOM = "\ufeff"
_LINE_COMMENT = re.compile(r"[ \t]*(?:[:,][ \t]*)?(?<=[ \t])(#[^\r\n]*)")
"""Behind a value, a key's colon or a flow collection's comma, up to the end of the line."""
_BLOCK_STYLES = ("|", ">")


@dataclass(frozen=True, slots=True)
class SourceNode:
    """A scalar or a list of a document; offsets count from the start of its text."""

    path: Path
    start: int
    end: int
    visit: int
    """Sorts nodes as upstream's functions visit them: a map's lists, then what is in the map."""
    in_flow: bool
    """Whether it is inside a flow collection."""


@dataclass(frozen=True, slots=True)
class SourceScalar(SourceNode):
    """A scalar that is no key."""

    text: str
    """Without quotes and escapes, its type not considered."""
    style: str | None
    """None for plain; else a quote, ``|`` or ``>``."""
    anchor: str | None
    comment: str
    """On its line, with ``#``; empty when absent."""

    @property
    def is_block(self) -> bool:
        """Whether it is written as a block of lines."""
        return self.style in _BLOCK_STYLES


@dataclass(frozen=True, slots=True)
class SourceList(SourceNode):
    """A list that is the value of a key."""

    is_flow: bool
    items: tuple[tuple[int, int], ...]
    """Start and end of each element."""
    texts: tuple[str, ...] | None
    """Of the elements; None unless all are scalars."""
    key: tuple[int, int]
    """Start and end of its key."""
    comment: str
    """Behind the key of a block list, or behind a flow list."""


@dataclass(slots=True)
class _Level:
    """A collection that is being read."""

    is_mapping: bool
    start: int
    flow: bool
    owner: int
    """Start of the map around a list."""
    key: str | None = None
    key_span: tuple[int, int] = (0, 0)
    count: int = 0
    items: list[tuple[int, int]] = field(default_factory=list)
    texts: list[str] | None = field(default_factory=list)


def source_nodes(text: str) -> Iterator[SourceScalar | SourceList]:
    """Yield the scalars and lists of a document, in the order in which they end. The text is known to be sound."""
    return _Walk(text).nodes()


def scalar_texts(text: str) -> dict[Path, str]:
    """Return the texts of the scalars of a document by their paths."""
    return {node.path: node.text for node in source_nodes(text) if isinstance(node, SourceScalar)}


class _Walk:
    """One pass over the events of a text."""

    def __init__(self, text: str) -> None:
        # libyaml does not count a byte-order mark.
        self._shift = int(text.startswith(_BOM))
        self._text = text
        self._stack: list[_Level] = []

    def nodes(self) -> Iterator[SourceScalar | SourceList]:
        following: Callable[[], Any] = CParser(self._text).get_event
        stack = self._stack
        while (event := following()) is not None:
            kind: type = type(event)
            if kind in (yaml.MappingStartEvent, yaml.SequenceStartEvent):
                self._open(event, is_mapping=kind is yaml.MappingStartEvent)
            elif kind in (yaml.MappingEndEvent, yaml.SequenceEndEvent):
                done = stack.pop()
                span = (done.start, self._end(done, event))
                if not done.is_mapping and stack and stack[-1].is_mapping:
                    yield self._list(done, span)
                self._advance(span, None)
            elif kind in (yaml.ScalarEvent, yaml.AliasEvent):
                span = (event.start_mark.index + self._shift, event.end_mark.index + self._shift)
                if stack and stack[-1].is_mapping and stack[-1].key is None:
                    stack[-1].key, stack[-1].key_span = getattr(event, "value", ""), span
                    continue
                if kind is yaml.ScalarEvent:
                    yield self._scalar(event, span)
                self._advance(span, getattr(event, "value", None))

    def _open(self, event: Any, *, is_mapping: bool) -> None:
        stack = self._stack
        start = event.start_mark.index + self._shift
        flow = bool(event.flow_style) or bool(stack and stack[-1].flow)
        stack.append(_Level(is_mapping, start, flow, stack[-1].start if stack else 0))

    def _end(self, level: _Level, event: Any) -> int:
        """A block collection ends with its last element, not where the next thing starts."""
        if level.flow:
            return int(event.end_mark.index) + self._shift
        return level.items[-1][1] if level.items else level.start

    def _path(self) -> Path:
        return tuple(level.key or "" if level.is_mapping else level.count for level in self._stack)

    def _advance(self, span: tuple[int, int], text: str | None) -> None:
        """Note that a value of the innermost collection is complete; ``text`` is a scalar's."""
        if not self._stack:
            return
        level = self._stack[-1]
        level.key = None
        level.count += 1
        if level.is_mapping:
            level.items = [span]
            return
        level.items.append(span)
        if text is None:
            level.texts = None
        elif level.texts is not None:
            level.texts.append(text)

    def _scalar(self, event: Any, span: tuple[int, int]) -> SourceScalar:
        in_flow = bool(self._stack) and self._stack[-1].flow
        comment = "" if event.style in _BLOCK_STYLES else self._comment(span[1])
        return SourceScalar(
            self._path(), *span, span[0], in_flow, event.value, event.style or None, event.anchor, comment
        )

    def _list(self, level: _Level, span: tuple[int, int]) -> SourceList:
        around = self._stack[-1]
        texts = None if level.texts is None else tuple(level.texts)
        comment = self._comment(span[1] if level.flow else around.key_span[1])
        return SourceList(
            self._path(),
            *span,
            level.owner,
            around.flow,
            level.flow,
            tuple(level.items),
            texts,
            around.key_span,
            comment,
        )

    def _comment(self, offset: int) -> str:
        found = _LINE_COMMENT.match(self._text, offset)
        return found[1].rstrip() if found else ""
