"""``coordination.k8s.io/v1`` Lease: who leads, until when.

The model describes the wire for schemas and documentation; the rules are in ``apiserver/resources/leases.py``.
Source: ``kube-api.md`` 1.9 and 2.16.
"""

from pydantic import Field

from krm.api.core import TIME, Int32
from krm.meta.objects import ObjectMeta, WireModel


class LeaseSpec(WireModel):
    """Who holds a lease and when they last said so."""

    holder_identity: str | None = Field(default=None, description="Who holds the lease; empty once it was given back.")
    lease_duration_seconds: Int32 | None = Field(
        default=None, description="Seconds after renewTime from which others may take the lease; above 0."
    )
    acquire_time: str | None = Field(
        default=None, description="When the holder took the lease, in microseconds.", json_schema_extra=TIME
    )
    renew_time: str | None = Field(
        default=None, description="When the holder last renewed the lease, in microseconds.", json_schema_extra=TIME
    )
    lease_transitions: Int32 | None = Field(default=None, description="How often the holder changed.")
    strategy: str | None = Field(default=None, description="For coordinated leader election, which is not offered.")
    preferred_holder: str | None = Field(
        default=None, description="For coordinated leader election, which is not offered."
    )


class Lease(WireModel):
    """A lock with a time limit, by which programs agree on a leader."""

    metadata: ObjectMeta = Field(default_factory=ObjectMeta, description="Standard object metadata.")
    spec: LeaseSpec | None = Field(default=None, description="Who holds the lease.")
