"""Checks a tree before it is evaluated: names that there are not, fields that an object has not, operators on wrong types.

What celpy does not do at all; the words are cel-go's, as far as users meet them. Only the first problem is reported.
Source: ``variants.md`` 7.2.
"""

from collections.abc import Mapping
from typing import Final

from krm.expressions import signatures
from krm.expressions.errors import CelEvaluationError, CelSyntaxError
from krm.expressions.evaluation import TYPES
from krm.expressions.grammar import Tree
from krm.expressions.macros import MACROS, is_macro, loop_variables
from krm.expressions.texts import pattern
from krm.expressions.types import BOOL, DOUBLE, DYN, INT, NULL, STRING, Type, accepts, joined
from krm.expressions.values import Uint

_OPERATORS: Final[Mapping[str, str]] = {
    "relation_lt": "<",
    "relation_le": "<=",
    "relation_gt": ">",
    "relation_ge": ">=",
    "relation_eq": "==",
    "relation_ne": "!=",
    "relation_in": "in",
    "addition_add": "+",
    "addition_sub": "-",
    "multiplication_mul": "*",
    "multiplication_div": "/",
    "multiplication_mod": "%",
}
_ORDERED: Final = ("bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration")
_NUMBERS: Final = ("int", "uint", "double")
_ARITHMETIC: Final[Mapping[str, tuple[str, ...]]] = {
    "+": (*_NUMBERS, "string", "bytes", "list", "duration"),
    "-": (*_NUMBERS, "timestamp", "duration"),
    "*": _NUMBERS,
    "/": _NUMBERS,
    "%": ("int", "uint"),
}
_MIXED: Final[Mapping[tuple[str, str, str], str]] = {
    ("timestamp", "+", "duration"): "timestamp",
    ("duration", "+", "timestamp"): "timestamp",
    ("timestamp", "-", "duration"): "timestamp",
    ("timestamp", "-", "timestamp"): "duration",
}
_LITERALS: Final[Mapping[type, Type]] = {
    bool: BOOL,
    int: INT,
    Uint: Type("uint"),
    float: DOUBLE,
    str: STRING,
    bytes: Type("bytes"),
    type(None): NULL,
}


def check(
    tree: Tree, text: str, variables: Mapping[str, Type], functions: Mapping[str, tuple[signatures.Signature, ...]]
) -> tuple[frozenset[str], Type]:
    """Return the variables that a tree refers to, and the type of its value; ``functions`` are those that are no methods.

    Raises:
        CelSyntaxError: something in it cannot be, whatever the values.
    """
    checker = _Checker(text, variables, functions)
    result = checker.type_of(tree)
    return frozenset(checker.used), result


