"""Answers that are no stored objects: reviews and tokens, which exist in the reply only."""

from typing import Any

import orjson

from storage.interfaces import Entry, ObjectKey


def unstored(obj: dict[str, Any]) -> Entry:
    """Return an object as an item that can be served; nothing keeps it."""
    metadata = obj.get("metadata") or {}
    key = ObjectKey("", metadata.get("namespace") or "", metadata.get("name") or "")
    return Entry(key, 0, 0, "", orjson.dumps(obj), {}, ())
