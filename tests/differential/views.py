"""Parts of large documents: what both servers serve, without what only one of them has.

Discovery and OpenAPI documents of a kube-apiserver name a hundred kinds that Porch does not serve; of those that
both serve, everything that clients read is compared.
"""

from collections.abc import Callable
from typing import Any

Object = dict[str, Any]

GROUPS = frozenset(
    {
        "",
        "apiextensions.k8s.io",
        "authentication.k8s.io",
        "authorization.k8s.io",
        "coordination.k8s.io",
        "diff.example.com",
        "events.k8s.io",
        "rbac.authorization.k8s.io",
    }
)
CORE = frozenset({"configmaps", "events", "namespaces", "secrets", "serviceaccounts"})
VERSIONS = frozenset({"v1", "v1beta1"})
"""Versions of GROUPS that are compared; kube-apiserver serves alpha versions only when told to."""
_SCHEMAS = ("io.k8s.api.core.v1.", "io.k8s.api.coordination.v1.", "io.k8s.api.rbac.v1.", "com.example.diff.")


def _plain(name: str) -> bool:
    """Tell whether a core resource or subresource is one that both serve."""
    return name.partition("/")[0] in CORE


def groups(body: Object) -> Object:
    """Return an APIGroupList with the groups that both serve, in order of names."""
    kept = [group for group in body["groups"] if group["name"] in GROUPS]
    return {**body, "groups": sorted(kept, key=lambda group: str(group["name"]))}


def resources(body: Object) -> Object:
    """Return an APIResourceList with the resources that both serve, in order of names."""
    kept = [each for each in body["resources"] if body["groupVersion"] != "v1" or _plain(each["name"])]
    return {**body, "resources": [_sorted_verbs(each) for each in sorted(kept, key=lambda each: str(each["name"]))]}


def _sorted_verbs(resource: Object) -> Object:
    return {**resource, "verbs": sorted(resource["verbs"])}


def aggregated(body: Object) -> Object:
    """Return an APIGroupDiscoveryList with the groups and resources that both serve, in order of names."""
    items = []
    for item in body["items"]:
        if item["metadata"].get("name", "") not in GROUPS:
            continue
        core = not item["metadata"].get("name")
        metadata = {key: value for key, value in item["metadata"].items() if key != "creationTimestamp"}
        items.append({"metadata": metadata, "versions": [_discovered(each, core=core) for each in item["versions"]]})
    return {**body, "items": sorted(items, key=lambda item: str(item["metadata"].get("name", "")))}


def _discovered(version: Object, *, core: bool) -> Object:
    kept = [each for each in version["resources"] if not core or each["resource"] in CORE]
    resources = [_discovered_resource(each) for each in sorted(kept, key=lambda each: str(each["resource"]))]
    return {**version, "resources": resources}


def _discovered_resource(resource: Object) -> Object:
    below = [_sorted_verbs(each) for each in resource.get("subresources", [])]
    return {**_sorted_verbs(resource), "subresources": sorted(below, key=lambda each: str(each["subresource"]))}


def openapi_root(body: Object) -> list[str]:
    """Return the paths that both serve."""
    return sorted(path for path in body["paths"] if _both_serve(path))


def _both_serve(path: str) -> bool:
    parts = path.split("/")
    return path == "api/v1" or (len(parts) == 3 and parts[1] in GROUPS and parts[2] in VERSIONS)


def openapi_operations(body: Object) -> Object:
    """Return, for each operation on what both serve, what clients read of it."""
    found = {}
    for path, item in body["paths"].items():
        if not _both_serve_path(path):
            continue
        for method, operation in item.items():
            if method != "parameters" and "x-kubernetes-action" in operation:
                found[f"{method} {path}"] = _operation(method, operation, item.get("parameters", []))
    return found


def _both_serve_path(path: str) -> bool:
    match [part for part in path.split("/") if part and not part.startswith("{")]:
        case ["api", "v1", *rest] if rest and rest[0] != "watch":
            of_namespace = rest[0] == "namespaces" and rest[1:2] not in ([], ["status"], ["finalize"])
            return rest[1 if of_namespace else 0] in CORE
        case parts:
            # The paths of old watches are deprecated, and no client looks them up.
            return parts[0] == "apis" and "watch" not in parts


