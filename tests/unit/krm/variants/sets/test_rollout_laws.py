"""What holds of every rollout, whatever happens meanwhile. Source: ``variants.md`` 6.2.

A fleet lives through changes of its set, variants that settle, fail and recover, targets that come and go, and time; a pass is
made after each of these. The model knows which variants were given which change.
"""

import datetime as dt
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from rollout_scene import BROKEN, NOON, SETTLED, WORKING, existing, pair_of, set_of, spec_of

from krm.variants.sets.amounts import Amount
from krm.variants.sets.changes import change_id
from krm.variants.sets.plan import Plan
from krm.variants.sets.progress import VariantState
from krm.variants.sets.rollout import Admission, admit

Json = dict[str, Any]
NAMES = [f"v{number}" for number in range(9)]
SOAK = 600
WAVES: list[Json] = [
    {"name": "first", "gate": {"soak": f"{SOAK}s"}},
    {"name": "second", "gate": {"minSettledPercent": 50}, "maxInFlight": 2},
    {"name": "third"},
]


@dataclass
class Fleet:
    """The variants of a set as the API has them, and the set's status."""

    rollout: Json
    waves: dict[str, int]
    target: int = 2
    """The revision that the set wants."""
    wanted: set[str] = field(default_factory=set)
    given: dict[str, int] = field(default_factory=dict)
    """The revision that each variant was told."""
    states: dict[str, VariantState] = field(default_factory=dict)
    status: Json = field(default_factory=dict)
    now: dt.datetime = NOON

    def body(self) -> Json:
        return set_of(self.rollout, self.target)

    def plan(self) -> Plan:
        there = sorted(self.given)
        return Plan(
            deletes=tuple(existing(name) for name in there if name not in self.wanted),
            updates=tuple((existing(name), spec_of(name)) for name in there if self._is_outdated(name)),
            creates=tuple((name, spec_of(name)) for name in sorted(self.wanted - self.given.keys())),
            unchanged=tuple(existing(name) for name in there if name in self.wanted and not self._is_outdated(name)),
            waves={pair_of(name): self.waves[name] for name in self.wanted},
        )

    def _is_outdated(self, name: str) -> bool:
        return name in self.wanted and self.given[name] != self.target

    def make_pass(self) -> Admission:
        """Ask, check what must hold, and write."""
        before = self.in_flight()
        found = admit(self.body(), self.plan(), self.states, self.status, self.now)
        self._check(found, before)
        for one in found.deletes:
            del self.given[one.name], self.states[one.name]
        for name in (*(one.name for one, _ in found.updates), *(name for name, _ in found.creates)):
            self.given[name], self.states[name] = self.target, WORKING
        self.status = {"rollout": found.status, "upstream": {}}
        assert found.status is not None
        assert found.status["inFlight"] == len(self.in_flight())
        return found

    def in_flight(self) -> set[str]:
        """Return who works on this change."""
        current = {name for name, revision in self.given.items() if revision == self.target and name in self.wanted}
        return {name for name in current if self.states[name] is WORKING}

    def _check(self, found: Admission, before: set[str]) -> None:
        names = {*(one.name for one, _ in found.updates), *(name for name, _ in found.creates)}
        assert names.isdisjoint(before)
        self._check_limits(names, before)
        self._check_waves(names)
        if found.deletes:
            assert not names
            assert not before
            assert not any(self._is_outdated(name) for name in self.given)
        if found.paused:
            assert not names
            assert any(state is BROKEN for state in self.states.values())

    def _check_limits(self, names: set[str], before: set[str]) -> None:
        """A wave with a limit of its own may have so many, whatever the others do; the others share that of the rollout."""
        all_in_flight = names | before
        own = {place: wave["maxInFlight"] for place, wave in enumerate(WAVES) if "maxInFlight" in wave}
        own = own if self.rollout["strategy"] == "Waves" else {}
        for wave in {self.waves[name] for name in names} & own.keys():
            assert sum(self.waves[name] == wave for name in all_in_flight) <= Amount.of(own[wave]).most(99)
        if any(self.waves[name] not in own for name in names):
            sharing = [name for name in all_in_flight if self.waves[name] not in own]
            assert len(sharing) <= Amount.of(self.rollout["maxInFlight"]).most(len(self.wanted))

    def _check_waves(self, names: set[str]) -> None:
        """A wave begins after the gate of the former one; who was at work on another change may be given this one before."""
        if self.rollout["strategy"] != "Waves":
            return
        known = self.status.get("rollout") or {}
        same = known.get("changeId") == change_id(self.body())
        for name in names:
            is_busy = self.states.get(name, SETTLED) is not SETTLED and name in self.given
            reached = [wave["name"] for wave in WAVES].index(known["wave"]) if same and known.get("wave") else 0
            if self.waves[name] <= reached or (not same and is_busy):
                continue
            for wave in range(reached, self.waves[name]):
                self._check_gate(wave, known if same else {})

    def _check_gate(self, wave: int, known: Json) -> None:
        members = [name for name in self.wanted if self.waves[name] == wave]
        settled = [name for name in members if self.given.get(name) == self.target and self.states[name] is SETTLED]
        gate: Json = WAVES[wave].get("gate") or {}
        assert len(settled) * 100 >= gate.get("minSettledPercent", 100) * len(members)
        if "soak" in gate:
            since = {one["name"]: one.get("settledAt") for one in known.get("waves") or ()}[WAVES[wave]["name"]]
            assert (self.now - dt.datetime.fromisoformat(since)).total_seconds() >= SOAK


