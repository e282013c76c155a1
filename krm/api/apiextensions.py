"""``apiextensions.k8s.io/v1``: CustomResourceDefinition, by which users add kinds to the server.

Schemas of custom kinds stay plain JSON: they are walked by the schema engine, not by models.
Source: ``kube-api.md`` 2.15.
"""

from typing import Any

from pydantic import Field, JsonValue

from krm.meta.conditions import Condition
from krm.meta.objects import ObjectMeta, WireModel

_ATOMIC: dict[str, JsonValue] = {"x-kubernetes-list-type": "atomic"}


class CustomResourceDefinitionNames(WireModel):
    """The names of a kind and of its resource."""

    plural: str = Field(
        default="",
        description="Name of the resource in URLs: lower case, plural; the object is named <plural>.<group>.",
    )
    singular: str = Field(
        default="", description="Name for one object on command lines; the kind in lower case if unset."
    )
    short_names: list[str] | None = Field(
        default=None, description="Abbreviations for command lines, lower case.", json_schema_extra=_ATOMIC
    )
    kind: str = Field(default="", description="Name of the kind, in CamelCase and singular.")
    list_kind: str = Field(default="", description="Name of the kind's lists; <kind>List if unset.")
    categories: list[str] | None = Field(
        default=None,
        description="Groups of resources it belongs to, such as all; clients list several resources by them.",
        json_schema_extra=_ATOMIC,
    )


class CustomResourceValidation(WireModel):
    """What objects of a version must look like."""

    open_apiv3_schema: dict[str, Any] | None = Field(
        default=None,
        alias="openAPIV3Schema",
        description="A structural OpenAPI v3 schema: a type on every node, no references; it validates, prunes and defaults.",
    )


class CustomResourceSubresourceScale(WireModel):
    """Where the parts of an autoscaling/v1 Scale are found in an object."""

    spec_replicas_path: str = Field(
        default="", description="JSONPath of the wanted number of replicas, below .spec, without list notation."
    )
    status_replicas_path: str = Field(
        default="", description="JSONPath of the observed number of replicas, below .status, without list notation."
    )
    label_selector_path: str | None = Field(
        default=None, description="JSONPath of the label selector as text, below .spec or .status; optional."
    )


class CustomResourceSubresources(WireModel):
    """Which subresources a version has."""

    status: dict[str, Any] | None = Field(
        default=None, description="Present (and empty) to serve /status: then only it changes .status."
    )
    scale: CustomResourceSubresourceScale | None = Field(default=None, description="Present to serve /scale.")


class CustomResourceColumnDefinition(WireModel):
    """One column that clients print for a version."""

    name: str = Field(default="", description="Heading of the column.")
    type: str = Field(default="", description="integer, number, string, boolean or date.")
    format: str = Field(default="", description="OpenAPI format of the value; name marks the primary identifier.")
    description: str = Field(default="", description="What the column shows.")
    priority: int | None = Field(
        default=None,
        description="Importance; columns above 0 are shown in wide output only.",
        json_schema_extra={"format": "int32"},
    )
    json_path: str = Field(default="", description="JSONPath evaluated on each object; the first result is shown.")


class SelectableField(WireModel):
    """A field by which objects can be selected."""

    json_path: str = Field(default="", description="JSONPath of a string, integer or boolean, without list notation.")


class CustomResourceDefinitionVersion(WireModel):
    """One version of the kind."""

    name: str = Field(default="", description="Name of the version in URLs, such as v1 or v1beta1.")
    served: bool = Field(
        default=False, description="Whether requests can use this version.", json_schema_extra={"x-default": False}
    )
    storage: bool = Field(
        default=False,
        description="Whether objects are stored in this version; exactly one version is.",
        json_schema_extra={"x-default": False},
    )
    deprecated: bool | None = Field(default=None, description="Whether clients of this version are warned.")
    deprecation_warning: str | None = Field(
        default=None, description="The warning for clients of a deprecated version, in place of the usual one."
    )
    schema_: CustomResourceValidation | None = Field(
        default=None, alias="schema", description="What objects of this version must look like."
    )
    subresources: CustomResourceSubresources | None = Field(
        default=None, description="Which subresources this version has."
    )
    additional_printer_columns: list[CustomResourceColumnDefinition] | None = Field(
        default=None, description="Columns beside the name; the age if unset.", json_schema_extra=_ATOMIC
    )
    selectable_fields: list[SelectableField] | None = Field(
        default=None,
        description="Fields by which lists and watches can be narrowed, at most 8.",
        json_schema_extra=_ATOMIC,
    )


class CustomResourceConversion(WireModel):
    """How objects are converted between versions."""

    strategy: str = Field(
        default="", description="None: only apiVersion changes. Webhook is not available here and is refused."
    )
    webhook: dict[str, Any] | None = Field(
        default=None, description="How to call a conversion webhook; only with strategy Webhook."
    )


class CustomResourceDefinitionSpec(WireModel):
    """The wanted kind."""

    group: str = Field(default="", description="Group of the kind: a DNS subdomain with a dot; immutable.")
    names: CustomResourceDefinitionNames | None = Field(
        default=None, description="The names of the kind and of its resource."
    )
    scope: str = Field(default="", description="Namespaced or Cluster; immutable.")
    versions: list[CustomResourceDefinitionVersion] | None = Field(
        default=None, description="The versions of the kind.", json_schema_extra=_ATOMIC
    )
    conversion: CustomResourceConversion | None = Field(
        default=None, description="How objects are converted between versions."
    )
    preserve_unknown_fields: bool | None = Field(
        default=None, description="Deprecated; only false. See x-kubernetes-preserve-unknown-fields in schemas."
    )


class CustomResourceDefinitionStatus(WireModel):
    """What the server made of the definition."""

    conditions: list[Condition] | None = Field(
        default=None,
        description="NamesAccepted, Established, NonStructuralSchema, Terminating.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
    )
    accepted_names: CustomResourceDefinitionNames | None = Field(
        default=None, description="The names that are served; names of others in the group are not taken from them."
    )
    stored_versions: list[str] | None = Field(
        default=None,
        description="Every version that objects may be stored in; it may only leave the spec after it left this list.",
        json_schema_extra=_ATOMIC,
    )


class CustomResourceDefinition(WireModel):
    """A kind that users add: its objects are served like those of built-in kinds, under <plural>.<group>."""

    metadata: ObjectMeta = Field(default_factory=ObjectMeta, description="Standard object metadata.")
    spec: CustomResourceDefinitionSpec | None = Field(default=None, description="The wanted kind.")
    status: CustomResourceDefinitionStatus | None = Field(
        default=None, description="What the server made of the definition."
    )
