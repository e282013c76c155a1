"""CEL expressions: compiled once, evaluated often, within a budget of steps.

For validation rules of custom resources and for the templates of package variant sets.
Source: ``kube-api.md`` 2.15, ``variants.md`` 7.2.
"""

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any, Final

from krm.expressions.check import check
from krm.expressions.errors import CelBudgetError, CelError, CelEvaluationError, CelSyntaxError
from krm.expressions.evaluation import BoundedEvaluator, Budget
from krm.expressions.grammar import Tree, parse
from krm.expressions.types import DYN, Type

__all__ = [
    "MAX_STEPS",
    "Budget",
    "CelBudgetError",
    "CelError",
    "CelEvaluationError",
    "CelSyntaxError",
    "Expression",
    "compile_expression",
]

MAX_STEPS: Final = 100_000
"""Steps of one evaluation, about a microsecond each, unless the caller brings a budget."""


class Expression:
    """A compiled expression; safe to share between threads."""

    __slots__ = ("_tree", "names", "result", "text")

    def __init__(self, text: str, tree: Tree, names: frozenset[str], result: Type) -> None:
        self.text = text
        self._tree = tree
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
        return BoundedEvaluator(self._tree, variables, budget or Budget(MAX_STEPS)).run()


def compile_expression(text: str, variables: Collection[str], types: Mapping[str, Type] | None = None) -> Expression:
    """Compile an expression that may refer to ``variables``, by name; ``types`` tells what is known of them.

    Raises:
        CelSyntaxError: it does not parse, names what there is not, or applies an operator or a function to types it
            does not take; too long and too deep are errors too.
    """
    tree = _parsed(text)
    try:
        names, result = check(tree, text, dict.fromkeys(variables, DYN) | dict(types or {}))
    except RecursionError as error:
        raise CelSyntaxError("expression recursion limit exceeded") from error
    return Expression(text, tree, names, result)


@lru_cache(maxsize=2048)
def _parsed(text: str) -> Tree:
    return parse(text)
