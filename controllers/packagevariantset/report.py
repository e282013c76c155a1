"""What a pass says of its set: the status, made of the former one and of what was done. Source: ``variants.md`` 1.6, 3.8, 6.6, 6.7.

Nothing is written here. A status that says the same comes back equal, so that it is not written.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from controllers.packagevariantset.cached_values import Member
from controllers.runtime.report import StatusReport
from krm.variants.conditions import READY, STALLED, shortened
from krm.variants.sets.plan import Failure
from krm.variants.sets.verdict import RECONCILED

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


class Report(StatusReport):
    """Builds the next status of a set of one generation."""

    kind = "package variant set"

    def stalled(self, reason: str, message: str) -> None:
        """Say that somebody has to change something."""
        self.observed()
        self.set(STALLED, "True", reason, message)
        self.set(READY, "False", reason, message)

    def ready(self) -> None:
        """Say that the variants are as the set wants them."""
        self.valid()
        self.set(READY, "True", *RECONCILED)

    def unfinished(self, reason: str, message: str) -> None:
        """Say that nothing is wrong, and what the rest waits for."""
        self.valid()
        self.set(READY, "False", reason, message)

    # --- what else is told --------------------------------------------------------------------------

    def rollout(self, rollout: Json | None) -> None:
        """Tell how far the change of all variants is; None where there is no rollout."""
        self.tell("rollout", rollout)

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
        self.set(READY_TARGETS, *_ready_targets(ready, total))

    def failures(self, failures: Iterable[Failure], members: Iterable[Member]) -> None:
        """Tell the first of what went wrong with targets, and with variants that are stalled."""
        told = [_failure(one.repo, one.package, one.stage, one.message) for one in islice(failures, MOST_FAILURES)]
        stalled = sorted((one for one in members if one.existing.stalled), key=lambda one: one.name)
        told += [_failure(*one.existing.pair, VARIANT, one.existing.message) for one in stalled]
        self.tell("failures", told[:MOST_FAILURES] or None)

    # --- what is new --------------------------------------------------------------------------------

    def news(self) -> tuple[str, str] | None:
        """Return reason and message of what stalls the set, if the former status did not tell it."""
        return self.new(STALLED, "True")[1]


def _ready_targets(ready: int, total: int) -> tuple[str, str, str]:
    if ready >= total:
        return "True", "AllReady", f"all {total} targets are ready"
    return "False", "NotAllReady", f"{ready} of {total} targets are ready"


def _failure(repo: str, package: str, stage: str, message: str) -> Json:
    return {"repo": repo, "package": package, "stage": stage, "message": shortened(message, MOST_OF_FAILURE)}
