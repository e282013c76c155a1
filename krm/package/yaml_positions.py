"""Where every value of a YAML document stands in its text, from the marks of libyaml's events.

What edits and comments are placed by. Nothing is resolved here: a text that the reader accepts is laid
out, whatever its scalars mean. Offsets count characters of the text. Source: ``libraries.md`` 2.4.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

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

# Names of the module, because the loop over events asks for them all the time.
_SCALAR_EVENT, _ALIAS_EVENT, _DOCUMENT_END = yaml.ScalarEvent, yaml.AliasEvent, yaml.DocumentEndEvent
_MAPPING_START, _MAPPING_END = yaml.MappingStartEvent, yaml.MappingEndEvent
_SEQUENCE_START, _SEQUENCE_END = yaml.SequenceStartEvent, yaml.SequenceEndEvent
_COMMENT = re.compile(r"#[^\r\n]*")
_DASH = re.compile(r"(?<![^\s])-(?=\s|\Z)")
_PROPERTIES = re.compile(r"(?:[&!][^\s#]*(?:\s|#[^\n]*\n)*){0,2}")
_BLOCK_STYLES = ("|", ">")


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

    @property
    def is_block_scalar(self) -> bool:
        """Whether it is a literal or folded scalar, whose end takes in the blank lines below it."""
        return self.style in _BLOCK_STYLES

    def ancestors(self) -> Iterator["Node"]:
        """Yield the node, its parent and so on; the root last."""
        node: Node | None = self
        while node is not None:
            yield node
            node = node.parent


class Token(NamedTuple):
    """A stretch of the text that is content; between two of them are only blanks, indicators and comments."""

    start: int
    end: int
    node: Node
    role: int


def read_layout(text: str) -> Node | None:
    """Lay out the first document of ``text``; None when it has no content.

    The reader must have accepted the text, which has no byte-order mark.
    """
    return _Walk(text).root()


def tokens(text: str, root: Node) -> Iterator[Token]:
    """Yield the document's tokens in the order of the text."""
    todo: list[tuple[Node, bool]] = [(root, False)]
    while todo:
        node, is_done = todo.pop()
        if is_done:
            yield Token(node.end - 1, node.end, node, CLOSE)
            continue
        if node.parent is not None and node.parent.kind == MAPPING:
            yield Token(node.entry, node.key_end, node, KEY)
        if node.kind in (SCALAR, ALIAS):
            yield Token(node.start, node.end, node, VALUE)
            continue
        content = content_start(text, node)
        if node.flow:
            yield Token(node.start, content + 1, node, OPEN)
            todo.append((node, True))
        elif content > node.start:
            yield Token(node.start, content, node, PROPERTIES)
        todo += [(child, False) for child in reversed(node.children)]


def content_start(text: str, node: Node) -> int:
    """Return where a node's own content begins, behind its anchor and tag."""
    if text[node.start : node.start + 1] not in ("&", "!"):
        return node.start
    # Of a block collection, what stands between a property and the first entry may be a comment.
    end = node.children[0].entry if node.children else node.end
    found = _PROPERTIES.match(text, node.start, end)
    if found is None:
        return node.start
    if node.kind in (SCALAR, ALIAS) or node.flow:
        return found.end()
    return node.start + len(_COMMENT.split(found[0], maxsplit=1)[0].rstrip())


class _Walk:
    """One pass over the events of one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._anchors: dict[str, str] = {}
        """Of scalars: an alias may stand for a key."""

    def root(self) -> Node | None:
        """Read the first document; the hot loop, hence its plainness."""
        following: Callable[[], Any] = CParser(self._text).get_event
        up: Node | None = None
        key: Any = None
        while (event := following()) is not None:
            kind: type = type(event)
            if kind is _SCALAR_EVENT or kind is _ALIAS_EVENT:
                if up is not None and up.kind == MAPPING and key is None:
                    key = event
                    continue
                node = Node(SCALAR if kind is _SCALAR_EVENT else ALIAS, event.start_mark.index, event.end_mark.index)
                if kind is _SCALAR_EVENT:
                    node.style = event.style or None
                    if event.anchor:
                        self._anchors[event.anchor] = event.value
            elif kind is _MAPPING_START or kind is _SEQUENCE_START:
                node = Node(
                    MAPPING if kind is _MAPPING_START else SEQUENCE,
                    event.start_mark.index,
                    event.end_mark.index,
                )
                node.flow = bool(event.flow_style)
                if up is not None:
                    self._place(node, up, key)
                    key = None
                up = node
                continue
            elif kind is _MAPPING_END or kind is _SEQUENCE_END:
                assert up is not None  # noqa: S101 - the parser closes what it opened
                node, up = up, up.parent
                node.end = event.end_mark.index if node.flow else node.children[-1].end
                if up is None:
                    return node
                continue
            elif kind is _DOCUMENT_END:
                return None
            else:
                continue
            if up is None:
                return node
            self._place(node, up, key)
            key = None
        return None

    def _place(self, node: Node, up: Node, key: Any) -> None:
        """Say where in the collection ``up`` the value stands."""
        node.parent = up
        children = up.children
        if key is not None:
            mark = key.start_mark
            node.entry, node.column, node.key_end = mark.index, mark.column, key.end_mark.index
            if type(key) is _SCALAR_EVENT:
                node.step = key.value
                if key.anchor:
                    self._anchors[key.anchor] = key.value
            else:
                node.step = self._anchors.get(key.anchor, "")
        else:
            node.step = len(children)
            if not up.flow:
                node.entry = self._dash(up, node.start)
                node.key_end = node.entry + 1
                node.column = children[0].column if children else node.entry - self._text.rfind("\n", 0, node.entry) - 1
        children.append(node)

    def _dash(self, sequence: Node, end: int) -> int:
        """Find the dash of the block entry whose value begins at ``end``."""
        text = self._text
        if not sequence.children:
            start = sequence.start
            if text[start] == "-":
                return start
        else:
            start = sequence.children[-1].end
            if text.find("#", start, end) < 0:
                return text.find("-", start, end)
        # What stands in comments is no dash.
        gap = _COMMENT.sub(lambda found: " " * len(found[0]), text[start:end])
        found = _DASH.search(gap)
        return start + found.start() if found else end
