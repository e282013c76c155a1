"""Lists of type ``set`` and ``map``: no two items of one identity. Source: ``kube-api.md`` 2.15."""

from types import NoneType
from typing import Any

import orjson

from apiserver.machinery.field_path import CauseAt, Problem, at_index, at_key, at_name
from apiserver.machinery.schema_breaches import duplicate, invalid
from apiserver.machinery.schema_correlation import key_fields
from apiserver.machinery.schema_node import Node


def unique_problems(value: Any, node: Node) -> list[Problem[CauseAt]]:
    """Return a cause per identity that a list holds more than once, at its second item; looks below too."""
    found: list[Problem[CauseAt]] = []
    if not node.unique:
        return found
    if isinstance(value, dict):
        for name, child_value in value.items():
            child = node.properties.get(name, node.additional)
            if child is not None and (below := unique_problems(child_value, child)):
                piece = at_name(name) if name in node.properties else at_key(name)
                found += [((piece, *path), cause) for path, cause in below]
    elif isinstance(value, list):
        if node.list_type in ("set", "map"):
            found += [((at_index(index),), cause) for index, cause in _duplicates(value, node)]
        if node.items is not None and node.items.unique:
            for index, item in enumerate(value):
                found += [((at_index(index), *path), cause) for path, cause in unique_problems(item, node.items)]
    return found


def _duplicates(value: list[Any], node: Node) -> list[tuple[int, CauseAt]]:
    seen: dict[bytes, bool] = {}
    found: list[tuple[int, CauseAt]] = []
    for index, item in enumerate(value):
        if node.list_type == "map" and not isinstance(item, dict | NoneType):
            found.append((index, invalid(item, "must be an object for an array of list-type map")))
            continue
        shown = key_fields(item, node) if node.list_type == "map" else item
        told = seen.get(encoded := orjson.dumps(shown, option=orjson.OPT_SORT_KEYS))
        if told is False:
            found.append((index, duplicate(shown)))
        seen[encoded] = told is not None
    return found
