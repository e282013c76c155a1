"""The metadata that every object carries, and the base of all wire models.

The models describe the wire for schemas and documentation and type the server's own code;
requests are served from bytes and dicts, never through pydantic.
"""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from krm.meta.written_by import Writer, written_by


class WireModel(BaseModel):
    """A type as it is on the wire: camelCase names, unknown fields ignored, unset fields left out."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="ignore")

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object; fields that were never set or are None are left out."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_unset=True)


class OwnerReference(WireModel):
    """Names an object that this one belongs to; when the owner goes, so does this one."""

    api_version: str = Field(description="Group and version of the owner.")
    kind: str = Field(description="Kind of the owner.")
    name: str = Field(description="Name of the owner, in the same namespace or cluster-scoped.")
    uid: str = Field(description="UID of the owner; another object of the same name is not the owner.")
    controller: bool | None = Field(
        default=None, description="Whether the owner manages this object; at most one does."
    )
    block_owner_deletion: bool | None = Field(
        default=None, description="Whether foreground deletion of the owner waits for this object."
    )


class ManagedFieldsEntry(WireModel):
    """Which fields of an object one client manages."""

    manager: str = Field(default="", description="Name of the client, as it gave it or from its User-Agent.")
    operation: str = Field(default="", description="How it wrote: Apply or Update.")
    api_version: str = Field(default="", description="The version of the object that the fields are of.")
    time: str | None = Field(
        default=None, description="When it last changed one of them.", json_schema_extra={"format": "date-time"}
    )
    fields_type: str = Field(default="", description="The form of the fields; always FieldsV1.")
    fields_v1: dict[str, Any] | None = Field(
        default=None, alias="fieldsV1", description="The fields: objects whose keys are the steps of paths."
    )
    subresource: str = Field(default="", description="The subresource that it wrote; empty for the object itself.")


class ObjectMeta(WireModel):
    """What every object has: its names, its versions, its labels and its owners.

    Source: ``kube-api.md`` 2.1 and 2.2.
    """

    name: str = Field(
        default="",
        description="Unique within the resource and namespace; cannot be changed.",
        json_schema_extra=written_by(Writer.CREATION),
    )
    generate_name: str = Field(
        default="",
        description="Prefix from which the server makes a unique name when name is empty.",
        json_schema_extra=written_by(Writer.CREATION),
    )
    namespace: str = Field(
        default="",
        description="Namespace of the object; empty for cluster-scoped kinds.",
        json_schema_extra=written_by(Writer.CREATION),
    )
    self_link: str = Field(default="", description="Deprecated; ignored.", json_schema_extra=written_by(Writer.SERVER))
    uid: str = Field(
        default="",
        description="Set by the server: unique in time and space.",
        json_schema_extra=written_by(Writer.SERVER),
    )
    resource_version: str = Field(
        default="",
        description="Set by the server at every change; send it back to be told of changes in between.",
        json_schema_extra=written_by(Writer.SERVER),
    )
    generation: int | None = Field(
        default=None,
        description="Set by the server: counts the changes of the wanted state.",
        json_schema_extra=written_by(Writer.SERVER),
    )
    creation_timestamp: str | None = Field(
        default=None,
        description="Set by the server: when the object was created (RFC 3339, UTC).",
        json_schema_extra=written_by(Writer.SERVER, format="date-time"),
    )
    deletion_timestamp: str | None = Field(
        default=None,
        description="Set by the server: when deletion was asked for; finalizers hold the object until they are done.",
        json_schema_extra=written_by(Writer.SERVER, format="date-time"),
    )
    deletion_grace_period_seconds: int | None = Field(
        default=None,
        description="Set by the server with deletionTimestamp; always 0 here.",
        json_schema_extra=written_by(Writer.SERVER),
    )
    labels: dict[str, str] | None = Field(default=None, description="Short key-value pairs that selectors match.")
    annotations: dict[str, str] | None = Field(default=None, description="Free key-value pairs for tools.")
    owner_references: list[OwnerReference] | None = Field(default=None, description="The objects this one belongs to.")
    finalizers: list[str] | None = Field(
        default=None, description="Work that must be done before the object goes; each is removed by who did it."
    )
    managed_fields: list[ManagedFieldsEntry] | None = Field(
        default=None,
        description="Which client set which fields; kept by the server.",
        json_schema_extra=written_by(Writer.SERVER),
    )


class ListMeta(WireModel):
    """Metadata of a list."""

    self_link: str = Field(default="", description="Deprecated; ignored.")
    resource_version: str = Field(default="", description="Revision of the snapshot; a watch can start from it.")
    continue_: str = Field(
        default="", alias="continue", description="Token for the next page; empty at the end of the list."
    )
    remaining_item_count: int | None = Field(
        default=None, description="How many items follow this page, if that is known."
    )
