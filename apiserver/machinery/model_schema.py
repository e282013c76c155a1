"""Turns a pydantic model into a structural schema: inlined, typed on every node, described in our words.

Only what Kubernetes' structural schemas can say comes through: no ``$ref``, no titles, an optional
field is one that may be absent. Source: ``kube-api.md`` 1.7 and 2.15.
"""

import inspect
from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel

Schema = dict[str, Any]

MAX_NESTING: Final = 24
"""Levels of nested models; more means that a model contains itself, which no structural schema can say."""

_KEPT: Final[tuple[str, ...]] = (
    "type",
    "format",
    "description",
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
    "nullable",
)
_FORMATS: Final = {"date-time": "date-time", "base64url": "byte", "binary": "byte"}


def structural_schema(model: type[BaseModel]) -> Schema:
    """Return the structural schema of a model.

    A field's description is its ``Field(description=…)``, else its type's docstring. ``json_schema_extra`` may add
    ``x-kubernetes-…`` extensions and ``nullable``. The server fills in only defaults stated with
    ``json_schema_extra={"x-default": …}``: a model's own defaults stand for fields that stay absent on the wire.

    Raises:
        ValueError: the model contains itself.
    """
    document = model.model_json_schema(by_alias=True, mode="validation")
    return _translate(document, document.get("$defs", {}), 0)


def _translate(source: Schema, definitions: dict[str, Schema], depth: int) -> Schema:
    if depth > MAX_NESTING:
        raise ValueError("the model is nested too deep for a structural schema")
    source = resolved(source, definitions)
    schema: Schema = {key: source[key] for key in _KEPT if key in source}
    schema |= {key: value for key, value in source.items() if key.startswith("x-kubernetes-")}
    if "description" in schema:
        schema["description"] = described(schema["description"])
    if "const" in source:
        schema["enum"] = [source["const"]]
    if schema.get("format") in _FORMATS:
        schema["format"] = _FORMATS[schema["format"]]
    _translate_bounds(source, schema)
    if "items" in source:
        schema["items"] = _translate(source["items"], definitions, depth + 1)
    if schema.get("type") == "object":
        _translate_object(source, schema, definitions, depth)
    elif "type" not in schema and "x-kubernetes-int-or-string" not in schema:
        schema["x-kubernetes-preserve-unknown-fields"] = True
    return schema


def described(docstring: str) -> str:
    """Return a docstring without the note on where a type comes from: it is for us, not for users."""
    paragraphs = inspect.cleandoc(docstring).split("\n\n")
    return "\n\n".join(text for text in paragraphs if not text.startswith("Source:"))


def resolved(source: Schema, definitions: Mapping[str, Schema]) -> Schema:
    """Return what references lead to, without the null of an optional field; what stands beside a reference wins."""
    while True:
        if "$ref" in source:
            target = definitions[source["$ref"].rsplit("/", 1)[1]]
        elif len(source.get("allOf", ())) == 1:
            target = source["allOf"][0]
        elif len(branches := [b for b in source.get("anyOf", ()) if b.get("type") != "null"]) == 1:
            target = branches[0]
        else:
            return source
        beside = {key: value for key, value in source.items() if key not in ("$ref", "allOf", "anyOf")}
        source = {**target, **beside}


def _translate_bounds(source: Schema, schema: Schema) -> None:
    for keyword, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if keyword in source:
            schema |= {bound: source[keyword], keyword: True}
    if schema.get("type") == "integer" and "format" not in schema:
        schema["format"] = "int64"


def _translate_object(source: Schema, schema: Schema, definitions: dict[str, Schema], depth: int) -> None:
    if "properties" in source:
        schema["properties"] = {
            name: _translate(child, definitions, depth + 1) | _stated_default(child)
            for name, child in source["properties"].items()
        }
    if required := source.get("required"):
        schema["required"] = list(required)
    additional = source.get("additionalProperties")
    if isinstance(additional, dict) and additional:
        schema["additionalProperties"] = _translate(additional, definitions, depth + 1)
    elif "properties" not in source:
        schema["x-kubernetes-preserve-unknown-fields"] = True


def _stated_default(child: Schema) -> Schema:
    return {"default": child["x-default"]} if "x-default" in child else {}
