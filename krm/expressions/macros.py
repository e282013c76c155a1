"""The macros of CEL: loops over lists and maps, with one variable, or with index (key) and value."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final, Protocol

from krm.expressions.grammar import Tree
from krm.expressions.values import no_overload


class Loops(Protocol):
    """What macros need of the evaluator that they run in."""

    def scoped(self, names: list[str], body: Tree) -> Callable[..., Any]:
        """Return a function of the loop variables that evaluates ``body``."""

    def decided(self, operands: Iterator[Callable[[], Any]], *, by: bool) -> bool:
        """Evaluate until an operand decides."""


Macro = Callable[[Loops, Any, list[Tree]], Any]


def is_macro(name: str, arguments: list[Tree]) -> bool:
    """Tell whether a call is a macro: its first arguments name variables."""
    fewest, most = _ARITY[name]
    return fewest <= len(arguments) <= most and arguments[0].data == "ident"


def loop_variables(name: str, arguments: list[Tree]) -> list[str]:
    """Return the variables that a macro binds: one, or index (key) and value."""
    two = name in _TRANSFORMS or (len(arguments) == _WITH_INDEX and name not in _ONE and arguments[1].data == "ident")
    return [argument.children[0].value for argument in arguments[: 2 if two else 1]]


_WITH_INDEX: Final = 3
"""Arguments of a macro that has two variables."""
_ONE: Final = ("map", "filter")
_TRANSFORMS: Final = ("transformList", "transformMap")
_ARITY: Final = {
    "all": (2, 3),
    "exists": (2, 3),
    "exists_one": (2, 3),
    "existsOne": (2, 3),
    "map": (2, 3),
    "filter": (2, 2),
    "transformList": (3, 4),
    "transformMap": (3, 4),
}


def _rounds(owner: Any, two: bool) -> list[tuple[Any, ...]]:
    if isinstance(owner, list):
        return list(enumerate(owner)) if two else [(item,) for item in owner]
    if isinstance(owner, dict):
        return list(owner.items()) if two else [(key,) for key in owner]
    raise no_overload()


def _looped(
    evaluator: Loops, owner: Any, name: str, arguments: list[Tree]
) -> tuple[Callable[..., Any], list[tuple[Any, ...]]]:
    names = loop_variables(name, arguments)
    return evaluator.scoped(names, arguments[-1]), _rounds(owner, two=len(names) == 2)  # noqa: PLR2004 - key and value


def _quantifier(name: str, *, by: bool) -> Macro:
    def macro(evaluator: Loops, owner: Any, arguments: list[Tree]) -> bool:
        body, rounds = _looped(evaluator, owner, name, arguments)
        return evaluator.decided((partial(body, *items) for items in rounds), by=by)

    return macro


def _exists_one(evaluator: Loops, owner: Any, arguments: list[Tree]) -> bool:
    body, rounds = _looped(evaluator, owner, "exists_one", arguments)
    return sum(_truth(body(*items)) for items in rounds) == 1


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise no_overload()
    return value


def _filter(evaluator: Loops, owner: Any, arguments: list[Tree]) -> list[Any]:
    body, rounds = _looped(evaluator, owner, "filter", arguments)
    return [items[0] for items in rounds if _truth(body(*items))]


def _map(evaluator: Loops, owner: Any, arguments: list[Tree]) -> list[Any]:
    body, rounds = _looped(evaluator, owner, "map", arguments)
    return [body(*items) for items in _chosen(evaluator, arguments, 1, rounds)]


def _transform_list(evaluator: Loops, owner: Any, arguments: list[Tree]) -> list[Any]:
    body, rounds = _transformed(evaluator, owner, arguments)
    return [body(*items) for items in rounds]


def _transform_map(evaluator: Loops, owner: Any, arguments: list[Tree]) -> dict[Any, Any]:
    body, rounds = _transformed(evaluator, owner, arguments)
    return {items[0]: body(*items) for items in rounds}


def _transformed(
    evaluator: Loops, owner: Any, arguments: list[Tree]
) -> tuple[Callable[..., Any], list[tuple[Any, ...]]]:
    names = [argument.children[0].value for argument in arguments[:2]]
    return evaluator.scoped(names, arguments[-1]), _chosen(evaluator, arguments, 2, _rounds(owner, two=True))


def _chosen(
    evaluator: Loops, arguments: list[Tree], bound: int, rounds: list[tuple[Any, ...]]
) -> list[tuple[Any, ...]]:
    """Return the rounds that the optional filter, the argument before the last, lets pass."""
    if len(arguments) == bound + 1:
        return rounds
    wanted = evaluator.scoped([argument.children[0].value for argument in arguments[:bound]], arguments[bound])
    return [items for items in rounds if _truth(wanted(*items))]


MACROS: Final[Mapping[str, Macro]] = {
    "all": _quantifier("all", by=False),
    "exists": _quantifier("exists", by=True),
    "exists_one": _exists_one,
    "existsOne": _exists_one,
    "map": _map,
    "filter": _filter,
    "transformList": _transform_list,
    "transformMap": _transform_map,
}
