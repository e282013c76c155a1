"""The steps that a JSONPath is made of: each takes the values found so far to the values it leads to.

Parsing is in ``jsonpath.py``.
"""

import re
from collections.abc import Callable, Iterable
from typing import Any, Final

MAX_VALUES: Final = 50_000
"""Values that one evaluation may produce on its way; recursive descents inside one another multiply."""
_SLICE: Final = re.compile(r"(-?[0-9]*)(:-?[0-9]*)?(:-?[0-9]*)?", re.ASCII)
_INDEX_DIGITS: Final = 18


class JsonPathError(ValueError):
    """The path cannot be parsed, or does not fit the object that it is evaluated on."""


class Budget:
    """Counts the values of one evaluation."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = MAX_VALUES

    def spend(self, values: list[Any]) -> list[Any]:
        self.left -= len(values) + 1
        if self.left < 0:
            raise JsonPathError(f"the path touches more than {MAX_VALUES} values")
        return values


Step = Callable[[list[Any], Budget], list[Any]]


def run(steps: Iterable[Step], values: list[Any], budget: Budget) -> list[Any]:
    """Apply the steps one after another.

    Raises:
        JsonPathError: a step does not fit its values, or the budget is spent.
    """
    for step in steps:
        values = budget.spend(step(values, budget))
    return values


def constant(value: str | float | bool) -> Step:
    """Lead every value to the same constant: the right side of a comparison."""
    return lambda values, _budget: [value] * len(values)


def child(name: str) -> Step:
    """Lead an object to its member; what has no such member leads nowhere."""

    def step(values: list[Any], _budget: Budget) -> list[Any]:
        return [value[name] for value in values if isinstance(value, dict) and name in value]

    return step


def _below(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def every(values: list[Any], _budget: Budget) -> list[Any]:
    """Lead objects and lists to all that is in them."""
    return [below for value in values for below in _below(value)]


def descendants(values: list[Any], budget: Budget) -> list[Any]:
    """Return every container at and below ``values``; empty ones and scalars have no children to ask for."""
    found: list[Any] = []
    waiting = values[::-1]
    while waiting:
        value = waiting.pop()
        if below := _below(value):
            found.append(value)
            waiting += budget.spend(below)[::-1]
    return found


def union(members: list[list[Step]]) -> Step:
    """Lead to what the members lead to, member by member."""
    return lambda values, budget: [found for member in members for found in run(member, values, budget)]


def index(text: str) -> Step:
    """Read the inside of brackets as an index or a slice; negative ones count from the end.

    Raises:
        JsonPathError: it is neither.
    """
    match = _SLICE.fullmatch(text)
    if match is None or not text:
        raise JsonPathError(f"invalid array index {text!r}")
    start, end, step = (_bound(group) for group in match.groups())
    if match[2] is None:
        return _single(start or 0)
    return span(start, end, step)


def _bound(group: str | None) -> int | None:
    digits = (group or "").removeprefix(":")
    if len(digits) > _INDEX_DIGITS or digits == "-":
        raise JsonPathError(f"invalid array index {digits[:32]!r}")
    return int(digits) if digits else None


def _list_of(value: Any, use: str) -> list[Any]:
    if not isinstance(value, list):
        raise JsonPathError(f"{type(value).__name__} is not a list and cannot be {use}")
    return value


def _single(index: int) -> Step:
    def step(values: list[Any], _budget: Budget) -> list[Any]:
        found: list[Any] = []
        for value in values:
            if value is not None:
                items = _list_of(value, "indexed")
                if not -len(items) <= index < len(items):
                    raise JsonPathError(f"index {index} is out of the bounds of a list of {len(items)}")
                found.append(items[index])
        return found

    return step


def span(start: int | None, end: int | None, step: int | None) -> Step:
    """Lead lists to their items from ``start`` up to, without, ``end``.

    Raises:
        JsonPathError: the step is not above 0.
    """
    if step is not None and step <= 0:
        raise JsonPathError("the step of a slice must be above 0")

    last = end - 1 if end is not None and end > 0 else end
    touched = [position for position in (start, last) if position is not None]

    def part(items: list[Any]) -> list[Any]:
        for position in touched:
            if not -len(items) <= position < len(items):
                raise JsonPathError(f"index {position} is out of the bounds of a list of {len(items)}")
        return items[start:end:step]

    def apply(values: list[Any], _budget: Budget) -> list[Any]:
        return [item for value in values if value is not None for item in part(_list_of(value, "sliced"))]

    return apply


def having(test: list[Step]) -> Step:
    """Lead lists to their items for which the test leads anywhere."""

    def step(values: list[Any], budget: Budget) -> list[Any]:
        return [item for value in values for item in _list_of(value, "filtered") if run(test, [item], budget)]

    return step


def where(left: list[Step], operator: str, right: list[Step]) -> Step:
    """Lead lists to their items that have the left value and for which the comparison holds."""
    compare = OPERATORS[operator]

    def holds(item: Any, budget: Budget) -> bool:
        lefts = run(left, [item], budget)
        if not lefts:
            return False
        rights = run(right, [item], budget)
        if len(lefts) > 1 or len(rights) > 1:
            raise JsonPathError("a filter compares one value with one value")
        return bool(rights) and compare(*_comparable(lefts[0], rights[0], operator))

    def step(values: list[Any], budget: Budget) -> list[Any]:
        return [item for value in values for item in _list_of(value, "filtered") if holds(item, budget)]

    return step


def _comparable(left: Any, right: Any, operator: str) -> tuple[Any, Any]:
    """Return both values; as in Kubernetes, an integer, a fraction, a text and a truth value are four worlds."""
    kind = type(left)
    ordered = operator not in ("==", "!=")
    if kind is not type(right) or kind not in ((int, float, str) if ordered else (int, float, str, bool)):
        raise JsonPathError(f"{type(left).__name__} and {type(right).__name__} cannot be compared with {operator}")
    return left, right


OPERATORS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": lambda left, right: bool(left == right),
    "!=": lambda left, right: bool(left != right),
    "<": lambda left, right: bool(left < right),
    "<=": lambda left, right: bool(left <= right),
    ">": lambda left, right: bool(left > right),
    ">=": lambda left, right: bool(left >= right),
}
