"""Evaluates a tree step by step: celpy's evaluator with its nodes corrected, and a budget that it cannot overrun.

What celpy gets wrong and this puts right: it has no bound; it evaluates both sides of ``&&`` and ``||``; its ``has``
swallows errors; macros know neither maps nor a third argument; unknown names print the whole activation.
Source: ``variants.md`` 7.2.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from celpy.evaluation import Activation, Evaluator

from krm.expressions import values
from krm.expressions.errors import CelBudgetError, CelError, CelEvaluationError
from krm.expressions.functions import METHODS, NAMESPACES
from krm.expressions.grammar import Tree
from krm.expressions.macros import MACROS, is_macro
from krm.expressions.names import unescaped
from krm.expressions.values import NONE, OptionalValue, TypeValue, no_overload

_RELATIONS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "relation_lt": values.less,
    "relation_le": lambda left, right: not values.less(right, left),
    "relation_gt": lambda left, right: values.less(right, left),
    "relation_ge": lambda left, right: not values.less(left, right),
    "relation_eq": values.equal,
    "relation_ne": lambda left, right: not values.equal(left, right),
    "relation_in": lambda left, right: values.contains(right, left),
}
_ARITHMETIC: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "addition_add": values.add,
    "addition_sub": values.subtract,
    "multiplication_mul": values.multiply,
    "multiplication_div": values.divide,
    "multiplication_mod": values.remainder,
}
TYPES: Final = {
    name: TypeValue(name)
    for name in ("bool", "bytes", "double", "int", "list", "map", "null_type", "string", "type", "uint")
}
_BULK: Final = 10
"""Characters or items that cost one step when they are copied or compared."""


class Budget:
    """The steps that evaluations may still take; can be shared by many of them."""

    __slots__ = ("left", "total")

    def __init__(self, steps: int) -> None:
        self.total = steps
        self.left = steps

    def spend(self, steps: int) -> None:
        """Take steps.

        Raises:
            CelBudgetError: there are not that many left.
        """
        self.left -= steps
        if self.left < 0:
            raise CelBudgetError(f"operation cancelled: actual cost limit of {self.total} exceeded")


class BoundedEvaluator(Evaluator):
    """Evaluates one tree once."""

    def __init__(
        self, tree: Tree, variables: Mapping[str, Any], budget: Budget, functions: Mapping[str, Callable[..., Any]]
    ) -> None:
        super().__init__(tree, _NO_ACTIVATION)
        self._variables = dict(variables)
        self._budget = budget
        self._functions = functions

    def run(self) -> Any:
        """Return the value of the tree.

        Raises:
            CelEvaluationError: it has none.
            CelBudgetError: the budget is spent.
        """
        try:
            return self.visit(self.ast)
        except RecursionError as error:
            raise CelBudgetError("values are nested too deep") from error

    def visit(self, tree: Tree) -> Any:
        self._budget.spend(1)
        return getattr(self, tree.data)(tree)

    def constant(self, tree: Tree) -> Any:
        return tree.children[0]

    def ident(self, tree: Tree) -> Any:
        name = tree.children[0].value
        try:
            return self._variables[name]
        except KeyError:
            if name in TYPES:
                return TYPES[name]
            raise CelEvaluationError(f"undeclared reference to '{name}'") from None

    dot_ident = ident

    def expr(self, tree: Tree) -> Any:
        condition = self.visit(tree.children[0])
        if not isinstance(condition, bool):
            raise no_overload()
        return self.visit(tree.children[1 if condition else 2])

    def conditionalor(self, tree: Tree) -> bool:
        return self.decided((partial(self.visit, child) for child in tree.children), by=True)

    def conditionaland(self, tree: Tree) -> bool:
        return self.decided((partial(self.visit, child) for child in tree.children), by=False)

    def decided(self, operands: Iterator[Callable[[], Any]], *, by: bool) -> bool:
        """Evaluate until an operand decides; an error counts only if none does."""
        failed: CelError | None = None
        for operand in operands:
            try:
                value = operand()
                if not isinstance(value, bool):
                    raise no_overload()
            except CelEvaluationError as error:
                failed = failed or error
            else:
                if value is by:
                    return by
        if failed is not None:
            raise failed
        return not by

    def relation(self, tree: Tree) -> bool:
        operator, right_tree = tree.children
        left, right = self.visit(operator.children[0]), self.visit(right_tree)
        self._spend_on(left, right)
        return _RELATIONS[operator.data](left, right)

    def addition(self, tree: Tree) -> Any:
        operator, right_tree = tree.children
        left, right = self.visit(operator.children[0]), self.visit(right_tree)
        self._spend_on(left, right)
        return _ARITHMETIC[operator.data](left, right)

    multiplication = addition

    def _spend_on(self, *operands: Any) -> None:
        for value in operands:
            if isinstance(value, str | bytes | list | dict):
                self._budget.spend(len(value) // _BULK)

    def unary(self, tree: Tree) -> Any:
        operator, operand = tree.children
        value = self.visit(operand)
        if operator.data == "unary_neg":
            return values.negate(value)
        if not isinstance(value, bool):
            raise no_overload()
        return not value

    def member_dot(self, tree: Tree) -> Any:
        return _member(self.visit(tree.children[0]), tree.children[1].value)

    def member_optional_dot(self, tree: Tree) -> OptionalValue:
        return _optional_member(self.visit(tree.children[0]), unescaped(tree.children[1].value))

    def member_index(self, tree: Tree) -> Any:
        return _item(self.visit(tree.children[0]), self.visit(tree.children[1]))

    def member_optional_index(self, tree: Tree) -> OptionalValue:
        return _optional_member(self.visit(tree.children[0]), self.visit(tree.children[1]))

    def list_lit(self, tree: Tree) -> list[Any]:
        return [self.visit(child) for part in tree.children for child in part.children]

    def map_lit(self, tree: Tree) -> dict[Any, Any]:
        parts = [child for part in tree.children for child in part.children]
        made: dict[Any, Any] = {}
        for key_tree, value_tree in zip(parts[::2], parts[1::2], strict=True):
            key = self.visit(key_tree)
            if not isinstance(key, str | int | bool):
                raise CelEvaluationError(f"unsupported key type: {values.type_name(key)}")
            if key in made:
                raise CelEvaluationError(f"Failed with repeated key: {key}")
            made[key] = self.visit(value_tree)
        return made

    def ident_arg(self, tree: Tree) -> Any:
        name = tree.children[0].value
        arguments = tree.children[1].children if len(tree.children) > 1 else []
        if name == "has":
            return self._has(arguments)
        return self._call(self._functions, name, [self.visit(argument) for argument in arguments])

    dot_ident_arg = ident_arg

    def _has(self, arguments: list[Tree]) -> bool:
        selection = arguments[0]
        owner, name = self.visit(selection.children[0]), unescaped(selection.children[1].value)
        if isinstance(owner, OptionalValue):
            return _optional_member(owner, name).present
        if not isinstance(owner, dict):
            raise no_overload()
        return name in owner

    def member_dot_arg(self, tree: Tree) -> Any:
        owner_tree, token = tree.children[:2]
        name = token.value
        arguments = tree.children[2].children if len(tree.children) > 2 else []  # noqa: PLR2004 - owner, name, arguments
        if name in MACROS and is_macro(name, arguments):
            return MACROS[name](self, self.visit(owner_tree), arguments)
        if owner_tree.data == "ident" and (space := owner_tree.children[0].value) in NAMESPACES:
            return self._call(NAMESPACES[space], name, [self.visit(argument) for argument in arguments])
        owner = self.visit(owner_tree)
        return self._call(METHODS, name, [owner, *(self.visit(argument) for argument in arguments)])

    def member_object(self, _tree: Tree) -> Any:
        raise CelEvaluationError("messages cannot be made here")

    def _call(self, table: Mapping[str, Callable[..., Any]], name: str, arguments: list[Any]) -> Any:
        function = table.get(name)
        if function is None:
            raise CelEvaluationError(f"undeclared reference to '{name}'")
        self._spend_on(*arguments)
        try:
            result = function(*arguments)
        except (TypeError, AttributeError, ValueError, OverflowError) as error:
            raise no_overload() from error
        self._spend_on(result)
        return result

    def scoped(self, names: list[str], body: Tree) -> Callable[..., Any]:
        """Return a function of the loop variables ``names`` that evaluates ``body``."""
        outer = self._variables

        def evaluate(*items: Any) -> Any:
            self._variables = {**outer, **dict(zip(names, items, strict=True))}
            try:
                return self.visit(body)
            finally:
                self._variables = outer

        return evaluate


_NO_ACTIVATION: Final = Activation()


def _member(owner: Any, written: str) -> Any:
    if isinstance(owner, OptionalValue):
        return _optional_member(owner, unescaped(written))
    if not isinstance(owner, dict):
        raise no_overload()
    name = unescaped(written)
    if name not in owner:
        raise CelEvaluationError(f"no such key: {name}")
    return owner[name]


def _item(owner: Any, key: Any) -> Any:
    if isinstance(owner, OptionalValue):
        return _optional_member(owner, key)
    if isinstance(owner, dict) and isinstance(key, str | int | bool):
        if key not in owner:
            raise CelEvaluationError(f"no such key: {key}")
        return owner[key]
    if isinstance(owner, list) and isinstance(key, int) and not isinstance(key, bool):
        if not 0 <= key < len(owner):
            raise CelEvaluationError(f"index out of bounds: {key}")
        return owner[key]
    raise no_overload()


def _optional_member(owner: Any, key: Any) -> OptionalValue:
    if isinstance(owner, OptionalValue):
        return _optional_member(owner.value, key) if owner.present else NONE
    try:
        return OptionalValue(_item(owner, key), present=True)
    except CelEvaluationError:
        if isinstance(owner, dict | list):
            return NONE
        raise
