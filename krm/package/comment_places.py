"""Which value each comment of a document belongs to, and where in the text it stands.

The rules are go-yaml's: a comment above an entry without a blank line between is its head, behind a
value it is its line comment, and below, set off by a blank line or indented deeper than what follows,
it is the foot of what it stands under. Every comment belongs somewhere. Source: ``kpt.md`` 7.4.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from krm.package.yaml_positions import (
    CLOSE,
    KEY,
    MAPPING,
    OPEN,
    SCALAR,
    SEQUENCE,
    VALUE,
    Node,
    Token,
    tokens,
)

HEAD = "head"
LINE = "line"
FOOT = "foot"

_COMMENT = re.compile(r"#[^\r\n]*")
_BLOCK_HEADER = re.compile(r"(?:[&!][^\s#]*(?:\s|#[^\n]*\n)+){0,2}[|>][-+0-9]*[ \t]+(#[^\r\n]*)")


@dataclass(slots=True)
class Place:
    """The comments of one kind at one value: stretches of the text, each whole lines for head and foot."""

    spans: list[tuple[int, int]]
    lines: list[str]


Places = dict[Node, dict[str, Place]]
"""By value, then by kind; the document's own comments are the root's."""


@dataclass(frozen=True, slots=True)
class _Group:
    """Comment lines that stand together, and whether a blank line follows them."""

    start: int
    end: int
    column: int
    lines: list[str]
    blank_below: bool


def find_places(text: str, root: Node | None) -> Places:
    """Return the comments of the document that is laid out as ``root``, None when it has no content."""
    return _Search(text, root).places()


class _Search:
    def __init__(self, text: str, root: Node | None) -> None:
        self._text = text
        end = len(text)
        self._root = root or Node(SCALAR, end, end)
        self._places: Places = {}

    def places(self) -> Places:
        previous: Token | None = None
        for token in tokens(self._text, self._root):
            self._gap(previous, token)
            if token.role == VALUE and token.node.is_block_scalar:
                header = _BLOCK_HEADER.match(self._text, token.start, token.end)
                if header:
                    self._add(token.node, LINE, header.start(1), header.end(1), [header[1]])
            previous = token
        self._gap(previous, None)
        return self._places

    def _gap(self, before: Token | None, after: Token | None) -> None:
        """Give away the comments between two tokens."""
        start = before.end if before else 0
        end = after.start if after else len(self._text)
        if self._text.find("#", start, end) < 0:
            return
        own_lines = []
        for found in _COMMENT.finditer(self._text, start, end):
            line_start = self._text.rfind("\n", 0, found.start()) + 1
            if self._text[line_start : found.start()].strip():
                self._behind(before, after, found)
            else:
                own_lines.append((line_start, found))
        if own_lines:
            self._above_and_below(before, after, list(self._groups(own_lines)))

    def _behind(self, before: Token | None, after: Token | None, found: re.Match[str]) -> None:
        """Place a comment that has something before it on its line."""
        node, kind = self._owner_of_line(before, after, found.start())
        self._add(node, kind, found.start(), found.end(), [found[0]])

    def _owner_of_line(self, before: Token | None, after: Token | None, offset: int) -> tuple[Node, str]:
        if after is not None and (entry := _entry_with_dash(before, after, offset)):
            return entry, LINE
        if before is None:
            return self._root, HEAD
        if before.role == OPEN:
            if after is None or after.role == CLOSE:
                return before.node, FOOT
            return after.node, HEAD
        if after is None and "\n" in self._text[before.end : offset]:
            return self._root, FOOT
        return before.node, LINE

    def _groups(self, comments: list[tuple[int, re.Match[str]]]) -> Iterator[_Group]:
        """Join comment lines that follow each other in the same column."""
        text = self._text
        start, end, column, lines = 0, -1, 0, list[str]()
        for line_start, found in comments:
            line_end = text.find("\n", found.end()) + 1 or len(text)
            here = found.start() - line_start
            if lines and (line_start != end or here != column):
                yield _Group(start, end, column, lines, line_start != end and not text[end:line_start].strip())
                lines = []
            if not lines:
                start, column = line_start, here
            lines.append(found[0])
            end = line_end
        below = text.find("\n", end)
        rest = text[end:below] if below >= 0 else text[end:]
        yield _Group(start, end, column, lines, below >= 0 and not rest.strip())

    def _above_and_below(self, before: Token | None, after: Token | None, groups: list[_Group]) -> None:
        """Place comments that have their lines to themselves."""
        if after is None:
            self._at_the_end(before, groups)
            return
        if after.role == CLOSE:
            below = after.node.children[-1] if after.node.children else after.node
            for group in groups:
                self._add_group(below, FOOT, group)
            return
        target, column = _head_target(self._text, after)
        inside = before is None or before.role not in (VALUE, CLOSE) or target.in_flow
        set_off = False
        for group in reversed(groups):
            set_off = set_off or group.blank_below
            owner = None if inside else _under(before, group.column)
            if before is None:
                self._add_group(self._root if set_off else target, HEAD, group, first=True)
            elif owner is not None and (set_off or (group.column > column and owner.column > column)):
                self._add_group(owner, FOOT, group, first=True)
            else:
                self._add_group(target, HEAD, group, first=True)

    def _at_the_end(self, before: Token | None, groups: list[_Group]) -> None:
        """Place comments behind all content: the document's, unless indented or right below a value."""
        kind = FOOT if before else HEAD
        for place, group in enumerate(groups):
            owner = None
            if before and (group.column or (not place and self._follows(before, group))):
                owner = _under(before, group.column)
            self._add_group(owner or self._root, kind, group)

    def _follows(self, before: Token, group: _Group) -> bool:
        """Say whether no blank line parts ``group`` from the content above it."""
        end = before.end
        while end > before.start and self._text[end - 1].isspace():
            end -= 1
        return self._text.count("\n", end, group.start) == 1

    def _add_group(self, node: Node, kind: str, group: _Group, *, first: bool = False) -> None:
        self._add(node, kind, group.start, group.end, group.lines, first=first)

    def _add(self, node: Node, kind: str, start: int, end: int, lines: list[str], *, first: bool = False) -> None:
        kinds = self._places.setdefault(node, {})
        place = kinds.get(kind)
        if place is None:
            kinds[kind] = Place([(start, end)], list(lines))
            return
        other_start, other_end = place.spans[0] if first else place.spans[-1]
        between = self._text[end:other_start] if first else self._text[other_end:start]
        joined = not between.strip() and kind != LINE
        gap = [""] if joined and between else []
        if first:
            place.lines[:0] = [*lines, *gap]
            place.spans[: 1 if joined else 0] = [(start, other_end if joined else end)]
        else:
            place.lines += [*gap, *lines]
            place.spans[len(place.spans) - joined :] = [(other_start if joined else start, end)]


