"""Status conditions: the model, and how one is found and set in a decoded object."""

from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import Field

from krm.meta.objects import WireModel

Json = dict[str, Any]


class Condition(WireModel):
    """One observation about an object, True, False or Unknown, with a reason and a sentence.

    Source: metav1.Condition.
    """

    type: str = Field(description="What is observed, in CamelCase.")
    status: Literal["True", "False", "Unknown"] = Field(description="True, False or Unknown.")
    observed_generation: int | None = Field(
        default=None, ge=0, description="The metadata.generation that this condition was made from."
    )
    last_transition_time: str = Field(
        default="",
        description="When the status last changed (RFC 3339, UTC).",
        json_schema_extra={"format": "date-time"},
    )
    reason: str = Field(default="", description="Why, as one CamelCase word.")
    message: str = Field(default="", description="Why, for people.")


def timestamp(moment: datetime | None = None) -> str:
    """Format a moment (default: now) as the wire has it: RFC 3339, UTC, whole seconds."""
    return (moment or datetime.now(UTC)).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def find_condition(conditions: list[Json] | None, type_: str) -> Json | None:
    """Return the condition of ``type_``, or None."""
    return next((condition for condition in conditions or () if condition.get("type") == type_), None)


def set_condition(conditions: list[Json], wanted: Condition, *, now: datetime | None = None) -> bool:
    """Put ``wanted`` into ``conditions`` in place; tell whether anything changed.

    The transition time moves only when the status does, so that repeating an observation writes nothing.
    """
    new = wanted.to_json()
    old = find_condition(conditions, wanted.type)
    if old is not None and old.get("status") == wanted.status and old.get("lastTransitionTime"):
        new["lastTransitionTime"] = old["lastTransitionTime"]
    elif not new.get("lastTransitionTime"):
        new["lastTransitionTime"] = timestamp(now)
    if old == new:
        return False
    if old is None:
        conditions.append(new)
    else:
        conditions[conditions.index(old)] = new
    return True
