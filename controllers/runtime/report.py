"""The next status of an object that a controller works on: conditions and other fields, made of the former status.

Nothing is written here. A status that says the same comes back equal, so that it is not written. Source: ``variants.md`` 1.3,
1.6, 6.7.
"""

import copy
from datetime import datetime
from typing import Any, ClassVar

from krm.meta.conditions import Condition, find_condition, set_condition
from krm.variants.conditions import PAUSED, STALLED, VALID, paused_by_user, shortened

Json = dict[str, Any]


class StatusReport:
    """Builds the next status of an object of one generation; ``kind`` is how messages name its kind."""

    kind: ClassVar[str]

    def __init__(self, status: Json, generation: int, now: datetime) -> None:
        self._before = status
        self._generation = generation
        self._now = now
        self.status: Json = copy.deepcopy(status)

    def paused(self) -> None:
        """Say that nothing is written because a user said so; what was last worked on stays told."""
        self.set(PAUSED, "True", *paused_by_user(self.kind))

    def upstream(self, seen: Json) -> None:
        """Tell what the upstream stands for."""
        self.status["upstream"] = seen

    def valid(self) -> None:
        """Say that this generation was worked on, and nobody has to change anything first."""
        self.observed()
        self.set(STALLED, "False", *VALID)

    def observed(self) -> None:
        """Note that this generation was worked on, which no paused one is."""
        self.status["observedGeneration"] = self._generation
        if find_condition(self.status.get("conditions"), PAUSED) is not None:
            self.set(PAUSED, "False", "Resumed", f"the {self.kind} is worked on")

    def set(self, type_: str, status: str, reason: str, message: str) -> None:
        """Set a condition; a message that is too long loses its middle."""
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

    def tell(self, field: str, value: Any) -> None:
        """Set a field, or with None leave it out."""
        if value is None:
            self.status.pop(field, None)
        else:
            self.status[field] = value

    def new(self, type_: str, status: str) -> tuple[bool, tuple[str, str] | None]:
        """Tell whether a condition has this status now; and its reason and message, if the former status did not tell them."""
        now = find_condition(self.status.get("conditions"), type_) or {}
        before = find_condition(self._before.get("conditions"), type_) or {}
        if now.get("status") != status:
            return False, None
        same = all(before.get(field) == now.get(field) for field in ("status", "reason", "message"))
        return True, None if same else (now["reason"], now["message"])
