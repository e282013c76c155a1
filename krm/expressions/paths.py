"""What of its variables decides the value of an expression: ``target.labels['region']`` and not all of ``target``.

So the same value need not be computed for ten thousand targets that have the same region. Source: ``variants.md`` 6.9.
"""

from collections.abc import Iterator
from typing import Any, Final

import lark

from krm.expressions.grammar import Tree
from krm.expressions.macros import MACROS
from krm.expressions.names import unescaped

Path = tuple[str, ...]
"""A variable and the keys below it."""

_NAMES: Final = ("ident", "dot_ident")
_FIELDS: Final = ("member_dot", "member_optional_dot")
_INDEXES: Final = ("member_index", "member_optional_index")


def accessed_paths(tree: Tree) -> tuple[Path, ...] | None:
    """Return the longest paths that an expression follows, each once.

    Two evaluations for which each path leads to equal values, or ends in the same way, have the same outcome. None where
    there are loops: their variables can hide others.
    """
    if nested_loops(tree):
        return None
    return tuple(dict.fromkeys(_paths(tree)))


def is_path(tree: Tree) -> bool:
    """Tell whether an expression is nothing but a path of required parts."""
    optional = any(node.data in ("member_optional_dot", "member_optional_index") for node in tree.iter_subtrees())
    return not optional and _chain(tree) is not None


def nested_loops(tree: Tree) -> int:
    """Return how many loops stand inside one another; one in the list that another one goes through counts as inside."""
    deepest: dict[int, int] = {}
    for node in tree.iter_subtrees():  # children first
        inner = max((deepest[id(child)] for child in node.children if isinstance(child, lark.Tree)), default=0)
        deepest[id(node)] = inner + _is_loop(node)
    return deepest[id(tree)]


def _is_loop(node: Tree) -> bool:
    return bool(node.data == "member_dot_arg" and node.children[1].value in MACROS)


def _paths(tree: Any) -> Iterator[Path]:
    pending = [tree]
    while pending:
        node = pending.pop()
        if not isinstance(node, lark.Tree):
            continue
        path = _chain(node)
        if path is None:
            pending.extend(node.children)
        else:
            yield path


def _chain(tree: Tree) -> Path | None:
    """Return the path that a tree is, or None if it is more than a path."""
    keys: list[str] = []
    node = tree
    while node.data not in _NAMES:
        if node.data in _FIELDS:
            keys.append(unescaped(node.children[1].value))
        elif node.data in _INDEXES and (key := _constant(node.children[1])) is not None:
            keys.append(key)
        else:
            return None
        node = node.children[0]
    return (node.children[0].value, *reversed(keys))


def _constant(tree: Any) -> str | None:
    if isinstance(tree, lark.Tree) and tree.data == "constant" and type(tree.children[0]) is str:
        return tree.children[0]
    return None
