"""Field paths of replacements: reading them, and finding the places in a resource that they lead to.

Two rule sets walk the same way and differ in what an element of a list must be like, and in how much may
be missing. Source: ``kpt.md`` 4.7.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from krm.functions.catalog.patterns import Pattern, PatternError
from krm.functions.catalog.work_budget import WorkBudget
from krm.package.yaml_reader import MAX_DEPTH

MAX_PATH = 4096
"""Characters of a field path."""
_PATTERN_CHARACTER = 16
"""How many values the work and the memory for one character of a regular expression count as."""
_EACH = "*"
_LAST = "-"
_INDEX = re.compile(r"[0-9]{1,9}")
_BRACKET_END = r"\](?=\.|\Z)"
_PART = re.compile(
    # Brackets inside come in pairs, as in a regular expression's classes, or else the first end counts.
    rf"\[((?:[^\[\]]|\[[^\[\]]*\])*){_BRACKET_END}|\[(.*?){_BRACKET_END}|((?:\\\.|[^.])+)",
    re.DOTALL,
)


class FieldPathError(Exception):
    """A path cannot be read, or leads through something that it cannot be followed in; the text names it."""


@dataclass(frozen=True, slots=True)
class Step:
    """One part of a path: a key, a list index, ``*`` or ``-``; with ``value``, the elements whose field is so."""

    name: str
    value: str | None = None
    literal: bool = False
    """Whether it is a key whatever it looks like."""

    @property
    def index(self) -> int | None:
        """The list index it can stand for."""
        return int(self.name) if not self.literal and _INDEX.fullmatch(self.name) else None

    @property
    def wants_list(self) -> bool:
        """Whether what it is applied to should be created as a list."""
        return self.value is not None or self.index is not None or self.means_elements

    @property
    def means_elements(self) -> bool:
        """Whether it is for elements that are there already."""
        return self.value is None and not self.literal and self.name in (_EACH, _LAST)

    @property
    def can_create(self) -> bool:
        """Whether it leads somewhere in a collection that is created for it."""
        return not self.means_elements and self.index in (None, 0)


@dataclass(slots=True)
class Place:
    """Where a value is, or is to be put."""

    owner: Any
    key: str | int
    path: tuple[str | int, ...]

    @property
    def value(self) -> Any:
        """The value now."""
        return self.owner[self.key]

    def set(self, value: Any) -> None:
        """Replace the value."""
        self.owner[self.key] = value


class ElementPatterns:
    """The regular expressions in the paths of one call, each compiled once."""

    def __init__(self, budget: WorkBudget) -> None:
        self._budget = budget
        self._patterns: dict[str, Pattern] = {}

    def compiled(self, expression: str) -> Pattern:
        """Return the compiled expression.

        Raises:
            FieldPathError: it is no regular expression, or too big.
            BudgetExceeded: there are too many.
        """
        if expression not in self._patterns:
            self._budget.spend(_PATTERN_CHARACTER * len(expression))
            try:
                self._patterns[expression] = Pattern(expression)
            except PatternError as error:
                raise FieldPathError(f"{error} in the fieldPath element [...={expression}]") from None
        return self._patterns[expression]


@lru_cache(maxsize=1024)
def read_path(text: str) -> tuple[Step, ...]:
    r"""Read a path: parts between dots, ``\.`` for a dot, ``[key]`` and ``[key=value]`` taken as a whole.

    Raises:
        FieldPathError: it is too long, or names nothing.
    """
    if len(text) > MAX_PATH:
        raise FieldPathError(f"fieldPath is longer than {MAX_PATH} characters: {text[:80]}...")
    steps = []
    for found in _PART.finditer(text):
        paired, unpaired, plain = found.groups()
        bracket = unpaired if paired is None else paired
        if bracket is None:
            steps.append(Step(plain.replace("\\.", ".")))
        elif "=" in bracket:
            name, _, value = bracket.partition("=")
            steps.append(Step(name.replace("\\.", "."), value))
        else:
            steps.append(Step(bracket.replace("\\.", "."), literal=True))
    if not steps:
        raise FieldPathError(f"fieldPath {text!r} names no field")
    if len(steps) > MAX_DEPTH:
        raise FieldPathError(f"fieldPath has more than {MAX_DEPTH} parts: {text[:80]}...")
    return tuple(steps)


def find_places(
    data: dict[str, Any], steps: Sequence[Step], budget: WorkBudget, *, patterns: ElementPatterns | None, create: bool
) -> list[Place]:
    """Return the places that a path leads to, in order; with ``create``, what is missing is made for them.

    With ``patterns`` a ``[key=value]`` is a regular expression (of the whole text) and stands for all elements
    that match, and indexes past the end are refused; else the first element that is equal counts, and what is
    missing leads nowhere.

    Raises:
        FieldPathError: the path leads into a scalar, names a field of a list, or an index far past its end.
        BudgetExceeded: the way there goes through more than ``budget`` allows.
    """
    if (plain := _plain_place(data, steps)) is not None:
        budget.spend(len(steps))
        return [plain]
    places = [Place([data], 0, ())]
    # Nothing is made where a later step would lead nowhere.
    last_fixed = max((number for number, step in enumerate(steps) if not step.can_create), default=-1)
    for number, step in enumerate(steps):
        walk = _Walk(budget, patterns, create and number >= last_fixed)
        places = [below for place in places for below in walk.below(place, step)]
    return places


def _plain_place(data: dict[str, Any], steps: Sequence[Step]) -> Place | None:
    """Return the place of a path that leads through maps only and is there, as most do."""
    owner: Any = None
    value: Any = data
    for step in steps:
        if not isinstance(value, dict) or step.value is not None or step.name not in value:
            return None
        owner, value = value, value[step.name]
    return Place(owner, steps[-1].name, tuple(step.name for step in steps))


def scalar_text(value: Any) -> str:
    """Return how YAML writes a scalar; strings as they are."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


