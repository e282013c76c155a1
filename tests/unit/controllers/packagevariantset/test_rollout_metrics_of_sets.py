"""Rollouts in numbers: phases, waves and variants of all sets together."""

from typing import Any

import pytest

from controllers.packagevariantset.rollout_metrics import rollout_metrics, wave_states

Json = dict[str, Any]


def wave(name: str, outdated: int = 0, in_flight: int = 0, settled: int = 0, failed: int = 0) -> Json:
    return {"name": name, "outdated": outdated, "inFlight": in_flight, "settled": settled, "failed": failed}


def samples(*rollouts: Json) -> dict[str, float]:
    """Return what is not 0."""
    found = [sample for family in rollout_metrics(rollouts) for sample in family.samples]
    return {f"{one.name} {''.join(one.labels.values())}": one.value for one in found if one.value}


@pytest.mark.parametrize(
    ("current", "waves", "states"),
    [
        ("one", [wave("one", outdated=1), wave("two", outdated=2)], ["changing", "waiting"]),
        ("one", [wave("one", in_flight=1, settled=3), wave("two", outdated=2)], ["changing", "waiting"]),
        ("one", [wave("one", settled=3), wave("two", outdated=2)], ["done", "waiting"]),
        ("two", [wave("one", in_flight=1), wave("two", outdated=2)], ["changing", "changing"]),
        ("two", [wave("one", failed=1), wave("two", outdated=1), wave("three")], ["done", "changing", "done"]),
        ("three", [wave("one", settled=1), wave("two", settled=1), wave("three", failed=2)], ["done"] * 3),
        ("", [], []),
    ],
    ids=["begins", "in flight", "at its gate", "behind", "failed and empty", "ends", "one wave"],
)
def test_a_wave_is_done_or_changes_or_waits(current: str, waves: list[Json], states: list[str]) -> None:
    assert [*wave_states({"phase": "Progressing", "wave": current, "waves": waves})] == states


def test_rollouts_of_all_sets_are_added_up() -> None:
    one = {"phase": "Waiting", "wave": "a", "waves": [wave("a", settled=3), wave("b", outdated=2)]}
    counts = {"outdated": 2, "inFlight": 0, "settled": 3, "failed": 0}

    assert samples({**one, **counts}, {"phase": "Paused", "outdated": 5, "inFlight": 1, "failed": 2}) == {
        "porch_rollouts Waiting": 1,
        "porch_rollouts Paused": 1,
        "porch_rollout_waves done": 1,
        "porch_rollout_waves waiting": 1,
        "porch_rollout_variants outdated": 7,
        "porch_rollout_variants inFlight": 1,
        "porch_rollout_variants settled": 3,
        "porch_rollout_variants failed": 2,
    }


def test_without_a_rollout_all_are_zero() -> None:
    assert samples() == {}
    assert samples({"phase": "of a later version", "changeId": "x"}) == {}
