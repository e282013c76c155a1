"""The schema of a CustomResourceDefinition as a document: which keywords there are, and what each of them holds.

Keywords that Kubernetes does not know are dropped, as its decoder drops them; those of a wrong type are named. Everything
after this may rely on the shape. Source: JSONSchemaProps of apiextensions.k8s.io/v1, ``kube-api.md`` 2.15.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

Json = dict[str, Any]

MAX_DEPTH: Final = 64
"""Levels of schemas inside one another."""
MAX_SCHEMAS: Final = 50_000
"""Schemas in one document; the largest definitions in use have a fifth."""


class _Reader:
    """Reads one document; collects what is wrong with it."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.schemas = 0

    def schema(self, value: Any, path: str, depth: int) -> None:
        self.schemas += 1
        if not isinstance(value, dict):
            self.wrong(path, "object", value)
        elif depth > MAX_DEPTH:
            self.problems.append(f"{path}: schemas are nested deeper than {MAX_DEPTH} levels")
        elif self.schemas == MAX_SCHEMAS:
            self.problems.append(f"{path}: there are more than {MAX_SCHEMAS} schemas")
        elif self.schemas < MAX_SCHEMAS:
            for name in [name for name, part in value.items() if name not in _KEYWORDS or part is None]:
                del value[name]
            for name, part in value.items():
                _KEYWORDS[name](self, part, f"{path}.{name}", depth)

    def wrong(self, path: str, wanted: str, value: Any) -> None:
        self.problems.append(f"{path}: expected {wanted}, got {type(value).__name__}")


_Part = Callable[[_Reader, Any, str, int], None]


def tidy_schema(schema: Any, path: str) -> list[str]:
    """Drop what is no keyword, in place; return a sentence per part that cannot be read.

    A document without problems is well formed at every depth, within ``MAX_DEPTH`` and ``MAX_SCHEMAS``.
    """
    reader = _Reader()
    reader.schema(schema, path, 0)
    return reader.problems


def subschemas(schema: Json) -> Iterator[tuple[str, Json]]:
    """Yield every schema one level down with the piece of its path, value validations last."""
    for name, child in (schema.get("properties") or {}).items():
        yield f".properties[{name}]", child
    if isinstance(schema.get("additionalProperties"), dict):
        yield ".additionalProperties", schema["additionalProperties"]
    if isinstance(schema.get("items"), dict):
        yield ".items", schema["items"]
    yield from alternatives(schema)


def alternatives(schema: Json) -> Iterator[tuple[str, Json]]:
    """Yield the schemas below allOf, anyOf, oneOf and not."""
    for key in ("allOf", "anyOf", "oneOf"):
        for index, child in enumerate(schema.get(key) or ()):
            yield f".{key}[{index}]", child
    if isinstance(schema.get("not"), dict):
        yield ".not", schema["not"]


def _any(_reader: _Reader, _value: Any, _path: str, _depth: int) -> None:
    """Accept anything: examples, defaults, and what Kubernetes refuses whatever it holds."""


def _of(wanted: str, *types: type) -> _Part:
    def read(reader: _Reader, value: Any, path: str, _depth: int) -> None:
        if type(value) not in types:
            reader.wrong(path, wanted, value)

    return read


def _list_of(read_item: _Part) -> _Part:
    def read(reader: _Reader, value: Any, path: str, depth: int) -> None:
        if not isinstance(value, list):
            reader.wrong(path, "array", value)
            return
        for index, item in enumerate(value):
            read_item(reader, item, f"{path}[{index}]", depth)

    return read


def _map_of(read_item: _Part) -> _Part:
    def read(reader: _Reader, value: Any, path: str, depth: int) -> None:
        if not isinstance(value, dict):
            reader.wrong(path, "object", value)
            return
        for name, item in value.items():
            read_item(reader, item, f"{path}.{name}", depth)

    return read


def _schema(reader: _Reader, value: Any, path: str, depth: int) -> None:
    reader.schema(value, path, depth + 1)


def _schema_or_bool(reader: _Reader, value: Any, path: str, depth: int) -> None:
    if not isinstance(value, bool):
        _schema(reader, value, path, depth)


def _items(reader: _Reader, value: Any, path: str, depth: int) -> None:
    (_list_of(_schema) if isinstance(value, list) else _schema)(reader, value, path, depth)


def _rule(reader: _Reader, value: Any, path: str, depth: int) -> None:
    if not isinstance(value, dict):
        reader.wrong(path, "object", value)
        return
    for name in [name for name, part in value.items() if name not in _RULE_KEYWORDS or part is None]:
        del value[name]
    for name, part in value.items():
        _RULE_KEYWORDS[name](reader, part, f"{path}.{name}", depth)


_STRING: Final = _of("string", str)
_BOOLEAN: Final = _of("boolean", bool)
_INTEGER: Final = _of("integer", int)
_NUMBER: Final = _of("number", int, float)
_RULE_KEYWORDS: Final[Mapping[str, _Part]] = {
    "rule": _STRING,
    "message": _STRING,
    "messageExpression": _STRING,
    "reason": _STRING,
    "fieldPath": _STRING,
    "optionalOldSelf": _BOOLEAN,
}
_KEYWORDS: Final[Mapping[str, _Part]] = {
    **dict.fromkeys(("id", "$schema", "$ref", "description", "type", "format", "title", "pattern"), _STRING),
    **dict.fromkeys(("x-kubernetes-list-type", "x-kubernetes-map-type"), _STRING),
    **dict.fromkeys(("exclusiveMaximum", "exclusiveMinimum", "uniqueItems", "nullable"), _BOOLEAN),
    **dict.fromkeys(
        ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string"),
        _BOOLEAN,
    ),
    **dict.fromkeys(
        ("maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties"),
        _INTEGER,
    ),
    **dict.fromkeys(("maximum", "minimum", "multipleOf"), _NUMBER),
    **dict.fromkeys(("required", "x-kubernetes-list-map-keys"), _list_of(_STRING)),
    **dict.fromkeys(("allOf", "oneOf", "anyOf"), _list_of(_schema)),
    **dict.fromkeys(("properties", "patternProperties", "definitions"), _map_of(_schema)),
    **dict.fromkeys(("default", "example", "externalDocs", "dependencies"), _any),
    "enum": _list_of(_any),
    "not": _schema,
    "items": _items,
    "additionalProperties": _schema_or_bool,
    "additionalItems": _schema_or_bool,
    "x-kubernetes-validations": _list_of(_rule),
}
