"""Decodes the protobuf bodies that typed clients send for core kinds into JSON objects.

A table per message maps field numbers to names and types; there is no generated code. Empty
strings, zero integers and empty messages stand for absent fields, as clients encode them that way.
We never answer in protobuf. Source: ``kube-api.md`` 1.9.
"""

import base64
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from apiserver.machinery.protobuf_tables import KINDS, MESSAGES

Json = dict[str, Any]
Value = bytes | int | None
"""A field as it stands in the body; None for the fixed widths, which no message of ours has."""

MAGIC: Final = b"k8s\x00"
MAX_DEPTH: Final = 32
"""Levels of nested messages; our tables need 5."""
MAX_FIELDS: Final = 50_000
"""Fields in one body, about 0.2 s of decoding; a body of 6 MiB could otherwise hold millions of empty ones."""

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MAX_VARINT_BYTES: Final = 10
_GO_ZERO_TIME: Final = -62_135_596_800
"""Seconds of year 1, which Go means by "no time"."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class ProtobufRefused(ValueError):
    """The bytes are no protobuf message of ours, or one that is nested or repeated beyond the limits."""


class UnknownKind(Exception):
    """The envelope says a kind that we hold no table for."""

    def __init__(self, api_version: str, kind: str) -> None:
        super().__init__(f'no kind "{kind:.64}" is registered for version "{api_version:.64}"')
        self.api_version = api_version
        self.kind = kind


def has_table(api_version: str, kind: str) -> bool:
    """Tell whether bodies of a kind may come as protobuf."""
    return (api_version, kind) in KINDS


def decode_envelope(body: bytes) -> Json:
    """Decode a protobuf request body, magic prefix and envelope included, into a JSON object.

    Raises:
        ProtobufRefused: the bytes are malformed, or nested or repeated beyond the limits.
        UnknownKind: we hold no table for the kind.
    """
    if not body:
        raise ProtobufRefused("empty data")
    if not body.startswith(MAGIC):
        prefix = " ".join(str(byte) for byte in MAGIC)
        raise ProtobufRefused(f"provided data does not appear to be a protobuf message, expected prefix [{prefix}]")
    envelope = _Decoder().message(body[len(MAGIC) :], "Unknown")
    type_meta = envelope.get("typeMeta", {})
    api_version, kind = type_meta.get("apiVersion", ""), type_meta.get("kind", "")
    message = KINDS.get((api_version, kind))
    if message is None and kind == "DeleteOptions":
        # Clients put the group-version of what they delete here.
        message = "DeleteOptions"
    if message is None:
        raise UnknownKind(api_version, kind)
    decoded = _Decoder().message(base64.b64decode(envelope.get("raw", "")), message)
    return {"apiVersion": api_version, "kind": kind, **decoded}


class _Decoder:
    """One body; counts fields so that a hostile one stays bounded."""

    def __init__(self) -> None:
        self._left = MAX_FIELDS

    def message(self, data: bytes, name: str, depth: int = 0) -> Json:
        if depth > MAX_DEPTH:
            raise ProtobufRefused("the protobuf body is nested too deep")
        table = MESSAGES[name]
        decoded: Json = {}
        for number, value in self._fields(data):
            if number not in table:
                continue
            field, type_ = table[number]
            if type_.startswith("map:"):
                key, item = self._map_entry(value, type_.removeprefix("map:"))
                decoded.setdefault(field, {})[key] = item
            elif type_.startswith("list:"):
                decoded.setdefault(field, []).append(self._value(value, type_.removeprefix("list:"), depth))
            elif (single := self._value(value, type_.removeprefix("*"), depth)) not in _EMPTY or type_.startswith("*"):
                decoded[field] = single
        return decoded

    def _map_entry(self, data: Value, type_: str) -> tuple[str, Any]:
        fields = dict(self._fields(_as_bytes(data)))
        value = self._value(fields.get(2, b""), type_, 0)
        return _text(_as_bytes(fields.get(1, b""))), value

    def _value(self, value: Value, type_: str, depth: int) -> Any:
        if scalar := _SCALARS.get(type_):
            return scalar(value)
        if type_ in ("time", "microtime"):
            return _time(self.message(_as_bytes(value), "Time", depth + 1), micro=type_ == "microtime")
        if type_ == "fieldsV1":
            return _json(self.message(_as_bytes(value), "FieldsV1", depth + 1).get("raw", ""))
        if type_ == "strings":
            return self.message(_as_bytes(value), "Strings", depth + 1).get("items", [])
        return self.message(_as_bytes(value), type_, depth + 1)

    def _fields(self, data: bytes) -> Iterator[tuple[int, Value]]:
        at = 0
        while at < len(data):
            self._left -= 1
            if self._left < 0:
                raise ProtobufRefused(f"the protobuf body has more than {MAX_FIELDS} fields")
            tag, at = _varint(data, at)
            wire = tag & 7
            if wire == _VARINT:
                value, at = _varint(data, at)
                yield tag >> 3, value
                continue
            if wire == _BYTES:
                size, at = _varint(data, at)
            elif wire in (_FIXED64, _FIXED32):
                size = 8 if wire == _FIXED64 else 4
            else:
                raise ProtobufRefused(f"the protobuf body uses wire type {wire}")
            if at + size > len(data):
                raise ProtobufRefused("unexpected EOF")
            yield tag >> 3, data[at : at + size] if wire == _BYTES else None
            at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(_MAX_VARINT_BYTES):
        if at >= len(data):
            raise ProtobufRefused("unexpected EOF")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:  # noqa: PLR2004 - the continuation bit of a varint
            return value & (2**64 - 1), at
    raise ProtobufRefused("the protobuf body holds an over-long number")


def _as_bytes(value: Value) -> bytes:
    if not isinstance(value, bytes):
        raise ProtobufRefused("the protobuf body holds a number where bytes are expected")
    return value


def _text(value: Value) -> str:
    try:
        return _as_bytes(value).decode()
    except UnicodeDecodeError as error:
        raise ProtobufRefused("the protobuf body holds text that is not UTF-8") from error


def _integer(value: Value) -> int:
    if not isinstance(value, int):
        raise ProtobufRefused("the protobuf body holds something else where a number is expected")
    return value - 2**64 if value >= 2**63 else value


def _json(encoded: str) -> Any:
    try:
        return json.loads(base64.b64decode(encoded)) if encoded else {}
    except (ValueError, RecursionError) as error:
        raise ProtobufRefused("the protobuf body holds malformed managed fields") from error


def _time(parts: Json, *, micro: bool) -> str | None:
    seconds, nanos = parts.get("seconds", 0), parts.get("nanos", 0)
    if not parts or seconds == _GO_ZERO_TIME:
        return None
    try:
        moment = _EPOCH + timedelta(seconds=seconds, microseconds=nanos // 1000)
    except OverflowError as error:
        raise ProtobufRefused("the protobuf body holds a time out of range") from error
    return moment.replace(tzinfo=None).isoformat(timespec="microseconds" if micro else "seconds") + "Z"


_SCALARS: Final[dict[str, Callable[[Value], Any]]] = {
    "string": _text,
    "bytes": lambda value: base64.b64encode(_as_bytes(value)).decode(),
    "int": _integer,
    "bool": lambda value: bool(_integer(value)),
}
_EMPTY: Final[tuple[Any, ...]] = (None, "", 0, {})
