"""Compiles a structural schema into nodes that the walkers of the ``schema_*`` modules use.

A node knows what its walkers may skip (no rules below, no defaults below), so that checking a
well-formed object costs a few microseconds. Patterns are compiled here and nowhere else, by RE2: time linear in the
text, whatever the pattern.
"""

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from apiserver.machinery.model_schema import structural_schema
from apiserver.machinery.schema_formats import format_check
from apiserver.machinery.schema_scalars import quick_check
from krm.meta.objects import ObjectMeta
from krm.meta.patterns import PatternError, compile_pattern

Schema = dict[str, Any]

MAX_SCHEMA_DEPTH: Final = 64
"""Levels of nesting in a schema; a deeper one is refused when it is compiled."""
MAX_NODES: Final = 100_000
"""Nodes of one schema; the largest ones in use have a tenth."""
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
ANYTHING: Final[Schema] = {"nullable": True}
"""The schema that ``additionalProperties: true`` stands for: any value, but no field of it is known."""


class SchemaError(Exception):
    """The schema is not structural: too deep, too large, not made of mappings, or with a pattern that RE2 refuses."""


@dataclass(slots=True)
class Node:
    """One level of a schema, ready for walking."""

    schema: Schema
    type_name: str
    python_type: "type | None"
    """What JSON of the right type decodes to; None where any type is allowed."""
    format: str
    nullable: bool
    custom: bool
    """Described by a CustomResourceDefinition: a wrong type is a broken rule (422), not an unreadable body (400)."""
    open: bool
    """Unknown fields are kept."""
    properties: dict[str, "Node"]
    additional: "Node | None"
    items: "Node | None"
    list_type: str
    map_keys: tuple[str, ...]
    pattern: Any
    """A compiled ``re2`` pattern (the package publishes no types), or None."""
    checks_format: Callable[[str], bool] | None
    embedded: bool
    """A Kubernetes object: its metadata is ObjectMeta, whatever the schema says of it."""
    fields: dict[str, "Node"] = field(default_factory=dict)
    """The properties, and the envelope of an embedded object."""
    branches: dict[str, list["Node"]] = field(default_factory=dict)
    """allOf, anyOf, oneOf and not, as nodes."""
    defaults: dict[str, Any] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    passes: Callable[[Any], bool] | None = None
    """Tells quickly that a scalar of a custom resource keeps every rule; False proves nothing."""
    own_rules: bool = False
    has_rules: bool = False
    """It, or something below it, has rules."""
    plain: bool = False
    """A scalar whose Python type says all there is to check, but for its rules."""
    prunable: bool = False
    """Something below may hold unknown fields."""
    unique: bool = False
    """It, or something below it, is a list of type set or map."""
    early: bool = False
    """Types below are checked before the rules are: built-in kinds, and the envelopes of embedded objects."""
    resources: bool = False
    """It, or something below it, is an embedded object."""
    keeps_null: bool = False
    """A null stays, and does not stand for an absent field."""
    ruled: bool = False
    """It, or something below it, has CEL rules."""
    converts: bool = False
    """Expressions see its values, or some below, in another form than JSON's."""


class _Compiler:
    """Compiles one schema; counts its nodes."""

    def __init__(self, *, custom: bool) -> None:
        self._custom = custom
        self._nodes = 0

    def node(self, schema: Any, depth: int) -> Node:
        self._admit(schema, depth)
        additional = schema.get("additionalProperties")
        preserve = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
        either = bool(schema.get("x-kubernetes-int-or-string"))
        type_ = "" if either else str(schema.get("type", ""))
        format_ = str(schema.get("format", ""))
        node = Node(
            schema=schema,
            type_name="int-or-string" if either else type_,
            python_type=_PYTHON_TYPES.get(type_),
            format=format_,
            nullable=bool(schema.get("nullable")),
            custom=self._custom,
            open=preserve or (additional is True and not self._custom),
            properties={n: self.node(s, depth + 1) for n, s in schema.get("properties", {}).items()},
            additional=self._additional(additional, depth),
            items=self.node(schema["items"], depth + 1) if schema.get("items") is not None else None,
            list_type=str(schema.get("x-kubernetes-list-type", "")),
            map_keys=tuple(schema.get("x-kubernetes-list-map-keys") or ()),
            pattern=_pattern(schema.get("pattern")),
            checks_format=format_check(format_) if self._custom and format_ else None,
            embedded=bool(schema.get("x-kubernetes-embedded-resource")),
            branches=self._branches(schema, depth),
        )
        _summarise(node)
        return node

    def _admit(self, schema: Any, depth: int) -> None:
        self._nodes += 1
        if depth > MAX_SCHEMA_DEPTH:
            raise SchemaError(f"schema is nested deeper than {MAX_SCHEMA_DEPTH} levels")
        if self._nodes > MAX_NODES:
            raise SchemaError(f"schema has more than {MAX_NODES} nodes")
        if not isinstance(schema, dict):
            raise SchemaError(f"a schema must be an object, not {type(schema).__name__}")

    def _additional(self, additional: Any, depth: int) -> Node | None:
        if isinstance(additional, dict):
            return self.node(additional, depth + 1)
        # As in kube-apiserver, "true" allows any value there, but knows no field of it.
        return self.node(ANYTHING, depth + 1) if additional is True and self._custom else None

    def _branches(self, schema: Schema, depth: int) -> dict[str, list[Node]]:
        found: dict[str, list[Node]] = {
            key: [self.node(branch, depth + 1) for branch in schema[key]]
            for key in ("anyOf", "oneOf", "allOf")
            if schema.get(key)
        }
        if schema.get("not") is not None:
            found["not"] = [self.node(schema["not"], depth + 1)]
        return found


