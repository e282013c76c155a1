"""What a pass over a set comes to in one sentence: the conditions Stalled and Ready. Previews and the controller ask this alike.

Pure. Source: ``variants.md`` 3.1, 3.8, 6.2, 6.6, 6.7 and 6.11; C-18, C-19, C-20.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from krm.variants.conditions import READY, STALLED, VALID, VALIDATION_ERROR, shortened
from krm.variants.sets.fleet import not_paused
from krm.variants.sets.plan import Failure, Plan
from krm.variants.sets.rollout import Admission
from krm.variants.sets.targets import UNEXPECTED_ERROR, UnrollError
from krm.variants.upstream import UpstreamError, UpstreamNotFound
from krm.variants.variant import UpstreamSpec

RECONCILED: Final = ("Reconciled", "package variants successfully reconciled")
DUPLICATE_TARGETS: Final = "DuplicateTargets"
DELETION_GUARD: Final = "DeletionGuard"
ROLLOUT_PAUSED: Final = "RolloutPaused"
ROLLOUT_IN_PROGRESS: Final = "RolloutInProgress"
WAITING_FOR_DELETION: Final = "WaitingForDeletion"
_SHOWN: Final = 20
"""Names that a message lists at most."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a set is after a pass."""

    reason: str
    message: str
    stalled: bool = False
    """Somebody has to change something."""
    ready: bool = False
    """The variants are as the set wants them."""

    @property
    def conditions(self) -> tuple[tuple[str, str, str, str], ...]:
        """Type, status, reason and message of the conditions Stalled and Ready."""
        message = shortened(self.message)
        stalled = ("True", self.reason, message) if self.stalled else ("False", *VALID)
        return (STALLED, *stalled), (READY, "True" if self.ready else "False", self.reason, message)


def invalid(problems: Sequence[str]) -> Verdict:
    """Return the verdict on a set that breaks rules (1.5)."""
    return Verdict(VALIDATION_ERROR, "; ".join(problems), stalled=True)


def without_upstream(error: UpstreamError, upstream: UpstreamSpec) -> Verdict:
    """Return the verdict on a set whose upstream cannot be used; sets have a sentence of their own, a tag has another (3.1)."""
    if not isinstance(error, UpstreamNotFound) or upstream.tag:
        return Verdict(error.reason, str(error), stalled=True)
    selector = upstream.workspace or upstream.revision
    message = f"could not find upstream package revision '{upstream.package}/{selector}' in repo '{upstream.repo}'"
    return Verdict(error.reason, message, stalled=True)


def without_targets(error: UnrollError) -> Verdict:
    """Return the verdict on a set of which nobody knows what it selects."""
    return Verdict(error.reason, str(error), stalled=True)


def not_rendered(error: Exception) -> Verdict:
    """Return the verdict on a set whose variants cannot be rendered at all."""
    return Verdict(UNEXPECTED_ERROR, str(error), stalled=True)


def verdict(
    planned: Plan, admission: Admission, *, failures: Sequence[Failure] = (), waiting: Sequence[str] = ()
) -> Verdict:
    """Return the verdict after what was admitted was written.

    ``failures`` are those of the writes, ``waiting`` names that turned out to be those of variants that are being deleted.
    """
    failed = [*planned.failures, *failures]
    if planned.duplicates:
        return Verdict(DUPLICATE_TARGETS, planned.duplicates, stalled=True)
    if failed:
        return Verdict(UNEXPECTED_ERROR, "; ".join(one.message for one in failed), stalled=True)
    if planned.guard:
        return Verdict(DELETION_GUARD, planned.guard, stalled=True)
    if admission.paused:
        return Verdict(ROLLOUT_PAUSED, admission.paused)
    if (left := _left(planned, admission)) > 0:
        return Verdict(ROLLOUT_IN_PROGRESS, f"{left} package variants wait for their turn in the rollout")
    if names := sorted({*planned.waiting, *waiting}):
        listed = ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
        return Verdict(WAITING_FOR_DELETION, f"package variants of these names are still being deleted: {listed}")
    return Verdict(*RECONCILED, ready=True)


def _left(planned: Plan, admission: Admission) -> int:
    """Return how many writes a rollout holds back; those of paused variants wait for nothing."""
    changing = not_paused((one for one, _ in planned.updates), {}), not_paused(planned.deletes, {}), planned.creates
    admitted = admission.updates, admission.deletes, admission.creates
    return sum(map(len, changing)) - sum(map(len, admitted))
