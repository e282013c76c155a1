"""Which variants of a set may change now: all at once, some at a time, or wave after wave.

Pure: what is to be written comes from :mod:`krm.variants.sets.plan`, how far the variants are from the caller, and what is
remembered from pass to pass stands in ``status.rollout``. A pass that is repeated admits the same. Source: ``variants.md`` 6.2.
"""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

from krm.variants.sets.amounts import Amount
from krm.variants.sets.fleet import Member, by_wave, counts_of, fleet_of, is_paused, not_paused
from krm.variants.sets.gates import GateState, gates_of
from krm.variants.sets.plan import Existing, Plan
from krm.variants.sets.progress import Progress, VariantState
from krm.variants.sets.rollout_memory import COMPLETE, Rollout

Json = dict[str, Any]

PROGRESSING: Final = "Progressing"
WAITING: Final = "Waiting"
PAUSED: Final = "Paused"
_SHOWN: Final = 5
"""Names that a message lists at most."""


@dataclass(frozen=True, slots=True)
class Admission:
    """What of a plan may be written in this pass, and what the set's status says about the rest."""

    deletes: Sequence[Existing]
    updates: Sequence[tuple[Existing, Json]]
    """By name, as in the plan."""
    creates: Sequence[tuple[str, Json]]
    status: Json | None
    """``status.rollout`` after these writes; None for a set without a rollout."""
    paused: str = ""
    """Why nothing is admitted before somebody acts; empty when that is not so."""
    requeue_after: float | None = None
    """Seconds after which time alone admits more."""


def admit(set_body: Json, plan: Plan, states: Mapping[str, VariantState], status: Json, now: dt.datetime) -> Admission:
    """Choose what of ``plan`` may be written now.

    ``set_body`` is a valid set whose upstream is pinned (``changes.with_pinned_upstream``), as it was for the plan;
    ``states`` is what is known of each variant that exists, by name; ``status`` is the set's before this pass; ``now`` is in UTC.
    A variant that is paused itself is neither changed nor deleted nor waited for (6.7). A set without a rollout changes
    all others at once; of a plan that is blocked nothing is written, and the status stays.
    """
    if not (set_body.get("spec") or {}).get("rollout"):
        updates = [(one, spec) for one, spec in plan.updates if not is_paused(one, states)]
        return Admission(not_paused(plan.deletes, states), updates, plan.creates, None)
    if plan.blocked:
        return Admission((), (), (), status.get("rollout"))
    rollout = Rollout.of(set_body, status, now)
    fleet = fleet_of(rollout, plan, states)
    if rollout.all_at_once:
        return _admission(rollout, plan, states, _Step(fleet, {one.name for one in fleet}))
    if failure := _failure(rollout, fleet):
        return _admission(rollout, plan, states, _Step(fleet, frozenset(), rollout.wave, paused=failure))
    gates = gates_of(rollout, fleet, now)
    current = len(gates) - 1
    return _admission(rollout, plan, states, _Step(fleet, _admitted(rollout, fleet, current), current, gates))


# --- who goes next ----------------------------------------------------------------------------------


def _admitted(rollout: Rollout, fleet: Sequence[Member], current: int) -> frozenset[str]:
    """Return the names of the outdated that may change: those at work first, then in the order of waves and names.

    When another change begins, those that were in the middle of the former one follow it whatever their wave, once: what
    they are at is of no use any more.
    """
    room = _Room(rollout, fleet)
    outdated = [one for one in fleet if one.progress is Progress.OUTDATED]
    begun = [one for one in outdated if one.wave <= current or (rollout.retargets and one.busy)]
    ordered = sorted(begun, key=lambda one: (not one.busy, one.wave, one.name))
    return frozenset(one.name for one in ordered if room.take(one.wave))


class _Room:
    """How many more may be in flight: of a wave with a limit of its own, and of all others together."""

    def __init__(self, rollout: Rollout, fleet: Sequence[Member]) -> None:
        self._shared = rollout.most.most(len(fleet))
        self._own: dict[int, int] = {}
        for place, members in by_wave(fleet).items():
            if (most := rollout.most_of(place)) is not None:
                self._own[place] = most.most(len(members))
        for one in fleet:
            if one.progress is Progress.IN_FLIGHT:
                self._count(one.wave)

    def take(self, wave: int) -> bool:
        """Count one more of a wave; False when there is no room for it."""
        if self._own.get(wave, self._shared) <= 0:
            return False
        self._count(wave)
        return True

    def _count(self, wave: int) -> None:
        if wave in self._own:
            self._own[wave] -= 1
        else:
            self._shared -= 1


