"""The waves of a rollout: which targets change together, how many at a time, and what must hold before the next wave.

Which wave a target is in was found out when its variant was rendered. Source: ``variants.md`` 6.2.
"""

import datetime as dt
from dataclasses import dataclass
from typing import Any, Final

from krm.variants.durations import read_duration
from krm.variants.sets.amounts import Amount

Json = dict[str, Any]

OTHERS: Final = "(others)"
"""Name of the last wave, of the targets that no other wave has; no wave that is written can have it, being no name."""
ALL_SETTLED: Final = 100


@dataclass(frozen=True, slots=True)
class Gate:
    """What must hold of a wave before the next one begins."""

    settled_percent: int = ALL_SETTLED
    soak: dt.timedelta = dt.timedelta()
    """How long so many must have been settled."""
    manual: bool = False


@dataclass(frozen=True, slots=True)
class Wave:
    """Targets that change together."""

    name: str
    most: Amount | None
    """In flight at a time, of this wave alone; None: that of the rollout."""
    gate: Gate


def read_waves(rollout: Json) -> tuple[Wave, ...]:
    """Return the waves of a valid ``spec.rollout``, and at the end that of all other targets."""
    written = enumerate(rollout.get("waves") or ()) if rollout.get("strategy") == "Waves" else ()
    return *(_wave(one, place) for place, one in written), Wave(OTHERS, None, Gate())


def place_of(waves: tuple[Wave, ...], place: int) -> int:
    """Return the place of a target's wave, which is the last one where no expression matches (-1) or waves were taken out."""
    return place if 0 <= place < len(waves) else len(waves) - 1


def _wave(written: Json, place: int) -> Wave:
    most, gate = written.get("maxInFlight"), written.get("gate") or {}
    percent = gate.get("minSettledPercent")
    return Wave(
        name=str(written.get("name") or place),
        most=None if most is None else Amount.of(most),
        gate=Gate(
            settled_percent=ALL_SETTLED if percent is None else percent,
            soak=read_duration(gate.get("soak") or "0s"),
            manual=bool(gate.get("manual")),
        ),
    )
