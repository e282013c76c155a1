"""Component schemas of the OpenAPI documents: the served kinds, their lists, and the types of the machinery.

Written once as OpenAPI 3.0; ``openapi_v2.py`` rewrites them for Swagger 2.0. Source: ``kube-api.md`` 1.7.
"""

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Final

from apiserver.machinery.definition import Definition
from apiserver.machinery.model_schema import structural_schema
from apiserver.machinery.schema import object_meta_schema
from krm.meta.objects import ListMeta

Json = dict[str, Any]

META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1"
OBJECT_META: Final = f"{META}.ObjectMeta"
LIST_META: Final = f"{META}.ListMeta"
STATUS: Final = f"{META}.Status"
DELETE_OPTIONS: Final = f"{META}.DeleteOptions"
PATCH: Final = f"{META}.Patch"
WATCH_EVENT: Final = f"{META}.WatchEvent"

_API_VERSION: Final = {"type": "string", "description": "Group and version of this representation of the object."}
_KIND: Final = {"type": "string", "description": "Kind of the object, in CamelCase."}


def reference(name: str) -> Json:
    """Return a reference to a component schema."""
    return {"$ref": f"#/components/schemas/{name}"}


def schema_name(definition: Definition) -> str:
    """Return the component name of a kind: its group reversed (Kubernetes' own: its package), version and kind."""
    return f"{_package(definition.group)}.{definition.version}.{definition.kind}"


def _package(group: str) -> str:
    if group == "apiextensions.k8s.io":
        return "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions"
    if "." not in group or group.endswith(".k8s.io"):
        return f"io.k8s.api.{group.partition('.')[0] or 'core'}"
    return ".".join(reversed(group.split(".")))


def list_schema_name(definition: Definition) -> str:
    """Return the component name of the kind's list."""
    return f"{schema_name(definition)}List"


def group_version_kind(definition: Definition, kind: str = "") -> Json:
    """Return the ``x-kubernetes-group-version-kind`` value of a definition, or of its list."""
    return {"group": definition.group, "version": definition.version, "kind": kind or definition.kind}


def component_schemas(definitions: Sequence[Definition], beside: Sequence[Definition] = ()) -> Json:
    """Return every schema that the paths of these definitions refer to, sorted by name.

    ``beside`` are kinds that only subresources answer with, such as Scale; they have no lists.
    """
    schemas = _meta_schemas(definitions)
    for definition in definitions:
        schemas[list_schema_name(definition)] = _list_schema(definition)
    for definition in (*beside, *definitions):
        schemas[schema_name(definition)] = _kind_schema(definition)
        for name, make in definition.components.values():
            schemas[_part_name(definition, name)] = make(_part_name(definition, name))
    return dict(sorted(schemas.items()))


def _part_name(definition: Definition, name: str) -> str:
    return f"{_package(definition.group)}.{definition.version}.{name}"


def _kind_schema(definition: Definition) -> Json:
    source = _published(definition.schema)
    metadata = {
        "description": "Standard object metadata.",
        "default": {},
        "allOf": [reference(OBJECT_META)],
    }
    properties = {"apiVersion": _API_VERSION, "kind": _KIND, "metadata": metadata}
    properties |= {name: child for name, child in source.get("properties", {}).items() if name not in properties}
    schema: Json = {**source, "type": "object", "properties": properties}
    schema |= _extensions(definition, definition.kind)
    _mark_merge_keys(schema, definition.merge_keys)
    for path, (name, _) in definition.components.items():
        _refer(schema, path.split("."), _part_name(definition, name))
    return schema


def _refer(schema: Json, path: Sequence[str], name: str) -> None:
    """Put a reference, in place, where a part stands; lists on the way are those of their items."""
    for step in path[:-1]:
        schema = schema["properties"][step]
        schema = schema.get("items", schema)
    part = schema["properties"][path[-1]]
    schema["properties"][path[-1]] = {"description": part.get("description", ""), "allOf": [reference(name)]}


def _extensions(definition: Definition, kind: str) -> Json:
    extensions: Json = {"x-kubernetes-group-version-kind": [group_version_kind(definition, kind)]}
    if definition.custom and definition.selectable:
        extensions["x-kubernetes-selectable-fields"] = [{"fieldPath": path} for path in definition.selectable]
    return extensions


def _published(schema: Json) -> Json:
    """Return a copy of a schema in which embedded objects show the fields that all objects have."""
    copied = {
        key: {name: _published(child) for name, child in value.items()}
        if key == "properties"
        else _published(value)
        if key in ("items", "additionalProperties") and isinstance(value, dict)
        else copy.deepcopy(value)
        for key, value in schema.items()
    }
    if schema.get("x-kubernetes-embedded-resource"):
        envelope = {"apiVersion": _API_VERSION, "kind": _KIND, "metadata": {"allOf": [reference(OBJECT_META)]}}
        copied["properties"] = {**copied.get("properties", {}), **envelope}
        copied["required"] = sorted({*copied.get("required", ()), "apiVersion", "kind"}, reverse=True)
    return copied