def _failure(rollout: Rollout, fleet: Sequence[Member]) -> str:
    """Return why the rollout pauses, empty where it does not."""
    if rollout.spec.get("onFailure") == "Continue":
        return ""
    failed = [one.name for one in fleet if one.progress is Progress.FAILED]
    most = Amount.of(rollout.spec.get("failureThreshold") or 0).most(len(fleet))
    if len(failed) <= most:
        return ""
    listed = ", ".join(failed[:_SHOWN]) + (", …" if len(failed) > _SHOWN else "")
    return f"{len(failed)} of {len(fleet)} variants failed, more than failureThreshold allows ({most}): {listed}"


# --- what is told -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Step:
    """What was decided in a pass."""

    fleet: Sequence[Member]
    admitted: frozenset[str] | set[str]
    wave: int = 0
    gates: Sequence[GateState] = ()
    paused: str = ""

    @cached_property
    def after(self) -> list[Member]:
        """The fleet when what is admitted was written."""
        return [
            replace(one, progress=Progress.IN_FLIGHT) if one.name in self.admitted and one.is_outdated else one
            for one in self.fleet
        ]


def _admission(rollout: Rollout, plan: Plan, states: Mapping[str, VariantState], step: _Step) -> Admission:
    counts = counts_of(step.after)
    ends = not (step.paused or counts[Progress.OUTDATED] or counts[Progress.IN_FLIGHT])
    deletable = not_paused(plan.deletes, states)
    deletes = deletable if rollout.all_at_once or ends else ()
    return Admission(
        deletes=deletes,
        updates=[(one, spec) for one, spec in plan.updates if one.name in step.admitted],
        creates=[(name, spec) for name, spec in plan.creates if name in step.admitted],
        status=_status(rollout, plan, step, counts, len(deletable) - len(deletes)),
        paused=step.paused,
        requeue_after=_wait(step, counts),
    )


def _wait(step: _Step, counts: Mapping[Progress, int]) -> float | None:
    return step.gates[-1].wait if step.gates and counts[Progress.OUTDATED] else None


def _status(rollout: Rollout, plan: Plan, step: _Step, counts: Mapping[Progress, int], waiting_deletes: int) -> Json:
    several = len(rollout.waves) > 1
    gate = step.gates[-1].message if several and step.gates else ""
    phase, message = _phase(step, counts, waiting_deletes, gate, names_wait=bool(plan.waiting))
    told: Json = {
        "changeId": rollout.change,
        "phase": phase,
        "message": message,
        "wave": rollout.waves[step.wave].name if several else "",
        **_numbers(counts),
        "rollback": rollout.goes_back or None,
        "startedAt": rollout.started_at,
        "waves": _wave_status(rollout, step) if several else [],
    }
    return {key: value for key, value in told.items() if value not in (None, "", [])}


def _phase(
    step: _Step, counts: Mapping[Progress, int], waiting_deletes: int, gate: str, *, names_wait: bool
) -> tuple[str, str]:
    if step.paused:
        return PAUSED, step.paused
    if not counts[Progress.OUTDATED]:
        if not counts[Progress.IN_FLIGHT]:
            return (PROGRESSING if names_wait else COMPLETE), ""
        waits = f"deletions ({waiting_deletes}) wait until all other variants are settled" if waiting_deletes else ""
        return PROGRESSING, waits
    return (PROGRESSING if counts[Progress.IN_FLIGHT] else WAITING), gate


def _wave_status(rollout: Rollout, step: _Step) -> list[Json]:
    """Return how far each wave is; the wave of all others is only listed if there are any."""
    found = []
    waves = by_wave(step.after)
    for place, wave in enumerate(rollout.waves):
        members = waves.get(place, [])
        if not members and place == len(rollout.waves) - 1:
            continue
        since = step.gates[place].settled_at if place < len(step.gates) else ""
        since = rollout.settled_at.get(wave.name, "") if step.paused else since
        found.append({"name": wave.name, **_numbers(counts_of(members)), **({"settledAt": since} if since else {})})
    return found


def _numbers(counts: Mapping[Progress, int]) -> Json:
    return {
        "outdated": counts[Progress.OUTDATED],
        "inFlight": counts[Progress.IN_FLIGHT],
        "settled": counts[Progress.SETTLED],
        "failed": counts[Progress.FAILED],
    }