def _entry_with_dash(before: Token | None, after: Token, offset: int) -> Node | None:
    """Return the list element whose dash is the last thing before ``offset``."""
    start = before.end if before else 0
    for node in after.node.ancestors():
        up = node.parent
        if up is not None and up.kind == SEQUENCE and not up.flow and start <= node.entry < offset:
            return node
        if node.entry < start:
            return None
    return None


def _head_target(text: str, after: Token) -> tuple[Node, int]:
    """Return the entry that a comment above ``after`` is the head of, and its column.

    The outermost that begins on the line; what stands above an element's first key is the element's.
    """
    node = after.node
    line_start = text.rfind("\n", 0, after.start) + 1
    if after.role != KEY and node.entry < line_start:
        return node, after.start - line_start
    while not node.in_flow and (up := node.parent) and up.parent and up.children[0] is node:
        if up.entry < line_start:
            in_element = up.kind == MAPPING and up.parent.kind == SEQUENCE
            return (up if in_element else node), node.column
        node = up
    return node, node.column


def _under(before: Token | None, column: int) -> Node | None:
    """Return the innermost entry that ends with ``before`` and does not stand right of ``column``."""
    for node in before.node.ancestors() if before else ():
        if node.parent is not None and not node.in_flow and node.column <= column:
            return node
    return None
