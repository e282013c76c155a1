"""The invariants of a PackageVariant under everything that can happen: late events, lost answers, crashes, other people.

Hypothesis writes the script of who does what when; the reconciler is the real one, the API a model (``tests/variant_model``),
which is held to the server's answers by ``tests/contract/test_variant_model.py``. At every request I2, I3, I5, I6 and I7
are checked, in the end I1 and I8. ``--hypothesis-profile=search`` writes more scripts, and new ones.
Source: ``variants.md`` 2.15.
"""

from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from variant_model.caches import KINDS
from variant_model.client import Fault
from variant_model.invariants import check_always, check_end
from variant_model.people import OFTEN, SELDOM, Step
from variant_model.profiles import examples
from variant_model.world import ARRIVALS, World


@dataclass(frozen=True)
class Again:
    """The newest event of a kind arrives once more."""

    kind: str


@dataclass(frozen=True)
class Anew:
    """A kind is listed anew."""

    kind: str


@dataclass(frozen=True)
class Works:
    """Events of some kinds arrive, then the controller takes a variant out of its queue.

    Requests fail as planned, and people do something between two of them.
    """

    kinds: tuple[int, ...] = ()
    choice: int = 0
    plan: dict[int, Fault] = field(default_factory=dict)
    meanwhile: dict[int, Step] = field(default_factory=dict)


@dataclass(frozen=True)
class Killed:
    """The controller's process is killed between two reconciles, and started again."""


@dataclass(frozen=True)
class Rests:
    """Nothing fails for a while: everything arrives, everything is done."""


Scene = Step | Again | Anew | Works | Killed | Rests

NOTHING = Again(KINDS[-2])
"""What a script shrinks to."""
STEPS = st.builds(
    Step,
    st.one_of(st.sampled_from(SELDOM), st.sampled_from(OFTEN)),
    st.sampled_from(("one", "one", "two")),
    st.integers(0, 5),
)
EVENTS = st.lists(st.integers(0, len(KINDS) - 1), max_size=10).map(tuple)
WORKS = st.builds(
    Works,
    EVENTS,
    st.integers(0, 1),
    st.dictionaries(st.integers(0, 9), st.sampled_from(Fault), max_size=2),
    st.dictionaries(st.integers(0, 6), st.one_of(STEPS, st.just(Step(ARRIVALS))), max_size=1),
)
QUIET = st.builds(Works, st.just((0, 0, 1, 1, 3)))
RARE = st.one_of(
    st.builds(Again, st.sampled_from(KINDS)),
    st.builds(Anew, st.sampled_from(KINDS)),
    st.builds(Killed),
    st.builds(Rests),
)
SCENES: st.SearchStrategy[Scene] = st.sampled_from(
    (st.just(NOTHING), RARE, QUIET, QUIET, QUIET, STEPS, STEPS, STEPS, WORKS, WORKS, WORKS)
).flatmap(lambda scene: scene)
SCRIPTS = st.lists(SCENES, min_size=20, max_size=60)


def play(script: list[Scene], *, both: bool, points: bool = True) -> None:
    """Play a script to its end and check the end."""
    world = World(points=points)
    world.check = lambda: check_always(world)
    try:
        for name in ("one", "two")[: 1 + both]:
            world.user(Step("create_variant", name))
        world.settle()
        for scene in script:
            act(world, scene)
        finish(world)
    finally:
        note("\n".join(world.client.requests[-40:]))
        world.close()


def act(world: World, scene: Scene) -> None:
    match scene:
        case Step():
            world.user(scene)
        case Again(kind):
            world.views.deliver_again(kind)
        case Anew(kind):
            world.views.relist(kind)
        case Works(kinds, choice, plan, meanwhile):
            world.deliver(kinds)
            world.work(plan, meanwhile, choice)
        case Killed():
            world.start()
        case Rests():
            world.settle()
            check_end(world)


def finish(world: World) -> None:
    """Let everything come to rest: it is where users want it (I8), and stays there without a write (I1)."""
    world.settle()
    check_end(world)
    assert world.writes_of(world.resync) == [], "a resync writes"
    world.start()
    assert world.writes_of(world.settle) == [], "a start writes"
    check_end(world)


@pytest.mark.timeout(600)
@settings(max_examples=examples(ci=60, search=1200), deadline=None, suppress_health_check=list(HealthCheck))
@given(SCRIPTS, st.booleans())
def test_every_script_ends_where_the_users_want_it(script: list[Scene], both: bool) -> None:
    play(script, both=both)
