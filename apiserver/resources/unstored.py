"""What is answered and not stored: reviews and tokens, which exist in the reply only."""

from typing import Any

import orjson
from pydantic import BaseModel

from apiserver.machinery.definition import Definition
from apiserver.machinery.schema import structural_schema
from storage.interfaces import Entry, ObjectKey


def review_definition(group: str, kind: str, model: type[BaseModel], *, namespaced: bool = False) -> Definition:
    """Define a kind of question that is answered when it is created."""
    return Definition(
        group=group,
        version="v1",
        kind=kind,
        plural=f"{kind.lower()}s",
        singular=kind.lower(),
        schema=structural_schema(model),
        namespaced=namespaced,
        generation=False,
        initial={"spec": {}},
    )


def unstored(obj: dict[str, Any]) -> Entry:
    """Return an object as an item that can be served; nothing keeps it."""
    metadata = obj.get("metadata") or {}
    key = ObjectKey("", metadata.get("namespace") or "", metadata.get("name") or "")
    return Entry(key, 0, 0, "", orjson.dumps(obj), {}, ())
