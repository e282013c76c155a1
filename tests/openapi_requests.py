"""Requests made up from a server's own OpenAPI documents: mostly right, so that they get far, and somewhere wrong.

A schema gives the shape; any value may be replaced by nonsense of another type, any name by one that exists, does
not exist or cannot. For tests that only ask whether the server keeps its composure.
"""

import json
import re
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st
from porch_client import PorchClient

Json = Any
METHODS = ("get", "post", "put", "patch", "delete")
MAX_DEPTH = 6
"""Levels of a made-up body."""
JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=20),
    st.just([]),
    st.just({}),
    st.just([None]),
    st.just({"": {"": ""}}),
    st.just("9" * 40),
    st.just("a" * 300),
    st.just("2026-01-01T00:00:00Z"),
)
NAMES = st.one_of(
    st.sampled_from(["a", "b", "default", "kube-system", "A_b", "..", "%", "a/b", "é", "a" * 254, "cluster-admin"]),
    st.text(alphabet="abc.-", min_size=1, max_size=8),
)
PLAIN_NAMES = st.sampled_from(["a", "b", "c"])
VALUES = {
    "labelSelector": st.sampled_from(["a=b", "a in (b,c)", "!a", "a>5", "a in", "=", "a=b,,", "a notin ()"]),
    "fieldSelector": st.sampled_from(["metadata.name=a", "spec.x=1", "metadata.name!=a", "=", "a\\", "status.phase=x"]),
    "limit": st.sampled_from(["1", "0", "500", "-1", "x"]),
    "continue": st.sampled_from(["x", "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhL2IifQ"]),
    "resourceVersion": st.sampled_from(["0", "1", "5", "x", "-1"]),
    "resourceVersionMatch": st.sampled_from(["Exact", "NotOlderThan", "x"]),
    "sendInitialEvents": st.sampled_from(["true", "false", "x"]),
    "allowWatchBookmarks": st.sampled_from(["true", "false"]),
    "dryRun": st.sampled_from(["All", "x", ""]),
    "fieldManager": st.sampled_from(["me", "", "x" * 200, "\n"]),
    "fieldValidation": st.sampled_from(["Strict", "Warn", "Ignore", "x"]),
    "force": st.sampled_from(["true", "false", "x"]),
    "gracePeriodSeconds": st.sampled_from(["0", "-1", "30", "x"]),
    "propagationPolicy": st.sampled_from(["Orphan", "Foreground", "Background", "x"]),
    "orphanDependents": st.sampled_from(["true", "false"]),
    "pretty": st.sampled_from(["true", "false", ""]),
    "timeout": st.sampled_from(["1s", "0", "x", "1h"]),
}
ACCEPTS = st.sampled_from(
    [
        *["application/json"] * 12,
        "application/json;as=Table;v=v1;g=meta.k8s.io",
        "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
        "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
        "application/yaml",
        "application/vnd.kubernetes.protobuf",
        "text/html, */*;q=0.1",
        "",
    ]
)


@dataclass(frozen=True)
class Operation:
    """One method of one path, as the documents describe it."""

    method: str
    path: str
    parameters: tuple[str, ...]
    content_types: tuple[str, ...]
    schema: Json
    schemas: dict[str, Json] = field(repr=False, compare=False)
    kind: tuple[str, str] = ("", "")
    """apiVersion and kind."""


@dataclass(frozen=True)
class Request:
    """One made-up request."""

    method: str
    target: str
    body: bytes | None
    content_type: str
    accept: str


def operations(client: PorchClient) -> list[Operation]:
    """Read every operation that the server documents."""
    found: list[Operation] = []
    for one in client.request("GET", "/openapi/v3").object["paths"].values():
        document = client.request("GET", one["serverRelativeURL"]).object
        found.extend(_operations_of(document))
    return found


def _operations_of(document: Json) -> Iterator[Operation]:
    schemas = document.get("components", {}).get("schemas", {})
    for path, item in document["paths"].items():
        for method in METHODS:
            if method not in item:
                continue
            described = item[method]
            parameters = [*item.get("parameters", []), *described.get("parameters", [])]
            content = described.get("requestBody", {}).get("content", {})
            target = described.get("x-kubernetes-group-version-kind") or {}
            version = "/".join(part for part in (target.get("group"), target.get("version")) if part)
            yield Operation(
                method.upper(),
                path,
                tuple(one["name"] for one in parameters if one.get("in") == "query"),
                tuple(one.replace("*/*", "application/json") for one in content) or ("application/json",),
                next((media.get("schema") for media in content.values()), None),
                schemas,
                (version, target.get("kind", "")),
            )