class _Checker:
    def __init__(
        self, text: str, variables: Mapping[str, Type], functions: Mapping[str, tuple[signatures.Signature, ...]]
    ) -> None:
        self._text = text
        self._functions = functions
        self._scope = dict(variables)
        self._globals = variables
        self.used: set[str] = set()

    def type_of(self, tree: Tree) -> Type:
        found: Type = getattr(self, f"_{tree.data}")(tree)
        return found

    def _fail(self, message: str, at: int) -> CelSyntaxError:
        """Return the error at a position, counted from 0."""
        before = self._text[:at]
        return CelSyntaxError(message, before.count("\n") + 1, at - (before.rfind("\n") + 1) + 1)

    def _mismatch(self, operator: str, shown: str, at: int) -> CelSyntaxError:
        return self._fail(f"found no matching overload for '{operator}' applied to '{shown}'", at)

    def _position(self, tree: Tree) -> int:
        """Return where cel-go says that a tree is: at its operator, its dot or its opening bracket."""
        if tree.data in ("member_dot", "member_optional_dot"):
            return int(tree.children[1].start_pos) - 1
        if tree.data in ("ident_arg", "dot_ident_arg", "member_dot_arg"):
            token = tree.children[0] if tree.data != "member_dot_arg" else tree.children[1]
            return self._after(token.end_pos, "(")
        if tree.data in ("relation", "addition", "multiplication"):
            operator = tree.children[0]
            return self._after(_end(operator.children[0]), _OPERATORS[operator.data])
        if tree.data == "member_index":
            return self._after(_end(tree.children[0]), "[")
        return getattr(tree.meta, "start_pos", 0) or 0

    def _after(self, at: int, symbol: str) -> int:
        found = self._text.find(symbol, at)
        return found if found >= 0 else at

    def _constant(self, tree: Tree) -> Type:
        return _LITERALS[type(tree.children[0])]

    def _ident(self, tree: Tree) -> Type:
        name = tree.children[0].value
        if name in self._scope:
            if self._scope[name] is self._globals.get(name):
                self.used.add(name)
            return self._scope[name]
        if name in TYPES:
            return Type("type")
        raise self._undeclared(name, tree.children[0].start_pos)

    _dot_ident = _ident

    def _undeclared(self, name: str, at: int) -> CelSyntaxError:
        return self._fail(f"undeclared reference to '{name}' (in container '')", at)

    def _expr(self, tree: Tree) -> Type:
        condition, yes, no = (self.type_of(child) for child in tree.children)
        if not accepts(BOOL, condition) or not (accepts(yes, no) or accepts(no, yes)):
            at = self._after(_end(tree.children[0]), "?")
            raise self._mismatch("_?_:_", f"({condition}, {yes}, {no})", at)
        return joined(yes, no)

    def _conditionalor(self, tree: Tree) -> Type:
        for child in tree.children:
            if not accepts(BOOL, found := self.type_of(child)):
                raise self._fail(f"expected type 'bool' but found '{found}'", self._position(child))
        return BOOL

    _conditionaland = _conditionalor

    def _relation(self, tree: Tree) -> Type:
        operator, right_tree = tree.children
        symbol = _OPERATORS[operator.data]
        left, right = self.type_of(operator.children[0]), self.type_of(right_tree)
        if symbol == "in":
            fits = accepts(Type("list", left), right) or (accepts(Type("map"), right) and accepts(STRING, left))
        elif symbol in ("==", "!="):
            fits = accepts(left, right) or accepts(right, left)
        else:
            both = {left.name, right.name}
            fits = both <= {*_ORDERED, "dyn"} and (both <= {*_NUMBERS, "dyn"} or accepts(left, right))
        if not fits:
            name = "@in" if symbol == "in" else f"_{symbol}_"
            raise self._mismatch(name, f"({left}, {right})", self._position(tree))
        return BOOL

    def _addition(self, tree: Tree) -> Type:
        operator, right_tree = tree.children
        symbol = _OPERATORS[operator.data]
        left, right = self.type_of(operator.children[0]), self.type_of(right_tree)
        if "dyn" in (left.name, right.name):
            return DYN
        if mixed := _MIXED.get((left.name, symbol, right.name)):
            return Type(mixed)
        if left.name != right.name or left.name not in _ARITHMETIC[symbol] or not accepts(left, right):
            raise self._mismatch(f"_{symbol}_", f"({left}, {right})", self._position(tree))
        return left

    _multiplication = _addition

    def _unary(self, tree: Tree) -> Type:
        operator, operand = tree.children
        found = self.type_of(operand)
        negates = operator.data == "unary_neg"
        if not (found.name in ("int", "double", "dyn") if negates else accepts(BOOL, found)):
            raise self._mismatch("-_" if negates else "!_", f"({found})", self._position(tree))
        return found if negates else BOOL

    def _member_dot(self, tree: Tree) -> Type:
        owner, token = self.type_of(tree.children[0]), tree.children[1]
        return self._member(owner, token.value, token.start_pos - 1)

    def _member(self, owner: Type, written: str, at: int) -> Type:
        if owner.name == "optional_type":
            return Type("optional_type", self._member(owner.item or DYN, written, at))
        if owner.name == "dyn":
            return DYN
        if owner.name == "map":
            return owner.item or DYN
        if owner.members is None:
            raise self._fail(f"type '{owner}' does not support field selection", at)
        found = owner.members(written)
        if found is None:
            raise self._fail(f"undefined field '{written}'", at)
        return found

    def _member_optional_dot(self, tree: Tree) -> Type:
        return Type("optional_type", _required(self._member_dot(tree)))

    def _member_index(self, tree: Tree) -> Type:
        owner, key = self.type_of(tree.children[0]), self.type_of(tree.children[1])
        inner = owner.item or DYN if owner.name == "optional_type" else owner
        if not (
            inner.name == "dyn"
            or (inner.name == "list" and accepts(INT, key))
            or (inner.name == "map" and accepts(STRING, key))
        ):
            raise self._mismatch("_[_]", f"({owner}, {key})", self._position(tree))
        found = inner.item or DYN
        return Type("optional_type", found) if owner.name == "optional_type" else found

    def _member_optional_index(self, tree: Tree) -> Type:
        return Type("optional_type", _required(self._member_index(tree)))

    def _list_lit(self, tree: Tree) -> Type:
        found = [self.type_of(child) for part in tree.children for child in part.children]
        return Type("list", _common(found))

    def _map_lit(self, tree: Tree) -> Type:
        parts = [self.type_of(child) for part in tree.children for child in part.children]
        return Type("map", _common(parts[1::2]))

    def _ident_arg(self, tree: Tree) -> Type:
        name = tree.children[0].value
        arguments = tree.children[1].children if len(tree.children) > 1 else []
        if name == "has":
            return self._has(tree, arguments)
        return self._call(tree, name, self._functions.get(name), [self.type_of(one) for one in arguments], "")

    _dot_ident_arg = _ident_arg

    def _has(self, tree: Tree, arguments: list[Tree]) -> Type:
        if len(arguments) != 1 or arguments[0].data != "member_dot":
            at = self._position(arguments[0]) if arguments else self._position(tree)
            raise self._fail("invalid argument to has() macro", at)
        owner, token = self.type_of(arguments[0].children[0]), arguments[0].children[1]
        self._member(owner, token.value, self._position(tree))
        return BOOL

    def _member_dot_arg(self, tree: Tree) -> Type:
        owner_tree, token = tree.children[:2]
        arguments = tree.children[2].children if len(tree.children) > 2 else []  # noqa: PLR2004 - owner, name, arguments
        name = token.value
        if name in MACROS and is_macro(name, arguments):
            return self._macro(tree, name, arguments)
        if owner_tree.data == "ident" and (space := owner_tree.children[0].value) not in self._scope:
            table = signatures.NAMESPACES.get(space)
            if table is not None:
                given = [self.type_of(argument) for argument in arguments]
                return self._call(tree, name, table.get(name), given, f"{space}.")
        owner = self.type_of(owner_tree)
        known = signatures.METHODS.get(name)
        if known is None:
            raise self._undeclared(name, self._position(tree))
        given = [owner, *(self.type_of(argument) for argument in arguments)]
        if name in ("matches", "find", "findAll") and arguments and arguments[0].data == "constant":
            self._check_pattern(arguments[0], name)
        return self._call(tree, name, known, given, "")

    def _check_pattern(self, argument: Tree, name: str) -> None:
        if isinstance(argument.children[0], str):
            try:
                pattern(argument.children[0])
            except CelEvaluationError as error:
                raise self._fail(f"invalid {name} argument", self._position(argument)) from error

    def _call(
        self, tree: Tree, name: str, known: tuple[signatures.Signature, ...] | None, given: list[Type], space: str
    ) -> Type:
        if known is None:
            raise self._undeclared(space + name, self._position(tree))
        found = signatures.result_of(name, known, given)
        if found is None:
            method = tree.data == "member_dot_arg" and not space
            rest = ", ".join(map(str, given[1:] if method else given))
            shown = f"{given[0]}.({rest})" if method else f"({rest})"
            raise self._mismatch(space + name, shown, self._position(tree))
        return found

    def _macro(self, tree: Tree, name: str, arguments: list[Tree]) -> Type:
        owner = self.type_of(tree.children[0])
        if owner.name not in ("list", "map", "dyn"):
            message = f"expression of type '{owner}' cannot be range of a comprehension (must be list, map, or dynamic)"
            raise self._fail(message, self._position(tree.children[0]))
        variables = loop_variables(name, arguments)
        outer = self._scope
        self._scope = {**outer, **_bound(owner, variables)}
        found = [self.type_of(body) for body in arguments[len(variables) :]]
        self._scope = outer
        tests = found[:-1] if name in ("map", "transformList", "transformMap") else found
        if not all(accepts(BOOL, test) for test in tests):
            kept = Type("list", owner.item)
            shown = f"({tests[-1]}, {kept}, {kept})" if name == "filter" else f"(bool, {tests[-1]})"
            raise self._mismatch("_?_:_" if name == "filter" else "_&&_", shown, self._position(tree))
        if name == "filter":
            return Type("list", owner.item if owner.name == "list" else STRING)
        if name in ("map", "transformList"):
            return Type("list", found[-1])
        return Type("map", found[-1]) if name == "transformMap" else BOOL

    def _member_object(self, tree: Tree) -> Type:
        raise self._fail("messages cannot be made here", self._position(tree))


def _bound(owner: Type, variables: list[str]) -> dict[str, Type]:
    """Return the types of loop variables: the item or the key; with two of them, the value comes second."""
    key = {"list": INT, "map": STRING}.get(owner.name, DYN)
    value = owner.item or DYN
    if len(variables) > 1:
        return dict(zip(variables, (key, value), strict=True))
    return {variables[0]: value if owner.name == "list" else key}


def _required(found: Type) -> Type:
    return found.item or DYN if found.name == "optional_type" else found


def _common(found: list[Type]) -> Type:
    first = found[0] if found else DYN
    return first if all(one == first for one in found) else DYN


def _end(tree: Tree) -> int:
    return getattr(tree.meta, "end_pos", 0) or 0
