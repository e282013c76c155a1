"""What must hold of a wave before the next one begins. Source: ``variants.md`` 6.2."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from krm.variants.sets.fleet import Member, by_wave
from krm.variants.sets.progress import Progress
from krm.variants.sets.rollout_memory import Rollout, time_text
from krm.variants.sets.vocabulary import APPROVE_WAVE
from krm.variants.sets.waves import ALL_SETTLED, Gate


@dataclass(frozen=True, slots=True)
class GateState:
    """How far a wave is on the way to the next one."""

    settled_at: str = ""
    """Since when enough of it is settled; empty while it is not."""
    open: bool = False
    wait: float | None = None
    """Seconds that it has still to soak."""
    message: str = ""


def gates_of(rollout: Rollout, fleet: Sequence[Member], now: dt.datetime) -> list[GateState]:
    """Return the gates of the waves that have begun; that of the last one is the next to open.

    A wave that was reached in this change stays reached, whatever becomes of the waves before it.
    """
    waves = by_wave(fleet)
    last = max(waves, default=0)
    reached = min(rollout.wave, last)
    gates: list[GateState] = []
    for place in range(last + 1):
        if place > reached and not gates[-1].open:
            break
        gates.append(_gate(rollout, place, waves.get(place, []), now))
    return gates


def _gate(rollout: Rollout, place: int, members: Sequence[Member], now: dt.datetime) -> GateState:
    wave = rollout.waves[place]
    settled = sum(one.progress is Progress.SETTLED for one in members)
    percent = wave.gate.settled_percent
    if settled * ALL_SETTLED < percent * len(members):
        return GateState(
            message=f"wave {wave.name}: {settled} of {len(members)} variants are settled, {percent}% must be"
        )
    return _soaked(rollout, wave.name, wave.gate, rollout.settled_at.get(wave.name) or time_text(now), now)


def _soaked(rollout: Rollout, name: str, gate: Gate, since: str, now: dt.datetime) -> GateState:
    ends = dt.datetime.fromisoformat(since) + gate.soak
    if gate.soak and ends > now:
        return GateState(since, wait=(ends - now).total_seconds(), message=f"wave {name} soaks until {time_text(ends)}")
    if gate.manual and name not in rollout.approved:
        return GateState(since, message=f"wave {name} waits for the annotation {APPROVE_WAVE}: {name}@{rollout.change}")
    return GateState(since, open=True)
