"""Fills in what a schema states for absent fields, and drops nulls that stand for nothing.

Source: ``kube-api.md`` 2.15.
"""

import copy
from typing import Any

from apiserver.machinery.schema_node import Node

Json = dict[str, Any]

_OMITTED_EMPTY: tuple[Any, ...] = (None, "", [], {})


def fill_defaults(value: Any, node: Node) -> None:
    """Fill in defaults, in place, at every level; a null that its field does not allow counts as absent."""
    if isinstance(value, dict):
        if None in value.values():
            _drop_nulls(value, node)
        for name, default in node.defaults.items():
            if name not in value:
                value[name] = copy.deepcopy(default)
        for name, child_value in value.items():
            if isinstance(child_value, (dict, list)):
                child = node.fields.get(name, node.additional)
                if child is not None:
                    fill_defaults(child_value, child)
        if node.embedded:
            _tidy_metadata(value)
    elif isinstance(value, list) and node.items is not None:
        _fill_items(value, node.items)


def _fill_items(value: list[Any], items: Node) -> None:
    default = items.schema.get("default") if items.custom and not items.nullable else None
    for index, item in enumerate(value):
        if item is None and default is not None:
            value[index] = copy.deepcopy(default)
        if isinstance(value[index], (dict, list)):
            fill_defaults(value[index], items)


def _drop_nulls(value: Json, node: Node) -> None:
    for name in [name for name, child_value in value.items() if child_value is None]:
        child = node.fields.get(name, node.additional)
        if child is None or child.keeps_null:
            continue
        if name not in node.fields and (default := child.schema.get("default")) is not None:
            value[name] = copy.deepcopy(default)
        else:
            del value[name]


def _tidy_metadata(value: Json) -> None:
    """Drop empty parts of an embedded object's metadata, which ObjectMeta leaves out."""
    metadata = value.get("metadata")
    if isinstance(metadata, dict):
        for name in [name for name, part in metadata.items() if part in _OMITTED_EMPTY]:
            del metadata[name]