events = st.lists(
    st.one_of(
        st.tuples(st.just("settle"), st.sampled_from(NAMES)),
        st.tuples(st.just("break"), st.sampled_from(NAMES)),
        st.tuples(st.just("change"), st.integers(2, 5)),
        st.tuples(st.just("wait"), st.integers(1, 900)),
        st.tuples(st.just("come"), st.sampled_from(NAMES)),
        st.tuples(st.just("go"), st.sampled_from(NAMES)),
        st.tuples(st.just("forget status"), st.none()),
        st.tuples(st.just("pass"), st.none()),
    ),
    max_size=30,
)


@st.composite
def fleets(draw: st.DrawFn) -> Fleet:
    strategy = draw(st.sampled_from(["Rolling", "Waves"]))
    rollout: Json = {
        "strategy": strategy,
        "maxInFlight": draw(st.sampled_from([1, 2, 3, "25%", "100%"])),
        "onFailure": draw(st.sampled_from(["Pause", "Continue"])),
        "failureThreshold": draw(st.sampled_from([0, 1, "30%"])),
        "waves": WAVES,
    }
    fleet = Fleet(rollout, {name: draw(st.integers(0, len(WAVES) - 1)) for name in NAMES})
    fleet.wanted = draw(st.sets(st.sampled_from(NAMES)))
    fleet.given = dict.fromkeys(draw(st.sets(st.sampled_from(NAMES))), 1)
    fleet.states = {name: draw(st.sampled_from([SETTLED, SETTLED, WORKING, BROKEN])) for name in fleet.given}
    return fleet


def happen(fleet: Fleet, event: str, value: Any) -> None:
    if event in ("settle", "break") and value in fleet.states:
        fleet.states[value] = SETTLED if event == "settle" else BROKEN
    elif event == "change":
        fleet.target = value
    elif event == "wait":
        fleet.now += dt.timedelta(seconds=value)
    elif event == "come":
        fleet.wanted.add(value)
    elif event == "go":
        fleet.wanted.discard(value)
    elif event == "forget status":
        fleet.status = {}


@settings(max_examples=250, deadline=None)
@given(fleet=fleets(), story=events)
def test_never_too_many_and_never_a_wave_too_early_and_always_an_end(
    fleet: Fleet, story: list[tuple[str, Any]]
) -> None:
    for event, value in story:
        happen(fleet, event, value)
        fleet.make_pass()
    phase = ""
    for _ in range(6 * len(NAMES)):
        fleet.states = dict.fromkeys(fleet.states, SETTLED)
        fleet.now += dt.timedelta(seconds=SOAK)
        found = fleet.make_pass()
        phase = (found.status or {})["phase"]
        if phase == "Complete":
            break
    assert phase == "Complete"
    assert fleet.given == dict.fromkeys(fleet.wanted, fleet.target)
    assert fleet.make_pass().status == found.status


@settings(max_examples=120, deadline=None)
@given(fleet=fleets(), story=events)
def test_asking_twice_admits_the_same(fleet: Fleet, story: list[tuple[str, Any]]) -> None:
    """A process that dies before it wrote anything has changed nothing."""
    for event, value in story:
        happen(fleet, event, value)
        asked = admit(fleet.body(), fleet.plan(), fleet.states, fleet.status, fleet.now)
        assert fleet.make_pass() == asked


@settings(max_examples=120, deadline=None)
@given(fleet=fleets(), story=events, cut=st.integers(0, 5))
def test_a_crash_between_two_writes_lets_no_more_go(fleet: Fleet, story: list[tuple[str, Any]], cut: int) -> None:
    """Some of the writes are there and the status is not: the next pass fills the room that is left."""
    for event, value in story:
        happen(fleet, event, value)
        found = admit(fleet.body(), fleet.plan(), fleet.states, fleet.status, fleet.now)
        names = [*(one.name for one, _ in found.updates), *(name for name, _ in found.creates)]
        for name in names[:cut]:
            fleet.given[name], fleet.states[name] = fleet.target, WORKING
        again = admit(fleet.body(), fleet.plan(), fleet.states, fleet.status, fleet.now)
        rest = {*(one.name for one, _ in again.updates), *(name for name, _ in again.creates)}
        assert rest == set(names[cut:])
        fleet.make_pass()
