"""The core kinds that a standalone server keeps: ConfigMap, Secret, Namespace, ServiceAccount, Event.

The models describe the wire for schemas and documentation; the rules that need more than a field
are in ``apiserver/resources/core.py``. Source: ``kube-api.md`` 2.14 and 2.16.
"""

from typing import Annotated, Any, Final

from pydantic import ConfigDict, Field

from krm.meta.objects import ObjectMeta, WireModel

TIME: Final[dict[str, Any]] = {"format": "date-time"}
BYTES: Final[dict[str, Any]] = {"format": "byte"}
"""Schema notes of times and of base64 values; on the wire both are strings."""


ATOMIC: Final = ConfigDict(json_schema_extra={"x-kubernetes-map-type": "atomic"})
"""A reference is owned, and merged, as a whole."""
Base64 = Annotated[str, Field(json_schema_extra=BYTES)]
"""Bytes, as they stand in JSON."""
Int32 = Annotated[int, Field(json_schema_extra={"format": "int32"})]
"""A number that clients keep in 32 bits."""


class ConfigMap(WireModel):
    """Configuration as key-value pairs, for programs to read."""

    metadata: ObjectMeta = Field(default_factory=ObjectMeta, description="Standard object metadata.")
    data: dict[str, str] | None = Field(default=None, description="Text by key; keys differ from those of binaryData.")
    binary_data: dict[str, Base64] | None = Field(default=None, description="Bytes by key, in base64.")
    immutable: bool | None = Field(default=None, description="When true, the data can no longer be changed.")


class Secret(WireModel):
    """Confidential data as key-value pairs; encrypted where it is stored."""

    metadata: ObjectMeta = Field(default_factory=ObjectMeta, description="Standard object metadata.")
    type: str | None = Field(default=None, description="What kind of secret it is; Opaque if not said; immutable.")
    data: dict[str, Base64] | None = Field(default=None, description="Bytes by key, in base64.")
    string_data: dict[str, str] | None = Field(
        default=None, description="Text by key, written over data and never returned."
    )
    immutable: bool | None = Field(default=None, description="When true, the data can no longer be changed.")


class NamespaceSpec(WireModel):
    """What holds a namespace."""

    finalizers: list[str] | None = Field(
        default=None,
        description="The namespace goes when this is empty; kubernetes stands for its contents.",
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )


class NamespaceCondition(WireModel):
    """One observation about a namespace that is being deleted."""

    type: str = Field(description="What is observed.")
    status: str = Field(description="True, False or Unknown.")
    last_transition_time: str | None = Field(
        default=None, description="When the status last changed.", json_schema_extra=TIME
    )
    reason: str | None = Field(default=None, description="Why, as one CamelCase word.")
    message: str | None = Field(default=None, description="Why, for people.")


class NamespaceStatus(WireModel):
    """How far a namespace is in its life."""

    phase: str | None = Field(default=None, description="Active, or Terminating once deletion was asked for.")
    conditions: list[NamespaceCondition] | None = Field(
        default=None,
        description="What deletion waits for.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
    )


class Namespace(WireModel):
    """A scope for names."""

    metadata: ObjectMeta = Field(default_factory=ObjectMeta, description="Standard object metadata.")
    spec: NamespaceSpec | None = Field(default=None, description="What holds the namespace.")
    status: NamespaceStatus | None = Field(default=None, description="How far the namespace is in its life.")


class ObjectReference(WireModel):
    """Names an object, or a part of one."""

    model_config = ATOMIC

    api_version: str | None = Field(default=None, description="Group and version of the object.")
    kind: str | None = Field(default=None, description="Kind of the object.")
    namespace: str | None = Field(default=None, description="Namespace of the object.")
    name: str | None = Field(default=None, description="Name of the object.")
    uid: str | None = Field(default=None, description="UID of the object.")
    resource_version: str | None = Field(default=None, description="The version of the object that is meant.")
    field_path: str | None = Field(default=None, description="The part of the object that is meant.")


class LocalObjectReference(WireModel):
    """Names an object of the same namespace."""

    model_config = ATOMIC

    name: str = Field(default="", description="Name of the object.")


class ServiceAccount(WireModel):
    """An identity for programs; tokens are issued for it on request."""

    metadata: ObjectMeta = Field(default_factory=ObjectMeta, description="Standard object metadata.")
    secrets: list[ObjectReference] | None = Field(
        default=None,
        description="Secrets that programs with this identity may use, by name.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    )
    image_pull_secrets: list[LocalObjectReference] | None = Field(
        default=None,
        description="Secrets with the credentials of image registries.",
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )
    automount_service_account_token: bool | None = Field(
        default=None, description="Whether Pods with this identity get a token without asking."
    )


class EventSource(WireModel):
    """Which component reports."""

    component: str | None = Field(default=None, description="Name of the component.")
    host: str | None = Field(default=None, description="Machine it runs on.")


class EventSeries(WireModel):
    """An event that happens again and again."""

    count: Int32 | None = Field(default=None, description="How often it happened so far.")
    last_observed_time: str | None = Field(default=None, description="When it last happened.", json_schema_extra=TIME)


class Event(WireModel):
    """A report that something happened to an object; kept for a limited time."""

    metadata: ObjectMeta = Field(default_factory=ObjectMeta, description="Standard object metadata.")
    involved_object: ObjectReference = Field(description="The object it happened to.")
    reason: str | None = Field(default=None, description="What happened, as one CamelCase word.")
    message: str | None = Field(default=None, description="What happened, for people.")
    source: EventSource | None = Field(default=None, description="Which component reports.")
    first_timestamp: str | None = Field(default=None, description="When it first happened.", json_schema_extra=TIME)
    last_timestamp: str | None = Field(default=None, description="When it last happened.", json_schema_extra=TIME)
    count: Int32 | None = Field(default=None, description="How often it happened.")
    type: str | None = Field(default=None, description="Normal or Warning.")
    event_time: str | None = Field(
        default=None, description="When it was first observed, in microseconds.", json_schema_extra=TIME
    )
    series: EventSeries | None = Field(default=None, description="Set when it happens again and again.")
    action: str | None = Field(default=None, description="What was done or not done to the object.")
    related: ObjectReference | None = Field(default=None, description="A second object that had a part in it.")
    reporting_component: str | None = Field(default=None, description="Controller that reports.")
    reporting_instance: str | None = Field(default=None, description="Instance of that controller.")
