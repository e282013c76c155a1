"""Readiness gates: seed 002 part 1."""

import pytest

from apiserver.rules.lifecycle import Lifecycle
from apiserver.rules.readiness import require_ready, unmet_gates
from krm.meta.errors import Invalid

D, P, U, X = Lifecycle.DRAFT, Lifecycle.PROPOSED, Lifecycle.PUBLISHED, Lifecycle.DELETION_PROPOSED


@pytest.mark.parametrize(
    ("status", "unmet"),
    [
        pytest.param("True", [], id="met"),
        pytest.param("False", ["tests.Passed"], id="failed"),
        pytest.param("Unknown", ["tests.Passed"], id="unknown-is-not-true"),
        pytest.param(None, ["tests.Passed"], id="never-reported"),
    ],
)
def test_a_gate_is_met_only_by_a_true_condition(status: str | None, unmet: list[str]) -> None:
    """A gate blocks until its own condition says True; silence never opens it."""
    conditions = [{"type": "other.Passed", "status": "True"}]
    if status is not None:
        conditions.append({"type": "tests.Passed", "status": status})

    found = unmet_gates([{"conditionType": "tests.Passed"}], conditions)

    assert [gate for gate, _ in found] == unmet


@pytest.mark.parametrize(("current", "desired"), [(D, P), (P, U)])
def test_an_unready_revision_is_neither_proposed_nor_approved(current: Lifecycle, desired: Lifecycle) -> None:
    gates = [{"conditionType": "a.Done"}, {"conditionType": "b.Done"}]
    conditions = [{"type": "a.Done", "status": "False", "message": "still cooking"}]

    with pytest.raises(Invalid) as refused:
        require_ready("repo.pkg.v1", current, desired, gates, conditions)

    assert refused.value.code == 422
    assert [cause.field for cause in refused.value.causes] == ["spec.lifecycle", "spec.lifecycle"]
    assert "readiness gate 'a.Done' is not met: still cooking" in refused.value.message
    assert "readiness gate 'b.Done' is not met" in refused.value.message


@pytest.mark.parametrize(("current", "desired"), [(P, D), (U, X), (X, U), (D, D), (P, P)])
def test_gates_hold_no_other_transition(current: Lifecycle, desired: Lifecycle) -> None:
    require_ready("repo.pkg.v1", current, desired, [{"conditionType": "never"}], [])
