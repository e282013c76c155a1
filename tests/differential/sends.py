"""Short ways to write the requests of the case tables."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from conversation import Body, Send

Object = dict[str, Any]

CONFIG_MAPS = "/api/v1/namespaces/{ns}/configmaps"
SECRETS = "/api/v1/namespaces/{ns}/secrets"
ACCOUNTS = "/api/v1/namespaces/{ns}/serviceaccounts"
EVENTS = "/api/v1/namespaces/{ns}/events"
NEW_EVENTS = "/apis/events.k8s.io/v1/namespaces/{ns}/events"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases"
NAMESPACES = "/api/v1/namespaces"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
ROLES = RBAC + "/namespaces/{ns}/roles"
BINDINGS = RBAC + "/namespaces/{ns}/rolebindings"
CLUSTER_ROLES = RBAC + "/clusterroles"
CLUSTER_BINDINGS = RBAC + "/clusterrolebindings"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ACCESS = "/apis/authorization.k8s.io/v1"
IDENTITY = "/apis/authentication.k8s.io/v1"
WIDGETS = "/apis/diff.example.com/v1/namespaces/{ns}/widgets"
OLD_WIDGETS = "/apis/diff.example.com/v1beta1/namespaces/{ns}/widgets"

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


def query(path: str, **parameters: Any) -> str:
    """Return the path with a query; a list repeats its parameter."""
    text = urlencode(parameters, doseq=True, quote_via=quote, safe="{}<>:")
    return f"{path}?{text}"


def get(path: str, *, accept: str = "", headers: Mapping[str, str] | None = None, until: int = 0) -> Send:
    """GET."""
    return Send("GET", path, headers=_headers(headers, accept=accept), until=until)


def post(path: str, body: Body, *, kind: str = "", accept: str = "", headers: Mapping[str, str] | None = None) -> Send:
    """POST; ``kind`` is the content type when it is not JSON."""
    return Send("POST", path, body, _headers(headers, accept=accept, kind=kind))


def put(path: str, body: Body, *, kind: str = "", headers: Mapping[str, str] | None = None) -> Send:
    """PUT."""
    return Send("PUT", path, body, _headers(headers, kind=kind))


def patch(path: str, body: Body, kind: str = MERGE, headers: Mapping[str, str] | None = None) -> Send:
    """PATCH, of the given kind."""
    return Send("PATCH", path, body, _headers(headers, kind=kind))


def apply(path: str, body: Body, who: str = "one", *, force: bool = False) -> Send:
    """Server-side apply by a field manager."""
    return patch(query(path, fieldManager=who, **({"force": "true"} if force else {})), body, APPLY)


def delete(path: str, body: Body = None, *, headers: Mapping[str, str] | None = None) -> Send:
    """DELETE."""
    return Send("DELETE", path, body, _headers(headers))


def config_map(name: str = "a", data: Object | None = None, **metadata: Any) -> Object:
    """Return a ConfigMap."""
    body: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}
    return body if data is None else {**body, "data": data}


def secret(name: str = "s", **fields: Any) -> Object:
    """Return a Secret."""
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, **fields}


def widget(name: str = "w", spec: Object | None = None, version: str = "v1", **metadata: Any) -> Object:
    """Return a custom resource of the kind that every case may use."""
    body: Object = {
        "apiVersion": f"diff.example.com/{version}",
        "kind": "Widget",
        "metadata": {"name": name, **metadata},
    }
    return body if spec is None else {**body, "spec": spec}


def lease(name: str = "l", **spec: Any) -> Object:
    """Return a Lease."""
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}, "spec": spec}


def role(name: str = "r", rules: Any = None, kind: str = "Role") -> Object:
    """Return a Role or ClusterRole that may read ConfigMaps, or has other rules."""
    read = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}]
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name},
        "rules": read if rules is None else rules,
    }


def binding(name: str = "b", role_name: str = "r", user: str = "bob", kind: str = "Role") -> Object:
    """Return a RoleBinding of a user to a role."""
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": name},
        "subjects": [{"kind": "User", "name": user, "apiGroup": group}],
        "roleRef": {"apiGroup": group, "kind": kind, "name": role_name},
    }


def acting_as(user: str, *groups: str) -> dict[str, str]:
    """Return headers that impersonate a user, with at most one group."""
    return {"Impersonate-User": user} | ({"Impersonate-Group": groups[0]} if groups else {})


def _headers(given: Mapping[str, str] | None, *, accept: str = "", kind: str = "") -> dict[str, str]:
    headers = dict(given or {})
    if accept:
        headers["Accept"] = accept
    if kind:
        headers["Content-Type"] = kind
    return headers
