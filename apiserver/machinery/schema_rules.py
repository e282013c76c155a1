"""The rules of a structural schema whose breach makes an object Invalid (422).

Required fields, enums, patterns, bounds, uniqueness, and the combinations allOf, anyOf, oneOf and
not. Types are checked before and elsewhere. Source: ``kube-api.md`` 2.15 and 2.17.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import orjson

from apiserver.machinery.schema_node import Node
from krm.meta.errors import Cause, invalid_value, not_supported_value, required_value

T = TypeVar("T")
Problem = tuple[tuple[str, ...], T]
"""Where and what; the path is in pieces (``.spec``, ``[0]``) until somebody wants to read it."""
CauseAt = Callable[[str], Cause]
"""A cause that still needs its field's path."""


def at_field(name: str) -> str:
    """Return the piece of a path for a field; keys of maps that hold dots stand in brackets."""
    return f"[{name}]" if "." in name or "/" in name else f".{name}"


def at_index(index: int) -> str:
    """Return the piece of a path for a list item."""
    return f"[{index}]"


def path_text(path: tuple[str, ...]) -> str:
    """Join the pieces as Kubernetes prints field paths: ``spec.tasks[0].type``."""
    return "".join(path).removeprefix(".")


def rule_problems(value: Any, node: Node) -> list[Problem[CauseAt]]:
    """Return every broken rule of a value and of what is below it."""
    found: list[Problem[CauseAt]] = []
    if node.own_rules:
        found += [((), cause) for cause in _own_problems(value, node)]
        for branch in node.branches.get("allOf", ()):
            found += rule_problems(value, branch)
    if isinstance(value, dict):
        found += [((at_field(name),), required_value) for name in node.required if name not in value]
        for name, child_value in value.items():
            child = node.properties.get(name, node.additional)
            if child is None or not child.has_rules or child_value is None:
                continue
            if below := rule_problems(child_value, child):
                found += [((at_field(name), *path), cause) for path, cause in below]
    elif isinstance(value, list):
        found += _list_problems(value, node)
    return found


def _list_problems(value: list[Any], node: Node) -> list[Problem[CauseAt]]:
    found: list[Problem[CauseAt]] = []
    if node.items is not None and node.items.has_rules:
        for index, item in enumerate(value):
            found += [((at_index(index), *path), cause) for path, cause in rule_problems(item, node.items)]
    if node.list_type in ("set", "map"):
        found += [((at_index(index),), cause) for index, cause in _duplicates(value, node)]
    return found


def _duplicates(value: list[Any], node: Node) -> Iterator[tuple[int, CauseAt]]:
    seen: set[bytes] = set()
    for index, item in enumerate(value):
        if node.list_type == "map" and isinstance(item, dict):
            identity: Any = {key: item[key] for key in node.map_keys if key in item}
        else:
            identity = item
        encoded = orjson.dumps(identity, option=orjson.OPT_SORT_KEYS)
        if encoded in seen:
            yield index, _duplicate(encoded.decode())
        seen.add(encoded)


def _duplicate(shown: str) -> CauseAt:
    return lambda path: Cause("FieldValueDuplicate", f"Duplicate value: {shown}", path)


def _invalid(value: Any, detail: str) -> CauseAt:
    return lambda path: invalid_value(path, value, detail)


def _own_problems(value: Any, node: Node) -> Iterator[CauseAt]:
    schema = node.schema
    enum = schema.get("enum")
    if enum is not None and value not in enum:
        yield _unsupported(value, enum)
    if isinstance(value, str):
        yield from _string_problems(value, node)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield from _number_problems(value, schema)
    elif isinstance(value, list):
        yield from _count_problems(len(value), schema.get("minItems"), schema.get("maxItems"), "items")
        if schema.get("uniqueItems") and any(True for _ in _duplicates(value, node)):
            yield _invalid("array", "items must be unique")
    elif isinstance(value, dict):
        yield from _count_problems(len(value), schema.get("minProperties"), schema.get("maxProperties"), "properties")
    if node.branches:
        yield from _branch_problems(value, node)


def _unsupported(value: Any, enum: list[Any]) -> CauseAt:
    supported = [item if isinstance(item, str) else json.dumps(item) for item in enum]
    return lambda path: not_supported_value(path, value, supported)


def _string_problems(value: str, node: Node) -> Iterator[CauseAt]:
    schema = node.schema
    if len(value) < schema.get("minLength", 0):
        yield _invalid(value, f"must be at least {schema['minLength']} characters long")
    longest = schema.get("maxLength")
    if longest is not None and len(value) > longest:
        text = f"Too long: may not be more than {longest} characters"
        yield lambda path: Cause("FieldValueTooLong", text, path)
    elif node.pattern is not None and not node.pattern.search(value):
        yield _invalid(value, f"must match '{node.pattern.pattern}'")


def _number_problems(value: float, schema: dict[str, Any]) -> Iterator[CauseAt]:
    low, high, step = schema.get("minimum"), schema.get("maximum"), schema.get("multipleOf")
    if low is not None and (value <= low if schema.get("exclusiveMinimum") else value < low):
        yield _invalid(value, f"must be greater than {'' if schema.get('exclusiveMinimum') else 'or equal to '}{low}")
    if high is not None and (value >= high if schema.get("exclusiveMaximum") else value > high):
        yield _invalid(value, f"must be less than {'' if schema.get('exclusiveMaximum') else 'or equal to '}{high}")
    if step and value % step:
        yield _invalid(value, f"must be a multiple of {step}")


def _count_problems(count: int, fewest: int | None, most: int | None, what: str) -> Iterator[CauseAt]:
    if fewest is not None and count < fewest:
        yield _invalid(count, f"must have at least {fewest} {what}")
    if most is not None and count > most:
        text = f"Too many: {count}: must have at most {most} {what}"
        yield lambda path: Cause("FieldValueTooMany", text, path)


def _branch_problems(value: Any, node: Node) -> Iterator[CauseAt]:
    kept = {key: sum(not rule_problems(value, b) for b in branch) for key, branch in node.branches.items()}
    if kept.get("anyOf", 1) == 0:
        yield _invalid("", "must satisfy at least one of the alternatives (anyOf)")
    if kept.get("oneOf", 1) != 1:
        yield _invalid("", "must satisfy exactly one of the alternatives (oneOf)")
    if kept.get("not", 0):
        yield _invalid("", "must not satisfy the excluded schema (not)")
