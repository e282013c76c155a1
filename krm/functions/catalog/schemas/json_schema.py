"""From the schemas of OpenAPI, as Kubernetes uses them, to JSON Schema. Source: ``kpt.md`` 4.18."""

from typing import Any

from krm.functions.catalog.schemas.openapi import REFERENCE_PREFIXES, Schema, SchemaDocument, SchemaError

_PLAIN = (
    "type",
    "enum",
    "pattern",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "required",
)
"""Keywords that mean in OpenAPI what they mean in draft 4."""
MAX_ALTERNATIVES = 1000
"""Subschemas under ``allOf``, ``anyOf`` and ``oneOf`` in one schema: each may be tried on each value."""
_COMBINED = ("allOf", "anyOf", "oneOf")
_QUANTITY = ".api.resource.Quantity"
_NULLABLE = "?"
"""Ends the name of the variant of a definition that ``null`` satisfies too."""
_OBJECT_FIELDS: Schema = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}


def json_schema(document: SchemaDocument, schema: Schema, *, strict: bool) -> Schema:
    """Return ``schema`` as a JSON Schema of draft 4 with all definitions it needs, and no reference elsewhere.

    ``strict`` refuses properties that the schema does not name.

    Raises:
        SchemaError: a reference leads outside of ``document``, or to nothing.
    """
    conversion = _Conversion(document, strict=strict)
    root = conversion.convert(_with_object_fields(schema), optional=True)
    while conversion.missing:
        name = conversion.missing.pop()
        definition = document.definitions.get(name.removesuffix(_NULLABLE))
        if definition is None:
            raise SchemaError(f"schema refers to {name.removesuffix(_NULLABLE)}, which is not defined")
        conversion.definitions[name] = conversion.convert(
            _quantity(name, definition), optional=name.endswith(_NULLABLE)
        )
    return {**root, "definitions": conversion.definitions}


class _Conversion:
    def __init__(self, document: SchemaDocument, *, strict: bool) -> None:
        self._nulls = document.optional_may_be_null
        self._strict = strict
        self.definitions: dict[str, Any] = {}
        self.missing: set[str] = set()
        self._alternatives = 0

    def convert(self, schema: Any, *, optional: bool, part: bool = False) -> Any:
        """Convert one schema; ``part`` says that it is only a part of what holds for a value."""
        if not isinstance(schema, dict):
            return schema if isinstance(schema, bool) else {}
        if isinstance(schema.get("$ref"), str):
            return {"$ref": self._reference(schema["$ref"], optional=optional and not part)}
        converted: Schema = {key: schema[key] for key in _PLAIN if key in schema}
        if schema.get("format") == "int-or-string" or schema.get("x-kubernetes-int-or-string") is True:
            converted["type"] = ["integer", "string"]
        elif self._properties(schema, converted, part=part):
            self._combinations(schema, converted, optional=optional)
        if schema.get("nullable") is True or (optional and self._nulls and not part):
            _allow_null(converted)
        return converted

    def _reference(self, reference: str, *, optional: bool) -> str:
        for prefix in REFERENCE_PREFIXES:
            if reference.startswith(prefix):
                name = reference.removeprefix(prefix) + (_NULLABLE if optional and self._nulls else "")
                if name not in self.definitions:
                    self.missing.add(name)
                    self.definitions[name] = {}
                return f"#/definitions/{name.replace('~', '~0').replace('/', '~1')}"
        raise SchemaError(f"schema refers to {reference}, which is not in its own document")

    def _properties(self, schema: Schema, converted: Schema, *, part: bool) -> bool:
        """Convert what a schema says of the values inside; answer True."""
        properties = schema.get("properties")
        if isinstance(properties, dict):
            if schema.get("x-kubernetes-embedded-resource") is True:
                properties = {**_OBJECT_FIELDS, **properties}
            needed = schema.get("required")
            required = set(needed) if isinstance(needed, list) else set()
            converted["properties"] = {
                name: self.convert(value, optional=name not in required) for name, value in properties.items()
            }
        if "additionalProperties" in schema:
            converted["additionalProperties"] = self.convert(schema["additionalProperties"], optional=True)
        elif (
            self._strict and not part and properties and schema.get("x-kubernetes-preserve-unknown-fields") is not True
        ):
            converted["additionalProperties"] = False
        if "items" in schema:
            converted["items"] = self.convert(schema["items"], optional=True)
        return True

    def _combinations(self, schema: Schema, converted: Schema, *, optional: bool) -> None:
        for key in _COMBINED:
            if isinstance(schema.get(key), list):
                # A lone reference under allOf is how v3 documents give a reference a default.
                lone = key == "allOf" and len(schema[key]) == 1 and "properties" not in schema
                self._alternatives += len(schema[key])
                if self._alternatives > MAX_ALTERNATIVES:
                    raise SchemaError(f"schema has more than {MAX_ALTERNATIVES} alternatives")
                converted[key] = [self.convert(each, optional=optional, part=not lone) for each in schema[key]]
        if "not" in schema:
            converted["not"] = self.convert(schema["not"], optional=False, part=True)


def _with_object_fields(schema: Schema) -> Schema:
    """Name the fields that every object has: definitions of custom resources leave them out."""
    properties = schema.get("properties")
    return {**schema, "properties": {**_OBJECT_FIELDS, **properties}} if isinstance(properties, dict) else schema


def _quantity(name: str, definition: Schema) -> Schema:
    """Let quantities be numbers: every tool of Kubernetes takes ``cpu: 1``."""
    return {"type": ["number", "string"]} if name.removesuffix(_NULLABLE).endswith(_QUANTITY) else definition


def _allow_null(schema: Schema) -> None:
    types = schema.get("type")
    if isinstance(types, str):
        schema["type"] = [types, "null"]
    elif isinstance(types, list):
        schema["type"] = [*types, "null"]
    if isinstance(schema.get("enum"), list):
        schema["enum"] = [*schema["enum"], None]
