"""Definitions of Role, ClusterRole and their bindings: columns, defaults, rules.

Source: ``kube-api.md`` 3.6; the messages are those of ``rbac.authorization.k8s.io/v1``.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from pydantic import BaseModel

from apiserver.auth.rbac import GROUP
from apiserver.machinery.definition import Column, Definition, Json
from apiserver.machinery.schema import structural_schema
from apiserver.resources.columns import BUILT_IN_AGE, path_value
from krm.api.rbac import ClusterRole, ClusterRoleBinding, Role, RoleBinding
from krm.meta.errors import Cause, invalid_value, not_supported_value, required_value
from krm.meta.names import path_segment_problem, subdomain_problem

_CREATED_AT = Column(
    "Created At", "string", path_value("metadata", "creationTimestamp"), "When it was created.", told_type="date"
)
_SUBJECT_KINDS = ("ServiceAccount", "User", "Group")


def role_definition() -> Definition:
    """Define Role."""
    return _role_definition("Role", Role, namespaced=True)


def cluster_role_definition() -> Definition:
    """Define ClusterRole."""
    return _role_definition("ClusterRole", ClusterRole, namespaced=False)


def role_binding_definition() -> Definition:
    """Define RoleBinding."""
    return _binding_definition("RoleBinding", RoleBinding, namespaced=True)


def cluster_role_binding_definition() -> Definition:
    """Define ClusterRoleBinding."""
    return _binding_definition("ClusterRoleBinding", ClusterRoleBinding, namespaced=False)


def _definition(
    kind: str,
    model: type[BaseModel],
    *,
    namespaced: bool,
    columns: tuple[Column, ...],
    prepare: Callable[[Json, Json | None], None],
    validate: Callable[[Json, Json | None], list[Cause]],
) -> Definition:
    return Definition(
        group=GROUP,
        version="v1",
        kind=kind,
        plural=f"{kind.lower()}s",
        singular=kind.lower(),
        schema=structural_schema(model),
        namespaced=namespaced,
        columns=columns,
        strategic=True,
        unconditional_update=True,
        create_on_update=True,
        generation=False,
        free_name=True,
        prepare=prepare,
        validate=validate,
    )


def _role_definition(kind: str, model: type[BaseModel], *, namespaced: bool) -> Definition:
    return _definition(
        kind,
        model,
        namespaced=namespaced,
        columns=(_CREATED_AT,),
        prepare=_complete_role,
        validate=partial(_role_causes, namespaced),
    )


def _binding_definition(kind: str, model: type[BaseModel], *, namespaced: bool) -> Definition:
    columns = (
        Column("Role", "string", _role_of, "Kind and name of the role."),
        BUILT_IN_AGE,
        Column("Users", "string", partial(_subjects, "User"), "Users who get it.", priority=1),
        Column("Groups", "string", partial(_subjects, "Group"), "Groups that get it.", priority=1),
        Column("ServiceAccounts", "string", partial(_subjects, "ServiceAccount"), "Accounts that get it.", priority=1),
    )
    return _definition(
        kind,
        model,
        namespaced=namespaced,
        columns=columns,
        prepare=_complete_binding,
        validate=partial(_binding_causes, namespaced),
    )


def _role_of(binding: Json) -> str:
    reference = binding.get("roleRef") or {}
    return f"{reference.get('kind', '')}/{reference.get('name', '')}"


def _subjects(kind: str, binding: Json) -> str:
    found = [subject for subject in binding.get("subjects") or () if subject.get("kind") == kind]
    if kind != "ServiceAccount":
        return ", ".join(subject.get("name", "") for subject in found)
    return ", ".join(f"{subject.get('namespace', '')}/{subject.get('name', '')}" for subject in found)


def _role_causes(namespaced: bool, role: Json, _old: Json | None) -> list[Cause]:
    causes: list[Cause] = []
    for index, rule in enumerate(role.get("rules") or ()):
        causes += _rule_causes(f"rules[{index}]", rule, namespaced=namespaced)
    selectors = (role.get("aggregationRule") or {}).get("clusterRoleSelectors")
    if role.get("aggregationRule") is not None and not selectors:
        causes.append(
            required_value(
                "aggregationRule.clusterRoleSelectors",
                "at least one clusterRoleSelector required if aggregationRule is non-nil",
            )
        )
    return causes


def _rule_causes(field: str, rule: Json, *, namespaced: bool) -> Iterator[Cause]:
    if not rule.get("verbs"):
        yield required_value(f"{field}.verbs", "verbs must contain at least one value")
    if urls := rule.get("nonResourceURLs"):
        if namespaced:
            detail = "namespaced rules cannot apply to non-resource URLs"
            yield invalid_value(f"{field}.nonResourceURLs", urls, detail)
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            detail = "rules cannot apply to both regular resources and non-resource URLs"
            yield invalid_value(f"{field}.nonResourceURLs", urls, detail)
        return
    if not rule.get("apiGroups"):
        yield required_value(f"{field}.apiGroups", "resource rules must supply at least one api group")
    if not rule.get("resources"):
        yield required_value(f"{field}.resources", "resource rules must supply at least one resource")


def _complete_role(role: Json, _old: Json | None) -> None:
    """Say that there are no rules with null, as kube-apiserver does."""
    if not role.get("rules"):
        role["rules"] = None


def _complete_binding(binding: Json, _old: Json | None) -> None:
    """Fill in the API groups that subjects and roles of a kind always have."""
    if not binding.get("subjects"):
        binding.pop("subjects", None)
    reference = binding.get("roleRef")
    if isinstance(reference, dict) and not reference.get("apiGroup"):
        binding["roleRef"] = {"apiGroup": GROUP, **{k: v for k, v in reference.items() if k != "apiGroup"}}
    for subject in binding.get("subjects") or ():
        if not subject.get("apiGroup"):
            subject.pop("apiGroup", None)
            if subject.get("kind") in ("User", "Group"):
                subject["apiGroup"] = GROUP


def _binding_causes(namespaced: bool, binding: Json, old: Json | None) -> list[Cause]:
    causes = [*_reference_causes(binding.get("roleRef") or {}, namespaced=namespaced)]
    for index, subject in enumerate(binding.get("subjects") or ()):
        causes += _subject_causes(f"subjects[{index}]", subject, namespaced=namespaced)
    if old is not None and old.get("roleRef") != binding.get("roleRef"):
        causes.append(invalid_value("roleRef", _as_internal(binding.get("roleRef") or {}), "cannot change roleRef"))
    return causes


def _as_internal(reference: Json) -> Json:
    """Write a role's name as kube-apiserver shows it in errors: with its internal names, which clients compare."""
    names = {"APIGroup": "apiGroup", "Kind": "kind", "Name": "name"}
    return {internal: reference.get(name, "") for internal, name in names.items()}


