"""What a rollout asks for, and what the set's status remembers of the change that is under way. Source: ``variants.md`` 6.2."""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from krm.variants.sets.amounts import Amount
from krm.variants.sets.changes import change_id, revisions_since
from krm.variants.sets.vocabulary import APPROVE_WAVE
from krm.variants.sets.waves import Wave, read_waves

Json = dict[str, Any]

COMPLETE: Final = "Complete"
"""The phase of a rollout that has nothing left to do."""
_ALL_AT_ONCE: Final = "AllAtOnce"


@dataclass(frozen=True, slots=True)
class Rollout:
    """``spec.rollout`` and what ``status.rollout`` remembers of this change."""

    change: str
    waves: tuple[Wave, ...]
    spec: Json
    approved: frozenset[str]
    """Names of waves whose manual gate somebody has opened for this change."""
    retargets: bool
    """Whether another change was under way until now."""
    goes_back: bool
    started_at: str
    wave: int
    settled_at: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, set_body: Json, status: Json, now: dt.datetime) -> "Rollout":
        spec = set_body["spec"]
        change, before = change_id(set_body), status.get("rollout") or {}
        same = before.get("changeId") == change
        rollout = spec["rollout"]
        waves = read_waves(rollout)
        unfinished = bool(before.get("changeId")) and before.get("phase") != COMPLETE
        listed = before.get("waves") or () if same else ()
        return cls(
            change=change,
            waves=waves,
            spec=rollout,
            approved=_approved(set_body, change),
            retargets=unfinished and not same,
            goes_back=bool(before.get("rollback")) if same else _goes_back(spec, status, unfinished=unfinished),
            started_at=(before.get("startedAt") if same else None) or time_text(now),
            wave=_place(waves, before.get("wave") if same else None),
            settled_at={one["name"]: one["settledAt"] for one in listed if one.get("name") and one.get("settledAt")},
        )

    @property
    def all_at_once(self) -> bool:
        """Whether nothing is held back."""
        return self.spec.get("strategy") in (None, "", _ALL_AT_ONCE)

    @property
    def needs_publication(self) -> bool:
        """Whether a change settles with its publication."""
        return self.spec.get("settleOn") == "Published"

    @property
    def most(self) -> Amount:
        """How many variants of all may be in flight."""
        written = self._of_rollback
        written = self.spec.get("maxInFlight") if written is None else written
        return Amount.of(1 if written is None else written)

    def most_of(self, wave: int) -> Amount | None:
        """Return how many variants of a wave may be in flight, None where it has its part of what all may."""
        return None if self._of_rollback is not None else self.waves[wave].most

    @property
    def _of_rollback(self) -> int | str | None:
        found: int | str | None = (self.spec.get("rollback") or {}).get("maxInFlight") if self.goes_back else None
        return found


def _goes_back(spec: Json, status: Json, *, unfinished: bool) -> bool:
    """A rollback goes on while other parts of the set are edited."""
    by = revisions_since(status.get("upstream") or {}, spec.get("upstream") or {})
    if by == 0:
        return unfinished and bool(status["rollout"].get("rollback"))
    return by is not None and by < 0


def _approved(set_body: Json, change: str) -> frozenset[str]:
    written = str((set_body["metadata"].get("annotations") or {}).get(APPROVE_WAVE) or "")
    pairs = (one.strip().rpartition("@") for one in written.split(","))
    return frozenset(wave for wave, _, of in pairs if of == change)


def _place(waves: tuple[Wave, ...], name: str | None) -> int:
    return next((place for place, wave in enumerate(waves) if wave.name == name), 0)


def time_text(moment: dt.datetime) -> str:
    """Write a time so that it can be read back: rounded up to seconds, soaks end late rather than early."""
    whole = moment.astimezone(dt.UTC).replace(microsecond=0)
    whole += dt.timedelta(seconds=bool(moment.microsecond))
    return f"{whole:%Y-%m-%dT%H:%M:%SZ}"
