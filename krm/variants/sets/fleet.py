"""The variants that take part in a rollout, and how far each is. Source: ``variants.md`` 6.2 and 6.7."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from krm.variants.sets.naming import Pair
from krm.variants.sets.plan import Existing, Plan
from krm.variants.sets.progress import Progress, VariantState, progress
from krm.variants.sets.rollout_memory import Rollout
from krm.variants.sets.waves import place_of
from krm.variants.vocabulary import PAUSED

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Member:
    """A variant that takes part."""

    wave: int
    name: str
    progress: Progress
    busy: bool = False
    """Whether it is outdated and at work on what its set wanted before."""

    @property
    def is_outdated(self) -> bool:
        """Whether it has still to change."""
        return self.progress is Progress.OUTDATED


def fleet_of(rollout: Rollout, plan: Plan, states: Mapping[str, VariantState]) -> list[Member]:
    """Return all that take part, by wave and name; those that are paused themselves do not."""
    found = [Member(_wave(rollout, plan, _pair(spec)), name, Progress.OUTDATED) for name, spec in plan.creates]
    for one, spec in plan.updates:
        state = states.get(one.name) or VariantState()
        if _takes_part(one, states):
            busy = progress(state, needs_publication=rollout.needs_publication) is not Progress.SETTLED
            found.append(Member(_wave(rollout, plan, _pair(spec)), one.name, Progress.OUTDATED, busy))
    for one in plan.unchanged:
        state = states.get(one.name) or VariantState()
        if _takes_part(one, states):
            now = progress(state, needs_publication=rollout.needs_publication)
            found.append(Member(_wave(rollout, plan, one.pair), one.name, now))
    return sorted(found, key=lambda one: (one.wave, one.name))


def _takes_part(one: Existing, states: Mapping[str, VariantState]) -> bool:
    return not (one.terminating or is_paused(one, states))


def not_paused(variants: Iterable[Existing], states: Mapping[str, VariantState]) -> tuple[Existing, ...]:
    """Return those of ``variants`` that no person has taken out of what their set does."""
    return tuple(one for one in variants if not is_paused(one, states))


def is_paused(one: Existing, states: Mapping[str, VariantState]) -> bool:
    """Tell whether a person has taken a variant out of what its set does (6.7)."""
    state = states.get(one.name)
    return (state is not None and state.paused) or one.annotations.get(PAUSED) == "true"


def _wave(rollout: Rollout, plan: Plan, pair: Pair) -> int:
    return place_of(rollout.waves, plan.waves.get(pair, -1))


def _pair(spec: Json) -> Pair:
    return spec["downstream"]["repo"], spec["downstream"]["package"]


def by_wave(members: Iterable[Member]) -> dict[int, list[Member]]:
    """Group members by the places of their waves."""
    waves: dict[int, list[Member]] = {}
    for one in members:
        waves.setdefault(one.wave, []).append(one)
    return waves


def counts_of(members: Iterable[Member]) -> dict[Progress, int]:
    """Return how many members are how far."""
    counts = dict.fromkeys(Progress, 0)
    for one in members:
        counts[one.progress] += 1
    return counts
