"""The roles and bindings that are always there.

Kubernetes' own names mean here what they mean there, as far as the kinds exist that are served here. Added are the roles of
package authors and approvers. Source: ``kube-api.md`` 3.6.
"""

from collections.abc import Sequence
from typing import Any, Final

from apiserver.auth.identity import AUTHENTICATED, MASTERS, SERVICE_ACCOUNTS, UNAUTHENTICATED
from apiserver.auth.rbac import GROUP

Json = dict[str, Any]

AUTO_UPDATE: Final = "rbac.authorization.kubernetes.io/autoupdate"
"""Annotation; "false" keeps the server from changing the object at its starts."""
AGGREGATE_TO: Final = f"{GROUP}/aggregate-to-"

INJECTABLE: Final = "config.porch.kpt.dev/aggregate-to-injectables"
"""Label of ClusterRoles whose rules tell what the controllers may read to copy it into packages: "true"."""
CONTROLLERS: Final = "system:porch-controllers"
"""The user that the controllers are."""
APPROVAL: Final = "system:porch-approval"
"""The user that the controller of approval policies is, which the others are not: they cannot approve."""

_BOOTSTRAPPING: Final = {"kubernetes.io/bootstrapping": "rbac-defaults"}
_READ: Final = ("get", "list", "watch")
_WRITE: Final = ("create", "delete", "deletecollection", "patch", "update")
_PORCH, _CONFIG = "porch.kpt.dev", "config.porch.kpt.dev"
_CONFIG_KINDS: Final = ("repositories", "packagevariants", "packagevariantsets")
_HEALTH: Final = ("/healthz", "/livez", "/readyz")
_DISCOVERY: Final = ("/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*")
_PUBLIC: Final = (*_HEALTH, "/version", "/version/")


def default_cluster_roles() -> list[Json]:
    """Return the ClusterRoles, those that gather others' rules last."""
    return [
        _role("cluster-admin", [_rule(["*"], ["*"], ["*"]), _urls("*", verb="*")]),
        _role("system:discovery", [_urls(*sorted((*_PUBLIC, *_DISCOVERY)))]),
        _role("system:basic-user", _basic_user_rules()),
        _role("system:public-info-viewer", [_urls(*_PUBLIC)]),
        _role("system:monitoring", [_urls("/metrics", "/metrics/slis", *_HEALTH, *(f"{path}/*" for path in _HEALTH))]),
        _role(
            "system:service-account-issuer-discovery", [_urls("/.well-known/openid-configuration", "/openid/v1/jwks")]
        ),
        _role("system:auth-delegator", _delegator_rules()),
        _role("system:aggregate-to-view", _view_rules(), {f"{AGGREGATE_TO}view": "true"}),
        _role("system:aggregate-to-edit", _edit_rules(), {f"{AGGREGATE_TO}edit": "true"}),
        _role("system:aggregate-to-admin", _admin_rules(), {f"{AGGREGATE_TO}admin": "true"}),
        _role("porch-author", _author_rules(), {f"{AGGREGATE_TO}edit": "true"}),
        _role("porch-approver", _approver_rules(), {f"{AGGREGATE_TO}admin": "true"}),
        _role("system:porch-controllers", _controllers_rules()),
        _role("system:porch-approval", _approval_rules()),
        _role("porch-injectable-configmaps", [_rule(_READ, [""], ["configmaps"])], {INJECTABLE: "true"}),
        _gathering("system:porch-injectables", by={INJECTABLE: "true"}),
        _gathering("view", {f"{AGGREGATE_TO}edit": "true"}),
        _gathering("edit", {f"{AGGREGATE_TO}admin": "true"}),
        _gathering("admin"),
    ]


def default_cluster_role_bindings() -> list[Json]:
    """Return the ClusterRoleBindings."""
    return [
        _binding("cluster-admin", MASTERS),
        _binding("system:discovery", AUTHENTICATED),
        _binding("system:basic-user", AUTHENTICATED),
        _binding("system:public-info-viewer", AUTHENTICATED, UNAUTHENTICATED),
        _binding("system:monitoring", "system:monitoring"),
        _binding("system:service-account-issuer-discovery", SERVICE_ACCOUNTS),
        _binding_of_user("system:porch-controllers", CONTROLLERS),
        _binding_of_user("system:porch-approval", APPROVAL),
        _binding_of_user("system:porch-injectables", CONTROLLERS),
    ]


def _basic_user_rules() -> list[Json]:
    return [
        _rule(["create"], ["authorization.k8s.io"], ["selfsubjectaccessreviews", "selfsubjectrulesreviews"]),
        _rule(["create"], ["authentication.k8s.io"], ["selfsubjectreviews"]),
    ]


def _delegator_rules() -> list[Json]:
    return [
        _rule(["create"], ["authentication.k8s.io"], ["tokenreviews"]),
        _rule(["create"], ["authorization.k8s.io"], ["subjectaccessreviews"]),
    ]


def _view_rules() -> list[Json]:
    """Everything but Secrets, which hold the rights of others, and roles."""
    return [
        _rule(_READ, [""], ["configmaps", "events", "namespaces", "serviceaccounts"]),
        _rule(_READ, ["events.k8s.io"], ["events"]),
        _rule(_READ, ["coordination.k8s.io"], ["leases"]),
        _rule(_READ, [_PORCH], ["packages", "packagerevisions", "packagerevisionresources"]),
        _rule(_READ, [_CONFIG], [*_CONFIG_KINDS, *(f"{kind}/status" for kind in _CONFIG_KINDS)]),
        _rule(["create"], [_PORCH], ["packagevariantsetpreviews"]),  # which shows only what its creator may read
    ]


