"""The roles for a cluster are those of the standalone server, under a service account."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from apiserver.resources.rbac.defaults import INJECTABLE, default_cluster_roles

CHART = Path(__file__).parents[2] / "charts" / "porch" / "rbac-controllers.yaml"
OBJECTS: list[dict[str, Any]] = list(yaml.safe_load_all(CHART.read_text()))
DEFAULTS = {role["metadata"]["name"]: role for role in default_cluster_roles()}


def rules(*names: str) -> list[Any]:
    chosen = [one["rules"] for one in OBJECTS if one["metadata"]["name"] in names and "rules" in one]
    return in_order(rule for part in chosen for rule in part)


def in_order(found: Iterable[dict[str, Any]]) -> list[Any]:
    return sorted((sorted((key, sorted(values)) for key, values in rule.items()) for rule in found), key=str)


def test_the_controllers_may_do_the_same_in_a_cluster_as_at_the_standalone_server() -> None:
    theirs = DEFAULTS["system:porch-controllers"]["rules"]

    assert rules("porch-controllers", "porch-controllers-lease") == in_order(theirs)


def test_what_may_be_injected_is_gathered_by_the_same_label() -> None:
    (gathering,) = (one for one in OBJECTS if "aggregationRule" in one)
    (labelled,) = (one for one in OBJECTS if INJECTABLE in (one["metadata"].get("labels") or {}))

    assert gathering["aggregationRule"] == DEFAULTS["system:porch-injectables"]["aggregationRule"]
    assert labelled["rules"] == DEFAULTS["porch-injectable-configmaps"]["rules"]


def test_nothing_gives_a_right_to_secrets_or_approvals() -> None:
    resources = {resource for one in OBJECTS for rule in one.get("rules") or [] for resource in rule["resources"]}

    assert not resources & {"*", "secrets", "packagerevisions/approval"}


def test_every_role_is_bound_to_the_service_account() -> None:
    bound = {(one["roleRef"]["kind"], one["roleRef"]["name"]) for one in OBJECTS if "roleRef" in one}
    gathered = {one["metadata"]["name"] for one in OBJECTS if INJECTABLE in (one["metadata"].get("labels") or {})}
    roles = {(one["kind"], one["metadata"]["name"]) for one in OBJECTS if one["kind"] in {"Role", "ClusterRole"}}

    assert bound == {role for role in roles if role[1] not in gathered}
    for one in OBJECTS:
        for subject in one.get("subjects") or []:
            assert subject == {"kind": "ServiceAccount", "name": "porch-controllers", "namespace": "porch-system"}
