"""Which older value belongs to which newer one, by the schema: the base of ratcheting and of transition rules.

Fields and keys of maps correspond by name, items of lists of type ``map`` by their keys; items of other lists do not
correspond. Source: ``kube-api.md`` 2.15.
"""

from typing import Any, Final

import orjson

from apiserver.machinery.schema_node import ANYTHING, Node

ABSENT: Final[Any] = object()
"""There is no older value."""


def older_field(old: Any, name: str) -> Any:
    """Return what the older object has under ``name``, or ``ABSENT``."""
    return old.get(name, ABSENT) if isinstance(old, dict) else ABSENT


def older_items(value: list[Any], old: Any, node: Node) -> list[Any] | None:
    """Return the older item of each item, or ``ABSENT``; None if items of this list do not correspond."""
    if node.list_type != "map" or not isinstance(old, list):
        return None
    by_key = {key: item for item in reversed(old) if (key := _identity(item, node))}
    return [by_key.get(key, ABSENT) if (key := _identity(item, node)) else ABSENT for item in value]


def key_fields(item: Any, node: Node) -> dict[str, Any]:
    """Return the fields that identify an item of a list of type ``map``."""
    return {name: item[name] for name in node.map_keys if name in item} if isinstance(item, dict) else {}


def _identity(item: Any, node: Node) -> bytes | None:
    """Return what an item is found by in a list of type ``map``; None if one of its keys is missing."""
    fields = key_fields(item, node)
    return _encoded(fields) if len(fields) == len(node.map_keys) else None


def _encoded(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def same(value: Any, old: Any, node: Node | None) -> bool:
    """Tell whether nothing changed; items of lists of type ``map`` may have changed places.

    As in kube-apiserver, what the schema does not describe is never found unchanged.
    """
    if type(value) is not type(old) or node is None or node.schema is ANYTHING:
        return False
    if isinstance(value, dict):
        return value.keys() == old.keys() and all(
            same(value[name], old[name], node.properties.get(name, node.additional)) for name in value
        )
    olds = older_items(value, old, node) if isinstance(value, list) else None
    if olds is None:
        return _encoded(value) == _encoded(old)
    return len(value) == len(old) and all(
        same(item, before, node.items) for item, before in zip(value, olds, strict=True)
    )
