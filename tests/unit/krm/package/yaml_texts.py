"""Hypothesis strategies for YAML as people write it: comments, blank lines, all styles, anchors, tags."""

from typing import Any

from hypothesis import strategies as st

_KEYS = ("a", "b", "name", "app.io/x", "true", "12", '"q k"', "'s'", "data", "items")
_PLAIN = (
    "x",
    "12",
    "1.50",
    "yes",
    "~",
    "null",
    "0777",
    "two words",
    "a#b",
    "12:30:45",
    "é",
    "http://x/y?z=1",
    "-x",
    "<<",
)
_QUOTED = ("'it''s'", '"a\\nb"', "'# no'", '"# no"', "''", '""', '"\\u00e9 \\\\"', "'yes'", '"- x: y"')
_TAGGED = ("!!str 12", "!custom x", "!!int '7'", "!ref [a, b]")
_FLOW = ("[]", "{}", "[a, 'b']", "[a,b ]", "{a: 1, b: [x]}", '{"a": "b"}', "[[a], {b: c}]", "{ a: b , }")
_COMMENTS = ("# c", "#", "#c: d", "# - x", '# it\'s "odd": {', "# é", "# kpt-set: ${x}")

Draw = Any


@st.composite
def document_texts(draw: Draw, *, aliases: bool = True) -> str:
    """One document that the reader accepts, with LF or CRLF, perhaps without a last line break."""
    writer = _Writer(draw, aliases=aliases)
    writer.comments(0)
    if draw(st.integers(0, 9)):
        writer.mapping(0, depth=0)
    else:
        writer.sequence(0, depth=0)
    writer.comments(0)
    text = "\n".join(writer.lines) + draw(st.sampled_from(("\n", "\n", "\n\n", "")))
    return str(text.replace("\n", "\r\n") if draw(st.booleans()) else text)


@st.composite
def file_texts(draw: Draw) -> str:
    """A file of several documents, perhaps with a byte-order mark."""
    text = draw(st.sampled_from(("", "", "\ufeff", "---\n", "# head\n---\n")))
    for body in draw(st.lists(document_texts(), min_size=1, max_size=3)):
        text += body
        if not text.endswith("\n"):
            text += "\n"
        text += draw(st.sampled_from(("---\n", "--- # next\n", "...\n", "...\n---\n", "---\r\n")))
    return str(text + draw(st.sampled_from(("", "# tail", "\n\n"))))


class _Writer:
    """Writes lines, asking Hypothesis at every turn."""

    def __init__(self, draw: Draw, *, aliases: bool) -> None:
        self._draw = draw
        self._anchors: list[str] = []
        self._aliases = aliases
        self._count = 0
        self.lines: list[str] = []

    def comments(self, column: int) -> None:
        """Write lines without content: none, mostly."""
        for kind in self._draw(st.lists(st.sampled_from("b#i"), max_size=2)) if self._chance(3) else ():
            extra = 2 if kind == "i" else 0
            self.lines.append("" if kind == "b" else " " * (column + extra) + self._one(_COMMENTS))

    def mapping(self, column: int, depth: int, lead: str | None = None) -> None:
        keys = self._draw(st.lists(st.sampled_from(_KEYS), min_size=1, max_size=3, unique=True))
        for place, key in enumerate(keys):
            if lead is None or place:
                self.comments(column)
            start = lead if lead is not None and not place else " " * column
            self._value(f"{start}{key}:", column, depth, wide=self._draw(st.integers(0, 2)) * 2)

    def sequence(self, column: int, depth: int) -> None:
        for _ in range(self._draw(st.integers(1, 3))):
            self.comments(column)
            lead = " " * column + "-"
            kind = self._draw(st.integers(0, 5))
            if kind == 0 and depth < 3:
                self.mapping(column + 2, depth + 1, lead + " ")
            elif kind == 1 and depth < 3:
                self.lines.append(lead + self._comment())
                self.mapping(column + 2, depth + 1)
            else:
                self._leaf(lead, column)

    def _value(self, lead: str, column: int, depth: int, wide: int) -> None:
        kind = self._draw(st.integers(0, 7))
        if depth < 3 and kind == 0:
            anchor = self._anchor()
            self.lines.append(lead + anchor + self._comment())
            self.mapping(column + 2, depth + 1)
            self._anchored(anchor)
        elif depth < 3 and kind == 1:
            self.lines.append(lead + self._comment())
            self.sequence(column + wide, depth + 1)
        else:
            self._leaf(lead, column)

    def _leaf(self, lead: str, column: int) -> None:
        kind = self._draw(st.integers(0, 8))
        indent = " " * (column + 2)
        if kind == 0:
            header = self._one(("|", "|-", "|+", ">", ">-", "|2"))
            self.lines.append(f"{lead} {header}{self._comment()}")
            self.lines += [
                indent + line if line else "" for line in self._one((["x"], ["x", "", "# y"], ["x ", "  z", ""]))
            ]
        elif kind == 1:
            self.lines.append(f"{lead} word")
            self.lines += [indent + line for line in self._one((["more"], ["more", "and: more"][:1], ["'x"]))]
        elif kind == 2 and self._anchors and self._aliases:
            self.lines.append(f"{lead} *{self._one(tuple(self._anchors))}{self._comment()}")
        elif kind == 3:
            self.lines.append(f"{lead} [a, # c")
            self.lines += [indent + "b,", indent + "{c: d}", indent + "]" + self._comment()]
        elif kind == 4:
            self.lines.append(lead + self._comment())
        else:
            pool = (_PLAIN, _QUOTED, _TAGGED, _FLOW)[self._draw(st.integers(0, 3))]
            anchor = self._anchor() if pool in (_PLAIN, _QUOTED) else ""
            self.lines.append(f"{lead}{anchor} {self._one(pool)}{self._comment()}")
            self._anchored(anchor)

    def _anchor(self) -> str:
        """Begin an anchor; it may be referred to once :meth:`_anchored` is called, behind its value."""
        if not self._aliases or not self._chance(5):
            return ""
        self._count += 1
        return f" &x{self._count}"

    def _anchored(self, anchor: str) -> None:
        if anchor:
            self._anchors.append(anchor[2:])

    def _comment(self) -> str:
        return self._one((" ", "   ")) + self._one(_COMMENTS) if self._chance(3) else ""

    def _chance(self, of: int) -> bool:
        return bool(self._draw(st.integers(1, of)) == 1)

    def _one(self, pool: Any) -> Any:
        return self._draw(st.sampled_from(pool))
