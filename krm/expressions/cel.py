"""CEL expressions: compiled once, evaluated often, within a budget of steps.

For validation rules of custom resources and for the templates of package variant sets.
Source: ``kube-api.md`` 2.15, ``variants.md`` 7.2.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from krm.expressions import functions as standard
from krm.expressions import signatures
from krm.expressions.check import check
from krm.expressions.errors import CelBudgetError, CelError, CelEvaluationError, CelSyntaxError
from krm.expressions.evaluation import BoundedEvaluator, Budget
from krm.expressions.grammar import Tree, parse
from krm.expressions.paths import Path, accessed_paths, is_path, nested_loops
from krm.expressions.types import DYN, Type

__all__ = [
    "MAX_STEPS",
    "Budget",
    "CelBudgetError",
    "CelError",
    "CelEvaluationError",
    "CelSyntaxError",
    "Expression",
    "Function",
    "compile_expression",
]

MAX_STEPS: Final = 100_000
"""Steps of one evaluation, about a microsecond each, unless the caller brings a budget."""


@dataclass(frozen=True, slots=True)
class Function:
    """A function that some expressions have besides those that all have."""

    signatures: tuple[signatures.Signature, ...]
    call: Callable[..., Any]
    """Raises CelEvaluationError for arguments that it has no value for."""


class Expression:
    """A compiled expression; safe to share between threads."""

    __slots__ = ("_functions", "_tree", "names", "result", "text")

    def __init__(
        self,
        text: str,
        tree: Tree,
        names: frozenset[str],
        result: Type,
        functions: Mapping[str, Callable[..., Any]] = standard.FUNCTIONS,
    ) -> None:
        self.text = text
        self._tree = tree
        self._functions = functions
        self.names = names
        """The variables that it refers to."""
        self.result = result
        """The type of its value; ``dyn`` where that is not known before."""

    def evaluate(self, variables: Mapping[str, Any], budget: Budget | None = None) -> Any:
        """Return the expression's value, made of plain Python values; ``variables`` are too, and are not changed.

        Raises:
            CelEvaluationError: it has no value for these variables.
            CelBudgetError: it takes more steps than the budget has left.
        """
        return BoundedEvaluator(self._tree, variables, budget or Budget(MAX_STEPS), self._functions).run()

    def paths(self) -> tuple[Path, ...] | None:
        """Return what of the variables decides the value; None where that is not known before (``paths.accessed_paths``)."""
        return accessed_paths(self._tree)

    @property
    def is_path(self) -> bool:
        """Whether the value is what a path leads to: ``target.name``."""
        return is_path(self._tree)

    def nested_loops(self) -> int:
        """Return how many loops (``map``, ``all``, …) stand inside one another."""
        return nested_loops(self._tree)


def compile_expression(
    text: str,
    variables: Collection[str],
    types: Mapping[str, Type] | None = None,
    functions: Mapping[str, Function] | None = None,
) -> Expression:
    """Compile an expression that may refer to ``variables``, by name; ``types`` tells what is known of them.

    ``functions`` are those that it has besides the standard ones.

    Raises:
        CelSyntaxError: it does not parse, names what there is not, or applies an operator or a function to types it
            does not take; too long and too deep are errors too.
    """
    tree = _parsed(text)
    known, calls = signatures.FUNCTIONS, standard.FUNCTIONS
    if functions:
        known = {**known, **{name: function.signatures for name, function in functions.items()}}
        calls = {**calls, **{name: function.call for name, function in functions.items()}}
    try:
        names, result = check(tree, text, dict.fromkeys(variables, DYN) | dict(types or {}), known)
    except RecursionError as error:
        raise CelSyntaxError("expression recursion limit exceeded") from error
    return Expression(text, tree, names, result, calls)


@lru_cache(maxsize=2048)
def _parsed(text: str) -> Tree:
    return parse(text)
