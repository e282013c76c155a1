"""``while`` for an interpreter that has none: rewritten into ``for`` before it is parsed. Source: ``kpt.md`` 4.9.

``while C:`` becomes ``for _ in <practically for ever>:`` with ``if not (C): break`` as its first statement, which
leaves ``break``, ``continue`` and ``return`` of the body their meaning. All else stays as it is.
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
_SEARCHED = 4096
"""Characters after a loop's header in which its body must begin: keeps the work linear."""
_HEADER = "for _while in range(2147483647):"


@dataclass(slots=True)
class Rewritten:
    """A script without ``while``."""

    text: str
    _inserted: list[int] = field(default_factory=list)
    """The numbers of the lines that the original has not, ascending."""

    def original_line(self, line: int) -> int:
        """Return where a line of ``text`` stands in the script as it was written."""
        return max(1, line - bisect_right(self._inserted, line))


@dataclass(slots=True)
class _Loop:
    start: int
    end: int
    """After the colon."""
    condition: str
    indent: str


def rewrite_loops(source: str) -> Rewritten:
    """Return ``source`` with its ``while`` loops as ``for`` loops; what does not parse is left to the parser."""
    if "while" not in source:
        return Rewritten(source)
    text, last = "", 0
    inserted: list[int] = []
    for loop in _loops(source):
        spread = loop.condition.count("\n")
        check = f"if not ({loop.condition}): break"
        end = source.find("\n", loop.end)
        end = len(source) if end < 0 else end
        rest = source[loop.end : end]
        text += source[last : loop.start] + _HEADER + "\n" * spread
        first = text.count("\n") + 2
        if rest.strip() and not rest.lstrip().startswith("#"):
            text += f"\n{loop.indent} {check}\n{loop.indent} {rest.lstrip()}"
            inserted += range(first, first + spread + 2)
        else:
            text += f"\n{_body_indent(source, end + 1)}{check}"
            inserted += range(first, first + spread + 1)
        last = end
    return Rewritten(text + source[last:], inserted)


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
        elif loop is not None and text == "lambda":
            lambdas += 1
        elif loop is not None and text == ":" and depth == 0:
            if lambdas == 0:
                condition = source[loop.start + len("while") : token.start()].strip()
                yield _Loop(loop.start, token.end(), condition, loop.indent)
                loop = None
            lambdas = max(0, lambdas - 1)
        at_start = False
