"""What a pass says of its variant: the status, made of the former one and of what was done. Source: ``variants.md`` 1.3, 2.13.

Nothing is written here. A status that says the same comes back equal, so that it is not written.
"""

import copy
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from controllers.packagevariant.ensure import ADOPTED, Target
from controllers.packagevariant.failures import Reason
from controllers.packagevariant.render_outcome import NOT_RENDERED, shortened
from krm.meta.conditions import Condition, find_condition, set_condition

Json = dict[str, Any]

STALLED: Final = "Stalled"
READY: Final = "Ready"
PAUSED: Final = "Paused"
DRIFTED: Final = "Drifted"

VALID: Final = ("Valid", "all validation checks passed")
NO_ERRORS: Final = ("NoErrors", "successfully ensured downstream package variant")
INVALID_OBJECT: Final = "invalid packagevariant object"
VALIDATION_ERROR: Final = "ValidationError"


class Report:
    """Builds the next status of a variant of one generation."""

    def __init__(self, status: Json, generation: int, now: datetime) -> None:
        self._before = status
        self._generation = generation
        self._now = now
        self.status: Json = copy.deepcopy(status)

    # --- conditions ------------------------------------------------------------------------------------

    def stalled(self, reason: str, message: str) -> None:
        """Say that somebody has to change something before the variant can be worked on."""
        self._observed()
        self._set(STALLED, "True", reason, message)
        self._set(READY, "False", Reason.ERROR, INVALID_OBJECT)

    def ready(self) -> None:
        """Say that the downstream package is as it should be."""
        self._worked()
        self._set(READY, "True", *NO_ERRORS)

    def failed(self, reason: str, message: str) -> None:
        """Say what keeps the downstream package from being as it should be."""
        self._worked()
        self._set(READY, "False", reason, message)

    def blocked(self, reason: str, message: str) -> None:
        """Say what keeps a variant that is being deleted from going."""
        self._observed()
        self._set(READY, "False", reason, message)

    def paused(self) -> None:
        """Say that nothing is written because a user said so; what was last worked on stays told."""
        self._set(PAUSED, "True", "PausedByUser", "nothing is written while the package variant is paused")

    def _worked(self) -> None:
        self._observed()
        self._set(STALLED, "False", *VALID)

    def _observed(self) -> None:
        """Note that this generation was worked on, which no paused one is."""
        self.status["observedGeneration"] = self._generation
        if find_condition(self.status.get("conditions"), PAUSED) is not None:
            self._set(PAUSED, "False", "Resumed", "the package variant is worked on")

    def _set(self, type_: str, status: str, reason: str, message: str) -> None:
        condition = Condition.model_validate(
            {
                "type": type_,
                "status": status,
                "observedGeneration": self._generation,
                "reason": str(reason),
                "message": shortened(message),
            }
        )
        set_condition(self.status.setdefault("conditions", []), condition, now=self._now)

    # --- what else is told ------------------------------------------------------------------------------

    def upstream(self, seen: Json) -> None:
        """Tell what the upstream stands for."""
        self.status["upstream"] = seen

    def targets(self, targets: Sequence[Target], pending_change: Json | None) -> None:
        """Tell which package revisions are kept, and why there is a draft among them."""
        known = {each.get("name"): each for each in self._before.get("downstreamTargets") or ()}
        self.status["downstreamTargets"] = [_shown(target, known.get(target.revision.name) or {}) for target in targets]
        drafts = {target.revision.name for target in targets if not target.revision.is_published}
        told = pending_change or self._before.get("pendingChange") or {}
        self._tell("pendingChange", told if told.get("draft") in drafts else None)

    def pending(self, change: Json | None) -> None:
        """Tell what would be done if the variant were not paused."""
        self._tell("pendingChange", change)

    def drift(self, drift: Json | None, reason_and_message: tuple[str, str] | None) -> None:
        """Tell what is not as it should be and is left alone."""
        self._tell("drift", drift)
        if reason_and_message is not None:
            self._set(DRIFTED, "True", *reason_and_message)
        elif find_condition(self.status.get("conditions"), DRIFTED) is not None:
            self._set(DRIFTED, "False", "NoDrift", "the target is what the package variant asks for")

    def _tell(self, field: str, value: Json | None) -> None:
        if value is None:
            self.status.pop(field, None)
        else:
            self.status[field] = value

    # --- what is new ------------------------------------------------------------------------------------

    def news(self) -> tuple[str, str] | None:
        """Return reason and message of a failure that the former status did not tell of; None where there is none."""
        for type_, bad in ((STALLED, "True"), (READY, "False")):
            now = find_condition(self.status.get("conditions"), type_)
            if now is None or now.get("status") != bad:
                continue
            before = find_condition(self._before.get("conditions"), type_) or {}
            same = all(before.get(field) == now.get(field) for field in ("status", "reason", "message"))
            return None if same else (now["reason"], now["message"])
        return None


def _shown(target: Target, before: Json) -> Json:
    return {
        "name": target.revision.name,
        "renderStatus": target.render_status or before.get("renderStatus") or NOT_RENDERED,
        "lifecycle": target.revision.lifecycle,
        "operation": _operation(target, before),
    }


def _operation(target: Target, before: Json) -> str:
    """Say how a target came to be; one that was adopted stays so until it is upgraded in place."""
    known, task = str(before.get("operation") or ""), target.revision.task
    if target.upgraded:
        return "upgrade"
    if target.adopted or known == ADOPTED:
        return ADOPTED
    return task if task in ("clone", "edit", "upgrade") else known or ADOPTED
