"""The schema of schemas, for OpenAPI documents: what may stand at ``openAPIV3Schema``, which contains itself.

Structural schemas have no references, so this one exists for documentation only; what a schema may say is checked by
``apiserver/machinery/structural.py``. Source: JSONSchemaProps of apiextensions.k8s.io/v1.
"""

from typing import Final

from apiserver.machinery.definition import Json, Schema
from apiserver.machinery.openapi_schemas import reference

NAME: Final = "JSONSchemaProps"

_TEXTS: Final = {
    "description": "What the value is for; shown by kubectl explain.",
    "type": "object, array, string, integer, number or boolean.",
    "format": "Form of a string or number, such as date-time, byte or int32.",
    "title": "A short name of the schema.",
    "pattern": "Regular expression that a string must match.",
    "id": "Not supported.",
    "$schema": "Not supported.",
    "$ref": "Not supported.",
    "x-kubernetes-list-type": "How a list is merged: atomic, set or map.",
    "x-kubernetes-map-type": "How an object is merged: granular or atomic.",
}
_BOOLEANS: Final = {
    "nullable": "Whether null is a value.",
    "exclusiveMaximum": "Whether a number must be below the maximum.",
    "exclusiveMinimum": "Whether a number must be above the minimum.",
    "uniqueItems": "Not supported; use x-kubernetes-list-type.",
    "x-kubernetes-preserve-unknown-fields": "Whether fields are kept that the schema does not know.",
    "x-kubernetes-embedded-resource": "Whether the value is an object with apiVersion, kind and metadata.",
    "x-kubernetes-int-or-string": "Whether the value is an integer or a string.",
}
_COUNTS: Final = {
    "maxLength": "Most characters of a string.",
    "minLength": "Fewest characters of a string.",
    "maxItems": "Most items of a list.",
    "minItems": "Fewest items of a list.",
    "maxProperties": "Most fields of an object.",
    "minProperties": "Fewest fields of an object.",
}
_NUMBERS: Final = {
    "maximum": "Largest number.",
    "minimum": "Smallest number.",
    "multipleOf": "A number must be a multiple of this.",
}
_LISTS_OF_TEXT: Final = {
    "required": "Fields that must be there.",
    "x-kubernetes-list-map-keys": "Fields that tell the items of a list of type map apart.",
}
_ANY: Final = {
    "default": "The value of a field that is left out.",
    "example": "An example of the value.",
    "additionalItems": "Not supported.",
    "dependencies": "Not supported.",
    "externalDocs": "Where more is written about the value.",
}
_LISTS_OF_SCHEMAS: Final = {
    "allOf": "Schemas that must all fit.",
    "anyOf": "Schemas of which one or more must fit.",
    "oneOf": "Schemas of which exactly one must fit.",
}
_MAPS_OF_SCHEMAS: Final = {
    "properties": "The fields of an object.",
    "patternProperties": "Not supported.",
    "definitions": "Not supported.",
}
_SCHEMAS: Final = {
    "not": "A schema that must not fit.",
    "items": "The items of a list.",
    "additionalProperties": "The values of an object whose fields have no fixed names; or true.",
}
_RULE: Final = {
    "rule": "CEL expression that must be true of self, the value; oldSelf is the value before an update.",
    "message": "What to say of a value that breaks the rule.",
    "messageExpression": "CEL expression of that message.",
    "reason": "Machine-readable reason of the error.",
    "fieldPath": "Path of the field to blame, below the value.",
}


def schema_component(name: str) -> Schema:
    """Return the schema; ``name`` is that of its component, which it refers to."""
    again = reference(name)

    def nodes(descriptions: dict[str, str], node: Json) -> Json:
        return {key: {**node, "description": text} for key, text in descriptions.items()}

    rule = {
        "type": "object",
        "required": ["rule"],
        "properties": {
            **nodes(_RULE, {"type": "string"}),
            "optionalOldSelf": {"type": "boolean", "description": "Whether the rule holds for new values, too."},
        },
    }
    properties: Json = {
        **nodes(_TEXTS, {"type": "string"}),
        **nodes(_BOOLEANS, {"type": "boolean"}),
        **nodes(_COUNTS, {"type": "integer", "format": "int64"}),
        **nodes(_NUMBERS, {"type": "number", "format": "double"}),
        **nodes(_LISTS_OF_TEXT, {"type": "array", "items": {"type": "string"}}),
        **nodes(_ANY, {}),
        **nodes(_LISTS_OF_SCHEMAS, {"type": "array", "items": again}),
        **nodes(_MAPS_OF_SCHEMAS, {"type": "object", "additionalProperties": again}),
        **nodes(_SCHEMAS, {"allOf": [again]}),
        "enum": {"type": "array", "items": {}, "description": "The values that there are."},
        "x-kubernetes-validations": {
            "type": "array",
            "items": rule,
            "description": "Rules in CEL.",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["rule"],
        },
    }
    description = "A schema: what a value must look like."
    return {"type": "object", "description": description, "properties": dict(sorted(properties.items()))}
