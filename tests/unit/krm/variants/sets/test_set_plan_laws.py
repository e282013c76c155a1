"""Laws of plans: whatever is there, in whatever order, and wherever writing is cut off, the same variants come of it."""

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from set_tables import package_variant_set

from krm.meta.names import subdomain_problem
from krm.variants.sets.naming import names
from krm.variants.sets.plan import Existing, Plan, plan
from krm.variants.sets.rendering import Rendered

pytestmark = pytest.mark.hypothesis

Pair = tuple[str, str]
SET = "p"
repos = st.sampled_from(["a", "a-b", "b"])
packages = st.sampled_from(["b-c", "c", "c/d", "x" * 60])
pairs = st.tuples(repos, packages)
contents = st.sampled_from(["1", "2"])
own_names = pairs.map(lambda pair: names(SET, [pair], {})[pair])
variant_names = own_names | st.sampled_from(["p-a-b-c", "p-a-b-c-dfd9dfa1", "theirs", "zz"])


@dataclass
class World:
    """The variants that are there, by name."""

    variants: dict[str, Existing] = field(default_factory=dict)

    def apply(self, asked: Plan, most: int = 1000) -> int:
        """Do the first writes of a plan; return how many there were."""
        writes: list[Any] = [
            *(lambda one=one: self.variants.pop(one.name) for one in asked.deletes),
            *(lambda one=one, spec=spec: self._update(one, spec) for one, spec in asked.updates),
            *(lambda name=name, spec=spec: self._create(name, spec) for name, spec in asked.creates),
        ]
        for write in writes[:most]:
            write()
        return len(writes)

    def _update(self, one: Existing, spec: Any) -> None:
        self.variants[one.name] = replace(one, pair=place(spec), digest=digest(place(spec), spec["is"]))

    def _create(self, name: str, spec: Any) -> None:
        assert name not in self.variants
        assert subdomain_problem(name) == ""
        self.variants[name] = Existing(name, "u", "1", place(spec), digest(place(spec), spec["is"]))

    def collect(self) -> None:
        """Let what goes be gone."""
        self.variants = {name: one for name, one in self.variants.items() if not one.terminating}

    def ours(self) -> dict[Pair, str]:
        live = [one for one in self.variants.values() if one.ours and not one.terminating]
        assert len({one.pair for one in live}) == len(live)
        return {one.pair: one.digest for one in live}


def place(spec: Any) -> Pair:
    return spec["downstream"]["repo"], spec["downstream"]["package"]


def rendered(pair: Pair, content: str, index: int = 0) -> Rendered:
    spec = {"downstream": {"repo": pair[0], "package": pair[1]}, "is": content}
    return Rendered(index, *pair, spec, digest=digest(pair, content))


def digest(pair: Pair, content: str) -> str:
    return f"{'/'.join(pair)}: {content}"


@st.composite
def worlds(draw: st.DrawFn, *, foreign: bool = True) -> World:
    variants = {}
    for name in draw(st.lists(variant_names, max_size=6, unique=True)):
        pair = draw(pairs)
        one = Existing(name, f"u-{name}", "1", pair, digest(pair, draw(contents)), terminating=draw(st.booleans()))
        variants[name] = replace(one, ours=not foreign or draw(st.integers(0, 4)) > 0)
    return World(variants)


targets = st.dictionaries(pairs, contents, max_size=6).map(
    lambda written: [rendered(pair, content, index) for index, (pair, content) in enumerate(written.items())]
)


def asked_of(wanted: list[Rendered], world: World, **spec: Any) -> Plan:
    body = package_variant_set({"upstream": {}, "targets": [], **spec}, SET)
    return plan(body, wanted, list(world.variants.values()))


def settled(wanted: list[Rendered], world: World) -> World:
    """Plan and write until nothing is to be written; what is waited for goes meanwhile."""
    for _ in range(4):
        asked = asked_of(wanted, world)
        world.apply(asked)
        if asked.empty and not asked.waiting:
            return world
        world.collect()
    raise AssertionError("there is always something to write")


@settings(deadline=None)
@given(targets, worlds(foreign=False))
def test_what_is_wanted_comes_of_whatever_is_there(wanted: list[Rendered], world: World) -> None:
    assert settled(wanted, world).ours() == {(one.repo, one.package): one.digest for one in wanted}


