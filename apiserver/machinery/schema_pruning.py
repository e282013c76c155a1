"""Removes what a schema does not know. Source: ``kube-api.md`` 2.12 and 2.15."""

from typing import Any

from apiserver.machinery.field_path import at_field, at_index
from apiserver.machinery.schema_node import Node, compile_node

Json = dict[str, Any]
Path = tuple[str, ...]

_NOTHING = compile_node({}, custom=True)
"""Knows no field: what is in it goes."""


def prune(value: Any, node: Node) -> list[Path]:
    """Remove unknown fields, in place; return their paths in document order."""
    found: list[Path] = []
    if isinstance(value, dict):
        _prune_object(value, node, found)
    elif isinstance(value, list):
        items = node.items or (_NOTHING if node.custom and not node.open else None)
        if items is not None and items.prunable:
            for index, item in enumerate(value):
                if isinstance(item, (dict, list)) and (below := prune(item, items)):
                    found += [(at_index(index), *path) for path in below]
    return found


def _prune_object(value: Json, node: Node, found: list[Path]) -> None:
    unknown: list[str] = []
    for name, child_value in value.items():
        child = node.fields.get(name, node.additional)
        if child is None:
            if not node.open:
                unknown.append(name)
                found.append((at_field(name),))
        elif child.prunable and isinstance(child_value, (dict, list)) and (below := prune(child_value, child)):
            found += [(at_field(name), *path) for path in below]
    for name in unknown:
        del value[name]
