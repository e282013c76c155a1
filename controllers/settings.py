"""Every setting of the controllers' process: read once from PORCH_CONTROLLERS_* variables and the command line.

No other module reads the environment. ``docs/reference/controllers-settings.md`` is generated from this class.
"""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

PREFIX = "PORCH_CONTROLLERS_"

Seconds = Annotated[float, Field(gt=0, le=30 * 86_400)]


class Settings(BaseSettings):
    """How one process of controllers runs."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_ignore_empty=True, extra="ignore", frozen=True, validate_default=True
    )

    kubeconfig: Path | None = Field(
        default=None,
        description="Kubeconfig of the API server, whose current context is used. Empty: what `KUBECONFIG` names, inside a "
        "cluster the pod's service account.",
    )
    run: Literal["variants", "approval"] = Field(
        default="variants",
        description="What this process does. `variants`: it keeps PackageVariantSets and PackageVariants true and approves nothing. `approval`: it proposes "
        "and publishes package revisions as their approval policies say, and nothing else; it needs another user, with the "
        "right to approve.",
    )
    namespace: str = Field(
        default="",
        max_length=63,
        pattern=r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$",
        description="Namespace whose variants are kept true. Empty: all namespaces.",
    )
    workers: int = Field(
        default=16,
        ge=1,
        le=256,
        description="Variants, or approvals, that are worked on at the same time; one is never worked on twice at once.",
    )
    resync: Seconds = Field(
        default=36_000.0,
        description="Seconds after which every variant is looked at again though nothing happened; varied by a tenth, so that "
        "several processes do not ask at the same time.",
    )
    leader_election: bool = Field(
        default=True,
        description="Work only while holding a Lease, so that several processes may run and one works.",
    )
    lease_namespace: str = Field(
        default="default",
        min_length=1,
        max_length=63,
        pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
        description="Namespace of that Lease.",
    )
    lease_name: str = Field(
        default="",
        max_length=63,
        pattern=r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$",
        description="Name of that Lease. Empty: `porch-controllers`, for approvals `porch-approval`. Processes for different "
        "namespaces need different names.",
    )
    lease_duration: float = Field(
        default=10.0,
        ge=1,
        le=600,
        description="Seconds without a sign of life after which another process takes over, by that one's own clock.",
    )
    lease_renew: float = Field(
        default=6.0,
        gt=0,
        le=600,
        description="Seconds without a successful renewal after which a leader stops by itself. Less than the duration, by "
        "what a request that was sent before may still take.",
    )
    lease_retry: float = Field(
        default=1.5, gt=0, le=300, description="Seconds between two renewals, and between two looks at the Lease."
    )
    host: str = Field(
        default="127.0.0.1",
        min_length=1,
        max_length=253,
        description="Address that health and metrics are served at, over plain HTTP to whoever reaches it.",
    )
    port: int | None = Field(
        default=None,
        ge=0,
        le=65_535,
        description="TCP port of `/healthz`, `/readyz` and `/metrics`; 0 takes a free one. Empty: none.",
    )
    check_wakeups: bool = Field(
        default=False,
        description="Look at every variant and every set after every event, and log an error for each that the event should have "
        "woken. For those who change the controllers: it reads all packages all the time.",
    )
    upstream_identity: bool = Field(
        default=False,
        description="Let the expressions of PackageVariantSets see `upstream.repo`, `upstream.package` and `upstream.revision`, besides the "
        "name, namespace, labels and annotations of the upstream.",
    )
    set_max_deletions: str = Field(
        default="100%",
        max_length=10,
        pattern=r"^([0-9]{1,9}|[0-9]{1,3}%)$",
        description="Most PackageVariants that one pass over a PackageVariantSet deletes whose `spec.guards.maxDeletions` says nothing: a "
        "number, or a percentage of those that exist. `20%` is a good choice where people depend on them.",
    )
    set_on_empty_selection: Literal["Delete", "Keep"] = Field(
        default="Delete",
        description="What becomes of the PackageVariants of a set of which a target selects nothing any more, where its "
        "`spec.guards.onEmptySelection` says nothing.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Least severe messages that are logged, on stderr."
    )
    log_format: Literal["json", "console"] = Field(
        default="json", description="How messages are logged: a JSON object a line, or text for people."
    )

    @property
    def lease(self) -> str:
        """The name of the Lease."""
        return self.lease_name or {"variants": "porch-controllers", "approval": "porch-approval"}[self.run]

    @field_validator("kubeconfig")
    @classmethod
    def _absolute(cls, value: Path | None) -> Path | None:
        """Pin a path to where the process started."""
        return None if value is None else value.expanduser().absolute()

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        """Refuse times with which two leaders could work at once, or one would lose the Lease between two renewals."""
        if not self.lease_retry * 2 <= self.lease_renew < self.lease_duration:
            raise ValueError(
                "lease_retry must be at most half of lease_renew, and lease_renew less than lease_duration"
            )
        return self
