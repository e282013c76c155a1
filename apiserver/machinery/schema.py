"""The structural schema engine: pruning, defaulting and checking of every kind, built in or custom.

Walkers return problems and put the path in front on the way up, so a clean object never pays for
path texts. Type problems (400) and rule problems (422) are told apart, as Kubernetes does. Where a
schema comes from is ``model_schema.py``. Source: ``kube-api.md`` 2.2, 2.12 and 2.15.
"""

import base64
import binascii
import copy
import math
import re
from datetime import datetime
from functools import cache
from typing import Any, Final

from apiserver.machinery.model_schema import structural_schema
from apiserver.machinery.schema_node import Node, Schema, SchemaError, compile_node
from apiserver.machinery.schema_rules import Problem, at_field, at_index, path_text, rule_problems
from krm.meta.errors import Cause
from krm.meta.objects import ObjectMeta

__all__ = ["CompiledSchema", "Schema", "SchemaError", "object_meta_schema", "structural_schema"]

Json = dict[str, Any]

MAX_PROBLEMS: Final = 100
"""Problems reported for one object; a hostile body must not make a huge answer."""

_INT_LIMITS: Final = {"int32": 2**31, "": 2**63, "int64": 2**63}
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)", re.ASCII)


@cache
def object_meta_schema() -> Schema:
    """Return the structural schema of ObjectMeta, the same for every kind."""
    return structural_schema(ObjectMeta)


class CompiledSchema:
    """A kind's schema, ready for use; safe to share between requests.

    ``schema`` describes the whole object; its ``metadata`` is replaced by ObjectMeta, and ``apiVersion`` and ``kind``
    are always allowed.

    Raises:
        SchemaError: the schema is nested too deep.
    """

    def __init__(self, schema: Schema) -> None:
        envelope = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": object_meta_schema()}
        properties = {**schema.get("properties", {}), **envelope}
        self._root = compile_node({"type": "object", **schema, "properties": properties})

    def prune(self, obj: Json) -> list[str]:
        """Remove fields the schema does not know, in place; return their paths (at most 100), in document order."""
        return _texts(_prune(obj, self._root))

    def default(self, obj: Json) -> None:
        """Fill in defaults, in place, and drop nulls of fields that are not nullable."""
        _default(obj, self._root)

    def type_errors(self, obj: Json) -> list[str]:
        """Return a sentence per value of the wrong JSON type, a malformed time or malformed base64.

        A null stands for an absent field, as Go's decoder has it. Numbers that no 64-bit integer
        (or double) holds are wrong types too.
        """
        problems = _types(obj, self._root)
        return [f"{path_text(path)}: {text}" for path, text in problems[:MAX_PROBLEMS]]

    def validate(self, obj: Json) -> list[Cause]:
        """Return a cause per broken rule; expects an object without type errors."""
        if not self._root.has_rules:
            return []
        return [cause(path_text(path)) for path, cause in rule_problems(obj, self._root)[:MAX_PROBLEMS]]


def _texts(paths: list[tuple[str, ...]]) -> list[str]:
    return [path_text(path) for path in paths[:MAX_PROBLEMS]]


def _prune(value: Any, node: Node) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    if isinstance(value, dict):
        _prune_object(value, node, found)
    elif isinstance(value, list) and node.items is not None and node.items.prunable:
        for index, item in enumerate(value):
            if below := _prune(item, node.items):
                found += [(at_index(index), *path) for path in below]
    return found


def _prune_object(value: Json, node: Node, found: list[tuple[str, ...]]) -> None:
    unknown: list[str] = []
    for name, child_value in value.items():
        child = node.properties.get(name, node.additional)
        if child is None:
            if not node.open:
                unknown.append(name)
                found.append((at_field(name),))
        elif child.prunable and (below := _prune(child_value, child)):
            found += [(at_field(name), *path) for path in below]
    for name in unknown:
        del value[name]


def _default(value: Any, node: Node) -> None:
    if isinstance(value, dict):
        if None in value.values():
            _drop_nulls(value, node)
        for name, default in node.defaults.items():
            if name not in value:
                value[name] = copy.deepcopy(default)
        for name, child_value in value.items():
            child = node.properties.get(name, node.additional)
            if child is not None and not child.plain and isinstance(child_value, (dict, list)):
                _default(child_value, child)
    elif isinstance(value, list) and node.items is not None:
        for item in value:
            if isinstance(item, (dict, list)):
                _default(item, node.items)


def _drop_nulls(value: Json, node: Node) -> None:
    for name in [name for name, child_value in value.items() if child_value is None]:
        if not _keeps_null(node, name):
            del value[name]


def _keeps_null(node: Node, name: str) -> bool:
    child = node.properties.get(name, node.additional)
    return child.nullable or not child.type_name if child is not None else True


def _types(value: Any, node: Node) -> list[Problem[str]]:
    """Check a value that is not null."""
    found: list[Problem[str]] = []
    if text := _own_type_error(value, node):
        found.append(((), text))
    elif isinstance(value, dict):
        for name, child_value in value.items():
            if child_value is None:
                continue
            child = node.properties.get(name, node.additional)
            if child is None or (child.plain and type(child_value) is child.python_type):
                continue
            if below := _types(child_value, child):
                found += [((at_field(name), *path), text) for path, text in below]
    elif isinstance(value, list) and node.items is not None:
        for index, item in enumerate(value):
            below = [((), _expected(node.items, item))] if item is None and not _nothing_goes(node.items) else []
            if below or (item is not None and (below := _types(item, node.items))):
                found += [((at_index(index), *path), text) for path, text in below]
    return found


def _nothing_goes(node: Node) -> bool:
    return node.nullable or not node.type_name


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
    return f"expected {node.type_name}, got {_json_type(value)}"


def _json_type(value: Any) -> str:
    names = {str: "string", bool: "boolean", int: "integer", float: "number", dict: "object", list: "array"}
    return names.get(type(value), "null")


def _format_error(value: str, format_: str) -> str:
    if format_ == "byte":
        try:
            base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            return "illegal base64 data"
    elif format_ == "date-time" and value and not _is_time(value):
        return "not a time in RFC 3339 form"
    return ""


def _is_time(value: str) -> bool:
    if not _TIME.fullmatch(value):
        return False
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return True