def _named(parameter: str) -> st.SearchStrategy[str]:
    usual = st.just("default") if parameter == "namespace" else PLAIN_NAMES
    return st.one_of(usual, usual, usual, NAMES)


def requests(known: list[Operation]) -> st.SearchStrategy[Request]:
    """Return a strategy of requests for these operations."""
    return st.sampled_from(known).flatmap(_request)


@st.composite
def _request(draw: st.DrawFn, operation: Operation) -> Request:
    path = re.sub(r"\{(\w+)\}", lambda found: urllib.parse.quote(draw(_named(found[1])), safe=""), operation.path)
    asked = tuple(name for name in operation.parameters if name != "watch" or draw(st.integers(0, 9)) == 0)
    chosen = draw(st.lists(st.sampled_from(asked), unique=True, max_size=3)) if asked else []
    query = {name: draw(VALUES.get(name, st.sampled_from(["1", "x", ""]))) for name in chosen}
    if "watch" in query or "/watch/" in path:
        query["timeoutSeconds"] = "1"
    body = None
    if operation.method != "GET" and (operation.schema is not None or draw(st.booleans())):
        body = draw(_bodies(operation))
    return Request(
        operation.method,
        path + ("?" + urllib.parse.urlencode(query) if query else ""),
        body,
        draw(st.sampled_from([*operation.content_types * 8, "application/yaml", "text/plain"])),
        draw(ACCEPTS),
    )


@st.composite
def _bodies(draw: st.DrawFn, operation: Operation) -> bytes:
    if draw(st.integers(0, 19)) == 0:
        return draw(st.binary(max_size=200))
    value = draw(_values(operation.schema or {}, operation.schemas, 0))
    if isinstance(value, dict) and draw(st.integers(0, 9)) > 0:
        version, kind = operation.kind
        value |= {"apiVersion": version, "kind": kind}
        metadata = value.get("metadata")
        if isinstance(metadata, dict) and draw(st.integers(0, 3)) > 0:
            value["metadata"] = {"name": draw(PLAIN_NAMES), **{k: metadata[k] for k in ("labels",) if k in metadata}}
    if operation.method == "PATCH" and draw(st.integers(0, 3)) == 0:
        value = [draw(_json_patch_operations())]
    return json.dumps(value).encode()


def _json_patch_operations() -> st.SearchStrategy[Json]:
    pointers = st.sampled_from(["", "/", "/metadata", "/metadata/labels/a", "/data/x", "/spec", "/a/0", "/~2", "x"])
    return st.fixed_dictionaries(
        {"op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test", "x"]), "path": pointers},
        optional={"from": pointers, "value": JUNK},
    )


@st.composite
def _values(draw: st.DrawFn, schema: Json, schemas: dict[str, Json], depth: int) -> Json:
    """Make a value up that mostly fits a schema."""
    if draw(st.integers(0, 59)) == 0 or depth > MAX_DEPTH:
        return draw(JUNK)
    schema = _resolved(schema, schemas)
    if "enum" in schema:
        return draw(st.sampled_from(schema["enum"]))
    match schema.get("type"):
        case "object" | None if schema.get("properties"):
            names = list(schema["properties"])
            chosen = draw(st.lists(st.sampled_from(names), unique=True, max_size=5))
            wanted = {*chosen, *schema.get("required", []), *({"metadata", "spec"} & set(names))} - {"managedFields"}
            return {
                name: draw(_values(schema["properties"].get(name, {}), schemas, depth + 1)) for name in sorted(wanted)
            }
        case "object" if isinstance(schema.get("additionalProperties"), dict):
            inner = _values(schema["additionalProperties"], schemas, depth + 1)
            return draw(st.dictionaries(NAMES, inner, max_size=3))
        case "array":
            return draw(st.lists(_values(schema.get("items", {}), schemas, depth + 1), max_size=3))
        case "string":
            return draw(st.one_of(NAMES, st.just("2026-01-01T00:00:00Z"), st.just("YQ=="), st.text(max_size=10)))
        case "integer" | "number":
            return draw(st.one_of(st.integers(-2, 1000), st.integers()))
        case "boolean":
            return draw(st.booleans())
        case _:
            return draw(JUNK)


def _resolved(schema: Json, schemas: dict[str, Json]) -> Json:
    while isinstance(schema, dict):
        if "$ref" in schema:
            schema = schemas.get(schema["$ref"].rpartition("/")[2], {})
        elif len(schema.get("allOf", ())) == 1:
            schema = schema["allOf"][0]
        else:
            return schema
    return {}