def _list_schema(definition: Definition) -> Json:
    properties = {
        "apiVersion": _API_VERSION,
        "kind": _KIND,
        "metadata": {"description": "Standard list metadata.", "default": {}, "allOf": [reference(LIST_META)]},
        "items": {
            "type": "array",
            "description": "The objects.",
            "items": {"default": {}, "allOf": [reference(schema_name(definition))]},
        },
    }
    return {
        "type": "object",
        "description": f"A list of {definition.kind} objects.",
        "required": ["items"],
        "properties": properties,
        **_extensions(definition, definition.list_kind),
    }


def _mark_merge_keys(schema: Json, merge_keys: Mapping[str, str]) -> None:
    """Tell clients which lists a strategic merge patch merges, and by what."""
    for path, key in merge_keys.items():
        node = schema
        for name in path.split("."):
            node = node.get("properties", {}).get(name, {})
        if node.get("type") == "array":
            node |= {"x-kubernetes-patch-strategy": "merge"} | ({"x-kubernetes-patch-merge-key": key} if key else {})


def _meta_schemas(definitions: Sequence[Definition]) -> Json:
    object_meta = copy.deepcopy(object_meta_schema())
    _mark_merge_keys(object_meta, {"ownerReferences": "uid", "finalizers": ""})
    return {
        OBJECT_META: object_meta,
        LIST_META: structural_schema(ListMeta),
        STATUS: _status_schema(),
        DELETE_OPTIONS: _delete_options_schema(definitions),
        PATCH: {"type": "object", "description": "A patch, in the form that the request's content type says."},
        WATCH_EVENT: _watch_event_schema(definitions),
    }


def _text(description: str) -> Json:
    return {"type": "string", "description": description}


def _status_schema() -> Json:
    cause = {
        "type": "object",
        "description": "One problem.",
        "properties": {
            "reason": _text("What kind of problem, as one word."),
            "message": _text("The problem, for people."),
            "field": _text("Path of the field that has it."),
        },
    }
    details = {
        "type": "object",
        "description": "What the answer is about.",
        "properties": {
            "name": _text("Name of the object."),
            "group": _text("Group of the resource."),
            "kind": _text("The resource, or the kind."),
            "uid": _text("UID of the object."),
            "causes": {"type": "array", "description": "One entry per problem.", "items": cause},
            "retryAfterSeconds": {"type": "integer", "format": "int32", "description": "Seconds until a retry helps."},
        },
    }
    properties = {
        "apiVersion": _API_VERSION,
        "kind": _KIND,
        "metadata": {"description": "Standard list metadata.", "default": {}, "allOf": [reference(LIST_META)]},
        "status": _text("Success or Failure."),
        "message": _text("The outcome, for people."),
        "reason": _text("Why it failed, as one word."),
        "details": details,
        "code": {"type": "integer", "format": "int32", "description": "The HTTP status code."},
    }
    return {
        "type": "object",
        "description": "The outcome of a request that returns no object.",
        "properties": properties,
        "x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "Status"}],
    }


def _delete_options_schema(definitions: Sequence[Definition]) -> Json:
    preconditions = {
        "type": "object",
        "description": "What must hold of the object for it to be deleted.",
        "properties": {"uid": _text("Its UID."), "resourceVersion": _text("Its version.")},
    }
    properties = {
        "apiVersion": _API_VERSION,
        "kind": _KIND,
        "dryRun": {"type": "array", "items": {"type": "string"}, "description": "All: do everything but write."},
        "gracePeriodSeconds": {"type": "integer", "format": "int64", "description": "Accepted and not used."},
        "orphanDependents": {"type": "boolean", "description": "Deprecated; use propagationPolicy."},
        "preconditions": preconditions,
        "propagationPolicy": _text("What becomes of dependents: Orphan, Background or Foreground."),
    }
    return {
        "type": "object",
        "description": "Options of a delete.",
        "properties": properties,
        "x-kubernetes-group-version-kind": _served_as("DeleteOptions", definitions),
    }


def _watch_event_schema(definitions: Sequence[Definition]) -> Json:
    return {
        "type": "object",
        "description": "One event of a watch.",
        "required": ["type", "object"],
        "properties": {
            "type": _text("ADDED, MODIFIED, DELETED, BOOKMARK or ERROR."),
            "object": {
                "type": "object",
                "description": "The object after the change, or before it was deleted.",
                "x-kubernetes-preserve-unknown-fields": True,
            },
        },
        "x-kubernetes-group-version-kind": _served_as("WatchEvent", definitions),
    }


def _served_as(kind: str, definitions: Sequence[Definition]) -> list[Json]:
    versions = sorted({("", "v1"), *((d.group, d.version) for d in definitions)})
    return [{"group": group, "version": version, "kind": kind} for group, version in versions]
