"""The comments of a YAML document, by the path of the value they stand at. Source: ``kpt.md`` 7.4."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from krm.package.comment_places import FOOT, HEAD, LINE, Place, Places, find_places
from krm.package.yaml_positions import ALIAS, MAPPING, SCALAR, SEQUENCE, Node, read_layout
from krm.package.yaml_reader import YamlError, read_document, same

Path = tuple[str | int, ...]
"""Keys and list places from the document's root."""

_BOM = "\ufeff"
_LINE_REST = re.compile(r"[ \t]*(,?)[ \t]*(?=\r?\n|\Z)")
_LINE_BREAKS = re.compile(r"\r\n|[\r\n\x85\u2028\u2029]")
_INDENT = re.compile(r"[ \t]*")
_BLANK = re.compile(r"[ \t]*\r?\n")
_BLANK_ABOVE = re.compile(r"(?<=\n)[ \t]*\r?\n\Z")
_BLANKS = 100
"""Characters to look back for a blank line."""
_DASHES = re.compile(r"[ \t]*(?:-[ \t]+)*")
_BLOCK_HEADER = re.compile(r"(?:[&!][^\s#]*(?:\s|#[^\n]*\n)+){0,2}[|>][-+0-9]*")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff\ufeff\ufffe\uffff]")
"""What YAML allows nowhere, and the mark that it allows in front of a text only."""
_MOST_READS = 40
"""Times that a text is read again in search of the comments that cannot be written."""


@dataclass(frozen=True, slots=True)
class Comment:
    """What stands at one value; every line with its ``#``, lines joined by newlines, empty when absent."""

    head: str = ""
    """The lines above its key, or above the list element."""
    line: str = ""
    """On its line: behind a scalar or flow collection, or behind the key of a block collection."""
    foot: str = ""
    """Below it, set off by a blank line or closing its collection."""


class _Splice(NamedTuple):
    """``text`` in place of what stands from ``start`` to ``end``."""

    start: int
    end: int
    text: str
    order: tuple[int, int] = (0, 0)
    """At one offset: what ends the line, then feet inside out, then heads outside in."""


def read_comments(text: str) -> dict[Path, Comment]:
    """Return the comments of a document; paths without any are left out.

    The document's own comments have the empty path: those at its top and end, set off by a blank line.

    Raises:
        YamlError: ``text`` is not one YAML document.
    """
    if "#" not in text:
        return {}
    read_document(text, strict=False)
    body = text.removeprefix(_BOM)
    return {node.path: _comment(kinds) for node, kinds in find_places(body, read_layout(body)).items()}


def write_comments(text: str, comments: Mapping[Path, Comment]) -> str:
    """Return ``text`` with the comments at these paths replaced; an empty :class:`Comment` removes.

    The data stays what it is: the result is read again and compared, and a comment that would change it
    is left as it was. Paths that do not exist are skipped, as is what has no place: a comment inside a
    flow collection that stands on one line. The line comment of a list element whose first key stands
    behind its dash goes above it. A line without ``#`` gets one.

    Raises:
        YamlError: ``text`` is not one YAML document.
    """
    data = read_document(text, strict=False)
    body = text.removeprefix(_BOM)
    root = read_layout(body)
    if root is None:
        return text
    writer = _Writer(body, find_places(body, root))
    nodes = _at_paths(root, comments)
    splices = [splice for node, comment in nodes for splice in writer.splices(node, comment)]
    splices.sort(key=lambda splice: (splice.start, splice.end, splice.order))
    return text[: len(text) - len(body)] + _Check(data).applied(body, splices)


def _comment(kinds: Mapping[str, Place]) -> Comment:
    return Comment(*(_shown(kinds.get(kind), kind) for kind in (HEAD, LINE, FOOT)))


def _shown(place: Place | None, kind: str) -> str:
    if place is None:
        return ""
    return " ".join(place.lines) if kind == LINE else "\n".join(place.lines)


def _at_paths(root: Node, comments: Mapping[Path, Comment]) -> Iterator[tuple[Node, Comment]]:
    """Find the values of the paths, each collection's keys looked up once."""
    keys: dict[Node, dict[str | int, Node]] = {}
    for path, comment in comments.items():
        node: Node | None = root
        for step in path:
            if node is None or node.kind not in (MAPPING, SEQUENCE):
                node = None
                break
            if node not in keys:
                keys[node] = {child.step: child for child in node.children}
            node = keys[node].get(step)
        if node is not None:
            yield node, comment


