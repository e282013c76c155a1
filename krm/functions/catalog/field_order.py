"""Putting the fields of a document's text into another order, each with its comments and layout.

Source: ``kpt.md`` 4.16, format. Works on lines: a field takes along the lines between the one before and itself.
"""

from collections.abc import Callable, Sequence
from typing import Any

from krm.functions.resource import Resource
from krm.package.comments import Path
from krm.package.yaml_positions import MAPPING, SEQUENCE, Node, read_layout
from krm.package.yaml_reader import YamlError, read_document, same

_BOM = "\ufeff"

Order = Callable[[Path, Sequence[Node]], Sequence[Node]]
"""Gets the path and entries of a block collection and returns the entries in their new order."""


def reorder(resource: Resource, order: Order, wanted: Any) -> None:
    """Put the entries of the resource's block collections into order, so that it reads as ``wanted``.

    A text whose lines cannot be moved, because entries share them, stays as it is.
    """
    old = resource.text()
    text = _reordered(old, order)
    try:
        is_sound = text != old and same(read_document(text), wanted)
    except YamlError:
        is_sound = False
    if is_sound:
        resource.set_text(text)


def _reordered(text: str, order: Order) -> str:
    body = text.removeprefix(_BOM)
    root = read_layout(body)
    if root is None:
        return text
    return text[: len(text) - len(body)] + _Lines(body, order).rewritten(0, len(body), root)


class _Lines:
    """Rewrites one text."""

    def __init__(self, text: str, order: Order) -> None:
        self._text = text
        self._order = order

    def rewritten(self, low: int, high: int, node: Node) -> str:
        """Return the text from ``low`` to ``high``, in which ``node`` is, with its entries in order."""
        text = self._text
        if node.flow or node.kind not in (MAPPING, SEQUENCE) or not node.children:
            return text[low:high]
        first = self._first(low, node)
        starts = [first, *(self._line_after(child) for child in node.children)]
        starts[-1] = min(starts[-1], high)
        if starts != sorted(starts):
            return text[low:high]
        pieces = {
            child: self.rewritten(start, end, child)
            for child, start, end in zip(node.children, starts, starts[1:], strict=False)
        }
        ordered = self._order(node.path, node.children)
        if list(ordered) == node.children:
            return text[low:first] + "".join(pieces.values()) + text[starts[-1] : high]
        indent = " " * node.children[0].column if first == node.children[0].entry else ""
        return (
            text[low:first]
            + self._joined([pieces[child] for child in ordered], pieces[node.children[0]], indent)
            + (text[starts[-1] : high])
        )

    def _joined(self, pieces: list[str], old_first: str, indent: str) -> str:
        """Join entries; ``indent`` is what the first lacks because its line begins before it."""
        is_open = not all(piece.endswith("\n") for piece in pieces)
        newline = "\r\n" if "\r\n" in self._text else "\n"
        lines = [piece if piece.endswith("\n") else piece + newline for piece in pieces]
        if indent:
            lines = [indent + line if piece is old_first else line for line, piece in zip(lines, pieces, strict=True)]
            lines[0] = lines[0].lstrip(" \r\n")
        joined = "".join(lines)
        return joined.removesuffix(newline) if is_open else joined

    def _first(self, low: int, node: Node) -> int:
        """Return where the first entry begins: with the comments above it, if it has lines of its own."""
        entry = node.children[0].entry
        if node.parent is None or node.parent.kind != MAPPING:
            return entry
        line = self._text.find("\n", max(low, node.key_end), entry)
        return entry if line < 0 else line + 1

    def _line_after(self, node: Node) -> int:
        end = node.end
        last = node
        while last.children:
            last = last.children[-1]
        if last.is_block_scalar and self._text[end - 1 : end] == "\n":
            return end
        found = self._text.find("\n", end)
        return len(self._text) if found < 0 else found + 1
