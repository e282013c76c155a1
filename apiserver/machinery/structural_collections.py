"""What a schema may say of lists and maps: ``x-kubernetes-list-type``, its keys, and ``x-kubernetes-map-type``.

Source: ``kube-api.md`` 2.15; wording and fields are kube-apiserver's.
"""

from collections.abc import Iterator
from typing import Any, Final

from apiserver.machinery.schema_breaches import invalid, not_among
from krm.meta.errors import Cause, forbidden_value, required_value

Json = dict[str, Any]

_LIST_TYPE: Final = "x-kubernetes-list-type"
_MAP_TYPE: Final = "x-kubernetes-map-type"
_KEYS: Final = "x-kubernetes-list-map-keys"


def collection_causes(schema: Json, path: str) -> Iterator[Cause]:
    """Yield what is wrong with the list and map keywords of one schema."""
    map_type, list_type = schema.get(_MAP_TYPE), schema.get(_LIST_TYPE)
    if map_type is not None:
        yield from _type_causes(schema, path, "object", _MAP_TYPE)
        if map_type not in ("atomic", "granular"):
            yield not_among(map_type, ("atomic", "granular"))(f"{path}.{_MAP_TYPE}")
    if list_type is not None:
        yield from _type_causes(schema, path, "array", _LIST_TYPE)
        if list_type not in ("atomic", "set", "map"):
            yield not_among(list_type, ("atomic", "set", "map"))(f"{path}.{_LIST_TYPE}")
    keys = schema.get(_KEYS) or []
    if keys and list_type is None:
        yield required_value(f"{path}.{_LIST_TYPE}", f"must be map if {_KEYS} is non-empty")
    elif keys and list_type != "map":
        yield invalid(list_type, f"must be map if {_KEYS} is non-empty")(f"{path}.{_LIST_TYPE}")
    items = schema.get("items")
    if list_type == "map":
        yield from _map_list_causes(items, keys, path)
    if list_type == "set" and schema.get("type") == "array" and isinstance(items, dict):
        yield from _set_causes(items, f"{path}.items")
    if list_type in ("set", "map") and isinstance(items, dict):
        yield from _identity_causes(items, keys if list_type == "map" else [], f"{path}.items", list_type)


def _type_causes(schema: Json, path: str, wanted: str, keyword: str) -> Iterator[Cause]:
    type_ = schema.get("type") or ""
    detail = f"must be {wanted} if {keyword} is specified"
    if not type_:
        yield required_value(f"{path}.type", detail)
    elif type_ != wanted:
        yield invalid(type_, detail)(f"{path}.type")


def _set_causes(items: Json, path: str) -> Iterator[Cause]:
    detail = f"must be atomic as item of a list with {_LIST_TYPE}=set"
    inner = items.get(_LIST_TYPE)
    if items.get("type") == "array" and inner not in (None, "atomic"):
        yield invalid(inner, detail)(f"{path}.{_LIST_TYPE}")
    if items.get("type") == "object" and items.get(_MAP_TYPE) != "atomic":
        yield invalid(inner, detail)(f"{path}.{_MAP_TYPE}")


def _map_list_causes(items: Any, keys: list[str], path: str) -> Iterator[Cause]:
    if not keys:
        yield required_value(f"{path}.{_KEYS}", f"must not be empty if {_LIST_TYPE} is map")
    if items is None:
        yield required_value(f"{path}.items", f"must have a schema if {_LIST_TYPE} is map")
    if not isinstance(items, dict):
        return
    if items.get("type") != "object":
        detail = f"must be object if parent array's {_LIST_TYPE} is map"
        yield invalid(items.get("type") or "", detail)(f"{path}.items.type")
        return
    properties = items.get("properties") or {}
    for index, key in enumerate(keys):
        if key not in properties:
            yield invalid(keys, "entries must all be names of item properties")(f"{path}.{_KEYS}")
        elif properties[key].get("type") in ("array", "object"):
            detail = f"must be a scalar type if parent array's {_LIST_TYPE} is map"
            yield invalid("object", detail)(f"{path}.items.properties[{key}].type")
        if key in keys[:index]:
            yield invalid(keys, "must not contain duplicate entries")(f"{path}.{_KEYS}")


def _identity_causes(items: Json, keys: list[str], path: str, list_type: str) -> Iterator[Cause]:
    """Yield what would let an item have no identity."""
    if items.get("nullable"):
        yield forbidden_value(f"{path}.nullable", f"cannot be nullable when {_LIST_TYPE} is {list_type}")
    properties = items.get("properties") or {}
    for key in keys:
        child = properties.get(key)
        if child is None:
            continue
        start = f"this property is in {_KEYS}, so it"
        if key not in (items.get("required") or ()) and child.get("default") is None:
            detail = f"{start} must have a default or be a required property"
            yield required_value(f"{path}.properties[{key}].default", detail)
        if child.get("nullable"):
            yield forbidden_value(f"{path}.properties[{key}].nullable", f"{start} cannot be nullable")
