"""The invariants of a PackageVariant with the whole controller: informers, queue, three workers, memory of finished passes.

Time is virtual, so that back-offs of minutes cost nothing. One seed decides how long each request and event takes, what fails
and when the process dies; Hypothesis chooses it, and what users do when. ``test_invariants.py`` has the same world step by step.
Source: ``variants.md`` 2.14, 2.15; issue 7.
"""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from variant_model.live import play_live
from variant_model.people import OFTEN, SELDOM, Step
from variant_model.profiles import examples

STEPS = st.builds(
    Step,
    st.one_of(st.sampled_from(SELDOM), st.sampled_from(OFTEN)),
    st.sampled_from(("one", "one", "two")),
    st.integers(0, 5),
)
PAUSES = st.sampled_from((0.0, 0.01, 0.1, 0.5, 1.0, 3.0, 10.0, 60.0, 400.0))
KILLED = st.none()
SCRIPTS = st.lists(
    st.tuples(PAUSES, st.integers(0, 15).flatmap(lambda n: STEPS if n else KILLED)), min_size=10, max_size=25
)
BOTH = [(0.1, Step("create_variant", "one")), (0.5, Step("create_variant", "two"))]


@pytest.mark.timeout(600)
@settings(max_examples=examples(ci=40, search=800), deadline=None, suppress_health_check=list(HealthCheck))
@given(SCRIPTS, st.integers(0, 2**32), st.booleans())
def test_the_whole_controller_ends_where_the_users_want_it(
    script: list[tuple[float, Step | None]], seed: int, points: bool
) -> None:
    play_live([*BOTH, *script], seed, points=points)
