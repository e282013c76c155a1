"""Request bodies: read with limits, decoded from JSON, YAML or protobuf, and fitted to the kind they are for.

Source: ``kube-api.md`` 1.2, 1.9, 2.3 and 2.12.
"""

import asyncio
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from starlette.types import Message, Receive, Scope

from apiserver.machinery.definition import Definition
from apiserver.machinery.protobuf import ProtobufRefused, UnknownKind, decode_envelope, has_table
from apiserver.machinery.request import header
from apiserver.machinery.rest import WriteOptions
from apiserver.machinery.schema import CompiledSchema
from apiserver.machinery.yaml_body import YamlRefused, parse_yaml
from krm.meta.errors import (
    BadRequest,
    Cause,
    Invalid,
    RequestEntityTooLarge,
    Timeout,
    UnsupportedMediaType,
    invalid_value,
)
from krm.meta.times import seconds_time

Json = dict[str, Any]

MAX_DEPTH = 100
"""Levels of nesting in a body; no kind of ours needs 20, and recursive code must stay safe."""
_DRAIN = 256 * 1024 * 1024
"""Bytes of an over-long body that are read and dropped, so that the client gets to read our answer."""
_DRAIN_SECONDS = 10.0
"""Seconds that dropping an over-long body may take."""
_READ_SECONDS = 60.0
"""Seconds between two pieces of a body."""
_IN_THREAD = 64 * 1024
"""Bytes from which YAML, which is slow to parse, leaves the event loop."""
_PROTOBUF_IN_THREAD = 8 * 1024
"""Bytes from which protobuf does too; the smallest fields take two of them and some 4 µs each."""
_EXCERPT = 30
"""Bytes of an unreadable body that the error shows."""
_EXACT = 2**53
"""Up to where every whole number is a float of its own."""
_MAX_REPORTED = 50
"""Duplicate fields named for one body."""
_SETTLED_TIME = len("2026-01-02T03:04:05Z")

JSON_TYPE = "application/json"
YAML_TYPE = "application/yaml"
PROTOBUF_TYPE = "application/vnd.kubernetes.protobuf"
_TEXT_TYPES = (JSON_TYPE, YAML_TYPE)
_BODY_TYPES = (*_TEXT_TYPES, PROTOBUF_TYPE)
_KEY = re.compile(rb'"\s*:')


@dataclass(frozen=True, slots=True)
class Body:
    """A body as received, and its media type without parameters (JSON if none was sent)."""

    data: bytes
    media_type: str


@dataclass(frozen=True, slots=True)
class Parsed:
    """A decoded body and the paths of fields that were given more than once."""

    value: Any
    duplicates: tuple[str, ...] = ()


async def read_body(scope: Scope, receive: Receive, limit: int) -> Body:
    """Read the whole body, at most ``limit`` bytes.

    Raises:
        RequestEntityTooLarge: it is longer; the rest has been drained, within bounds.
        UnsupportedMediaType: it is compressed.
        Timeout: the client stopped sending.
    """
    if header(scope, b"content-encoding") not in ("", "identity"):
        raise UnsupportedMediaType("compressed request bodies are not accepted")
    pieces: list[bytes] = []
    size, more = 0, True
    while more:
        message = await _received(receive)
        if message["type"] == "http.disconnect":
            raise BadRequest("the client closed the connection before the body was complete")
        piece = message.get("body", b"")
        more = message.get("more_body", False)
        size += len(piece)
        if size > limit:
            await _drain(receive, more)
            raise RequestEntityTooLarge(f"limit is {limit} bytes")
        pieces.append(piece)
    given = header(scope, b"content-type")
    media_type = given.partition(";")[0].strip().lower()
    return Body(b"".join(pieces), media_type or (JSON_TYPE if not given.strip() else given))


async def _received(receive: Receive) -> Message:
    try:
        async with asyncio.timeout(_READ_SECONDS) as deadline:
            return await receive()
    except TimeoutError as error:
        if not deadline.expired():
            raise
        raise Timeout(f"Timeout: nothing of the request body arrived for {_READ_SECONDS:.0f} s") from error


async def _drain(receive: Receive, more: bool) -> None:
    dropped = 0
    try:
        async with asyncio.timeout(_DRAIN_SECONDS):
            while more and dropped < _DRAIN:
                message = await receive()
                dropped += len(message.get("body", b""))
                more = message.get("more_body", False)
    except TimeoutError:
        return


