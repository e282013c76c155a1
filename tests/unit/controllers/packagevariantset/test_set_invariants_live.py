"""Any order of events and any crash points come to the same variants: the whole controller of sets in virtual time.

Hypothesis chooses what users do when, and the seed that decides how long each request and event takes, what fails and when the
process dies; the API is a model, the garbage collector and the variants' controller are played (``tests/set_model``). What a
set asks for is found out without the product's rules. A preview of what is at rest, and was changed then, is what the
controller does next. ``--hypothesis-profile=search`` writes more scripts, and new ones.
Source: ``variants.md`` 3, 6.2, 6.7, 6.10, 6.11 and I8; issue 8.
"""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from set_model.live import play_live_sets
from set_model.people import OFTEN, SELDOM
from set_model.previews import play_previewed
from variant_model.people import Step
from variant_model.profiles import examples

STEPS = st.builds(
    Step, st.one_of(st.sampled_from(OFTEN), st.sampled_from(SELDOM)), st.just("fleet"), st.integers(0, 11)
)
CHANGES = st.builds(
    Step,
    st.sampled_from((*OFTEN, "rollout", "guards", "edit_variant", "move_variant", "pause_variant", "delete_variant")),
    st.just("fleet"),
    st.integers(0, 11),
)
"""What previews are asked about."""
PAUSES = st.sampled_from((0.0, 0.01, 0.1, 0.5, 1.0, 3.0, 10.0, 60.0))
KILLED = st.none()
SCRIPTS = st.lists(
    st.tuples(PAUSES, st.integers(0, 15).flatmap(lambda n: STEPS if n else KILLED)), min_size=5, max_size=25
)


@pytest.mark.timeout(600)
@settings(max_examples=examples(ci=30, search=800), deadline=None, suppress_health_check=list(HealthCheck))
@given(SCRIPTS, st.integers(0, 2**32))
def test_every_story_ends_with_the_variants_that_the_set_asks_for(
    script: list[tuple[float, Step | None]], seed: int
) -> None:
    play_live_sets(script, seed)


@pytest.mark.timeout(600)
@settings(max_examples=examples(ci=30, search=800), deadline=None, suppress_health_check=list(HealthCheck))
@given(SCRIPTS, st.lists(CHANGES, min_size=1, max_size=5), st.integers(0, 2**32))
def test_the_controller_does_what_a_preview_says(
    script: list[tuple[float, Step | None]], changes: list[Step], seed: int
) -> None:
    play_previewed(script, changes, seed)
