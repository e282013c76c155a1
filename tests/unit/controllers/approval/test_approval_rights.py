"""The right to approve is one of its own, in a cluster and at the standalone server alike. Source: ``variants.md`` 6.3."""

from pathlib import Path
from typing import Any

import yaml

from apiserver.resources.rbac.defaults import default_cluster_role_bindings, default_cluster_roles

MANIFESTS = Path(__file__).parents[4] / "deploy" / "porch-approval.yaml"
"""What the chart renders."""
OBJECTS: list[dict[str, Any]] = [one for one in yaml.safe_load_all(MANIFESTS.read_text()) if one]
NAME = "system:porch-approval"


def in_order(rules: list[dict[str, Any]]) -> list[str]:
    return sorted(str(sorted((key, sorted(values)) for key, values in rule.items())) for rule in rules)


def role(name: str) -> dict[str, Any]:
    return next(one for one in default_cluster_roles() if one["metadata"]["name"] == name)


def test_the_chart_gives_what_the_standalone_server_gives() -> None:
    rules = [rule for one in OBJECTS for rule in one.get("rules") or []]
    assert in_order(rules) == in_order(role(NAME)["rules"])


def test_every_role_of_the_chart_is_bound_to_its_account_alone() -> None:
    roles = {(one["kind"], one["metadata"]["name"]) for one in OBJECTS if one["kind"] in {"Role", "ClusterRole"}}
    assert {(one["roleRef"]["kind"], one["roleRef"]["name"]) for one in OBJECTS if "roleRef" in one} == roles
    subjects = [subject for one in OBJECTS for subject in one.get("subjects") or []]
    assert all(
        one == {"kind": "ServiceAccount", "name": "porch-approval", "namespace": "porch-system"} for one in subjects
    )


def test_the_user_may_not_touch_contents_nor_variants() -> None:
    for rule in role(NAME)["rules"]:
        assert not {"packagerevisionresources", "secrets", "*"} & set(rule["resources"])
        if "packagevariants" in rule["resources"]:
            assert set(rule["verbs"]) == {"get", "list", "watch"}


def test_only_this_controller_has_the_right() -> None:
    bound = [one for one in default_cluster_role_bindings() if one["roleRef"]["name"] == NAME]
    assert [subject["name"] for one in bound for subject in one["subjects"]] == [NAME]
    assert "approval" not in str(role("system:porch-controllers")["rules"])
