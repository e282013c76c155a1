"""Changing a document by cutting and pasting in its text: linear, and nothing moves that need not.

Covers nearly all that functions and merges change. What it does not cover (merged keys, blocks with an
anchor that become something else, flow collections with comments inside) it leaves to others by giving
up. Whether the result is right is checked by the caller. Source: ``decisions.md`` 11.
"""

import json
from typing import Any, NamedTuple

from krm.package.list_alignment import align
from krm.package.yaml_lines import CannotSplice, Lines, chomping, header_end, last_leaf, line_end
from krm.package.yaml_positions import ALIAS, MAPPING, SCALAR, SEQUENCE, Node, content_start, read_layout
from krm.package.yaml_reader import same
from krm.package.yaml_writer import double_quoted, inline_scalar, new_block, new_flow

_LONGEST_KEY = 128
"""Characters that a key may have without a question mark before it, as emitters do."""


class _Splice(NamedTuple):
    """``text`` in place of what stands from ``start`` to ``end``; ``turn`` orders insertions at one offset."""

    start: int
    end: int
    turn: int
    text: str


def splice_document(text: str, current: Any, wanted: Any) -> str | None:
    """Return ``text``, which reads as ``current``, changed towards ``wanted``; None when this way cannot.

    ``text`` has no byte-order mark. The caller checks what the result reads as.
    """
    root = read_layout(text)
    if root is None:
        return None
    editor = _Editor(text, root)
    try:
        editor.change(root, current, wanted)
        return editor.spliced()
    except CannotSplice:
        return None