def _operation(method: str, operation: Object, shared: list[Object]) -> Object:
    names = {each.get("name") for each in [*operation.get("parameters", []), *shared]}
    accepts = operation.get("requestBody", {}).get("content", {})
    return {
        "action": operation.get("x-kubernetes-action"),
        "kind": operation.get("x-kubernetes-group-version-kind"),
        "parameters": sorted(names & _PARAMETERS),
        # kubectl chooses the kind of its patch by them.
        "accepts": sorted(accepts) if method == "patch" else [],
    }


_PARAMETERS = frozenset({"dryRun", "fieldManager", "fieldValidation", "force", "propagationPolicy"})
"""Parameters that clients look for before they use them."""


def openapi_schemas(body: Object) -> Object:
    """Return the schemas of the kinds that both serve, references resolved and descriptions left out."""
    schemas = body["components"]["schemas"]
    kinds = [
        name for name in schemas if name.startswith(_SCHEMAS) and "x-kubernetes-group-version-kind" in schemas[name]
    ]
    wanted = {*_KINDS, *(f"{kind}List" for kind in _KINDS)}
    return {name: _shape(schemas[name], schemas) for name in kinds if name.rpartition(".")[2] in wanted}


def _shape(schema: Any, schemas: Object) -> Any:
    """Return what types a field, wherever it is written: in place, under a reference, or under one in an allOf."""
    if not isinstance(schema, dict):
        return schema
    merged = dict(schema)
    for each in [schema, *schema.get("allOf", [])]:
        if "$ref" in each and not each["$ref"].endswith(_OPAQUE):
            merged = {**schemas[each["$ref"].rpartition("/")[2]], **merged}
    shape = {key: value for key, value in merged.items() if key in _KEPT or key.startswith("x-kubernetes-")}
    shape.pop("x-kubernetes-validations", None)
    if "properties" in merged:
        shape["properties"] = {name: _shape(each, schemas) for name, each in merged["properties"].items()}
    return shape | {key: _shape(merged[key], schemas) for key in ("items", "additionalProperties") if key in merged}


_KEPT = frozenset({"type", "format", "enum", "required"})
_OPAQUE = ("ObjectMeta", "ListMeta")
_KINDS = (
    "ConfigMap",
    "Event",
    "Namespace",
    "Secret",
    "ServiceAccount",
    "Lease",
    "Role",
    "RoleBinding",
    "ClusterRole",
    "ClusterRoleBinding",
    "Widget",
    "Planet",
)


def openapi_v2(body: Object) -> Object:
    """Return what says that it is a Swagger document."""
    return {"swagger": body["swagger"], "keys": sorted(body.keys() & {"paths", "definitions", "info"})}


def version(body: Object) -> Object:
    """Return the fields of a version, and what version it claims to be."""
    return {"fields": sorted(body.keys() & _VERSION_FIELDS), "major": body["major"], "minor": body["minor"]}


_VERSION_FIELDS = frozenset(
    {"major", "minor", "gitVersion", "gitCommit", "gitTreeState", "buildDate", "goVersion", "compiler", "platform"}
)


def root(body: Object) -> list[str]:
    """Return the well-known paths."""
    wanted = {
        "/api",
        "/api/v1",
        "/apis",
        "/healthz",
        "/livez",
        "/metrics",
        "/openapi/v2",
        "/openapi/v3",
        "/readyz",
        "/version",
    }
    return sorted(wanted & set(body["paths"]))


def group(body: Object) -> Object:
    """Return an APIGroup."""
    return body


def being_deleted(body: Object) -> Object:
    """Return what of a definition's deletion does not depend on the moment."""
    metadata, conditions = body["metadata"], body["status"]["conditions"]
    terminating = {each["type"]: each["status"] for each in conditions if each["type"] == "Terminating"}
    return {"finalizers": metadata["finalizers"], "marked": "deletionTimestamp" in metadata, "conditions": terminating}


def last_line(body: str) -> str:
    """Return the last line of a text."""
    return body.splitlines()[-1]


def nothing(body: Any) -> None:
    """Return nothing: code and headers are what is compared."""


VIEWS: dict[str, Callable[[Any], Any]] = {
    "": lambda body: body,
    "aggregated": aggregated,
    "being deleted": being_deleted,
    "group": group,
    "groups": groups,
    "last line": last_line,
    "nothing": nothing,
    "openapi operations": openapi_operations,
    "openapi root": openapi_root,
    "openapi schemas": openapi_schemas,
    "openapi v2": openapi_v2,
    "resources": resources,
    "root": root,
    "version": version,
}
