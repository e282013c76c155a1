"""Where every value of a YAML document stands in its text, from the marks of libyaml's events.

What edits and comments are placed by. Nothing is resolved here: a text that the reader accepts is laid
out, whatever its scalars mean. Offsets count characters of the text. Source: ``libraries.md`` 2.4.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import yaml
from yaml.cyaml import CParser  # type: ignore[attr-defined] # the stubs forgot to export it

SCALAR: Final = 0
ALIAS: Final = 1
MAPPING: Final = 2
SEQUENCE: Final = 3

KEY: Final = 0
"""Role of a token: a mapping key."""
VALUE: Final = 1
"""A scalar or an alias."""
OPEN: Final = 2
"""The bracket that opens a flow collection."""
PROPERTIES: Final = 3
"""The anchor or tag in front of a block collection."""
CLOSE: Final = 4
"""The bracket that closes a flow collection."""

_COMMENT = re.compile(r"#[^\r\n]*")
_DASH = re.compile(r"(?<![^\s])-(?=\s|\Z)")
_PROPERTIES = re.compile(r"(?:[&!][^\s#]*(?:\s|#[^\n]*\n)+){0,2}")


class Node:
    """One value and its place; ``step`` is its key or list place in ``parent``."""

    __slots__ = ("children", "column", "end", "entry", "flow", "key_end", "kind", "parent", "start", "step", "style")

    def __init__(self, kind: int, start: int, end: int) -> None:
        self.kind = kind
        self.start = start
        """Of the value with its anchor and tag."""
        self.end = end
        """Behind its last character; of a block collection, behind its last value."""
        self.parent: Node | None = None
        self.step: str | int = ""
        self.entry = start
        """Where the entry begins: its key, its dash, or the value itself."""
        self.key_end = start
        """Behind the key or dash."""
        self.column = 0
        """Of the entry, from 0."""
        self.flow = False
        self.style: str | None = None
        """Of a scalar: None when plain, else its first character."""
        self.children: list[Node] = []

    @property
    def path(self) -> tuple[str | int, ...]:
        """Keys and list places from the root."""
        steps = []
        node = self
        while node.parent is not None:
            steps.append(node.step)
            node = node.parent
        return tuple(reversed(steps))

    @property
    def in_flow(self) -> bool:
        """Whether it is an entry of a flow collection."""
        return self.parent is not None and self.parent.flow

    def ancestors(self) -> Iterator["Node"]:
        """Yield the node, its parent and so on; the root last."""
        node: Node | None = self
        while node is not None:
            yield node
            node = node.parent


@dataclass(frozen=True, slots=True)
class Token:
    """A stretch of the text that is content; between two of them are only blanks, indicators and comments."""

    start: int
    end: int
    node: Node
    role: int


@dataclass(frozen=True, slots=True)
class Layout:
    """The tree of a document and its tokens in the order of the text; no root when it has no content."""

    root: Node | None
    tokens: list[Token]


def read_layout(text: str) -> Layout:
    """Lay out the first document of ``text``, which the reader has accepted and which has no byte-order mark."""
    return _Walk(text).layout()


def content_start(text: str, node: Node) -> int:
    """Return where a node's own content begins, behind its anchor and tag."""
    found = _PROPERTIES.match(text, node.start, node.end)
    return found.end() if found else node.start


def is_block_scalar(node: Node) -> bool:
    """Whether it is a literal or folded scalar, whose end takes in the blank lines below it."""
    return node.style in ("|", ">")


class _Walk:
    """One pass over the events; ``_open`` holds the collections that are being read."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._open: list[Node] = []
        self._tokens: list[Token] = []
        self._key: tuple[str, Any] | None = None
        self._anchors: dict[str, str] = {}
        self._last = 0

    def layout(self) -> Layout:
        following = CParser(self._text).get_event
        while (event := following()) is not None:
            kind = type(event)
            if kind is yaml.ScalarEvent or kind is yaml.AliasEvent:
                root = self._leaf(event, SCALAR if kind is yaml.ScalarEvent else ALIAS)
            elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
                self._start(event, MAPPING if kind is yaml.MappingStartEvent else SEQUENCE)
                continue
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                root = self._close(event)
            elif kind is yaml.DocumentEndEvent:
                break
            else:
                continue
            if root is not None:
                return Layout(root, self._tokens)
        return Layout(None, [])

    def _leaf(self, event: Any, kind: int) -> Node | None:
        """Take in a scalar or alias; return it when it is the whole document."""
        up = self._open[-1] if self._open else None
        start, end = event.start_mark.index, event.end_mark.index
        if up is not None and up.kind == MAPPING and self._key is None:
            self._key = (event.value if kind == SCALAR else self._anchors.get(event.anchor, ""), event)
            if kind == SCALAR and event.anchor:
                self._anchors[event.anchor] = event.value
            return None
        node = self._placed(Node(kind, start, end), up)
        if kind == SCALAR:
            node.style = event.style or None
            if event.anchor:
                self._anchors[event.anchor] = event.value
        self._token(start, end, node, VALUE)
        return node if up is None else None

    def _start(self, event: Any, kind: int) -> None:
        up = self._open[-1] if self._open else None
        start, end = event.start_mark.index, event.end_mark.index
        node = self._placed(Node(kind, start, end), up)
        node.flow = bool(event.flow_style)
        if node.flow:
            self._token(start, end, node, OPEN)
        elif self._text[start : start + 1] in ("&", "!") and (event.anchor or event.tag):
            self._token(start, content_start(self._text, node), node, PROPERTIES)
        self._open.append(node)

    def _close(self, event: Any) -> Node | None:
        node = self._open.pop()
        if node.flow:
            node.end = event.end_mark.index
            self._token(event.start_mark.index, node.end, node, CLOSE)
        elif node.children:
            node.end = node.children[-1].end
        return None if self._open else node

    def _placed(self, node: Node, up: Node | None) -> Node:
        """Say where in the collection ``up`` the value stands."""
        if up is None:
            return node
        node.parent = up
        if up.kind == MAPPING:
            assert self._key is not None  # noqa: S101 - events of a mapping alternate between keys and values
            node.step, event = self._key
            self._key = None
            node.entry, node.key_end = event.start_mark.index, event.end_mark.index
            node.column = event.start_mark.column
            self._token(node.entry, node.key_end, node, KEY)
        else:
            node.step = len(up.children)
            if not up.flow:
                node.entry = self._dash(up, node.start)
                node.key_end = node.entry + 1
                node.column = (
                    up.children[0].column if up.children else node.entry - (self._text.rfind("\n", 0, node.entry) + 1)
                )
        up.children.append(node)
        return node

    def _dash(self, sequence: Node, end: int) -> int:
        """Find the dash of the block entry whose value begins at ``end``."""
        text = self._text
        if not sequence.children and text[sequence.start] == "-":
            return sequence.start
        start = sequence.children[-1].end if sequence.children else sequence.start
        # What stands in comments is no dash.
        gap = _COMMENT.sub(lambda found: " " * len(found[0]), text[start:end])
        if text[start - 1 : start].strip():
            gap = " " + gap[1:]
        found = _DASH.search(gap)
        return start + found.start() if found else end

    def _token(self, start: int, end: int, node: Node, role: int) -> None:
        self._tokens.append(Token(start, end, node, role))