async def parse(body: Body, definition: Definition, accepted: Sequence[str] | None = None) -> Parsed:
    """Decode a body by its media type.

    Raises:
        UnsupportedMediaType: the type is not among ``accepted`` (by default those that the kind may come in).
        BadRequest: it cannot be parsed, or is nested deeper than ``MAX_DEPTH``.
    """
    if accepted is None:
        accepted = _BODY_TYPES if has_table(definition.api_version, definition.kind) else _TEXT_TYPES
    if body.media_type not in accepted:
        raise UnsupportedMediaType(
            f"the body of the request was in an unknown format - accepted media types include: {', '.join(accepted)}"
        )
    if body.media_type == PROTOBUF_TYPE:
        if len(body.data) > _PROTOBUF_IN_THREAD:
            return Parsed(await asyncio.to_thread(_protobuf, body.data, definition))
        return Parsed(_protobuf(body.data, definition))
    try:
        if body.media_type == JSON_TYPE:
            return parse_json(body.data)
        if len(body.data) > _IN_THREAD:
            value, duplicates = await asyncio.to_thread(parse_yaml, body.data, MAX_DEPTH)
        else:
            value, duplicates = parse_yaml(body.data, MAX_DEPTH)
    except (orjson.JSONDecodeError, YamlRefused) as error:
        raise unreadable(body.data, definition.kind, str(error)) from error
    return Parsed(value, tuple(duplicates[:_MAX_REPORTED]))


def _protobuf(data: bytes, definition: Definition) -> Json:
    try:
        value = decode_envelope(data)
    except ProtobufRefused as error:
        raise unreadable(data, definition.kind, str(error)) from error
    except UnknownKind as error:
        version = error.api_version.rpartition("/")[2]
        unfit = f'{error.kind:.64} in version "{version:.64}" cannot be handled as a {definition.kind}'
        raise BadRequest(f"{unfit}: {error}") from error
    _count_keys(value)  # managed fields are JSON inside, and may be nested deep
    return value


def unreadable(data: bytes, kind: str, why: str) -> BadRequest:
    """Build the error for a body that cannot be parsed."""
    return BadRequest(f"the object provided is unrecognized (must be of type {kind}): {why} ({_excerpt(data)})")


def _excerpt(data: bytes) -> str:
    """Show the beginning of a body as Kubernetes does: what may be JSON as text, all else in hexadecimal."""
    begin = data[:_EXCERPT]
    shown = begin.decode(errors="replace") if data.startswith(b"{") else begin.hex()
    return f"{shown} ..." if len(data) > _EXCERPT else shown or "<empty>"


def parse_json(data: bytes) -> Parsed:
    """Decode JSON and find duplicate keys.

    A parsed object with as many keys as the text has ``":`` cannot have lost any; only otherwise is the text read a
    second time, slower and with every key.

    Raises:
        BadRequest: nested deeper than ``MAX_DEPTH``.
        orjson.JSONDecodeError: it is not JSON (a ValueError).
    """
    value = orjson.loads(data)
    keys = _count_keys(value)
    if b".0" in data:
        value = _whole(value)
    if keys == sum(1 for _ in _KEY.finditer(data)):
        return Parsed(value)
    return Parsed(value, tuple(_duplicates(data)))


def _whole(value: Any) -> Any:
    """Return ``value`` with 2 for 2.0, as Kubernetes writes it: its typed clients cannot read the latter as an integer."""
    if isinstance(value, dict):
        return {key: _whole(child) for key, child in value.items()}
    if isinstance(value, list):
        return [_whole(child) for child in value]
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT else value


def _count_keys(value: Any) -> int:
    """Count the keys of all objects in ``value``, level by level."""
    keys, level = 0, [value]
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for node in level:
            if isinstance(node, dict):
                keys += len(node)
                below += [child for child in node.values() if isinstance(child, dict | list)]
            elif isinstance(node, list):
                below += [child for child in node if isinstance(child, dict | list)]
        if not below:
            return keys
        level = below
    raise BadRequest(f"the body is nested deeper than {MAX_DEPTH} levels")


def _duplicates(data: bytes) -> list[str]:
    """Return the paths of duplicate keys. Depth is bounded: the text was parsed and measured before."""

    class Object(dict[str, Any]):
        repeated: tuple[str, ...] = ()

    def build(pairs: list[tuple[str, Any]]) -> Object:
        made = Object(pairs)
        if len(made) != len(pairs):
            seen: set[str] = set()
            made.repeated = tuple(dict.fromkeys(key for key, _ in pairs if key in seen or seen.add(key)))  # type: ignore[func-returns-value]
        return made

    found: list[str] = []

    def walk(node: Any, path: str) -> None:
        if len(found) >= _MAX_REPORTED:
            return
        if isinstance(node, Object):
            found.extend(f"{path}.{key}".lstrip(".") for key in node.repeated)
            for key, child in node.items():
                walk(child, f"{path}.{key}")
        elif isinstance(node, list):
            for index, child in enumerate(node):
                walk(child, f"{path}[{index}]")

    walk(json.loads(data, object_pairs_hook=build), "")
    return found[:_MAX_REPORTED]


