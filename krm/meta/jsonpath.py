"""The JSONPath dialect of Kubernetes: printer columns, scale paths, selectable fields and ``kubectl``-like lookups.

A path is parsed once into steps and then evaluated on thousands of objects. Paths and objects may come from strangers:
the length of a path, its nesting and the number of values that one evaluation may touch are bounded.
Source: ``kube-api.md`` 2.15; where that is silent, what ``kubectl get -o jsonpath`` does.
"""

import re
from functools import lru_cache
from typing import Any, Final

from krm.meta.jsonpath_steps import (
    MAX_VALUES,
    OPERATORS,
    Budget,
    JsonPathError,
    Step,
    child,
    constant,
    descendants,
    every,
    having,
    index,
    run,
    span,
    union,
    where,
)

__all__ = ["MAX_LENGTH", "MAX_NESTING", "MAX_VALUES", "JsonPathError", "Path", "compile_path"]

MAX_LENGTH: Final = 4096
"""Characters of a path; printer columns need less than 200."""
MAX_NESTING: Final = 16
"""Filters and unions inside one another."""


class Path:
    """A parsed path; safe to share between threads."""

    __slots__ = ("_fields", "_steps", "text")

    def __init__(self, text: str, steps: list[Step], fields: tuple[str, ...] | None) -> None:
        self.text = text
        self._steps = steps
        self._fields = fields

    @property
    def fields(self) -> tuple[str, ...] | None:
        """The names of a path that has only named children, like ``.spec.replicas``; else None."""
        return self._fields

    def find(self, obj: Any) -> list[Any]:
        """Return all values that the path leads to, in order; a missing key leads nowhere.

        Raises:
            JsonPathError: the path indexes or filters what is no list, leaves a list's bounds, compares what
                cannot be compared, or touches more than ``MAX_VALUES`` values.
        """
        return run(self._steps, [obj], Budget())

    def first(self, obj: Any) -> Any:
        """Return the first value, or None: nothing there, or the path does not fit the object (an empty table cell)."""
        if self._fields is not None:
            return _descend(obj, self._fields)
        try:
            found = self.find(obj)
        except JsonPathError:
            return None
        return found[0] if found else None


@lru_cache(maxsize=1024)
def compile_path(text: str) -> Path:
    """Parse a path, with or without the braces of ``kubectl``.

    Raises:
        JsonPathError: it is no path of this dialect, too long or nested too deep; the message says where it fails.
    """
    if len(text) > MAX_LENGTH:
        raise JsonPathError(f"a path is limited to {MAX_LENGTH} characters")
    inner = text[1:-1] if text.startswith("{") and text.endswith("}") else text
    parser = _Parser(inner, 0)
    steps = parser.parse()
    return Path(text, steps, tuple(parser.fields) if parser.fields is not None else None)


def _descend(obj: Any, fields: tuple[str, ...]) -> Any:
    for name in fields:
        if not isinstance(obj, dict):
            return None
        obj = obj.get(name)
    return obj


_NAME_END: Final = frozenset(" .,[]$@{}\t\n")
_NUMBER: Final = re.compile(r"[-+]?[0-9.]+")
_QUOTED_NAME: Final = re.compile(r"'[^']*'")
_COMPARISON: Final = re.compile(r"([^!<>=]+)([!<>=]+)(.+)", re.DOTALL)
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"'}
_NUMBER_DIGITS: Final = 18


