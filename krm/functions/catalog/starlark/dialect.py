"""What upstream's dialect has and the interpreter has not, translated before a script is parsed: ``while`` and tabs.

``while C:`` becomes ``for _ in <practically for ever>:`` with ``if not (C): break`` as its first statement, which
leaves ``break``, ``continue`` and ``return`` of the body their meaning. Tabs indent to multiples of eight columns.
All else stays as it is. Source: ``kpt.md`` 4.9.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r"(?P<string>[rb]{0,2}(?:\"\"\"(?:\\.|[^\\])*?\"\"\"|'''(?:\\.|[^\\])*?'''"
    r"|\"(?:\\.|[^\\\"\n])*\"|'(?:\\.|[^\\'\n])*'))"
    r"|(?P<comment>\#[^\n]*)"
    r"|(?P<continuation>\\\n)"
    r"|(?P<newline>\n)"
    r"|(?P<open>[(\[{])|(?P<close>[)\]}])"
    r"|(?P<word>[A-Za-z_0-9]+)"
    r"|(?P<space>[ \t\r]+)"
    r"|(?P<other>.)",
    re.DOTALL,
)
_TAB = 8
"""Columns."""
_SEARCHED = 4096
"""Characters after a loop's header in which its body must begin: keeps the work linear."""
_HEADER = "for _while in range(2147483647):"


@dataclass(slots=True)
class Translated:
    """A script that the interpreter can parse."""

    text: str
    inserted: list[int] = field(default_factory=list)
    """The numbers of the lines that the original has not, ascending."""

    def original_line(self, line: int) -> int:
        """Return where a line of ``text`` stands in the script as it was written."""
        return max(1, line - bisect_right(self.inserted, line))


@dataclass(slots=True)
class _Loop:
    start: int
    end: int
    """After the colon."""
    condition: str
    indent: str


def translate(source: str) -> Translated:
    """Return ``source`` in the interpreter's dialect; what does not parse is left to the parser."""
    if "\t" in source:
        source = _without_tabs(source)
    return _without_while(source) if "while" in source else Translated(source)


def _without_tabs(source: str) -> str:
    """Write tabs outside of strings as spaces: one each, or up to the next multiple of eight in an indentation."""
    parts = []
    depth, at_start = 0, True
    for token in _TOKEN.finditer(source):
        kind, text = token.lastgroup, token.group()
        if kind == "space":
            text = text.expandtabs(_TAB) if at_start else text.replace("\t", " ")
        depth = max(0, depth + (kind == "open") - (kind == "close"))
        at_start = kind == "newline" and depth == 0
        parts.append(text)
    return "".join(parts)


def _without_while(source: str) -> Translated:
    parts: list[str] = []
    inserted: list[int] = []
    last, line = 0, 1
    for loop in _loops(source):
        spread = loop.condition.count("\n")
        check = f"if not ({loop.condition}): break"
        end = source.find("\n", loop.end)
        end = len(source) if end < 0 else end
        rest = source[loop.end : end]
        if rest.strip() and not rest.lstrip().startswith("#"):
            added = f"\n{loop.indent} {check}\n{loop.indent} {rest.lstrip()}"
            new = spread + 2
        else:
            added = f"\n{_body_indent(source, end + 1)}{check}"
            new = spread + 1
        parts += [source[last : loop.start], _HEADER, "\n" * spread, added]
        line += source.count("\n", last, end)
        inserted += range(line + 1, line + new + 1)
        line += new
        last = end
    return Translated("".join([*parts, source[last:]]), inserted)


def _body_indent(source: str, start: int) -> str:
    """Return the indentation of the first line with code at or after ``start``."""
    for line in source[start : start + _SEARCHED].split("\n"):
        code = line.lstrip(" \t")
        if code and not code.startswith("#"):
            return line[: len(line) - len(code)]
    return ""


def _loops(source: str) -> Iterator[_Loop]:
    """Find the ``while`` statements: the word at the start of a logical line, up to its colon."""
    depth = lambdas = 0
    at_start, indent = True, ""
    loop: _Loop | None = None
    for token in _TOKEN.finditer(source):
        kind, text = token.lastgroup, token.group()
        if kind in {"comment", "continuation"}:
            continue
        if kind == "newline" and depth == 0:
            at_start, indent, loop = True, "", None
            continue
        if kind == "space":
            indent = text if at_start else indent
            continue
        depth = max(0, depth + (kind == "open") - (kind == "close"))
        if kind == "word" and text == "while" and at_start:
            loop, lambdas = _Loop(token.start(), 0, "", indent), 0
        elif loop is not None and text == "lambda" and depth == 0:
            lambdas += 1
        elif loop is not None and text == ":" and depth == 0:
            if lambdas == 0:
                condition = source[loop.start + len("while") : token.start()].strip()
                yield _Loop(loop.start, token.end(), condition, loop.indent)
                loop = None
            lambdas = max(0, lambdas - 1)
        at_start = False
