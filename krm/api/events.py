"""``events.k8s.io/v1`` Event: the form of events that newer recorders write; core Events are the same objects.

The model describes the wire for schemas and documentation; the rules are in ``apiserver/resources/event_kinds.py``.
Source: ``kube-api.md`` 1.9 and 2.16.
"""

from pydantic import Field

from krm.api.core import TIME, EventSeries, EventSource, Int32, ObjectReference
from krm.meta.objects import ObjectMeta, WireModel


class EventV1(WireModel):
    """A report that something happened to an object; kept for a limited time."""

    metadata: ObjectMeta = Field(default_factory=ObjectMeta, description="Standard object metadata.")
    event_time: str | None = Field(
        default=None, description="When it was first observed, in microseconds; required.", json_schema_extra=TIME
    )
    series: EventSeries | None = Field(default=None, description="Set when it happens again and again.")
    reporting_controller: str | None = Field(
        default=None, description="Controller that reports, such as example.com/syncer; required."
    )
    reporting_instance: str | None = Field(default=None, description="Instance of that controller; required.")
    action: str | None = Field(default=None, description="What was done or not done to the object; required.")
    reason: str | None = Field(default=None, description="Why it was done, as one CamelCase word; required.")
    regarding: ObjectReference | None = Field(default=None, description="The object it happened to.")
    related: ObjectReference | None = Field(default=None, description="A second object that had a part in it.")
    note: str | None = Field(default=None, description="What happened, for people; at most 1024 bytes.")
    type: str | None = Field(default=None, description="Normal or Warning.")
    deprecated_source: EventSource | None = Field(default=None, description="The source of a core Event.")
    deprecated_first_timestamp: str | None = Field(
        default=None, description="The firstTimestamp of a core Event.", json_schema_extra=TIME
    )
    deprecated_last_timestamp: str | None = Field(
        default=None, description="The lastTimestamp of a core Event.", json_schema_extra=TIME
    )
    deprecated_count: Int32 | None = Field(default=None, description="The count of a core Event.")
