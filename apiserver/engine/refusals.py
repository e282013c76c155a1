"""Refusing a creating task: 422 with upstream's sentence, and the field that is at fault."""

from apiserver.rules.revision_changes import INTERNAL
from krm.meta.errors import Cause, Invalid

MAX_SHOWN = 200
"""Characters of what a client sent that a message repeats."""


def refuse(name: str, field: str, why: str) -> Invalid:
    """Refuse a create: 422 with upstream's sentence in the message (``decisions.md`` 15)."""
    return Invalid(
        INTERNAL + why,
        name=name,
        group="porch.kpt.dev",
        kind="PackageRevision",
        causes=[Cause("FieldValueInvalid", why, field)],
    )


def shown(text: str) -> str:
    """Cut what a client sent to a length that fits into a message."""
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "…"
