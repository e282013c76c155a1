"""The roles for a cluster are those of the standalone server: for its controllers under accounts, for people under the cluster's own roles.

They are read from the manifests in ``deploy``, which are rendered from the chart.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml
from aggregated_process import rights as server_rights

from apiserver.resources.rbac.defaults import AGGREGATE_TO, INJECTABLE, default_cluster_roles

DEPLOY = Path(__file__).parents[2] / "deploy"
PORCH: list[dict[str, Any]] = [one for one in yaml.safe_load_all((DEPLOY / "porch.yaml").read_text()) if one]
APPROVAL: list[dict[str, Any]] = [
    one for one in yaml.safe_load_all((DEPLOY / "porch-approval.yaml").read_text()) if one
]
DEFAULTS = {role["metadata"]["name"]: role for role in default_cluster_roles()}
GROUPS = {"porch.kpt.dev", "config.porch.kpt.dev"}
Right = tuple[str, str, str]


def role(objects: list[dict[str, Any]], name: str, kind: str = "ClusterRole") -> dict[str, Any]:
    (found,) = (one for one in objects if (one["kind"], one["metadata"]["name"]) == (kind, name))
    return found


def rights(*roles: dict[str, Any]) -> set[Right]:
    """Return group, resource and verb of everything that the roles allow."""
    return {
        (group, resource, verb)
        for one in roles
        for rule in one["rules"]
        for group in rule.get("apiGroups", ())
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def labelled(roles: Iterable[dict[str, Any]], label: str) -> list[dict[str, Any]]:
    return [one for one in roles if one["metadata"].get("labels", {}).get(label) == "true"]


@pytest.mark.parametrize(
    ("objects", "name", "user"),
    [
        (PORCH, "porch-controllers", "system:porch-controllers"),
        (APPROVAL, "porch-approval", "system:porch-approval"),
    ],
)
def test_controllers_may_do_the_same_in_a_cluster_as_at_the_standalone_server(
    objects: list[dict[str, Any]], name: str, user: str
) -> None:
    assert rights(role(objects, name), role(objects, f"{name}-lease", "Role")) == rights(DEFAULTS[user])


def test_what_may_be_injected_is_gathered_by_the_same_label() -> None:
    gathering, always = role(PORCH, "porch-injectables"), role(PORCH, "porch-injectable-configmaps")

    assert gathering["aggregationRule"] == DEFAULTS["system:porch-injectables"]["aggregationRule"]
    assert always["rules"] == DEFAULTS["porch-injectable-configmaps"]["rules"]
    assert not labelled(PORCH, INJECTABLE), (
        "gathered ones would write the gathering role while a release is uninstalled"
    )


@pytest.mark.parametrize("level", ["view", "edit", "admin"])
def test_people_may_do_the_same_with_our_kinds_by_the_roles_of_a_cluster(level: str) -> None:
    label = f"{AGGREGATE_TO}{level}"
    expected = {right for right in rights(*labelled(DEFAULTS.values(), label)) if right[0] in GROUPS}

    assert expected
    assert rights(*labelled(PORCH, label)) == expected


@pytest.mark.parametrize("name", ["porch-author", "porch-approver"])
def test_the_roles_of_authors_and_approvers_are_the_same(name: str) -> None:
    assert rights(role(PORCH, name)) == rights(DEFAULTS[name])


def test_the_controllers_have_no_right_to_secrets_or_approvals() -> None:
    names = ("porch-controllers", "porch-injectable-configmaps")
    resources = {resource for _, resource, _ in rights(*(role(PORCH, name) for name in names))}

    assert not resources & {"*", "secrets", "packagerevisions/approval"}


def test_the_server_has_the_rights_that_it_is_tested_with_in_a_cluster_and_no_others() -> None:
    allowed = rights(role(PORCH, "porch-server"), role(PORCH, "porch-server-credentials"))

    assert allowed == rights(role(server_rights(), "porch-server"))
    assert {verb for _, resource, verb in allowed if resource == "secrets"} == {"get"}
    assert not {verb for _, _, verb in allowed} & {"*", "escalate", "bind", "impersonate"}


def test_every_account_has_exactly_the_roles_of_its_component() -> None:
    bound: dict[str, set[str]] = {}
    for one in (*PORCH, *APPROVAL):
        for subject in one.get("subjects") or ():
            assert (subject["kind"], subject["namespace"]) == ("ServiceAccount", "porch-system")
            bound.setdefault(subject["name"], set()).add(one["roleRef"]["name"])

    assert bound == {
        "porch-approval": {"porch-approval", "porch-approval-lease"},
        "porch-controllers": {
            "porch-controllers",
            "porch-controllers-lease",
            "porch-injectables",
            "porch-injectable-configmaps",
        },
        "porch-server": {
            "porch-server",
            "porch-server-credentials",
            "porch-injectables",
            "porch-injectable-configmaps",
            "system:auth-delegator",
            "extension-apiserver-authentication-reader",
        },
    }