class _Editor:
    def __init__(self, text: str, root: Node) -> None:
        self._text = text
        self._lines = Lines(text)
        self._root = root
        self._flows: set[int] = set()
        """Flow collections that are known to hold no comment."""
        self._newline = "\r\n" if "\r\n" in text else "\n"
        self._splices: list[_Splice] = []
        self._wide: bool | None = None

    def spliced(self) -> str:
        """Return the changed text."""
        pieces = []
        done = 0
        for start, end, _, text in sorted(self._splices):
            if start < done:
                raise CannotSplice
            pieces += [self._text[done:start], text]
            done = end
        return "".join([*pieces, self._text[done:]])

    def change(self, node: Node, current: Any, wanted: Any) -> None:
        """Change the value at ``node``."""
        if node.kind == ALIAS:
            # Trusts that the anchor's own change brings the alias along.
            return
        if wanted and current and type(current) is type(wanted):
            if node.kind == MAPPING and isinstance(wanted, dict):
                self._change_mapping(node, current, wanted)
                return
            if node.kind == SEQUENCE and isinstance(wanted, list):
                self._change_sequence(node, current, wanted)
                return
        self._replace(node, wanted)

    def _change_mapping(self, node: Node, current: dict[str, Any], wanted: dict[str, Any]) -> None:
        entries = {child.step: child for child in node.children}
        gone = {key for key in current if key not in wanted}
        if len(entries) != len(node.children) or not gone <= entries.keys():
            raise CannotSplice
        survivors = [child for child in node.children if child.step not in gone]
        if not survivors:
            self._replace(node, wanted)
            return
        self._remove(node, [child for child in node.children if child.step in gone], survivors)
        previous: Node | None = None
        for key, value in wanted.items():
            child = entries.get(key)
            if child is None:
                if key not in current or not same(current[key], value):
                    before = previous is None or self._lines.end_text_as_block(previous)
                    self._insert(node, previous or survivors[0], {key: value}, before=before)
                continue
            previous = child
            if not same(current[key], value):
                self.change(child, current[key], value)

    def _change_sequence(self, node: Node, current: list[Any], wanted: list[Any]) -> None:
        pairs = align(current, wanted)
        children = node.children
        if len(children) != len(current):
            raise CannotSplice
        kept = {old for old, new in pairs if old is not None and new is not None}
        if not kept:
            self._replace(node, wanted)
            return
        survivors = [children[place] for place in sorted(kept)]
        self._remove(node, [child for place, child in enumerate(children) if place not in kept], survivors)
        previous: Node | None = None
        for old, new in pairs:
            if new is None:
                continue
            if old is None:
                self._insert(node, previous or survivors[0], [wanted[new]], before=previous is None)
                continue
            previous = children[old]
            if not same(current[old], wanted[new]):
                self.change(previous, current[old], wanted[new])

    def _remove(self, parent: Node, gone: list[Node], survivors: list[Node]) -> None:
        """Cut the lines of entries out."""
        if parent.flow:
            self._remove_in_flow(parent, gone, survivors)
            return
        first = parent.children[0]
        if gone and gone[0] is first and not self._lines.begins(first):
            # It stands behind a dash, and so will the first that stays.
            leading = [child for child in gone if child.entry < survivors[0].entry]
            end = self._lines.below(leading[-1])
            while self._text[end].isspace():
                end += 1
            self._put(first.entry, end, "")
            gone = gone[len(leading) :]
        for child in gone:
            self._put(self._lines.start(child), self._lines.below(child), "")

    def _insert(self, parent: Node, beside: Node, entry: dict[str, Any] | list[Any], *, before: bool) -> None:
        """Put a new entry behind ``beside``, or before it."""
        if parent.flow:
            self._insert_in_flow(beside, entry, before=before)
            return
        indent = " " * beside.column
        if before:
            rows = self._rows(entry, indent, beside.entry)
            if not self._lines.begins(beside):
                self._put(beside.entry, beside.entry, rows.removeprefix(indent) + indent)
                return
            start = self._lines.above_head(beside)
            self._put(start, start, rows)
            return
        start = self._lines.below(beside)
        rows = self._rows(entry, indent, start)
        if start and self._text[start - 1] != "\n":
            self._chomp(beside)
            rows = self._newline + self._without_last_break(rows, entry)
        self._put(start, start, rows)

    def _chomp(self, node: Node) -> None:
        """Let a block scalar at the end of the text stay without the line break that is put behind it."""
        if self._lines.end_text_as_block(node):
            start, end = chomping(self._text, last_leaf(node))
            self._put(start, end, "-")

    def _without_last_break(self, rows: str, value: Any) -> str:
        """Drop the last line break of ``rows``, for a text that ends without one, unless it is part of the value."""
        while isinstance(value, (dict, list)) and value:
            value = value[-1] if isinstance(value, list) else value[next(reversed(value))]
        return rows if isinstance(value, str) and value.endswith("\n") else rows.removesuffix(self._newline)

    def _remove_in_flow(self, parent: Node, gone: list[Node], survivors: list[Node]) -> None:
        """Cut entries out, each with the comma before it, or behind it if it stands first."""
        if not gone:
            return
        self._require_no_comment(parent)
        leading = [child for child in gone if child.entry < survivors[0].entry]
        if leading:
            self._put(leading[0].entry, survivors[0].entry, "")
        places = {child.step: place for place, child in enumerate(parent.children)}
        for child in gone[len(leading) :]:
            place = places[child.step]
            before, after = parent.children[place - 1], parent.children[place + 1 : place + 2]
            begins_line = "\n" in self._text[before.end : child.entry]
            if begins_line and after and "\n" not in self._text[child.end : after[0].entry]:
                self._put(child.entry, after[0].entry, "")
            else:
                self._put(before.end, child.end, "")

    def _insert_in_flow(self, beside: Node, entry: dict[str, Any] | list[Any], *, before: bool) -> None:
        """Put an entry behind ``beside`` or before it, on a line of its own if that has one."""
        parent = beside.parent
        assert parent is not None  # noqa: S101 - it is an entry
        self._require_no_comment(parent)
        [value] = entry.values() if isinstance(entry, dict) else entry
        if self._is_json(beside):
            written = json.dumps(entry if isinstance(entry, dict) else value, ensure_ascii=False)
            written = written[1:-1] if isinstance(entry, dict) else written
        elif isinstance(entry, dict):
            written = new_flow(entry)[1:-1]
        else:
            written = inline_scalar(value, beside.style) or new_flow(value)
        line = self._lines.start(beside)
        own_line = line > parent.start and not self._text[line : beside.entry].strip()
        gap = self._newline + self._text[line : beside.entry] if own_line else " "
        if before:
            self._put(beside.entry, beside.entry, f"{written},{gap}")
        else:
            self._put(beside.end, beside.end, f",{gap}{written}")

    def _require_no_comment(self, flow: Node) -> None:
        if id(flow) not in self._flows and self._text.find("#", flow.start, flow.end) >= 0:
            raise CannotSplice
        self._flows.add(id(flow))

    def _is_json(self, node: Node) -> bool:
        """Whether an entry of a flow collection stands among JSON rather than YAML."""
        if node.parent is not None and node.parent.kind == MAPPING:
            return self._text[node.parent.children[0].entry] == '"'
        return self._root.flow and self._text[self._root.start] in "{["

    def _replace(self, node: Node, value: Any) -> None:
        """Put a value of another kind, or a scalar, in place of the one at ``node``."""
        inline = inline_scalar(value, node.style)
        if node.in_flow and self._is_json(node):
            inline = json.dumps(value, ensure_ascii=False)
        if inline is None and (not value or node.in_flow):
            inline = new_flow(value)
        if inline is not None and (node.flow or (node.kind == SCALAR and not node.is_block_scalar)):
            self._put_inline(node, inline, value)
            return
        in_list = node.parent is not None and node.parent.kind == SEQUENCE
        if (
            inline is not None
            and node.children
            and (node.parent is None or in_list)
            and self._lines.begins(node.children[0])
        ):
            self._empty(node, inline)
            return
        if node.parent is None:
            self._replace_root(node, value)
            return
        first, rest = f" {inline}", ""
        if inline is None:
            rows = self._rows([value] if in_list else {"k": value}, " " * node.column, self._lines.below(node))
            first, _, rest = rows[node.column + (1 if in_list else 2) :].partition(self._newline)
        self._put_rows(node, first, rest, value)

    def _empty(self, node: Node, inline: str) -> None:
        """Put one line in place of the entries of a block that begins on a line of its own."""
        if content_start(self._text, node) > node.start:
            raise CannotSplice  # an anchor or tag would be left behind
        start = self._lines.start(node.children[0])
        indent = self._text[start : node.children[0].entry]
        self._put(start, start, indent + inline + self._newline)
        self._cut_entries(node)

    def _cut_entries(self, node: Node) -> None:
        """Cut all entries of a block out; comments among them stay."""
        for child in node.children:
            self._put(self._lines.start(child), self._lines.below(child), "")

    def _replace_root(self, node: Node, value: Any) -> None:
        """Put another collection in place of the one that is the whole document."""
        if node.flow:
            is_json = node.children and self._is_json(node.children[0])
            self._put(node.start, node.end, json.dumps(value, ensure_ascii=False) if is_json else new_flow(value))
            return
        if (
            not node.children
            or not self._lines.begins(node.children[0])
            or content_start(self._text, node) > node.start
        ):
            raise CannotSplice
        rows = new_block(value, wide=self._is_wide()).replace("\n", self._newline)
        self._put(self._lines.start(node.children[0]), self._lines.below(node), rows)

    def _value_start(self, node: Node, value: Any) -> int:
        """Return where to put a value in place of a scalar: behind its anchor, over a tag that no longer fits."""
        start = content_start(self._text, node)
        has_tag = self._text.startswith("!", node.start, start) and "&" not in self._text[node.start : start]
        return (
            node.start if has_tag and (self._text.startswith("!!", node.start) or not isinstance(value, str)) else start
        )

    def _put_inline(self, node: Node, inline: str, value: Any) -> None:
        start = self._value_start(node, value)
        blank = start == node.end and self._text[start - 1 : start].strip() != ""
        self._put(start, node.end, f" {inline}" if blank else inline)

    def _put_rows(self, node: Node, first: str, rest: str, value: Any) -> None:
        """Put ``first`` behind the key or dash, and the lines ``rest`` below, in place of a block or scalar."""
        text = self._text
        end = self._lines.below(node)
        if not text.endswith("\n") and end == len(text):
            rest = self._without_last_break(rest, value)
        if node.kind in (MAPPING, SEQUENCE) and not node.flow:
            start = stop = self._lines.behind_key(node)
            below = text.find("\n", start) + 1
            if below > node.children[0].entry:
                # Its first entry stands behind a dash.
                self._put(start, end, first + text[line_end(text, end - 1) : end] + rest)
                return
            if not rest:
                self._cut_entries(node)
                below = end
        else:
            start = self._value_start(node, value)
            stop = header_end(text, content_start(text, node)) if node.is_block_scalar else node.end
            below = text.find("\n", stop) + 1
            while start > node.key_end and text[start - 1] in " \t":
                start -= 1
        if not below:
            below, rest = end, self._newline + rest
        self._put(start, stop, first)
        self._put(below, end, rest)

    def _rows(self, entry: dict[str, Any] | list[Any], indent: str, below: int) -> str:
        """Write an entry as lines, to stand above the offset ``below``."""
        [value] = entry.values() if isinstance(entry, dict) else entry
        inline = inline_scalar(value)
        if inline is None and isinstance(value, str) and self._lines.would_join(below, value, indent):
            inline = double_quoted(value)
        lead = "-"
        if isinstance(entry, dict):
            lead = f"{inline_scalar(next(iter(entry))) or ''}:"
        if inline is not None and lead != ":" and len(lead) < _LONGEST_KEY:
            return f"{indent}{lead} {inline}{self._newline}"
        rows = new_block(entry, wide=self._is_wide())
        lines = (indent + line if line else "" for line in rows.removesuffix("\n").split("\n"))
        return "".join(line + self._newline for line in lines)

    def _is_wide(self) -> bool:
        """Whether the first block list of a mapping in this document is set deeper than its key."""
        if self._wide is None:
            self._wide = False
            todo = [self._root]
            while todo:
                node = todo.pop()
                if node.kind == SEQUENCE and not node.flow and node.parent and node.parent.kind == MAPPING:
                    self._wide = node.children[0].column > node.column
                    break
                todo += [child for child in reversed(node.children) if child.children]
        return self._wide

    def _put(self, start: int, end: int, text: str) -> None:
        if start < end or text:
            self._splices.append(_Splice(start, end, len(self._splices), text))