def _reference_causes(reference: Json, *, namespaced: bool) -> Iterator[Cause]:
    if reference.get("apiGroup") != GROUP:
        yield not_supported_value("roleRef.apiGroup", reference.get("apiGroup", ""), [GROUP])
    kinds = ["Role", "ClusterRole"] if namespaced else ["ClusterRole"]
    if reference.get("kind") not in kinds:
        yield not_supported_value("roleRef.kind", reference.get("kind", ""), kinds)
    name = reference.get("name")
    if not name:
        yield required_value("roleRef.name")
    elif problem := path_segment_problem(name):
        yield invalid_value("roleRef.name", name[:512], problem)


def _subject_causes(field: str, subject: Json, *, namespaced: bool) -> Iterator[Cause]:
    name, kind, group = subject.get("name"), subject.get("kind"), subject.get("apiGroup", "")
    if not name:
        yield required_value(f"{field}.name")
    if kind not in _SUBJECT_KINDS:
        yield not_supported_value(f"{field}.kind", kind or "", _SUBJECT_KINDS)
    elif kind == "ServiceAccount":
        yield from _account_causes(field, subject, namespaced=namespaced)
    elif group != GROUP:
        yield not_supported_value(f"{field}.apiGroup", group, [GROUP])


def _account_causes(field: str, subject: dict[str, Any], *, namespaced: bool) -> Iterator[Cause]:
    name = subject.get("name")
    if name and (problem := subdomain_problem(name)):
        yield invalid_value(f"{field}.name", name[:512], problem)
    if subject.get("apiGroup"):
        yield not_supported_value(f"{field}.apiGroup", subject["apiGroup"], [""])
    if not namespaced and not subject.get("namespace"):
        yield required_value(f"{field}.namespace")
