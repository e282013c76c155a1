"""What a pass says of its variant: the status, made of the former one and of what was done. Source: ``variants.md`` 1.3, 2.13.

Nothing is written here. A status that says the same comes back equal, so that it is not written.
"""

from collections.abc import Sequence
from typing import Any, Final

from controllers.packagevariant.ensure import ADOPTED, Target
from controllers.packagevariant.failures import Reason
from controllers.packagevariant.render_outcome import NOT_RENDERED
from controllers.runtime.report import StatusReport
from krm.meta.conditions import find_condition
from krm.variants.conditions import READY, STALLED

Json = dict[str, Any]

DRIFTED: Final = "Drifted"

NO_ERRORS: Final = ("NoErrors", "successfully ensured downstream package variant")
INVALID_OBJECT: Final = "invalid packagevariant object"


class Report(StatusReport):
    """Builds the next status of a variant of one generation."""

    kind = "package variant"

    # --- conditions ------------------------------------------------------------------------------------

    def stalled(self, reason: str, message: str) -> None:
        """Say that somebody has to change something before the variant can be worked on."""
        self.observed()
        self.set(STALLED, "True", reason, message)
        self.set(READY, "False", Reason.ERROR, INVALID_OBJECT)

    def ready(self) -> None:
        """Say that the downstream package is as it should be."""
        self.valid()
        self.set(READY, "True", *NO_ERRORS)

    def failed(self, reason: str, message: str) -> None:
        """Say what keeps the downstream package from being as it should be."""
        self.valid()
        self.set(READY, "False", reason, message)

    def blocked(self, reason: str, message: str) -> None:
        """Say what keeps a variant that is being deleted from going."""
        self.observed()
        self.set(READY, "False", reason, message)

    # --- what else is told ------------------------------------------------------------------------------

    def targets(self, targets: Sequence[Target], pending_change: Json | None) -> None:
        """Tell which package revisions are kept, and why there is a draft among them."""
        known = {each.get("name"): each for each in self._before.get("downstreamTargets") or ()}
        self.status["downstreamTargets"] = [_shown(target, known.get(target.revision.name) or {}) for target in targets]
        drafts = {target.revision.name for target in targets if not target.revision.is_published}
        told = pending_change or self._before.get("pendingChange") or {}
        self.tell("pendingChange", told if told.get("draft") in drafts else None)

    def pending(self, change: Json | None) -> None:
        """Tell what would be done if the variant were not paused."""
        self.tell("pendingChange", change)

    def drift(self, drift: Json | None, reason_and_message: tuple[str, str] | None) -> None:
        """Tell what is not as it should be and is left alone."""
        self.tell("drift", drift)
        if reason_and_message is not None:
            self.set(DRIFTED, "True", *reason_and_message)
        elif find_condition(self.status.get("conditions"), DRIFTED) is not None:
            self.set(DRIFTED, "False", "NoDrift", "the target is what the package variant asks for")

    # --- what is new ------------------------------------------------------------------------------------

    def news(self) -> tuple[str, str] | None:
        """Return reason and message of a failure that the former status did not tell of; None where there is none."""
        for type_, bad in ((STALLED, "True"), (READY, "False")):
            is_so, said = self.new(type_, bad)
            if is_so:
                return said
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
