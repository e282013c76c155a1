"""Cases: who may; identities, RBAC and reviews."""

from typing import Any

from conversation import Case, Send
from sends import (
    ACCESS,
    ACCOUNTS,
    BINDINGS,
    CLUSTER_BINDINGS,
    CLUSTER_ROLES,
    CONFIG_MAPS,
    IDENTITY,
    LEASES,
    ROLES,
    WIDGETS,
    acting_as,
    apply,
    binding,
    config_map,
    delete,
    get,
    patch,
    post,
    put,
    query,
    role,
)

_BOB = acting_as("bob")
_A = f"{CONFIG_MAPS}/a"
_READ_A = {
    "apiGroups": [""],
    "resources": ["configmaps"],
    "resourceNames": ["a"],
    "verbs": ["get", "list", "watch"],
}
"""A rule that allows to read one ConfigMap."""
_READER = (post(ROLES, role()), post(BINDINGS, binding()), get(CONFIG_MAPS, headers=_BOB, until=200))


def _nobody(method: str, path: str, **headers: str) -> Send:
    return Send(method, path, headers=headers, certificate=False)


def _as_bob(name: str, request: Send, *setup: Send) -> Case:
    changed = Send(request.method, request.path, request.body, {**request.headers, **_BOB})
    return Case(f"bob {name}", changed, setup)