@settings(deadline=None)
@given(targets, worlds(foreign=False))
def test_a_plan_that_was_carried_out_leaves_nothing_to_do(wanted: list[Rendered], world: World) -> None:
    asked = asked_of(wanted, world)
    world.apply(asked)
    again = asked_of(wanted, world)

    assert {name for name, _ in again.creates} <= set(asked.waiting)
    assert (again.deletes, again.updates) == ((), ())
    if not asked.waiting:
        assert again.empty
        assert len(again.unchanged) == len(wanted)


@settings(deadline=None)
@given(targets, worlds(foreign=False), st.lists(st.integers(0, 5), max_size=3))
def test_writing_can_be_cut_off_anywhere(wanted: list[Rendered], world: World, cuts: list[int]) -> None:
    whole = settled(wanted, World(dict(world.variants)))
    for cut in cuts:
        world.apply(asked_of(wanted, world), most=cut)

    assert settled(wanted, world).ours() == whole.ours()


@settings(deadline=None)
@given(targets, worlds(), st.randoms())
def test_the_order_of_what_is_there_and_of_targets_does_not_count(
    wanted: list[Rendered], world: World, random: Any
) -> None:
    before = asked_of(wanted, world)
    mixed, there = list(wanted), list(world.variants.items())
    random.shuffle(mixed)
    random.shuffle(there)

    after = asked_of(mixed, World(dict(there)))

    assert replace(after, failures=(), digests={}, waves={}) == replace(before, failures=(), digests={}, waves={})
    assert set(after.failures) == set(before.failures)
    assert after.digests == before.digests


@settings(deadline=None)
@given(targets, worlds())
def test_what_is_not_ours_or_goes_already_is_never_written(wanted: list[Rendered], world: World) -> None:
    for policy in ("FailFast", "BestEffort"):
        asked = asked_of(wanted, world, errorPolicy=policy)
        touched = [*asked.deletes, *(one for one, _ in asked.updates)]

        assert all(one.ours and not one.terminating for one in touched)
        assert len({one.name for one in touched}) == len(touched)
        assert not {name for name, _ in asked.creates} & (world.variants.keys() | set(asked.waiting))


@settings(deadline=None)
@given(targets, worlds(), st.sets(st.integers(0, 5)), st.booleans())
def test_failures_delete_nothing_that_may_still_be_wanted(
    wanted: list[Rendered], world: World, failing: set[int], located: bool
) -> None:
    mixed = [
        Rendered(one.target_index, one.repo, one.package, None, "broken", located=located) if index in failing else one
        for index, one in enumerate(wanted)
    ]
    failed = {(one.repo, one.package) for one in mixed if one.spec is None}

    cautious, eager = asked_of(mixed, world), asked_of(mixed, world, errorPolicy="BestEffort")

    assert not failed or (cautious.blocked and cautious.empty)
    assert not {one.pair for one in eager.deletes} & failed
    assert located or not failed or not eager.deletes
    assert {place(spec) for _, spec in eager.updates} | {place(spec) for _, spec in eager.creates} <= {
        (one.repo, one.package) for one in mixed if one.spec is not None
    }


@settings(deadline=None)
@given(targets, worlds(foreign=False), st.integers(0, 4))
def test_a_guard_is_never_overrun(wanted: list[Rendered], world: World, most: int) -> None:
    asked = asked_of(wanted, world, guards={"maxDeletions": most})

    assert len(asked.deletes) <= most
    assert bool(asked.guard) == (len(asked.held) > most)


@settings(deadline=None)
@given(st.lists(st.tuples(pairs, contents), max_size=8))
def test_targets_that_contradict_each_other_block_and_others_are_one(written: list[tuple[Pair, str]]) -> None:
    asked = asked_of([rendered(pair, content, index) for index, (pair, content) in enumerate(written)], World())
    by_pair: dict[Pair, set[str]] = {}
    for pair, content in written:
        by_pair.setdefault(pair, set()).add(content)

    assert bool(asked.duplicates) == any(len(each) > 1 for each in by_pair.values())
    if not asked.blocked:
        assert len(asked.creates) == len(by_pair)
