"""Who may write a field: said beside its description in the wire models, shown by the generated reference.

What is said of a field holds for everything in it, unless a field in it says otherwise.
"""

from enum import StrEnum
from typing import Final

from pydantic import JsonValue

KEY: Final = "x-written-by"
"""Where a model's JSON schema says it; schemas that clients see leave it out."""


class Writer(StrEnum):
    """Those who may write a field. Of everybody else it is ignored, or the write is refused, as the field says."""

    CLIENTS = "clients"
    CREATION = "clients, when it is created"
    DRAFT = "clients, while it is a draft"
    SERVER = "the server"
    CONTROLLER = "its controller"


def written_by(writer: Writer, **extra: JsonValue) -> dict[str, JsonValue]:
    """Return what ``Field(json_schema_extra=…)`` takes to say who writes the field; ``extra`` goes with it."""
    return {KEY: str(writer), **extra}
