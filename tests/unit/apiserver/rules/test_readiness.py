"""Readiness gates: seed 002 part 1, ``decisions.md`` 14, ``variants.md`` C-15."""

import pytest

from apiserver.rules.lifecycle import Lifecycle
from apiserver.rules.pipeline_gate import PIPELINE_GATE, failed, passed, waiting
from apiserver.rules.readiness import gates_holding, unmet_gates, unready

D, P, U, X = Lifecycle.DRAFT, Lifecycle.PROPOSED, Lifecycle.PUBLISHED, Lifecycle.DELETION_PROPOSED
INJECTED = "config.injection.settings"


@pytest.mark.parametrize(
    ("status", "unmet"),
    [
        pytest.param("True", [], id="met"),
        pytest.param("False", ["tests.Passed"], id="failed"),
        pytest.param("Unknown", ["tests.Passed"], id="unknown-is-not-true"),
        pytest.param("true", ["tests.Passed"], id="another-spelling-is-not-true"),
        pytest.param(None, ["tests.Passed"], id="never-reported"),
    ],
)
def test_a_gate_is_met_only_by_a_true_condition(status: str | None, unmet: list[str]) -> None:
    """A gate blocks until its own condition says True; silence never opens it."""
    conditions = [passed(), {"type": "other.Passed", "status": "True"}]
    if status is not None:
        conditions.append({"type": "tests.Passed", "status": status})

    found = unmet_gates([{"conditionType": "tests.Passed"}], conditions, deployment=False)

    assert [gate for gate, _ in found] == unmet


@pytest.mark.parametrize("order", [1, -1])
def test_of_several_conditions_of_one_type_each_has_to_be_true(order: int) -> None:
    """Only a Kptfile edited by hand has them; which one would count must not be a matter of luck."""
    twice = [{"type": "tests.Passed", "status": status} for status in ("True", "False")][::order]

    found = unmet_gates([{"conditionType": "tests.Passed"}], [passed(), *twice], deployment=False)

    assert [gate for gate, _ in found] == ["tests.Passed"]


@pytest.mark.parametrize("gates", [[], [{"conditionType": PIPELINE_GATE}]], ids=["unnamed", "named"])
def test_the_pipeline_gate_holds_whether_the_revision_names_it_or_not(gates: list[dict[str, str]]) -> None:
    assert unmet_gates(gates, [passed()], deployment=False) == []
    assert [gate for gate, _ in unmet_gates(gates, [waiting()], deployment=False)] == [PIPELINE_GATE]
    assert unmet_gates(gates, [failed("no such function")], deployment=False) == [(PIPELINE_GATE, "no such function")]
    assert [gate for gate, _ in unmet_gates(gates, [], deployment=False)] == [PIPELINE_GATE]


@pytest.mark.parametrize(("deployment", "unmet"), [(True, [INJECTED]), (False, [])])
def test_injection_gates_hold_only_where_packages_are_deployed(*, deployment: bool, unmet: list[str]) -> None:
    found = unmet_gates([{"conditionType": INJECTED}], [passed()], deployment=deployment)

    assert [gate for gate, _ in found] == unmet


@pytest.mark.parametrize(("current", "desired"), [(D, P), (P, U)])
def test_a_refusal_has_one_cause_per_gate_that_says_what_is_unmet_and_what_to_fix(
    current: Lifecycle, desired: Lifecycle
) -> None:
    gates = [{"conditionType": "a.Done"}, {"conditionType": "b.Done"}, {"conditionType": "PVOperationsComplete"}]
    conditions = [failed("no such function"), {"type": "a.Done", "status": "False", "message": "still cooking."}]

    unmet = gates_holding(current, desired, gates, conditions, deployment=True)
    refused = unready("repo.pkg.v1", current, unmet, conditions)

    assert (refused.code, refused.reason) == (422, "Invalid")
    assert {cause.field for cause in refused.causes} == {"spec.lifecycle"}
    first = "reject the proposal, then " if current is P else ""
    assert [cause.message for cause in refused.causes] == [
        (
            "readiness gate 'PackagePipelinePassed' is not met: no such function; "
            f"{first}fix the package or its pipeline and save it again"
        ),
        (
            "readiness gate 'a.Done' is not met: still cooking; "
            f"{first}set the condition to True in status.conditions, or remove the gate from spec.readinessGates"
        ),
        (
            "readiness gate 'b.Done' is not met: no condition of this type has been reported; "
            f"{first}set the condition to True in status.conditions, or remove the gate from spec.readinessGates"
        ),
        (
            "readiness gate 'PVOperationsComplete' is not met: no condition of this type has been reported; "
            "the PackageVariant that owns the package revision sets the condition when it is done"
        ),
    ]
    assert all(cause.message in refused.message for cause in refused.causes)


def test_a_refusal_before_the_render_is_done_says_to_wait() -> None:
    unmet = gates_holding(D, P, [], [waiting()], deployment=False)

    refused = unready("repo.pkg.v1", D, unmet, [waiting()])

    assert "waiting for package pipeline to pass; the server renders the package soon" in refused.message


def test_a_refusal_repeats_no_more_than_the_beginning_of_a_long_message() -> None:
    unmet = gates_holding(D, P, [], [{**failed(""), "message": "x" * 100_000}], deployment=False)

    assert len(unready("repo.pkg.v1", D, unmet, []).message) < 2000


@pytest.mark.parametrize(("current", "desired"), [(P, D), (U, X), (X, U), (D, D), (P, P), (U, U), (X, X)])
def test_gates_hold_no_other_transition(current: Lifecycle, desired: Lifecycle) -> None:
    assert gates_holding(current, desired, [{"conditionType": "never"}], [], deployment=True) == []