def admit(parsed: Parsed, definition: Definition, schema: CompiledSchema, options: WriteOptions) -> Json:
    """Fit a decoded body to its kind: kind checked, types checked, unknown fields removed, defaults filled in.

    Unknown and duplicate fields are an error, a warning or nothing, by ``options.field_validation``.

    Raises:
        BadRequest: another kind, wrong types, or unknown fields under Strict.
    """
    obj = _of_kind(parsed.value, definition)
    unfit = _unfit(definition)
    if errors := schema.type_errors(obj):
        raise BadRequest(f"{unfit}: {', '.join(errors)}")
    if problems := _surplus(obj, parsed.duplicates, schema, options):
        raise BadRequest(f"{unfit}: strict decoding error: {', '.join(problems)}")
    try:
        _settle_times(obj["metadata"])
    except ValueError as error:
        raise BadRequest(f"{unfit}: metadata: {error}") from error
    schema.default(obj)
    return obj


def admit_patched(obj: Json, definition: Definition, schema: CompiledSchema, options: WriteOptions) -> Json:
    """Fit the result of a patch to its kind, like :func:`admit`.

    Raises:
        BadRequest: the patch changed the kind.
        Invalid: wrong types, or unknown fields under Strict, with cause field ``patch``.
    """
    obj = _of_kind(obj, definition)
    name = str((obj.get("metadata") or {}).get("name", ""))
    if errors := schema.type_errors(obj):
        causes = [Cause("FieldValueInvalid", f"Invalid value: {error}", "patch") for error in errors]
        raise Invalid.of(definition.kind, definition.group, name, causes)
    if problems := _surplus(obj, (), schema, options):
        causes = [Cause("FieldValueInvalid", f"Invalid value: strict decoding error: {p}", "patch") for p in problems]
        raise Invalid.of(definition.kind, definition.group, name, causes)
    try:
        _settle_times(obj["metadata"])
    except ValueError as error:
        cause = Cause("FieldValueInvalid", f"Invalid value: metadata: {error}", "patch")
        raise Invalid.of(definition.kind, definition.group, name, [cause]) from error
    schema.default(obj)
    return obj


def _settle_times(metadata: Json) -> None:
    """Write metadata's times, in place, as the server does: clients in Python send ``+00:00`` for ``Z``.

    Raises:
        ValueError: one is no time.
    """
    timed = [(metadata, key) for key in ("creationTimestamp", "deletionTimestamp")]
    timed += [(entry, "time") for entry in metadata.get("managedFields") or () if isinstance(entry, dict)]
    for place, key in timed:
        if (text := place.get(key)) and not (len(text) == _SETTLED_TIME and text.endswith("Z")):
            place[key] = seconds_time(text)


def _of_kind(value: Any, definition: Definition) -> Json:
    value = {} if value is None else value
    if not isinstance(value, dict):
        raise BadRequest(
            f"the object provided is unrecognized (must be of type {definition.kind}): it is not an object"
        )
    if definition.custom:
        _check_custom(value, definition)
    version, kind = value.get("apiVersion") or definition.api_version, value.get("kind") or definition.kind
    if (version, kind) != (definition.api_version, definition.kind):
        given = f'{kind!s:.64} in version "{str(version).rpartition("/")[2]:.64}"'
        wanted = f"this address takes {definition.kind} of {definition.api_version}"
        raise BadRequest(f"{given} cannot be handled as a {definition.kind}: it is of {version!s:.64}; {wanted}")
    metadata = value.get("metadata")
    if metadata is None:
        metadata = {}
    if not isinstance(metadata, dict):
        raise BadRequest(f"{_unfit(definition)}: metadata: expected object")
    ordered = {"apiVersion": definition.api_version, "kind": definition.kind, "metadata": metadata}
    return {**ordered, **{key: item for key, item in value.items() if key not in ordered}}


def _check_custom(value: Json, definition: Definition) -> None:
    """Refuse a custom resource that says it is another one, in the words for custom resources.

    Raises:
        BadRequest: the version is another one.
        Invalid: the kind is another one.
    """
    version, kind = value.get("apiVersion") or definition.api_version, value.get("kind") or definition.kind
    if version != definition.api_version:
        expected = f"does not match the expected API version ({definition.api_version})"
        raise BadRequest(f"the API version in the data ({version!s:.64}) {expected}")
    if kind != definition.kind:
        metadata = value.get("metadata")
        name = str(metadata.get("name", "")) if isinstance(metadata, dict) else ""
        cause = invalid_value("kind", f"{kind!s:.64}", f"must be {definition.kind}")
        raise Invalid.of(f"{kind!s:.64}", definition.group, name, [cause])


def _unfit(definition: Definition) -> str:
    return f'{definition.kind} in version "{definition.version}" cannot be handled as a {definition.kind}'


def _surplus(obj: Json, duplicates: Sequence[str], schema: CompiledSchema, options: WriteOptions) -> list[str]:
    """Remove unknown fields; return what Strict refuses, or warn, or neither."""
    problems = [f'unknown field "{path}"' for path in schema.prune(obj)]
    problems += [f'duplicate field "{path}"' for path in duplicates]
    if options.field_validation == "Strict":
        return problems
    if options.field_validation != "Ignore":
        options.warnings.extend(problems)
    return []
