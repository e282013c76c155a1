"""Roles and their bindings: who may do what.

The rules that need more than a field are in ``apiserver/resources/rbac``. Source: ``rbac.authorization.k8s.io/v1``.
"""

from typing import Any, Final

from pydantic import ConfigDict, Field

from krm.meta.objects import ObjectMeta, WireModel

_ATOMIC: Final[dict[str, Any]] = {"x-kubernetes-list-type": "atomic"}
_RULES: Final[dict[str, Any]] = {**_ATOMIC, "nullable": True}
_WHOLE: Final = ConfigDict(json_schema_extra={"x-kubernetes-map-type": "atomic"})
_METADATA: Final = "Standard object metadata."


class PolicyRule(WireModel):
    """Verbs on resources, or on URLs that are no resource's."""

    verbs: list[str] = Field(description="What may be done; * is everything.", json_schema_extra=_ATOMIC)
    api_groups: list[str] | None = Field(
        default=None, description='API groups of the resources; "" is the core group, * all.', json_schema_extra=_ATOMIC
    )
    resources: list[str] | None = Field(
        default=None,
        description="Resources, with their subresources like packagerevisions/approval; * is all.",
        json_schema_extra=_ATOMIC,
    )
    resource_names: list[str] | None = Field(
        default=None, description="Names of the objects; empty is all.", json_schema_extra=_ATOMIC
    )
    non_resource_urls: list[str] | None = Field(
        default=None,
        alias="nonResourceURLs",
        description="Paths that are no resource's; a * at the end stands for everything below. ClusterRoles only.",
        json_schema_extra=_ATOMIC,
    )


class LabelRequirement(WireModel):
    """One condition on labels."""

    key: str = Field(description="Label.")
    operator: str = Field(description="In, NotIn, Exists or DoesNotExist.")
    values: list[str] | None = Field(
        default=None, description="Values that In and NotIn compare with.", json_schema_extra=_ATOMIC
    )


class RoleSelector(WireModel):
    """Selects ClusterRoles by their labels; all conditions must hold."""

    model_config = _WHOLE

    match_labels: dict[str, str] | None = Field(default=None, description="Labels and the values they must have.")
    match_expressions: list[LabelRequirement] | None = Field(
        default=None, description="Further conditions.", json_schema_extra=_ATOMIC
    )


class AggregationRule(WireModel):
    """Where a ClusterRole takes its rules from."""

    cluster_role_selectors: list[RoleSelector] | None = Field(
        default=None,
        description="ClusterRoles whose rules are gathered; one selector that matches is enough.",
        json_schema_extra=_ATOMIC,
    )


class Role(WireModel):
    """Rules for one namespace."""

    metadata: ObjectMeta = Field(default_factory=ObjectMeta, description=_METADATA)
    rules: list[PolicyRule] | None = Field(default=None, description="What it allows.", json_schema_extra=_RULES)


class ClusterRole(WireModel):
    """Rules for the whole server, or for any namespace that binds them."""

    metadata: ObjectMeta = Field(default_factory=ObjectMeta, description=_METADATA)
    rules: list[PolicyRule] | None = Field(default=None, description="What it allows.", json_schema_extra=_RULES)
    aggregation_rule: AggregationRule | None = Field(
        default=None, description="If set, the server writes the rules itself, from those of other ClusterRoles."
    )


class Subject(WireModel):
    """A user, a group or a service account."""

    model_config = _WHOLE

    # Not required here, for the same reason as in RoleRef.
    kind: str = Field(default="", description="User, Group or ServiceAccount.")
    api_group: str | None = Field(
        default=None, description="rbac.authorization.k8s.io for users and groups, empty for service accounts."
    )
    name: str = Field(default="", description="Name of the user, group or service account.")
    namespace: str | None = Field(default=None, description="Namespace of the service account.")


class RoleRef(WireModel):
    """Names a role."""

    api_group: str = Field(default="", description="rbac.authorization.k8s.io.")
    # Not required here: the server says what is missing in the words of RBAC.
    kind: str = Field(default="", description="Role or ClusterRole.")
    name: str = Field(default="", description="Name of the role.")


class RoleBinding(WireModel):
    """Gives a role to subjects, in one namespace."""

    metadata: ObjectMeta = Field(default_factory=ObjectMeta, description=_METADATA)
    subjects: list[Subject] | None = Field(default=None, description="Who gets it.", json_schema_extra=_ATOMIC)
    role_ref: RoleRef = Field(
        description="What they get: a Role of the namespace or a ClusterRole; cannot be changed.",
        json_schema_extra={"x-kubernetes-map-type": "atomic"},
    )


class ClusterRoleBinding(WireModel):
    """Gives a ClusterRole to subjects, everywhere."""

    metadata: ObjectMeta = Field(default_factory=ObjectMeta, description=_METADATA)
    subjects: list[Subject] | None = Field(default=None, description="Who gets it.", json_schema_extra=_ATOMIC)
    role_ref: RoleRef = Field(
        description="What they get: a ClusterRole; cannot be changed.",
        json_schema_extra={"x-kubernetes-map-type": "atomic"},
    )