@dataclass(frozen=True, slots=True)
class _Walk:
    """How to get from a place to those below it."""

    budget: WorkBudget
    patterns: ElementPatterns | None
    create: bool
    """Whether to make what is missing."""

    def below(self, place: Place, step: Step) -> Iterator[Place]:
        self.budget.spend(1)
        if place.value is None:
            if not (self.create and step.can_create):
                return
            place.set([] if step.wants_list else {})
        value = place.value
        if isinstance(value, dict) and step.value is None:
            if step.name in value or self.create:
                value.setdefault(step.name, None)
                yield Place(value, step.name, (*place.path, step.name))
        elif isinstance(value, list) and step.wants_list:
            for index in self._indexes(value, step):
                yield Place(value, index, (*place.path, index))
        else:
            expected = "MappingNode" if step.value is None else "SequenceNode"
            actual = "MappingNode" if isinstance(value, dict) else "ScalarNode"
            actual = "SequenceNode" if isinstance(value, list) else actual
            where = ".".join(map(str, (*place.path, step.name)))
            raise FieldPathError(f"wrong Node Kind for {where} expected: {expected} was {actual}")

    def _indexes(self, elements: list[Any], step: Step) -> Iterable[int]:
        """Return the indexes a step means in a list."""
        if step.value is not None:
            return self._matches(elements, step.name, step.value)
        if step.means_elements:
            return range(len(elements)) if step.name == _EACH else range(len(elements))[-1:]
        index = int(step.name)
        if index == len(elements) and self.create:
            elements.append(None)
        if index < len(elements):
            return (index,)
        if self.patterns is not None:
            raise FieldPathError(f"index {index} specified but only {len(elements)} elements found")
        return ()

    def _matches(self, elements: list[Any], name: str, value: str) -> list[int]:
        found = list(self._matching(elements, name, value))
        if not found and self.create:
            text = value.replace("\\.", ".")
            elements.append({name: text} if name else text)
            return [len(elements) - 1]
        return found

    def _matching(self, elements: list[Any], name: str, value: str) -> Iterator[int]:
        self.budget.spend(len(elements))
        pattern = self.patterns.compiled(value) if self.patterns else None
        wanted = value.replace("\\.", ".")
        for index, element in enumerate(elements):
            text = _field_text(element, name)
            if pattern is None and text == wanted:
                yield index
                return
            if pattern is not None and text is not None:
                self.budget.spend_on_text(text)
                if pattern.is_all_of(text):
                    yield index


def _field_text(element: Any, name: str) -> str | None:
    """Return the text of an element's field, or of the element itself without a name; None when it has none."""
    value = element.get(name) if isinstance(element, dict) and name else None if name else element
    return None if value is None or isinstance(value, (dict, list)) else scalar_text(value)
