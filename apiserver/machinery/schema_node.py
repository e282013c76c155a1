"""Compiles a structural schema into nodes that the walkers of ``schema.py`` and ``schema_rules.py`` use.

A node knows what its walkers may skip (no rules below, no defaults below), so that checking a
well-formed object costs a few microseconds. Patterns are compiled here and nowhere else.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

Schema = dict[str, Any]

MAX_SCHEMA_DEPTH: Final = 64
"""Levels of nesting in a schema; a deeper one is refused when it is compiled."""

_PYTHON_TYPES: Final[Mapping[str, type]] = {
    "string": str,
    "integer": int,
    "boolean": bool,
    "object": dict,
    "array": list,
    "number": float,
}
_RULE_KEYWORDS: Final = frozenset(
    {
        "enum",
        "pattern",
        "minLength",
        "maxLength",
        "minimum",
        "maximum",
        "multipleOf",
        "minItems",
        "maxItems",
        "uniqueItems",
        "minProperties",
        "maxProperties",
        "required",
        "allOf",
        "anyOf",
        "oneOf",
        "not",
    },
)


class SchemaError(Exception):
    """The schema is not structural: too deep, or not made of mappings."""


@dataclass(slots=True)
class Node:
    """One level of a schema, ready for walking."""

    schema: Schema
    type_name: str
    python_type: "type | None"
    """What JSON of the right type decodes to; None where any type is allowed."""
    format: str
    nullable: bool
    open: bool
    """Unknown fields are kept."""
    properties: dict[str, "Node"]
    additional: "Node | None"
    items: "Node | None"
    list_type: str
    map_keys: tuple[str, ...]
    pattern: re.Pattern[str] | None
    branches: dict[str, list["Node"]] = field(default_factory=dict)
    """allOf, anyOf, oneOf and not, as nodes."""
    defaults: dict[str, Any] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    own_rules: bool = False
    has_rules: bool = False
    """It, or something below it, has rules."""
    plain: bool = False
    """A scalar whose Python type says all there is to check."""
    prunable: bool = False
    """Something below may hold unknown fields."""


def compile_node(schema: Schema, depth: int = 0) -> Node:
    """Compile a schema and everything below it.

    Raises:
        SchemaError: it is nested deeper than ``MAX_SCHEMA_DEPTH``.
    """
    if depth > MAX_SCHEMA_DEPTH:
        raise SchemaError(f"schema is nested deeper than {MAX_SCHEMA_DEPTH} levels")
    additional = schema.get("additionalProperties")
    pattern = schema.get("pattern")
    either = bool(schema.get("x-kubernetes-int-or-string"))
    type_ = "" if either else str(schema.get("type", ""))
    node = Node(
        schema=schema,
        type_name="int-or-string" if either else type_,
        python_type=_PYTHON_TYPES.get(type_),
        format=str(schema.get("format", "")),
        nullable=bool(schema.get("nullable")),
        open=additional is True or bool(schema.get("x-kubernetes-preserve-unknown-fields")),
        properties={n: compile_node(s, depth + 1) for n, s in schema.get("properties", {}).items()},
        additional=compile_node(additional, depth + 1) if isinstance(additional, dict) else None,
        items=compile_node(schema["items"], depth + 1) if "items" in schema else None,
        list_type=str(schema.get("x-kubernetes-list-type", "")),
        map_keys=tuple(schema.get("x-kubernetes-list-map-keys", ())),
        pattern=re.compile(pattern) if pattern else None,
        branches=_branches(schema, depth),
    )
    node.defaults = {n: child.schema["default"] for n, child in node.properties.items() if "default" in child.schema}
    _summarise(node)
    return node


def _branches(schema: Schema, depth: int) -> dict[str, list[Node]]:
    found: dict[str, list[Node]] = {
        key: [compile_node(s, depth + 1) for s in schema[key]] for key in ("allOf", "anyOf", "oneOf") if key in schema
    }
    if "not" in schema:
        found["not"] = [compile_node(schema["not"], depth + 1)]
    return found


def children(node: Node) -> list[Node]:
    """Return the nodes one level down: properties, map values, list items."""
    below = [*node.properties.values()]
    below += [child for child in (node.additional, node.items) if child is not None]
    return below


def _summarise(node: Node) -> None:
    below = children(node)
    node.own_rules = not _RULE_KEYWORDS.isdisjoint(node.schema) or node.list_type in ("set", "map")
    node.has_rules = node.own_rules or any(child.has_rules for child in below)
    closed_object = node.type_name == "object" and node.additional is None and not node.open
    node.plain = node.python_type in (str, bool) and not node.format
    node.required = tuple(node.schema.get("required", ()))
    node.prunable = closed_object or any(child.prunable for child in below)
