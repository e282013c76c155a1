"""What validation lets through can be rolled out: the two read a rollout alike. Source: ``variants.md`` 6.2, 6.12."""

from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from rollout_scene import BROKEN, SETTLED, WORKING, Scene

from krm.variants.sets.rollout_validation import rollout_problems

Json = dict[str, Any]

amounts = st.one_of(
    st.none(), st.integers(-1, 3), st.sampled_from(["1", "0", "0%", "50%", "101%", "x", ""]), st.booleans()
)
durations = st.one_of(
    st.none(), st.sampled_from(["", "0", "5s", "1h30m", "1us", "-1s", "1d", "2500000h", "9999999h"]), st.just(5)
)
gates = st.none() | st.fixed_dictionaries(
    {},
    optional={
        "minSettledPercent": st.none() | st.integers(-1, 101) | st.just("5"),
        "soak": durations,
        "manual": st.none() | st.booleans() | st.just("yes"),
    },
)
written_waves = st.lists(
    st.fixed_dictionaries(
        {}, optional={"name": st.sampled_from(["a", "b", "c", "(others)", "A"]), "maxInFlight": amounts, "gate": gates}
    ),
    max_size=3,
)
rollouts = st.fixed_dictionaries(
    {},
    optional={
        "strategy": st.sampled_from([None, "", "AllAtOnce", "Rolling", "Waves", "waves"]),
        "maxInFlight": amounts,
        "settleOn": st.sampled_from([None, "", "DraftReady", "Published", "x"]),
        "onFailure": st.sampled_from([None, "", "Pause", "Continue", "x"]),
        "failureThreshold": amounts,
        "waves": st.none() | written_waves,
        "rollback": st.none() | st.fixed_dictionaries({}, optional={"maxInFlight": amounts}),
    },
)


@settings(max_examples=400, deadline=None)
@given(rollout=rollouts, places=st.lists(st.integers(-1, 3), min_size=4, max_size=4), before=st.integers(1, 3))
def test_what_is_valid_can_be_rolled_out(rollout: Json, places: list[int], before: int) -> None:
    assume(not [*rollout_problems(rollout)])
    scene = Scene(
        rollout,
        outdated={"a": SETTLED, "b": BROKEN},
        missing=("c",),
        current={"d": WORKING},
        waves=dict(zip("abcd", places, strict=True)),
        status={"upstream": {"name": f"blueprints.foo.v{before}", "revision": before}},
    )
    found = scene.admit()
    assert (found.status is None) == (not rollout)
    assert {one.name for one, _ in found.updates} <= {"a", "b"}
    if found.status is not None:
        scene.status = {**scene.status, "rollout": found.status}
        again = scene.admit().status
        assert again is not None
        assert again["changeId"] == found.status["changeId"]
