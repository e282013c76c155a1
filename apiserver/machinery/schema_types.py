"""Types that are checked before anything else: a body of a built-in kind with a wrong one cannot be read (400).

Of a custom resource only the envelopes are: apiVersion, kind and metadata, its own and those of objects
embedded in it. Its other types are rules (422), see ``schema_rules.py``. Source: ``kube-api.md`` 2.12.
"""

import math
from typing import Any, Final

from apiserver.machinery.field_path import Problem, at_field, at_index
from apiserver.machinery.schema_formats import is_byte, is_date_time
from apiserver.machinery.schema_node import Node

_INT_LIMITS: Final = {"int32": 2**31, "": 2**63, "int64": 2**63}
_JSON_TYPES: Final = {str: "string", bool: "boolean", int: "integer", float: "number", dict: "object", list: "array"}


def json_type(value: Any) -> str:
    """Return what JSON calls the type of a decoded value."""
    return _JSON_TYPES.get(type(value), "null")


def type_problems(value: Any, node: Node) -> list[Problem[str]]:
    """Return a sentence per wrong type; the value is not null (a null stands for an absent field)."""
    found: list[Problem[str]] = []
    if not node.early:
        return found
    if not node.custom and (text := _own_type_error(value, node)):
        found.append(((), text))
    elif isinstance(value, dict):
        for name, child_value in value.items():
            if child_value is None:
                continue
            child = node.fields.get(name, node.additional)
            if child is None or (child.plain and type(child_value) is child.python_type):
                continue
            if below := type_problems(child_value, child):
                found += [((at_field(name), *path), text) for path, text in below]
    elif isinstance(value, list) and node.items is not None:
        _item_problems(value, node.items, found)
    return found


def _item_problems(value: list[Any], items: Node, found: list[Problem[str]]) -> None:
    for index, item in enumerate(value):
        if item is not None:
            found += [((at_index(index), *path), text) for path, text in type_problems(item, items)]
        elif not items.custom and not items.keeps_null:
            found.append(((at_index(index),), _expected(items, item)))


def _own_type_error(value: Any, node: Node) -> str:
    if not node.type_name:
        return ""
    right = type(value) is node.python_type
    if node.type_name == "number":
        right = right or type(value) is int
    elif node.type_name == "int-or-string":
        right = type(value) in (int, str)
    if not right:
        return _expected(node, value)
    if type(value) is int:
        limit = _INT_LIMITS.get(node.format, 2**63)
        return "" if -limit <= value < limit else "number is out of range"
    if type(value) is float and not math.isfinite(value):
        return "number is not finite"
    return _format_error(value, node.format) if node.format and type(value) is str else ""


def _expected(node: Node, value: Any) -> str:
    return f"expected {node.type_name}, got {json_type(value)}"


def _format_error(value: str, format_: str) -> str:
    if format_ == "byte" and value and not is_byte(value):
        return "illegal base64 data"
    if format_ == "date-time" and value and not is_date_time(value):
        return "not a time in RFC 3339 form"
    return ""