class _Parser:
    """Reads one path; brackets are read by parsers of their own, one level deeper."""

    def __init__(self, text: str, depth: int) -> None:
        if depth > MAX_NESTING:
            raise JsonPathError(f"a path is limited to {MAX_NESTING} levels of brackets")
        self._text = text
        self._depth = depth
        self._at = 0
        self._steps: list[Step] = []
        self.fields: list[str] | None = []

    def parse(self) -> list[Step]:
        while self._at < len(self._text):
            char = self._text[self._at]
            if char in " @$":
                self._at += 1
            elif char == "[":
                self._brackets()
            elif char in "'\"":
                self._other(constant(self._quoted()))
            elif char == ".":
                self._dot()
            elif char == "*":
                self._at += 1
                self._other(every)
            elif char.isdigit() or char in "+-":
                self._other(constant(self._number()))
            elif char.isalpha():
                self._word()
            else:
                raise JsonPathError(f"unexpected character {char!r} at position {self._at} of {self._text!r}")
        return self._steps

    def _other(self, step: Step) -> None:
        self.fields = None
        self._steps.append(step)

    def _dot(self) -> None:
        if not self._text.startswith("..", self._at):
            self._at += 1
            self._child()
            return
        if self._text.startswith("...", self._at):
            raise JsonPathError(f"three dots in a row in {self._text!r}")
        self._at += 2
        self._other(descendants)
        if self._at < len(self._text) and (char := self._text[self._at]) not in _NAME_END and char != "*":
            self._child()

    def _child(self) -> None:
        name = self._name()
        if name == "*":
            self._other(every)
        elif name:
            self._steps.append(child(name))
            if self.fields is not None:
                self.fields.append(name)

    def _name(self) -> str:
        pieces: list[str] = []
        while self._at < len(self._text) and (char := self._text[self._at]) not in _NAME_END:
            if char == "\\" and self._at + 1 < len(self._text):
                self._at += 1
                char = self._text[self._at]
            pieces.append(char)
            self._at += 1
        return "".join(pieces)

    def _word(self) -> None:
        word = self._name()
        if word not in ("true", "false"):
            raise JsonPathError(f"unexpected word {word!r} in {self._text!r}: names of fields follow a dot")
        self._other(constant(word == "true"))

    def _number(self) -> int | float:
        match = _NUMBER.match(self._text, self._at)
        text = match[0] if match else self._text[self._at]
        self._at += len(text)
        try:
            return float(text) if "." in text else int(text[: _NUMBER_DIGITS + 1])
        except ValueError as error:
            raise JsonPathError(f"{text!r} is not a number in {self._text!r}") from error

    def _quoted(self) -> str:
        quote = self._text[self._at]
        pieces: list[str] = []
        self._at += 1
        while self._at < len(self._text):
            char = self._text[self._at]
            self._at += 1
            if char == quote:
                return "".join(pieces)
            if char == "\\" and self._at < len(self._text):
                escaped = self._text[self._at]
                self._at += 1
                pieces.append(_ESCAPES.get(escaped, "\\" + escaped))
            else:
                pieces.append(char)
        raise JsonPathError(f"a quoted text is not closed in {self._text!r}")

    def _brackets(self) -> None:
        start = self._at + 1
        inner = self._text[start : self._closing(start)]
        self._at = start + len(inner) + 1
        if inner.startswith("?(") and inner.endswith(")"):
            self._other(self._filter(inner[2:-1]))
        elif len(members := _split_union(inner)) > 1:
            self._other(union([self._inside(f"[{member.strip()}]") for member in members]))
        elif inner == "*":
            self._other(span(None, None, None))
        elif _QUOTED_NAME.fullmatch(inner):
            self._named(inner[1:-1])
        else:
            self._other(index(inner))

    def _named(self, name: str) -> None:
        """Add a quoted child. Kubernetes reads its text as a path: a dot in a name is escaped even here."""
        below = _Parser(f".{name}", self._depth + 1)
        self._steps += below.parse()
        if self.fields is not None and below.fields is not None:
            self.fields += below.fields
        else:
            self.fields = None

    def _closing(self, at: int) -> int:
        """Return the position of the bracket that closes the one before ``at``."""
        depth, quote = 1, ""
        while at < len(self._text):
            char = self._text[at]
            if quote:
                if char == "\\":
                    at += 1
                elif char == quote:
                    quote = ""
            elif char in "'\"":
                quote = char
            elif char in "[]":
                depth += 1 if char == "[" else -1
                if depth == 0:
                    return at
            at += 1
        raise JsonPathError(f"a bracket is not closed in {self._text!r}")

    def _inside(self, text: str) -> list[Step]:
        return _Parser(text, self._depth + 1).parse()

    def _filter(self, text: str) -> Step:
        comparison = _COMPARISON.fullmatch(text)
        if comparison is None:
            return having(self._inside(text))
        left, operator, right = comparison.groups()
        if operator not in OPERATORS:
            raise JsonPathError(f"unknown operator {operator!r} in the filter {text!r}; known are == != < <= > >=")
        return where(self._inside(left), operator, self._inside(right))


def _split_union(text: str) -> list[str]:
    """Split at the commas that stand outside of quotes and brackets."""
    members, start, depth, quote, escaped = [], 0, 0, "", False
    for at, char in enumerate(text):
        if escaped:
            escaped = False
        elif quote:
            escaped = char == "\\"
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char in "[(":
            depth += 1
        elif char in "])":
            depth -= 1
        elif char == "," and depth == 0:
            members.append(text[start:at])
            start = at + 1
    return [*members, text[start:]]