IDENTITIES = [
    Case("nobody lists", _nobody("GET", CONFIG_MAPS)),
    Case("nobody discovers", _nobody("GET", "/apis")),
    Case("nobody asks for health", _nobody("GET", "/readyz")),
    Case("nobody asks for the version", _nobody("GET", "/version"), view="version"),
    Case("nobody asks for the unknown", _nobody("GET", "/nonsense")),
    Case("a bad token", _nobody("GET", CONFIG_MAPS, Authorization="Bearer nonsense")),
    Case("a bad token asks for health", _nobody("GET", "/readyz", Authorization="Bearer nonsense")),
    Case("an empty token", _nobody("GET", CONFIG_MAPS, Authorization="Bearer ")),
    Case("a password", _nobody("GET", CONFIG_MAPS, Authorization="Basic YTpi")),
    Case("a token of an odd form", _nobody("GET", CONFIG_MAPS, Authorization="Bearer a.b.c")),
    Case(
        "forged front proxy headers",
        _nobody("GET", CONFIG_MAPS, **{"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}),
    ),
    Case(
        "a good token",
        _nobody("GET", CONFIG_MAPS, Authorization="Bearer <1:status.token>"),
        (post(ACCOUNTS, {"metadata": {"name": "robot"}}), post(f"{ACCOUNTS}/robot/token", {"spec": {}})),
    ),
]

IMPERSONATION = [
    _as_bob("lists", get(CONFIG_MAPS)),
    _as_bob("gets", get(_A)),
    _as_bob("creates", post(CONFIG_MAPS, config_map())),
    _as_bob("updates", put(_A, config_map())),
    _as_bob("patches", patch(_A, {})),
    _as_bob("applies", apply(_A, config_map())),
    _as_bob("deletes", delete(_A)),
    _as_bob("deletes all", delete(CONFIG_MAPS)),
    _as_bob("watches", get(query(CONFIG_MAPS, watch="1"))),
    _as_bob("lists everywhere", get("/api/v1/configmaps")),
    _as_bob("gets a status", get(f"{WIDGETS}/w/status")),
    _as_bob("scales", patch(f"{WIDGETS}/w/scale", {"spec": {"replicas": 2}})),
    _as_bob("lists leases", get(LEASES)),
    _as_bob("gets a path", get("/metrics")),
    _as_bob("gets an unknown path", get("/nonsense")),
    _as_bob("discovers", get("/apis/coordination.k8s.io/v1")),
    _as_bob("lists an unknown kind", get("/api/v1/namespaces/{ns}/nonsense")),
    _as_bob("reads as he may", get(CONFIG_MAPS + "/none"), *_READER),
    _as_bob("writes as he may not", post(CONFIG_MAPS, config_map()), *_READER),
    _as_bob("lists elsewhere as he may not", get("/api/v1/namespaces/default/configmaps"), *_READER),
    _as_bob("updates what he may only read", put(_A, config_map()), *_READER),
    _as_bob(
        "applies with patch alone",
        apply(_A, config_map()),
        post(ROLES, role(rules=[{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "patch"]}])),
        post(BINDINGS, binding()),
        get(f"{CONFIG_MAPS}/none", until=404),
    ),
    _as_bob(
        "watches by name as he may",
        get(query(CONFIG_MAPS, watch="1", timeoutSeconds="1", fieldSelector="metadata.name=a")),
        post(ROLES, role(rules=[_READ_A])),
        post(BINDINGS, binding()),
        Send("GET", _A, headers=_BOB, until=404),
    ),
    _as_bob(
        "lists all where he may see one",
        get(CONFIG_MAPS),
        post(ROLES, role(rules=[_READ_A])),
        post(BINDINGS, binding()),
        Send("GET", _A, headers=_BOB, until=404),
    ),
    Case("group without a user", get(CONFIG_MAPS, headers={"Impersonate-Group": "g"})),
    Case("extra without a user", get(CONFIG_MAPS, headers={"Impersonate-Extra-a": "g"})),
    Case(
        "impersonation as he may not",
        Send(
            "GET",
            CONFIG_MAPS,
            headers={**acting_as("alice"), "Authorization": "Bearer <1:status.token>"},
            certificate=False,
        ),
        (post(ACCOUNTS, {"metadata": {"name": "robot"}}), post(f"{ACCOUNTS}/robot/token", {"spec": {}})),
    ),
    Case("impersonating masters", get(_A, headers=acting_as("bob", "system:masters"))),
    Case("impersonating a service account", get(CONFIG_MAPS, headers=acting_as("system:serviceaccount:{ns}:robot"))),
    Case("impersonating anonymous", get(CONFIG_MAPS, headers=acting_as("system:anonymous"))),
    Case(
        "who is it, impersonated",
        post(
            f"{IDENTITY}/selfsubjectreviews",
            {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"},
            headers={**acting_as("bob", "g"), "Impersonate-Uid": "u", "Impersonate-Extra-Scopes": "x"},
        ),
    ),
    Case(
        "who is a service account, impersonated",
        post(f"{IDENTITY}/selfsubjectreviews", {}, headers=acting_as("system:serviceaccount:a:b")),
    ),
]

_ALL = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
_EDIT_ROLES = role(
    rules=[{"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles", "rolebindings"], "verbs": ["*"]}]
)
_EDITOR = (
    post(ROLES, {**_EDIT_ROLES, "metadata": {"name": "editor"}}),
    post(BINDINGS, binding("editor", "editor")),
    Send("GET", ROLES, headers=_BOB, until=200),
)


def _role(name: str, rules: object) -> Case:
    return Case(f"role {name}", post(ROLES, role(rules=rules)))


def _binding(name: str, **fields: Any) -> Case:
    return Case(f"binding {name}", post(BINDINGS, {**binding(), **fields}))


RBAC = [
    _role("plain", None),
    _role("without rules", []),
    _role("without verbs", [{"apiGroups": [""], "resources": ["configmaps"], "verbs": []}]),
    _role("without groups", [{"resources": ["configmaps"], "verbs": ["get"]}]),
    _role("without resources", [{"apiGroups": [""], "verbs": ["get"]}]),
    _role("with paths", [{"nonResourceURLs": ["/x"], "verbs": ["get"]}]),
    Case(
        "cluster role with paths",
        post(
            CLUSTER_ROLES,
            {
                **role(kind="ClusterRole", rules=[{"nonResourceURLs": ["/x", "/y/*"], "verbs": ["get"]}]),
                "metadata": {"name": "{ns}"},
            },
        ),
    ),
    Case(
        "cluster role with a bad path",
        post(
            CLUSTER_ROLES,
            {
                **role(kind="ClusterRole", rules=[{"nonResourceURLs": ["x*y"], "verbs": ["get"]}]),
                "metadata": {"name": "{ns}"},
            },
        ),
    ),
    Case(
        "cluster role with paths and resources",
        post(
            CLUSTER_ROLES,
            {
                **role(
                    kind="ClusterRole",
                    rules=[{"nonResourceURLs": ["/x"], "resources": ["a"], "apiGroups": [""], "verbs": ["get"]}],
                ),
                "metadata": {"name": "{ns}"},
            },
        ),
    ),
    Case("role named with a colon", post(ROLES, {**role(), "metadata": {"name": "a:b"}})),
    Case("role named with a slash", post(ROLES, {**role(), "metadata": {"name": "a/b"}})),
    Case("role made by update", put(f"{ROLES}/r", role())),
    Case("roles table", get(ROLES, accept="application/json;as=Table;v=v1;g=meta.k8s.io"), (post(ROLES, role()),)),
    _binding("plain"),
    _binding("without a role", roleRef={}),
    _binding("of an odd kind", roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "Thing", "name": "r"}),
    _binding("without subjects", subjects=[]),
    _binding("of an odd subject", subjects=[{"kind": "Thing", "name": "x"}]),
    _binding("of a nameless subject", subjects=[{"kind": "User", "name": ""}]),
    _binding(
        "of a subject with defaults", subjects=[{"kind": "User", "name": "x"}, {"kind": "ServiceAccount", "name": "y"}]
    ),
    _binding("of a service account of a group", subjects=[{"kind": "ServiceAccount", "name": "y", "apiGroup": "x"}]),
    Case("binding to another role", put(f"{BINDINGS}/b", binding(role_name="other")), (post(BINDINGS, binding()),)),
    Case(
        "bindings table",
        get(query(BINDINGS), accept="application/json;as=Table;v=v1;g=meta.k8s.io"),
        (post(BINDINGS, binding()),),
    ),
    Case(
        "cluster binding to a role",
        post(CLUSTER_BINDINGS, {**binding(), "kind": "ClusterRoleBinding", "metadata": {"name": "{ns}"}}),
    ),
    Case(
        "cluster binding",
        post(
            CLUSTER_BINDINGS,
            {
                **binding(kind="ClusterRole", role_name="view", user="nobody"),
                "kind": "ClusterRoleBinding",
                "metadata": {"name": "{ns}"},
            },
        ),
    ),
    _as_bob("escalates", post(ROLES, role("more", _ALL)), *_EDITOR),
    _as_bob(
        "escalates a little",
        post(ROLES, role("more", [{"apiGroups": [""], "resources": ["secrets", "configmaps"], "verbs": ["get"]}])),
        *_EDITOR,
    ),
    _as_bob("binds himself", post(BINDINGS, binding("more", "cluster-admin", kind="ClusterRole")), *_EDITOR),
    _as_bob("binds to a role that is not there", post(BINDINGS, binding("more", "none-such")), *_EDITOR),
    _as_bob(
        "makes a role of what he has",
        post(
            ROLES,
            role("same", [{"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["get"]}]),
        ),
        *_EDITOR,
    ),
    _as_bob("adds to his role", patch(f"{ROLES}/editor", {"rules": _ALL}), *_EDITOR),
    _as_bob("deletes his role", delete(f"{ROLES}/editor"), *_EDITOR),
    _as_bob("applies a role too large", apply(f"{ROLES}/more", role("more", _ALL)), *_EDITOR),
    Case("role applied", apply(f"{ROLES}/r", role())),
    Case(
        "binding applied twice",
        apply(f"{BINDINGS}/b", binding(user="alice"), "two"),
        (apply(f"{BINDINGS}/b", binding()),),
    ),
    Case("role cluster-admin", get(f"{CLUSTER_ROLES}/cluster-admin")),
]


def _review(name: str, resource: str, spec: object, *setup: Send, **fields: object) -> Case:
    kinds = {"selfsubjectaccessreviews": "SelfSubjectAccessReview", "subjectaccessreviews": "SubjectAccessReview"}
    kinds |= {"selfsubjectrulesreviews": "SelfSubjectRulesReview"}
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": kinds[resource], "spec": spec, **fields}
    return Case(f"review {name}", post(f"{ACCESS}/{resource}", body), setup)


_GET_MAPS = {"namespace": "{ns}", "verb": "get", "resource": "configmaps"}
_SELF, _OTHER, _RULES = "selfsubjectaccessreviews", "subjectaccessreviews", "selfsubjectrulesreviews"
_LOCAL = ACCESS + "/namespaces/{ns}/localsubjectaccessreviews"

REVIEWS = [
    _review("of oneself", _SELF, {"resourceAttributes": _GET_MAPS}),
    _review("of oneself for a path", _SELF, {"nonResourceAttributes": {"path": "/x", "verb": "get"}}),
    _review(
        "of oneself for both",
        _SELF,
        {"resourceAttributes": _GET_MAPS, "nonResourceAttributes": {"path": "/x", "verb": "get"}},
    ),
    _review("of oneself for nothing", _SELF, {}),
    _review("of oneself with a name", _SELF, {"resourceAttributes": _GET_MAPS}, metadata={"name": "x"}),
    _review("of bob who may not", _OTHER, {"user": "bob", "resourceAttributes": _GET_MAPS}),
    _review("of bob who may", _OTHER, {"user": "bob", "resourceAttributes": _GET_MAPS}, *_READER),
    _review("of a group", _OTHER, {"groups": ["system:masters"], "resourceAttributes": _GET_MAPS}),
    _review("of nobody", _OTHER, {"resourceAttributes": _GET_MAPS}),
    _review(
        "of bob for a path",
        _OTHER,
        {
            "user": "bob",
            "groups": ["system:authenticated"],
            "nonResourceAttributes": {"path": "/api/x", "verb": "get"},
        },
    ),
    _review("of bob's rules", _RULES, {"namespace": "{ns}"}),
    _review("of rules without a namespace", _RULES, {}),
    Case(
        "review of bob's own rules", post(f"{ACCESS}/{_RULES}", {"spec": {"namespace": "{ns}"}}, headers=_BOB), _READER
    ),
    Case(
        "review of bob in a namespace",
        post(_LOCAL, {"spec": {"user": "bob", "resourceAttributes": _GET_MAPS}}),
        _READER,
    ),
    Case(
        "review of bob in another namespace",
        post(_LOCAL, {"spec": {"user": "bob", "resourceAttributes": {**_GET_MAPS, "namespace": "other"}}}),
    ),
    Case(
        "review by bob of alice",
        post(f"{ACCESS}/{_OTHER}", {"spec": {"user": "alice", "resourceAttributes": _GET_MAPS}}, headers=_BOB),
    ),
    Case(
        "review with an unknown field",
        post(f"{ACCESS}/{_SELF}", {"spec": {"resourceAttributes": _GET_MAPS, "nonsense": 1}}),
    ),
    Case("review with nothing in it", post(f"{ACCESS}/{_SELF}", {})),
    Case("review of a bad token", post(f"{IDENTITY}/tokenreviews", {"spec": {"token": "nonsense"}})),
    Case("review of no token", post(f"{IDENTITY}/tokenreviews", {"spec": {}})),
    Case(
        "review of a good token",
        post(f"{IDENTITY}/tokenreviews", {"spec": {"token": "<1:status.token>"}}),
        (post(ACCOUNTS, {"metadata": {"name": "robot"}}), post(f"{ACCOUNTS}/robot/token", {"spec": {}})),
    ),
    Case(
        "review of a token for others",
        post(f"{IDENTITY}/tokenreviews", {"spec": {"token": "<1:status.token>", "audiences": ["other"]}}),
        (post(ACCOUNTS, {"metadata": {"name": "robot"}}), post(f"{ACCOUNTS}/robot/token", {"spec": {}})),
    ),
    Case(
        "who am I",
        post(f"{IDENTITY}/selfsubjectreviews", {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}),
    ),
    Case("reviews listed", get(f"{ACCESS}/{_SELF}")),
    Case("review read", get(f"{ACCESS}/{_SELF}/x")),
    Case("review deleted", delete(f"{IDENTITY}/tokenreviews/x")),
]

CASES = [*IDENTITIES, *IMPERSONATION, *RBAC, *REVIEWS]