def _edit_rules() -> list[Json]:
    return [
        _rule(_READ, [""], ["secrets"]),
        _rule(["impersonate"], [""], ["serviceaccounts"]),
        _rule(_WRITE, [""], ["configmaps", "events", "secrets", "serviceaccounts"]),
        _rule(["create"], [""], ["serviceaccounts/token"]),
        _rule(_WRITE, ["events.k8s.io"], ["events"]),
        _rule(_WRITE, ["coordination.k8s.io"], ["leases"]),
        _rule(_WRITE, [_CONFIG], _CONFIG_KINDS),
    ]


def _admin_rules() -> list[Json]:
    return [
        _rule(["create"], ["authorization.k8s.io"], ["localsubjectaccessreviews"]),
        _rule((*_READ, *_WRITE), [GROUP], ["roles", "rolebindings"]),
    ]


def _author_rules() -> list[Json]:
    """Everything about packages short of approving them."""
    return [
        _rule(_READ, [_PORCH], ["packages"]),
        _rule((*_READ, *_WRITE), [_PORCH], ["packagerevisions"]),
        _rule((*_READ, "patch", "update"), [_PORCH], ["packagerevisionresources"]),
        _rule(_READ, [_CONFIG], _CONFIG_KINDS),
    ]


def _approver_rules() -> list[Json]:
    return [
        _rule(_READ, [_PORCH], ["packages", "packagerevisions", "packagerevisionresources"]),
        _rule(["get", "patch", "update"], [_PORCH], ["packagerevisions/approval"]),
        _rule(_READ, [_CONFIG], _CONFIG_KINDS),
    ]


def _controllers_rules() -> list[Json]:
    """What PackageVariants and their sets need (``variants.md`` 1.8), and the Lease and Events of their controllers."""
    return [
        _rule(_READ, [_CONFIG], ["packagevariantsets"]),
        _rule(["get", "patch", "update"], [_CONFIG], ["packagevariantsets/status"]),
        _rule(["update"], [_CONFIG], ["packagevariantsets/finalizers"]),
        _rule((*_READ, *_WRITE), [_CONFIG], ["packagevariants"]),
        _rule(["get", "patch", "update"], [_CONFIG], ["packagevariants/status"]),
        _rule(["update"], [_CONFIG], ["packagevariants/finalizers"]),
        _rule(_READ, [_CONFIG], ["repositories"]),
        _rule((*_READ, *_WRITE), [_PORCH], ["packagerevisions", "packagerevisionresources"]),
        _rule(_READ, ["apiextensions.k8s.io"], ["customresourcedefinitions"]),
        _rule(["create", "get", "patch", "update"], [""], ["events"]),
        _rule(["create", "get", "update"], ["coordination.k8s.io"], ["leases"]),
    ]


def _approval_rules() -> list[Json]:
    """What following approval policies takes (``variants.md`` 6.3): no package's contents, and no variant's spec."""
    return [
        _rule([*_READ, "delete", "update"], [_PORCH], ["packagerevisions"]),
        _rule(["update"], [_PORCH], ["packagerevisions/approval"]),
        _rule(_READ, [_CONFIG], ["packagevariants", "repositories"]),
        _rule(["create", "get", "patch", "update"], [""], ["events"]),
        _rule([*_READ, "create", "update"], ["coordination.k8s.io"], ["leases"]),
    ]


def _rule(verbs: Sequence[str], groups: Sequence[str], resources: Sequence[str]) -> Json:
    return {"verbs": list(verbs), "apiGroups": list(groups), "resources": list(resources)}


def _urls(*urls: str, verb: str = "get") -> Json:
    return {"verbs": [verb], "nonResourceURLs": list(urls)}


def _role(name: str, rules: Sequence[Json], labels: dict[str, str] | None = None) -> Json:
    return {**_head("ClusterRole", name, labels or {}), "rules": list(rules)}


def _gathering(name: str, labels: dict[str, str] | None = None, *, by: dict[str, str] | None = None) -> Json:
    selector = {"matchLabels": by or {f"{AGGREGATE_TO}{name}": "true"}}
    rule = {"clusterRoleSelectors": [selector]}
    return {**_head("ClusterRole", name, labels or {}), "aggregationRule": rule, "rules": []}


def _binding(role: str, *groups: str) -> Json:
    return _bound(role, [{"kind": "Group", "apiGroup": GROUP, "name": group} for group in groups])


def _binding_of_user(role: str, user: str) -> Json:
    return _bound(role, [{"kind": "User", "apiGroup": GROUP, "name": user}])


def _bound(role: str, subjects: list[Json]) -> Json:
    role_ref = {"apiGroup": GROUP, "kind": "ClusterRole", "name": role}
    return {**_head("ClusterRoleBinding", role, {}), "subjects": subjects, "roleRef": role_ref}


def _head(kind: str, name: str, labels: dict[str, str]) -> Json:
    metadata = {"name": name, "labels": {**_BOOTSTRAPPING, **labels}, "annotations": {AUTO_UPDATE: "true"}}
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": metadata}
