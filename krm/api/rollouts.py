"""In which order the variants of a set change, and how far that is: ``spec.rollout`` and ``status.rollout``.

Source: ``variants.md`` 6.2; what a change is: ADR 0032.
"""

from pydantic import Field

from krm.api.variants import INT_OR_STRING
from krm.meta.objects import WireModel


class WaveGate(WireModel):
    """What must hold of a wave before the next one begins."""

    min_settled_percent: int | None = Field(
        default=None, ge=0, le=100, description="Share of the wave's variants that must be settled; 100 if unset."
    )
    soak: str | None = Field(
        default=None, description="How long that must have been so, as in 90s, 10m or 1h30m; not at all if unset."
    )
    manual: bool | None = Field(
        default=None,
        description="Whether the next wave also waits for the annotation config.porch.kpt.dev/approve-wave of the set: "
        "<wave>@<changeId>.",
    )


class Wave(WireModel):
    """Targets that change together."""

    name: str | None = Field(default=None, description="Name of the wave; required.")
    match: str | None = Field(
        default=None,
        description="CEL expression over the variables of templates that is true of the targets of the wave; all "
        "targets that no earlier wave has, if unset.",
    )
    max_in_flight: int | str | None = Field(
        default=None,
        description="Most variants of the wave that change at a time, a number or a percentage of the wave; that of the "
        "rollout if unset.",
        json_schema_extra=INT_OR_STRING,
    )
    gate: WaveGate | None = Field(default=None, description="What must hold before the next wave begins.")


class Rollback(WireModel):
    """What is different when the source goes back to an earlier revision."""

    max_in_flight: int | str | None = Field(
        default=None,
        description="Most variants that change at a time, a number or a percentage; as otherwise if unset.",
        json_schema_extra=INT_OR_STRING,
    )


class Rollout(WireModel):
    """In which order, and how many at a time, the variants of a set change."""

    strategy: str | None = Field(
        default=None,
        description="AllAtOnce (if unset), Rolling (maxInFlight at a time) or Waves (wave after wave, at most "
        "maxInFlight at a time).",
    )
    max_in_flight: int | str | None = Field(
        default=None,
        description="Most variants that change at a time: a number, or a percentage of all; 1 if unset.",
        json_schema_extra=INT_OR_STRING,
    )
    settle_on: str | None = Field(
        default=None,
        description="When a change of a variant is settled: DraftReady (if unset), or Published, when a person or an "
        "approval policy has published it.",
    )
    on_failure: str | None = Field(
        default=None, description="What more failures than failureThreshold do: Pause (if unset) or Continue."
    )
    failure_threshold: int | str | None = Field(
        default=None,
        description="Variants that may fail before the rollout pauses: a number, or a percentage of all; none if unset.",
        json_schema_extra=INT_OR_STRING,
    )
    waves: list[Wave] | None = Field(
        default=None, description="The waves, in order; targets that none of them matches come last, as one more."
    )
    rollback: Rollback | None = Field(
        default=None, description="What is different when the source goes back to an earlier revision."
    )


class WaveStatus(WireModel):
    """How far a wave is."""

    name: str | None = Field(default=None, description="Name of the wave.")
    outdated: int | None = Field(default=None, description="Variants that are not changed yet.")
    in_flight: int | None = Field(default=None, description="Variants that are changed and not settled.")
    settled: int | None = Field(default=None, description="Variants that are settled.")
    failed: int | None = Field(
        default=None,
        description="Variants that are changed and whose controller cannot do it: stalled, or not Ready for a reason that "
        "no person decides about.",
    )
    settled_at: str | None = Field(
        default=None,
        description="Since when enough variants are settled (RFC 3339, UTC).",
        json_schema_extra={"format": "date-time"},
    )


class RolloutStatus(WireModel):
    """How far the change of all variants is."""

    change_id: str | None = Field(
        default=None, description="Name of the change: a hash of the source, as a revision, and of spec.targets."
    )
    phase: str | None = Field(default=None, description="Progressing, Waiting, Paused or Complete.")
    message: str | None = Field(default=None, description="What it waits for, for people.")
    wave: str | None = Field(default=None, description="The wave that changes now.")
    outdated: int | None = Field(default=None, description="Variants that are not changed yet.")
    in_flight: int | None = Field(default=None, description="Variants that are changed and not settled.")
    settled: int | None = Field(default=None, description="Variants that are settled.")
    failed: int | None = Field(
        default=None,
        description="Variants that are changed and whose controller cannot do it: stalled, or not Ready for a reason that "
        "no person decides about.",
    )
    rollback: bool | None = Field(default=None, description="Whether the source goes back to an earlier revision.")
    started_at: str | None = Field(
        default=None,
        description="When the change began (RFC 3339, UTC).",
        json_schema_extra={"format": "date-time"},
    )
    waves: list[WaveStatus] | None = Field(default=None, description="How far each wave is, in order.")
