"""Cases: discovery, OpenAPI, health and version."""

from conversation import Case
from sends import get

_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_OLD_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
_KUBECTL = f"{_AGGREGATED},{_OLD_AGGREGATED},application/json"
_PROTO_V2 = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
GROUPS = (
    "apiextensions.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "coordination.k8s.io",
    "diff.example.com",
    "events.k8s.io",
    "rbac.authorization.k8s.io",
)
"""The groups that both servers serve."""

CASES = [
    Case("api versions", get("/api")),
    Case("api groups", get("/apis"), view="groups"),
    Case("api groups with a slash", get("/apis/"), view="groups"),
    *(Case(f"api group {group}", get(f"/apis/{group}"), view="group") for group in GROUPS),
    Case("api group unknown", get("/apis/nonsense.example.com")),
    Case("api resources core", get("/api/v1"), view="resources"),
    *(Case(f"api resources {group}", get(f"/apis/{group}/v1"), view="resources") for group in GROUPS),
    Case("api resources of the old custom version", get("/apis/diff.example.com/v1beta1"), view="resources"),
    Case("api version unknown", get("/apis/coordination.k8s.io/v9")),
    Case("api resources as YAML", get("/apis/diff.example.com/v1", accept="application/yaml"), view="resources"),
    Case("api resources as text", get("/apis/diff.example.com/v1", accept="text/plain")),
    Case("aggregated core", get("/api", accept=_KUBECTL), view="aggregated"),
    Case("aggregated groups", get("/apis", accept=_KUBECTL), view="aggregated"),
    Case("aggregated only", get("/apis", accept=_AGGREGATED), view="aggregated"),
    Case("aggregated old", get("/apis", accept=_OLD_AGGREGATED), view="aggregated"),
    Case(
        "aggregated with a profile", get("/apis", accept=f"{_AGGREGATED};profile=nopeer,{_KUBECTL}"), view="aggregated"
    ),
    Case(
        "aggregated of an unknown version",
        get("/apis", accept="application/json;g=apidiscovery.k8s.io;v=v9;as=APIGroupDiscoveryList"),
    ),
    Case(
        "aggregated with an unknown tag",
        get("/apis", accept=_AGGREGATED, headers={"If-None-Match": '"x"'}),
        view="aggregated",
    ),
    Case("openapi root", get("/openapi/v3"), view="openapi root"),
    Case("openapi core paths", get("/openapi/v3/api/v1"), view="openapi operations"),
    Case("openapi core schemas", get("/openapi/v3/api/v1"), view="openapi schemas"),
    Case("openapi lease", get("/openapi/v3/apis/coordination.k8s.io/v1"), view="openapi operations"),
    Case("openapi lease schemas", get("/openapi/v3/apis/coordination.k8s.io/v1"), view="openapi schemas"),
    Case("openapi roles", get("/openapi/v3/apis/rbac.authorization.k8s.io/v1"), view="openapi operations"),
    Case("openapi role schemas", get("/openapi/v3/apis/rbac.authorization.k8s.io/v1"), view="openapi schemas"),
    Case("openapi custom", get("/openapi/v3/apis/diff.example.com/v1", until=200), view="openapi operations"),
    Case("openapi custom schemas", get("/openapi/v3/apis/diff.example.com/v1", until=200), view="openapi schemas"),
    Case("openapi definitions", get("/openapi/v3/apis/apiextensions.k8s.io/v1"), view="openapi operations"),
    Case("openapi with a stale hash", get("/openapi/v3/api/v1?hash=STALE"), view="nothing"),
    Case("openapi unknown", get("/openapi/v3/apis/nonsense/v1")),
    Case("openapi as text", get("/openapi/v3", accept="text/plain"), view="openapi root"),
    Case("openapi v2", get("/openapi/v2"), view="openapi v2"),
    Case("openapi v2 as protobuf only", get("/openapi/v2", accept=_PROTO_V2), view="nothing"),
    Case("health", get("/healthz")),
    Case("health live", get("/livez")),
    Case("health ready", get("/readyz")),
    Case("health of a check", get("/readyz/ping")),
    Case("health of an unknown check", get("/readyz/nonsense")),
    Case("health without a check", get("/livez?exclude=ping")),
    Case("health without an unknown check", get("/livez?exclude=nonsense")),
    Case("health in detail", get("/livez?verbose"), view="last line"),
    Case("version", get("/version"), view="version"),
    Case("root", get("/"), view="root"),
    Case("metrics", get("/metrics"), view="nothing"),
]
