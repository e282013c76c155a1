"""Rewrites an OpenAPI 3.0 document as Swagger 2.0, for the aggregator and older clients.

Source: ``kube-api.md`` 1.7.
"""

from collections.abc import Iterable
from typing import Any, Final

Json = dict[str, Any]

_METHODS: Final = ("get", "put", "post", "delete", "patch")
_REFERENCE: Final = "#/components/schemas/"
_DROPPED: Final = frozenset({"nullable", "oneOf", "anyOf", "not"})
"""Schema keywords that Swagger 2.0 does not have."""


def swagger(documents: Iterable[Json]) -> Json:
    """Merge OpenAPI 3.0 documents into one Swagger 2.0 document."""
    paths: Json = {}
    definitions: Json = {}
    info: Json = {}
    for document in documents:
        info = info or document["info"]
        paths |= {path: _path_item(item) for path, item in document["paths"].items()}
        for name, schema in document["components"]["schemas"].items():
            definitions[name] = _merged(definitions.get(name), _schema(schema))
    return {
        "swagger": "2.0",
        "info": info,
        "paths": dict(sorted(paths.items())),
        "definitions": dict(sorted(definitions.items())),
    }


def _merged(present: Json | None, schema: Json) -> Json:
    """Types of the machinery stand in every document, each with its own group-versions."""
    key = "x-kubernetes-group-version-kind"
    if present is None or key not in present:
        return schema
    return {**schema, key: present[key] + [kind for kind in schema[key] if kind not in present[key]]}


def _path_item(item: Json) -> Json:
    converted: Json = {method: _operation(item[method]) for method in _METHODS if method in item}
    return {**converted, "parameters": [_parameter(parameter) for parameter in item.get("parameters", ())]}


def _operation(operation: Json) -> Json:
    converted = {key: value for key, value in operation.items() if key not in ("requestBody", "responses")}
    parameters = [_parameter(parameter) for parameter in operation.get("parameters", ())]
    converted["consumes"] = ["*/*"]
    if body := operation.get("requestBody"):
        content = body["content"]
        converted["consumes"] = list(content)
        schema = _schema(next(iter(content.values()))["schema"])
        parameters.insert(0, {"name": "body", "in": "body", "schema": schema, "required": body.get("required", False)})
    if parameters:
        converted["parameters"] = parameters
    produced: dict[str, None] = {}
    responses: Json = {}
    for code, response in operation["responses"].items():
        responses[code] = {"description": response["description"]}
        for media_type, content in response.get("content", {}).items():
            produced[media_type] = None
            responses[code]["schema"] = _schema(content["schema"])
    return {**converted, "produces": list(produced), "schemes": ["https"], "responses": responses}


def _parameter(parameter: Json) -> Json:
    flat = {key: value for key, value in parameter.items() if key != "schema"}
    return {**flat, **parameter["schema"]}


def _schema(schema: Json) -> Json:
    converted: Json = {}
    for key, value in schema.items():
        if key == "$ref":
            converted[key] = value.replace(_REFERENCE, "#/definitions/")
        elif key == "allOf" and len(value) == 1:
            # A reference beside a default needs no wrapper here: Swagger ignores what stands beside $ref.
            converted |= _schema(value[0])
        elif key == "properties":
            converted[key] = {name: _schema(child) for name, child in value.items()}
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            converted[key] = _schema(value)
        elif key not in _DROPPED:
            converted[key] = value
    return converted
