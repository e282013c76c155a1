"""Reads the text of an expression into a tree: celpy's grammar, corrected, with the chains of single children cut out.

Corrections: strings of several lines and long escapes, and the optional forms ``a.?b`` and ``a[?b]``.
Source: ``variants.md`` 7.2.
"""

from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any, Final, TypeAlias

import lark
from celpy.celparser import CELParser

from krm.expressions.errors import CelSyntaxError
from krm.expressions.literals import literal_value

MAX_LENGTH: Final = 16_384
"""Characters of an expression; the longest in published definitions have a fifth."""
MAX_DEPTH: Final = 120
"""Levels of a tree: each takes some frames of the interpreter's stack when it is evaluated."""
MAX_BRACKETS: Final = 60
"""Brackets inside one another."""

Tree: TypeAlias = Any
"""A ``lark.Tree``, whose children are trees, tokens and, below ``constant``, values: its own types do not tell them apart."""

_WRAPPERS: Final = frozenset(
    {
        "expr",
        "conditionalor",
        "conditionaland",
        "relation",
        "addition",
        "multiplication",
        "unary",
        "member",
        "primary",
        "paren_expr",
    }
)
"""Nodes that mean nothing with a single child."""
_CHAINS: Final = frozenset({"conditionalor", "conditionaland"})
"""Operators whose operands stand in one node, however many there are."""
_CORRECTIONS: Final[Mapping[str, str]] = {
    "{4-8}": "{4}",
    'member_index   : member "[" expr "]"': (
        'member_index   : member "[" expr "]"\n'
        'member_optional_dot : member "." "?" IDENT\n'
        'member_optional_index : member "[" "?" expr "]"'
    ),
    "member         : member_dot |": "member         : member_optional_dot | member_optional_index | member_dot |",
}


def parse(text: str) -> Tree:
    """Return the tree of an expression.

    Raises:
        CelSyntaxError: it does not parse, is longer than ``MAX_LENGTH`` or nested deeper than ``MAX_DEPTH``.
    """
    if len(text) > MAX_LENGTH:
        raise CelSyntaxError(f"expression is limited to {MAX_LENGTH} characters")
    _check_brackets(text)
    try:
        tree = _parser().parse(text)
    except (lark.UnexpectedToken, lark.UnexpectedCharacters) as error:
        raise _syntax_error(text, error) from error
    except lark.LarkError as error:
        raise CelSyntaxError("Syntax error: not an expression") from error
    return _simplified(tree)


def _check_brackets(text: str) -> None:
    depth = 0
    for char in text:
        depth += (char in "([{") - (char in ")]}")
        if depth > MAX_BRACKETS:
            raise CelSyntaxError("expression recursion limit exceeded: " + str(MAX_BRACKETS))


def _syntax_error(text: str, error: lark.UnexpectedInput) -> CelSyntaxError:
    line, column = max(error.line, 1), max(error.column, 1)
    if isinstance(error, lark.UnexpectedCharacters):
        return CelSyntaxError(f"Syntax error: token recognition error at: '{error.char}'", line, column)
    token = error.token if isinstance(error, lark.UnexpectedToken) else None
    if token is None or token.type == "$END":
        lines = text.splitlines() or [""]
        return CelSyntaxError("Syntax error: mismatched input '<EOF>'", len(lines), len(lines[-1]) + 1)
    return CelSyntaxError(f"Syntax error: extraneous input '{token}' expecting <EOF>", line, column)


@cache
def _parser() -> lark.Lark:
    text = resources.files("celpy").joinpath("cel.lark").read_text(encoding="utf-8")
    for wrong, right in _CORRECTIONS.items():
        if wrong not in text:
            raise RuntimeError(f"celpy's grammar has changed: {wrong!r} is not in it; correct _CORRECTIONS")
        text = text.replace(wrong, right)
    return lark.Lark(
        text,
        parser="lalr",
        start="expr",
        lexer_callbacks={"IDENT": CELParser.ambiguous_literals},
        propagate_positions=True,
        maybe_placeholders=False,
        priority="invert",
    )


def _simplified(tree: Tree) -> Tree:
    """Cut out nodes that only hold another one, bottom up and without recursion, and measure the depth."""
    depths: dict[int, int] = {}
    replaced: dict[int, Any] = {}
    for node in tree.iter_subtrees():
        children = [replaced.get(id(child), child) for child in node.children]
        if node.data in _CHAINS:
            children = [part for child in children for part in _operands(child, node.data)]
        node.children = children
        wraps = len(children) == 1 and node.data in _WRAPPERS
        replaced[id(node)] = children[0] if wraps else node
        if node.data == "literal":
            node.data, node.children = "constant", [literal_value(node.children[0])]
        depths[id(node)] = 1 + max((depths.get(id(child), 0) for child in children), default=0)
    if depths[id(tree)] > MAX_DEPTH:
        raise CelSyntaxError(f"expression recursion limit exceeded: {MAX_DEPTH}")
    return replaced[id(tree)]


def _operands(child: Any, chain: str) -> list[Any]:
    if isinstance(child, lark.Tree) and child.data == chain and len(child.children) > 1:
        return child.children
    return [child]
