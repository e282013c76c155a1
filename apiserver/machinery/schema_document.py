"""The schema of a CustomResourceDefinition as a document: which keywords there are, and what each of them holds.

A JSON schema contains itself, which no structural schema can say; so its node is put together here, and the walkers of
bodies (unknown fields, wrong types, nulls) go through it like through any other.
Source: JSONSchemaProps of apiextensions.k8s.io/v1, ``kube-api.md`` 2.15.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any, Final

from apiserver.machinery.field_path import path_text
from apiserver.machinery.schema_defaults import fill_defaults
from apiserver.machinery.schema_node import Node, Schema, compile_node
from apiserver.machinery.schema_pruning import prune
from apiserver.machinery.schema_types import type_problems

Json = dict[str, Any]

MAX_LEVELS: Final = 160
"""Levels of objects and lists in a document; a schema below a property takes two of them."""
MAX_PARTS: Final = 500_000
"""Objects, lists and scalars in a document; the largest definitions in use have a fifth."""

_STRINGS: Final = (
    "id",
    "$schema",
    "$ref",
    "description",
    "type",
    "format",
    "title",
    "pattern",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
)
_BOOLEANS: Final = (
    "exclusiveMaximum",
    "exclusiveMinimum",
    "uniqueItems",
    "nullable",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
)
_INTEGERS: Final = ("maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties")
_NUMBERS: Final = ("maximum", "minimum", "multipleOf")
_ANYTHING: Final = ("default", "example", "dependencies")
_TEXTS: Final = ("required", "x-kubernetes-list-map-keys")
_LISTS_OF_SCHEMAS: Final = ("allOf", "oneOf", "anyOf")
_MAPS_OF_SCHEMAS: Final = ("properties", "patternProperties", "definitions")
_RULE: Final[Schema] = {
    "type": "object",
    "properties": {
        **{name: {"type": "string"} for name in ("rule", "message", "messageExpression", "reason", "fieldPath")},
        "optionalOldSelf": {"type": "boolean"},
    },
}
_FREE: Final[Schema] = {"x-kubernetes-preserve-unknown-fields": True}


@cache
def document_node() -> Node:
    """Return the node of JSONSchemaProps, in which it stands again at every depth."""
    text: Schema = {"type": "string"}
    properties: dict[str, Schema] = {
        **dict.fromkeys(_STRINGS, text),
        **{key: {"type": "boolean"} for key in _BOOLEANS},
        **{key: {"type": "integer"} for key in _INTEGERS},
        **{key: {"type": "number"} for key in _NUMBERS},
        **{key: {"type": "array", "items": text} for key in _TEXTS},
        **dict.fromkeys(_ANYTHING, _FREE),
        "enum": {"type": "array", "items": _FREE},
        "externalDocs": {"type": "object", "properties": {"description": text, "url": text}},
        "x-kubernetes-validations": {"type": "array", "items": _RULE},
    }
    node = compile_node({"type": "object", "properties": properties})
    either = replace(node, type_name="", python_type=None, keeps_null=True)
    several = replace(compile_node({"type": "array"}), items=node, prunable=True)
    named = replace(compile_node({"type": "object"}), additional=node, prunable=True)
    node.properties |= {
        **dict.fromkeys(_LISTS_OF_SCHEMAS, several),
        **dict.fromkeys(_MAPS_OF_SCHEMAS, named),
        **dict.fromkeys(("additionalProperties", "additionalItems"), either),
        "not": node,
        "items": replace(either, items=node),
    }
    return node


def tidy_schema(schema: Json) -> list[str]:
    """Drop what is no keyword and nulls, in place; return a sentence per part that cannot be read.

    A document without problems is well formed at every depth.
    """
    if problem := _too_much(schema):
        return [problem]
    node = document_node()
    if problems := type_problems(schema, node):
        return [f"{path_text(path)}: {text}" for path, text in problems]
    prune(schema, node)
    fill_defaults(schema, node)
    return []


def _too_much(document: Any) -> str:
    """Measure level by level: what is too deep must not reach code that descends."""
    parts, level = 0, [document]
    for _ in range(MAX_LEVELS):
        parts += len(level)
        if parts > MAX_PARTS:
            return f"the schema has more than {MAX_PARTS} parts"
        level = [child for part in level for child in _children(part)]
        if not level:
            return ""
    return f"the schema is nested deeper than {MAX_LEVELS} levels"


def _children(part: Any) -> list[Any]:
    if isinstance(part, dict):
        return list(part.values())
    return part if isinstance(part, list) else []


def alternatives(schema: Json) -> Iterator[tuple[str, Json]]:
    """Yield the schemas below allOf, anyOf, oneOf and not, with the pieces of their paths."""
    for key in _LISTS_OF_SCHEMAS:
        for index, child in enumerate(schema.get(key) or ()):
            yield f".{key}[{index}]", child
    if isinstance(schema.get("not"), dict):
        yield ".not", schema["not"]
