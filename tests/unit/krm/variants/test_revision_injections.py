"""What a revision tells of its injection points without its files being read."""

from typing import Any

from krm.variants.revisions import Revision

Json = dict[str, Any]


def revision(gates: list[str], conditions: list[Json]) -> Revision:
    return Revision.of(
        {
            "metadata": {"namespace": "default", "name": "deployments.bar.packagevariant-1"},
            "spec": {"readinessGates": [{"conditionType": gate} for gate in gates]},
            "status": {"conditions": conditions},
        }
    )


def condition(type_: str, status: str) -> Json:
    return {"type": type_, "status": status, "reason": "X", "message": ""}


def test_points_are_known_from_their_conditions_and_only_gated_ones_are_missed() -> None:
    found = revision(
        ["PVOperationsComplete", "config.injection.ConfigMap.required"],
        [
            condition("PVOperationsComplete", "False"),
            condition("config.injection.ConfigMap.optional", "False"),
            condition("config.injection.ConfigMap.required", "False"),
            condition("config.injection.Team.done", "True"),
            condition("config.injectionist", "False"),
        ],
    )

    assert found.injections == (
        "config.injection.ConfigMap.optional",
        "config.injection.ConfigMap.required",
        "config.injection.Team.done",
    )
    assert found.unfulfilled == ("config.injection.ConfigMap.required",)


def test_a_fulfilled_gate_is_not_missed() -> None:
    type_ = "config.injection.ConfigMap.endpoints"

    assert revision([type_], [condition(type_, "True")]).unfulfilled == ()
    assert revision([type_], [condition(type_, "Unknown")]).unfulfilled == (type_,)


def test_a_package_without_points_has_none() -> None:
    assert revision([], []).injections == ()
