"""Encodes the definitions of a Swagger 2.0 document in protobuf, the only form of OpenAPI v2 that kubectl asks for.

kubectl validates objects of kind List with them (``kubectl get … -o yaml | kubectl replace -f -`` sends one), whatever
is served as v3. Paths are left out: no client reads them in this form. Field numbers are those of the message types
``openapi.v2.Document`` and ``openapi.v2.Schema`` of the gnostic project.
"""

import json
import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

Json = dict[str, Any]

MEDIA_TYPE: Final = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
"""What kubectl names in Accept."""
ANSWERED: Final = b"application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
"""The same as a valid media type: an @ may not stand in one."""

_VARINT, _DOUBLE, _BYTES = 0, 1, 2
_SWAGGER, _INFO, _DEFINITIONS = 1, 2, 9
_EXTENSION = 31


def encode_document(document: Json) -> bytes:
    """Encode version, title and definitions of a Swagger document."""
    info = _text(1, document["info"]["title"]) + _text(2, document["info"]["version"])
    definitions = _message(_DEFINITIONS, _named(document["definitions"], encode_schema))
    return _text(_SWAGGER, document["swagger"]) + _message(_INFO, info) + definitions


def encode_schema(schema: Json) -> bytes:
    """Encode one schema; keywords that the message type does not have are left out."""
    return b"".join(_keyword(name, value) for name, value in schema.items())


def _keyword(name: str, value: Any) -> bytes:
    if name.startswith("x-"):
        return _message(_EXTENSION, _text(1, name) + _message(2, _any(value)))
    encoder = _KEYWORDS.get(name)
    return encoder[1](encoder[0], value) if encoder else b""


def _tag(number: int, wire_type: int) -> bytes:
    return _varint(number << 3 | wire_type)


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:  # noqa: PLR2004  (seven bits a byte)
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _message(number: int, data: bytes) -> bytes:
    return _tag(number, _BYTES) + _varint(len(data)) + data


def _text(number: int, value: str) -> bytes:
    return _message(number, value.encode())


def _texts(number: int, values: Iterable[str]) -> bytes:
    return b"".join(_text(number, value) for value in values)


def _count(number: int, value: int) -> bytes:
    return _tag(number, _VARINT) + _varint(int(value))


def _number(number: int, value: float) -> bytes:
    return _tag(number, _DOUBLE) + struct.pack("<d", value)


def _any(value: Any) -> bytes:
    """An arbitrary value travels as YAML text, which JSON is."""
    return _text(2, json.dumps(value))


def _one_any(number: int, value: Any) -> bytes:
    return _message(number, _any(value))


def _many_any(number: int, values: Iterable[Any]) -> bytes:
    return b"".join(_one_any(number, value) for value in values)


def _named(schemas: Mapping[str, Json], encode: Callable[[Json], bytes]) -> bytes:
    return b"".join(_message(1, _text(1, name) + _message(2, encode(schema))) for name, schema in schemas.items())


def _properties(number: int, schemas: Mapping[str, Json]) -> bytes:
    return _message(number, _named(schemas, encode_schema))


def _additional(number: int, value: Json | bool) -> bytes:
    return _message(number, _count(2, value) if isinstance(value, bool) else _message(1, encode_schema(value)))


def _type(number: int, value: str) -> bytes:
    return _message(number, _text(1, value))


def _items(number: int, value: Json) -> bytes:
    return _message(number, _message(1, encode_schema(value)))


def _all_of(number: int, values: Iterable[Json]) -> bytes:
    return b"".join(_message(number, encode_schema(value)) for value in values)


_KEYWORDS: Final[dict[str, tuple[int, Callable[[int, Any], bytes]]]] = {
    "$ref": (1, _text),
    "format": (2, _text),
    "title": (3, _text),
    "description": (4, _text),
    "default": (5, _one_any),
    "multipleOf": (6, _number),
    "maximum": (7, _number),
    "exclusiveMaximum": (8, _count),
    "minimum": (9, _number),
    "exclusiveMinimum": (10, _count),
    "maxLength": (11, _count),
    "minLength": (12, _count),
    "pattern": (13, _text),
    "maxItems": (14, _count),
    "minItems": (15, _count),
    "uniqueItems": (16, _count),
    "maxProperties": (17, _count),
    "minProperties": (18, _count),
    "required": (19, _texts),
    "enum": (20, _many_any),
    "additionalProperties": (21, _additional),
    "type": (22, _type),
    "items": (23, _items),
    "allOf": (24, _all_of),
    "properties": (25, _properties),
    "readOnly": (27, _count),
}
