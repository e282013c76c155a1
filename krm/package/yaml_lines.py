"""Where in a YAML text the lines of a block entry begin and end: what may be cut there, what put in."""

import re

from krm.package.yaml_positions import SEQUENCE, Node, content_start

_REST = re.compile(r"[ \t]*(?:[ \t]#[^\r\n]*)?(?:\r?\n|\Z)")
_REST_OF_NOTHING = re.compile(r"[ \t]*(?:#[^\r\n]*)?(?:\r?\n|\Z)")
_COLON = re.compile(r"[ \t]*:(?=\s|\Z)")
_HEADER = re.compile(r"[|>]\d?([-+]?)\d?([ \t]+#)?")
_BLANKS = re.compile(r"(?:[ \t]*\r?\n)*[ \t]*")


class CannotSplice(Exception):
    """The change needs more than cutting and pasting."""


class Lines:
    """The lines of one text."""

    def __init__(self, text: str) -> None:
        self._text = text

    def start(self, node: Node) -> int:
        """Return the offset of the line on which an entry begins."""
        return self._text.rfind("\n", 0, node.entry) + 1

    def begins(self, node: Node) -> bool:
        """Say whether an entry is the first thing on its line, not behind a dash."""
        return not self._text[self.start(node) : node.entry].strip()

    def below(self, node: Node) -> int:
        """Return the offset of the line below a block entry, the text's end when there is none.

        Raises:
            CannotSplice: something else follows on its last line.
        """
        leaf = last_leaf(node)
        text, end = self._text, leaf.end
        if leaf.is_block_scalar:
            start, stop = chomping(text, leaf)
            if text[start:stop] == "+":
                return end
            # Blank lines with spaces may be part of the value.
            while end > leaf.start and text[end - 1] in "\r\n":
                end -= 1
            return text.find("\n", end) + 1 or len(text)
        rest = (_REST if leaf.start < leaf.end else _REST_OF_NOTHING).match(text, end)
        if rest is None:
            raise CannotSplice
        return rest.end()

    def above_head(self, node: Node) -> int:
        """Return the offset of the line above which nothing belongs to an entry that begins its line."""
        text, start = self._text, self.start(node)
        top = start
        while top:
            above = text.rfind("\n", 0, top - 1) + 1
            if not text[above:top].lstrip(" \t").startswith("#"):
                return top
            top = above
        # Comments at the top of a text are the document's.
        return start

    def behind_key(self, node: Node) -> int:
        """Return the offset behind the colon or dash of a block collection.

        Raises:
            CannotSplice: an anchor or tag stands there.
        """
        if content_start(self._text, node) > node.start:
            raise CannotSplice
        if node.parent is not None and node.parent.kind == SEQUENCE:
            return node.key_end
        colon = _COLON.match(self._text, node.key_end)
        if colon is None:
            raise CannotSplice
        return colon.end()

    def end_text_as_block(self, node: Node) -> bool:
        """Say whether a line break at the end of the text would change the block scalar that ``node`` ends with."""
        leaf = last_leaf(node)
        if not leaf.is_block_scalar or leaf.end < len(self._text) or self._text.endswith("\n"):
            return False
        start, end = chomping(self._text, leaf)
        return self._text[start:end] != "-"

    def would_join(self, offset: int, value: str, indent: str) -> bool:
        """Say whether what follows at ``offset`` would become part of a block scalar put there."""
        if value.endswith("\n\n") or not value.strip("\n"):
            return True
        blanks = _BLANKS.match(self._text, offset)
        if blanks is None:
            return False
        *lines, last = blanks[0].split("\n")
        if blanks.end() == len(self._text) or self._text[blanks.end()] == "#":
            lines.append(last)
        return any(len(line.rstrip("\r")) > len(indent) for line in lines)


def last_leaf(node: Node) -> Node:
    """Return the scalar or flow collection that a node ends with."""
    while node.children and not node.flow:
        node = node.children[-1]
    return node


def chomping(text: str, node: Node) -> tuple[int, int]:
    """Return where the chomping indicator of a block scalar stands, or would stand."""
    found = _HEADER.match(text, content_start(text, node))
    return found.span(1) if found else (node.start, node.start)


def header_end(text: str, start: int) -> int:
    """Return the offset behind the header of a block scalar that begins at ``start``, before its comment."""
    found = _HEADER.match(text, start)
    return found.start(2) if found and found[2] else line_end(text, start)


def line_end(text: str, offset: int) -> int:
    """Return the offset of the line break that ends the line, or of the text's end."""
    end = text.find("\n", offset)
    end = len(text) if end < 0 else end
    return end - 1 if end > offset and text[end - 1] == "\r" else end