class _Writer:
    """Turns comments into splices of one text."""

    def __init__(self, text: str, places: Places) -> None:
        self._text = text
        self._places = places
        self._newline = "\r\n" if "\r\n" in text else "\n"

    def splices(self, node: Node, comment: Comment) -> Iterator[_Splice]:
        """Yield what puts ``comment`` at ``node`` in place of the one that is there."""
        kinds = self._places.get(node, {})
        old = _comment(kinds)
        head, line, foot = _lines(comment.head), " ".join(filter(None, _lines(comment.line))), _lines(comment.foot)
        if line and LINE not in kinds and self._begins_behind_dash(node):
            # Between a dash and the first key is no place for it.
            head, line = (head if line in head else [*head, line]), ""
        if "\n".join(head) != old.head:
            yield from self._replaced(kinds[HEAD], head) if HEAD in kinds else self._above(node, head)
        if line != old.line:
            yield from self._line_replaced(kinds[LINE], line) if LINE in kinds else self._behind(node, line)
        if "\n".join(foot) != old.foot:
            yield from self._replaced(kinds[FOOT], foot) if FOOT in kinds else self._below(node, foot)

    def _replaced(self, place: Place, lines: list[str]) -> Iterator[_Splice]:
        """Put ``lines`` where the first of the place's comments stands, and remove the others."""
        for start, end in place.spans:
            indent = self._indent(start)
            whole = start == 0 or self._text[start - 1] == "\n"
            if lines:
                text = self._rows(lines, indent)
                yield _Splice(start, end, text if self._text[end - 1] == "\n" else text.rstrip("\r\n"))
            else:
                yield _Splice(*(self._with_blank_line(start, end) if whole else (self._blanks_before(start), end)), "")
            lines = []

    def _line_replaced(self, place: Place, line: str) -> Iterator[_Splice]:
        for start, end in place.spans:
            yield _Splice(start, end, line) if line else _Splice(self._blanks_before(start), end, "")
            line = ""

    def _with_blank_line(self, start: int, end: int) -> tuple[int, int]:
        """Take along the blank line that would be left over beside another, or at an end of the text."""
        above, below = _BLANK_ABOVE.search(self._text, max(0, start - _BLANKS), start), _BLANK.match(self._text, end)
        if below and (start == 0 or above):
            return start, below.end()
        return (above.start(), end) if above and end == len(self._text) else (start, end)

    def _above(self, node: Node, lines: list[str]) -> Iterator[_Splice]:
        if node.parent is None:
            yield _Splice(0, 0, self._rows(lines, "") + self._newline)
            return
        start = self._text.rfind("\n", 0, node.entry) + 1
        if _DASHES.fullmatch(self._text, start, node.entry):
            yield _Splice(start, start, self._rows(lines, self._indent(start)), (1, len(node.path)))

    def _behind(self, node: Node, line: str) -> Iterator[_Splice]:
        end = self._line_end(node)
        rest = _LINE_REST.match(self._text, end) if end else None
        if rest:
            yield _Splice(rest.end(1) if rest[1] else rest.start(), rest.end(), f" {line}", (-1, 0))

    def _line_end(self, node: Node) -> int:
        """Return the offset behind what the node shows on the line of its comment; 0 when it has no such line."""
        if node.is_block_scalar:
            header = _BLOCK_HEADER.match(self._text, node.start, node.end)
            return header.end() if header else 0
        if node.kind in (SCALAR, ALIAS) or node.flow:
            return node.end
        if node.parent is None or self._begins_behind_dash(node):
            return 0
        end = self._text.find("\n", node.key_end)
        return len(self._text[:end].rstrip()) if node.key_end <= end <= node.children[0].entry else 0

    def _begins_behind_dash(self, node: Node) -> bool:
        """Whether it is a block collection in a list whose first entry stands on the line of the dash."""
        up = node.parent
        if up is None or up.kind != SEQUENCE or up.flow or node.flow or not node.children:
            return False
        return "\n" not in self._text[node.entry : node.children[0].entry]

    def _below(self, node: Node, lines: list[str]) -> Iterator[_Splice]:
        text, newline = self._text, self._newline
        if node.parent is None:
            gap = "" if text.endswith("\n") else newline
            yield _Splice(len(text), len(text), gap + newline + self._rows(lines, ""), (0, 0))
            return
        if node.in_flow:
            return
        end = node.end
        while end > node.start and text[end - 1].isspace():
            end -= 1
        start = text.find("\n", end) + 1
        rows = self._rows(lines, " " * node.column)
        if not start:
            yield _Splice(len(text), len(text), newline + rows, (0, -len(node.path)))
            return
        below = text.find("\n", start)
        is_set_off = start == len(text) or not text[start : below if below >= 0 else len(text)].strip()
        yield _Splice(start, start, rows if is_set_off else rows + newline, (0, -len(node.path)))

    def _rows(self, lines: list[str], indent: str) -> str:
        return "".join((indent + line if line else "") + self._newline for line in lines)

    def _indent(self, start: int) -> str:
        found = _INDENT.match(self._text, start)
        return found[0] if found else ""

    def _blanks_before(self, offset: int) -> int:
        while offset and self._text[offset - 1] in " \t":
            offset -= 1
        return offset


def _lines(comment: str) -> list[str]:
    """Return the lines of a comment as they may be written."""
    lines = [_CONTROL.sub("", line).lstrip() for line in _LINE_BREAKS.split(comment)] if comment else []
    while lines and not lines[0]:
        del lines[0]
    while lines and not lines[-1]:
        del lines[-1]
    return [line if not line or line.startswith("#") else f"# {line}" for line in lines]


def _spliced(text: str, splices: list[_Splice]) -> str:
    pieces = []
    done = 0
    for splice in splices:
        pieces += [text[done : splice.start], splice.text]
        done = max(done, splice.end)
    return "".join([*pieces, text[done:]])


class _Check:
    """Applies splices as long as the text still reads as ``data``."""

    def __init__(self, data: Any) -> None:
        self._data = data
        self._reads = 0

    def applied(self, text: str, splices: list[_Splice]) -> str:
        """Return ``text`` with all splices that leave the data alone; they are sorted and do not overlap.

        Raises:
            YamlError: too many of them do not.
        """
        if not splices:
            return text
        edited = _spliced(text, splices)
        self._reads += 1
        if self._reads > _MOST_READS:
            raise YamlError("these comments cannot be written without changing the data")
        if self._is_unchanged(edited):
            return edited
        if len(splices) == 1:
            return text
        middle = len(splices) // 2
        # The later half first: the offsets of the earlier one stay right.
        return self.applied(self.applied(text, splices[middle:]), splices[:middle])

    def _is_unchanged(self, text: str) -> bool:
        try:
            return same(read_document(text, strict=False), self._data)
        except YamlError:
            return False
