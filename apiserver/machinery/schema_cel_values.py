"""What an expression sees of a value: typed by its schema, without what the schema does not describe.

Numbers of type ``number`` are doubles, texts with a format of time are timestamps or durations, base64 is bytes; the
order of lists of type ``set`` and ``map`` does not count. Of an object's metadata only name and generateName are seen.
Source: ``kube-api.md`` 2.15.
"""

import base64
import binascii
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from apiserver.machinery.schema_node import Node
from krm.expressions.errors import CelEvaluationError
from krm.expressions.keyed_list import KeyedList
from krm.expressions.names import can_be_written, unescaped
from krm.expressions.times import duration, timestamp
from krm.expressions.types import BOOL, DOUBLE, DYN, INT, STRING, Type

_SCALARS: Final[Mapping[str, Type]] = {"boolean": BOOL, "integer": INT, "number": DOUBLE, "string": STRING}
_FORMATS: Final[Mapping[str, Type]] = {
    "byte": Type("bytes"),
    "date": Type("timestamp"),
    "datetime": Type("timestamp"),
    "duration": Type("duration"),
}
_SEEN_METADATA: Final = ("name", "generateName")
_METADATA: Final = Type("object", members=dict.fromkeys(_SEEN_METADATA, STRING).get)


def cel_type(node: Node) -> Type:
    """Return the type that expressions give to values of a schema."""
    if node.type_name in _SCALARS:
        return _format_type(node) or _SCALARS[node.type_name]
    if node.type_name == "array":
        return Type("list", cel_type(node.items) if node.items is not None else DYN)
    if node.type_name == "object":
        if node.additional is not None and not node.properties:
            return Type("map", cel_type(node.additional))
        return Type("object", members=_members(node))
    return DYN


def _format_type(node: Node) -> Type | None:
    return _FORMATS.get(node.format.replace("-", "")) if node.format and node.type_name == "string" else None


def _members(node: Node) -> Callable[[str], Type | None]:
    def member(written: str) -> Type | None:
        name = unescaped(written)
        if node.embedded and name in ("apiVersion", "kind"):
            return STRING
        if node.embedded and name == "metadata":
            return _METADATA
        child = node.properties.get(name)
        return cel_type(child) if child is not None and can_be_written(name) else None

    return member


def cel_value(value: Any, node: Node) -> Any:
    """Return a value as expressions see it; what has nothing to convert is itself.

    Raises:
        CelEvaluationError: a text does not have its format, which validation has told before.
    """
    if not node.converts:
        return value
    if isinstance(value, dict):
        return _seen_object(value, node)
    if isinstance(value, list):
        return _seen_list(value, node)
    if node.type_name == "number" and type(value) is int:
        return float(value)
    if node.type_name == "integer" and type(value) is float:
        return int(value)
    kind = _format_type(node) if isinstance(value, str) else None
    return _READERS[kind.name](value) if kind is not None else value


def _seen_list(value: list[Any], node: Node) -> list[Any]:
    seen = [cel_value(item, node.items) for item in value] if node.items is not None else value
    return KeyedList(seen, node.map_keys) if node.list_type in ("set", "map") else seen


def _seen_object(value: dict[str, Any], node: Node) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    for name, item in value.items():
        child = node.properties.get(name, node.additional)
        if node.embedded and name == "metadata":
            seen[name] = {part: item[part] for part in _SEEN_METADATA if part in item} if isinstance(item, dict) else {}
        elif node.embedded and name in ("apiVersion", "kind"):
            seen[name] = item
        elif child is not None:
            seen[name] = cel_value(item, child)
    return seen


def _time(text: str) -> datetime:
    if len(text) == len("2006-01-02"):
        try:
            return datetime.fromisoformat(text).replace(tzinfo=UTC)
        except ValueError as error:
            raise CelEvaluationError(f"not a date: {text}") from error
    return timestamp(text)


def _octets(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise CelEvaluationError("illegal base64 data") from error


_READERS: Final[Mapping[str, Callable[[str], Any]]] = {"bytes": _octets, "timestamp": _time, "duration": duration}
