"""Label and field selectors: parsed once per request, matched against thousands of objects.

Source: ``kube-api.md`` 2.6.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from krm.meta.errors import BadRequest
from krm.meta.names import label_value_problem, qualified_name_problem

MAX_LENGTH = 65536
"""Characters of a selector; far above what fits into a URL, so it binds only bodies and rules."""

Predicate = Callable[[Mapping[str, str]], bool]


class Operator(StrEnum):
    """How a label requirement compares."""

    EXISTS = "exists"
    MISSING = "!"
    IN = "in"
    NOT_IN = "notin"
    GREATER = ">"
    LESS = "<"


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one label."""

    key: str
    operator: Operator
    values: frozenset[str] = frozenset()

    def predicate(self) -> Predicate:
        """Return the condition as a function of labels, for thousands of objects."""
        key, values = self.key, self.values
        match self.operator:
            case Operator.EXISTS:
                return lambda labels: key in labels
            case Operator.MISSING:
                return lambda labels: key not in labels
            case Operator.IN:
                return lambda labels: labels.get(key) in values
            case Operator.NOT_IN:
                return lambda labels: labels.get(key) not in values
        bound, greater = int(next(iter(values))), self.operator is Operator.GREATER

        def compare(labels: Mapping[str, str]) -> bool:
            value = labels.get(key, "")
            return bool(_INTEGER.fullmatch(value)) and (int(value) > bound if greater else int(value) < bound)

        return compare


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """All requirements must hold; none selects everything."""

    requirements: tuple[Requirement, ...] = ()

    @classmethod
    def parse(cls, text: str) -> "LabelSelector":
        """Parse the query form, like ``a=b,c in (d,e),!f``.

        Raises:
            BadRequest: the text breaks the grammar, or a key or value cannot be a label's.
        """
        if not text.strip():
            return cls()
        if len(text) > MAX_LENGTH:
            raise _unparsable(f"a selector is limited to {MAX_LENGTH} characters")
        return cls(tuple(_LabelParser(text).requirements()))

    @property
    def empty(self) -> bool:
        """Whether everything is selected."""
        return not self.requirements

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Tell whether an object with ``labels`` is selected."""
        return self.predicate()(labels)

    def predicate(self) -> Predicate:
        """Return the selector as a function of labels, for thousands of objects."""
        predicates = [requirement.predicate() for requirement in self.requirements]
        if len(predicates) == 1:
            return predicates[0]
        return lambda labels: all(predicate(labels) for predicate in predicates)


# At most 18 digits: what a label's value may hold as a 64-bit integer, and never an expensive conversion.
_INTEGER = re.compile(r"[-+]?[0-9]{1,18}")
_TOKEN = re.compile(r"\s*(?:(==|!=|[=!<>(),])|([^\s=!<>(),]+))")


class _LabelParser:
    """A recursive descent over tokens; ``""`` stands for the end."""

    def __init__(self, text: str) -> None:
        self._tokens = list(_tokens(text))
        self._next = 0

    def requirements(self) -> Iterator[Requirement]:
        yield self._requirement()
        while self._peek() == ",":
            self._take()
            yield self._requirement()
        if self._peek():
            raise _unparsable(f"found '{self._peek()}', expected: ',' or the end")

    def _peek(self) -> str:
        return self._tokens[self._next] if self._next < len(self._tokens) else ""

    def _take(self) -> str:
        token = self._peek()
        self._next += 1
        return token

    def _requirement(self) -> Requirement:
        if self._peek() == "!":
            self._take()
            return Requirement(self._key(), Operator.MISSING)
        key = self._key()
        operator = self._peek()
        if operator in ("", ","):
            return Requirement(key, Operator.EXISTS)
        self._take()
        if operator in ("in", "notin"):
            values = self._set(key)
            return Requirement(key, Operator(operator), values)
        if operator in ("=", "==", "!="):
            kind = Operator.NOT_IN if operator == "!=" else Operator.IN
            return Requirement(key, kind, frozenset({self._value(key)}))
        if operator in (">", "<"):
            bound = self._value(key)
            if not _INTEGER.fullmatch(bound):
                why = "for 'Gt', 'Lt' operators, the value must be an integer"
                raise _unparsable(f'values[0]: Invalid value: "{bound}": {why}')
            return Requirement(key, Operator(operator), frozenset({bound}))
        raise _unparsable(f"found '{operator}', expected: in, notin, =, ==, !=, gt, lt")

    def _key(self) -> str:
        key = self._take()
        if not key and self._tokens[-1:] == [","]:
            raise BadRequest("found '', expected: identifier after ','")
        if not key or key in _SYMBOLS:
            raise _unparsable(f"found '{key}', expected: a label key")
        if problem := qualified_name_problem(key):
            raise _unparsable(f'<nil>: Invalid value: "{key}": {problem}')
        return key

    def _value(self, key: str) -> str:
        if self._peek() in ("", ","):
            return ""
        value = self._take()
        if value in _SYMBOLS:
            raise _unparsable(f"found '{value}', expected: a value")
        return _checked(key, value)

    def _set(self, key: str) -> frozenset[str]:
        if (opening := self._take()) != "(":
            raise _unparsable(f"found '{opening}' expected: '('")
        values: set[str] = set()
        before = ","
        while (word := self._take()) != ")":
            if word == "," and before == ",":
                values.add("")
            elif word != ",":
                if word in _SYMBOLS or before != ",":
                    raise _unparsable(f"found '{word}', expected: ',' or ')'")
                values.add(_checked(key, word, len(values)))
            before = word
        if before == ",":
            values.add("")
        return frozenset(values)


_SYMBOLS = frozenset({"", "=", "==", "!=", "!", "<", ">", "(", ")", ","})


def _tokens(text: str) -> Iterator[str]:
    position, end = 0, len(text.rstrip())
    while position < end:
        found = _TOKEN.match(text, position)
        if found is None:  # pragma: no cover - the two classes cover every character
            raise _unparsable(f"found '{text[position]}'")
        position = found.end()
        yield found.group(1) or found.group(2)


def _checked(key: str, value: str, index: int = 0) -> str:
    if problem := label_value_problem(value):
        raise _unparsable(f'values[{index}][{key}]: Invalid value: "{value}": {problem}')
    return value


def _unparsable(why: str) -> BadRequest:
    return BadRequest(f"unable to parse requirement: {why}")


@dataclass(frozen=True, slots=True)
class FieldTerm:
    """One comparison of a field; ``operator`` is ``=`` or ``!=``."""

    field: str
    operator: str
    value: str


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """All terms must hold; none selects everything. Which fields exist is the resource's business."""

    terms: tuple[FieldTerm, ...] = ()

    @classmethod
    def parse(cls, text: str) -> "FieldSelector":
        r"""Parse the query form, like ``metadata.name=a,status.phase!=b``; ``\`` escapes ``\``, ``,`` and ``=``.

        Raises:
            BadRequest: a term has no operator, or a value an unescaped ``=`` or an unknown escape.
        """
        if not text:
            return cls()
        if len(text) > MAX_LENGTH:
            raise BadRequest(f"a field selector is limited to {MAX_LENGTH} characters")
        return cls(tuple(_field_term(term) for term in _FIELD_TERMS.findall(text) if term))

    @property
    def empty(self) -> bool:
        """Whether everything is selected."""
        return not self.terms

    def exact(self, field: str) -> str | None:
        """Return the value that ``field`` must equal, or None if no ``=`` term names it."""
        return next((term.value for term in self.terms if term.field == field and term.operator == "="), None)


# A term runs to the next comma that no backslash precedes.
_FIELD_TERMS = re.compile(r"(?:\\.|[^,\\]|\\$)+", re.DOTALL)
_FIELD_TERM = re.compile(r"((?:(?!!=)[^=])*)(!=|==|=)(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(.?)|[,=]", re.DOTALL)


def _field_term(text: str) -> FieldTerm:
    found = _FIELD_TERM.fullmatch(text)
    if not found:
        raise BadRequest(f"invalid selector: '{text}'; can't understand '{text}'")
    name, operator, value = found.groups()

    def unescape(match: re.Match[str]) -> str:
        character = match.group(1)
        if not character or character not in "\\,=":
            if character:
                raise BadRequest(f"invalid field selector: invalid escape sequence: {match.group(0)}")
            raise BadRequest(f"invalid field selector: '{match.group(0)}' in '{text}' must be escaped")
        return str(character)

    return FieldTerm(name, "!=" if operator == "!=" else "=", _ESCAPE.sub(unescape, value))