def compile_node(schema: Schema, *, custom: bool = False) -> Node:
    """Compile a schema and everything below it.

    Raises:
        SchemaError: it is nested deeper than ``MAX_SCHEMA_DEPTH``, has more than ``MAX_NODES`` nodes, or a pattern
            that RE2 does not take.
    """
    return _Compiler(custom=custom).node(schema, 0)


def _pattern(pattern: str | None) -> Any:
    try:
        return compile_pattern(pattern) if pattern else None
    except PatternError as error:
        raise SchemaError(f"pattern {pattern!r}: {error}") from error


def children(node: Node) -> list[Node]:
    """Return the nodes one level down: properties, map values, list items."""
    below = [*node.fields.values()]
    below += [child for child in (node.additional, node.items) if child is not None]
    return below


@cache
def object_meta_schema() -> Schema:
    """Return the structural schema of ObjectMeta, the same for every kind."""
    return structural_schema(ObjectMeta)


@cache
def checked_meta_schema() -> Schema:
    """Return ObjectMeta as objects are checked with it: that a reference lacks something is for the rules of metadata."""
    schema = copy.deepcopy(object_meta_schema())
    del schema["properties"]["ownerReferences"]["items"]["required"]
    return schema


@cache
def _envelope() -> Mapping[str, Node]:
    text = {"type": "string"}
    parts = {"apiVersion": text, "kind": text, "metadata": checked_meta_schema()}
    return {name: compile_node(schema) for name, schema in parts.items()}


def _summarise(node: Node) -> None:
    node.fields = {**node.properties, **_envelope()} if node.embedded and node.custom else node.properties
    node.defaults = {
        name: child.schema["default"]
        for name, child in node.properties.items()
        if child.schema.get("default") is not None
    }
    below = children(node)
    node.required = tuple(node.schema.get("required") or ())
    node.own_rules = not _RULE_KEYWORDS.isdisjoint(node.schema) or node.list_type in ("set", "map")
    if node.custom:
        node.passes = quick_check(node.schema, node.type_name, node.pattern, node.checks_format)
    node.plain = node.python_type in (str, bool) and not (node.format if not node.custom else node.checks_format)
    node.has_rules = node.own_rules or node.custom or any(child.has_rules for child in below)
    closed = not node.open and (node.custom or (node.type_name == "object" and node.additional is None))
    node.prunable = closed or any(child.prunable for child in below)
    node.unique = node.list_type in ("set", "map") or any(child.unique for child in below)
    node.early = not node.custom or any(child.early for child in below)
    node.resources = node.embedded or any(child.resources for child in below)
    node.ruled = bool(node.schema.get("x-kubernetes-validations")) or any(child.ruled for child in below)
    node.converts = _converts(node) or any(child.converts for child in below)
    node.keeps_null = node.nullable or (not node.custom and not node.type_name)


def _converts(node: Node) -> bool:
    """Tell whether expressions see a value in another form, or not all of it."""
    hides = node.open or node.embedded or (node.additional is not None and node.additional.schema is ANYTHING)
    return hides or node.type_name in ("integer", "number") or bool(node.format) or node.list_type in ("set", "map")
