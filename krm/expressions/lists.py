"""Functions on lists."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from krm.expressions.errors import CelEvaluationError
from krm.expressions.values import add, equal, less, no_overload

MAX_JOINED: Final = 1024 * 1024
"""Characters that joining may make."""


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise no_overload()
    return value


def index_of(items: list[Any], wanted: Any) -> int:
    """Return where a value first stands; -1 if nowhere."""
    return next((at for at, item in enumerate(_list(items)) if equal(item, wanted)), -1)


def last_index_of(items: list[Any], wanted: Any) -> int:
    """Return where a value last stands; -1 if nowhere."""
    return next((at for at in reversed(range(len(_list(items)))) if equal(items[at], wanted)), -1)


def _is_sorted(items: list[Any]) -> bool:
    return not any(less(after, before) for before, after in zip(_list(items), items[1:], strict=False))


def _sum(items: list[Any]) -> Any:
    if not _list(items):
        return 0
    total = items[0]
    for item in items[1:]:
        total = add(total, item)
    return total


def _least(items: list[Any]) -> Any:
    return _extreme(items, less, "min")


def _greatest(items: list[Any]) -> Any:
    return _extreme(items, lambda left, right: less(right, left), "max")


def _extreme(items: list[Any], before: Callable[[Any, Any], bool], name: str) -> Any:
    if not _list(items):
        raise CelEvaluationError(f"{name} called on empty list")
    best = items[0]
    for item in items[1:]:
        if before(item, best):
            best = item
    return best


def _join(items: list[Any], separator: Any = "") -> str:
    if not isinstance(separator, str) or not all(isinstance(item, str) for item in _list(items)):
        raise no_overload()
    if sum(len(item) + len(separator) for item in items) > MAX_JOINED:
        raise CelEvaluationError(f"a text of more than {MAX_JOINED} characters is too long")
    return separator.join(items)


METHODS: Final[Mapping[str, Callable[..., Any]]] = {
    "isSorted": _is_sorted,
    "sum": _sum,
    "min": _least,
    "max": _greatest,
    "join": _join,
}
