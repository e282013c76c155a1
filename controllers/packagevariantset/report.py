"""What a pass says of its set: the status, made of the former one and of what was done. Source: ``variants.md`` 1.6, 3.8, 6.6, 6.7.

Nothing is written here. A status that says the same comes back equal, so that it is not written.
"""

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, Final

from controllers.packagevariantset.cached_values import Member
from krm.meta.conditions import Condition, find_condition, set_condition
from krm.variants.sets.plan import Failure
from krm.variants.sets.verdict import (
    MOST_CHARACTERS,
    PAUSED,
    PAUSED_BY_USER,
    READY,
    RECONCILED,
    STALLED,
    VALID,
    shortened,
)

Json = dict[str, Any]

READY_TARGETS: Final = "ReadyTargets"

VARIANT: Final = "variant"
"""Stage of a failure that the variant itself has."""
MOST_FAILURES: Final = 50
MOST_OF_FAILURE: Final = 512
"""Characters of one failure's message."""


@dataclass(frozen=True, slots=True)
class Written:
    """How many variants a pass wrote."""

    created: int = 0
    updated: int = 0
    deleted: int = 0


class Report:
    """Builds the next status of a set of one generation."""

    def __init__(self, status: Json, generation: int, now: datetime) -> None:
        self._before = status
        self._generation = generation
        self._now = now
        self.status: Json = copy.deepcopy(status)

    # --- conditions ---------------------------------------------------------------------------------

    def stalled(self, reason: str, message: str) -> None:
        """Say that somebody has to change something."""
        self._observed()
        self._set(STALLED, "True", reason, message)
        self._set(READY, "False", reason, message)

    def ready(self) -> None:
        """Say that the variants are as the set wants them."""
        self._valid()
        self._set(READY, "True", *RECONCILED)

    def unfinished(self, reason: str, message: str) -> None:
        """Say that nothing is wrong, and what the rest waits for."""
        self._valid()
        self._set(READY, "False", reason, message)

    def paused(self) -> None:
        """Say that nothing is written because a person said so; what was last worked on stays told."""
        self._set(PAUSED, "True", *PAUSED_BY_USER)

    def _valid(self) -> None:
        self._observed()
        self._set(STALLED, "False", *VALID)

    def _observed(self) -> None:
        self.status["observedGeneration"] = self._generation
        if find_condition(self.status.get("conditions"), PAUSED) is not None:
            self._set(PAUSED, "False", "Resumed", "the package variant set is worked on")

    def _set(self, type_: str, status: str, reason: str, message: str) -> None:
        condition = Condition.model_validate(
            {
                "type": type_,
                "status": status,
                "observedGeneration": self._generation,
                "reason": reason,
                "message": shortened(message, MOST_CHARACTERS),
            }
        )
        set_condition(self.status.setdefault("conditions", []), condition, now=self._now)

    # --- what else is told --------------------------------------------------------------------------

    def upstream(self, seen: Json) -> None:
        """Tell what the upstream stands for."""
        self.status["upstream"] = seen

    def rollout(self, rollout: Json | None) -> None:
        """Tell how far the change of all variants is; None where there is no rollout."""
        self._tell("rollout", rollout)

    def targets(self, total: int, members: Sequence[Member], failed: int, written: Written) -> None:
        """Tell how many targets there are, how far they are, and what was written last."""
        ready = sum(one.is_ready for one in members)
        stalled = sum(one.existing.stalled and not one.is_ready for one in members)
        before = self._before.get("targets") or {}
        made = {"created": written.created, "updated": written.updated, "deleted": written.deleted}
        if not any(made.values()):
            made = {name: before.get(name) or 0 for name in made}
        self.status["targets"] = {
            "total": total,
            "ready": ready,
            "stalled": stalled,
            "inFlight": max(0, total - ready - stalled - failed),
            "failed": failed,
            **made,
        }
        self._set(READY_TARGETS, *_ready_targets(ready, total))

    def failures(self, failures: Iterable[Failure], members: Iterable[Member]) -> None:
        """Tell the first of what went wrong with targets, and with variants that are stalled."""
        told = [_failure(one.repo, one.package, one.stage, one.message) for one in islice(failures, MOST_FAILURES)]
        stalled = sorted((one for one in members if one.existing.stalled), key=lambda one: one.name)
        told += [_failure(*one.existing.pair, VARIANT, one.existing.message) for one in stalled]
        self._tell("failures", told[:MOST_FAILURES] or None)

    def _tell(self, field: str, value: Any) -> None:
        if value is None:
            self.status.pop(field, None)
        else:
            self.status[field] = value

    # --- what is new --------------------------------------------------------------------------------

    def news(self) -> tuple[str, str] | None:
        """Return reason and message of what stalls the set, if the former status did not tell it."""
        now = find_condition(self.status.get("conditions"), STALLED) or {}
        before = find_condition(self._before.get("conditions"), STALLED) or {}
        if now.get("status") != "True":
            return None
        same = all(before.get(field) == now.get(field) for field in ("status", "reason", "message"))
        return None if same else (now["reason"], now["message"])


def _ready_targets(ready: int, total: int) -> tuple[str, str, str]:
    if ready >= total:
        return "True", "AllReady", f"all {total} targets are ready"
    return "False", "NotAllReady", f"{ready} of {total} targets are ready"


def _failure(repo: str, package: str, stage: str, message: str) -> Json:
    return {"repo": repo, "package": package, "stage": stage, "message": shortened(message, MOST_OF_FAILURE)}
