"""Checking an object against its schema, told in the words of upstream's JSON Schema library. Source: ``kpt.md`` 4.18."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import jsonschema_rs

from krm.functions.catalog.schemas.openapi import Schema, SchemaError

MAX_VIOLATIONS = 100
"""Of one object; more are left out."""
_REGEX_SIZE = 1 << 20
_TYPES = ("null", "boolean", "number", "integer", "string", "array", "object")
"""In the order messages name them."""
_BOUNDS = {"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"}
_LIMITS = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing that is wrong with an object."""

    path: str
    """Dotted; empty for the object itself."""
    message: str


class Checker:
    """Checks objects against one schema."""

    def __init__(self, schema: Schema) -> None:
        """Compile ``schema``; patterns are matched in linear time, and nothing is fetched.

        Raises:
            SchemaError: it is no JSON Schema of draft 4.
        """
        options = jsonschema_rs.RegexOptions(size_limit=_REGEX_SIZE)
        try:
            self._validator = jsonschema_rs.Draft4Validator(schema, pattern_options=options, offline=True)
        except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
            reason = getattr(error, "message", str(error))
            raise SchemaError(f"the schema cannot be used: {reason}") from None

    def violations(self, data: dict[str, Any]) -> list[Violation]:
        """Return what is wrong with ``data``, by path; missing properties of one place are one violation.

        Raises:
            SchemaError: ``data`` holds what is no JSON, or a reference of the schema leads nowhere.
        """
        missing: dict[str, list[str]] = {}
        found: list[Violation] = []
        try:
            for error in islice(self._validator.iter_errors(data), MAX_VIOLATIONS):
                path = ".".join(map(str, error.instance_path))
                if error.kind.name == "required":
                    missing.setdefault(path, []).append(str(error.kind.value))
                else:
                    found.append(Violation(path, _message(error)))
        except (jsonschema_rs.ReferencingError, ValueError) as error:
            raise SchemaError(f"cannot be checked: {error}") from None
        found += [Violation(path, _missing(names)) for path, names in missing.items()]
        return sorted(found, key=lambda violation: violation.path)


def _message(error: jsonschema_rs.ValidationError) -> str:
    keyword, value = error.kind.name, error.kind.value
    instance: Any = error.instance
    if keyword == "type":
        return f"got {_type_of(instance)}, want {' or '.join(_in_order(value))}"
    if keyword == "enum":
        return _enum(value)
    if keyword == "additionalProperties":
        return f"additional properties {_quoted(value)} not allowed"
    if keyword == "pattern":
        return f"{_quote(str(instance))} does not match pattern {_quote(str(value))}"
    if keyword in _BOUNDS:
        return f"{keyword}: got {len(instance)}, want {value}"
    if keyword in _LIMITS:
        return f"{keyword}: got {instance}, want {value}"
    if keyword == "uniqueItems":
        first, second = next(_equal_items(instance), (0, 0))
        return f"items at {first} and {second} are equal"
    return {"anyOf": "anyOf failed", "oneOf": "oneOf failed, none matched", "not": "not failed"}.get(
        keyword, error.message
    )


def _missing(names: list[str]) -> str:
    return f"missing {'property' if len(names) == 1 else 'properties'} {_quoted(names)}"


def _enum(values: list[Any]) -> str:
    if any(isinstance(value, (dict, list)) for value in values):
        return "enum failed"
    shown = [_quote(value) if isinstance(value, str) else json.dumps(value) for value in values]
    return f"value must be {shown[0]}" if len(shown) == 1 else f"value must be one of {', '.join(shown)}"


def _type_of(value: Any) -> str:
    names: tuple[tuple[Any, str], ...] = (
        (bool, "boolean"),
        ((int, float), "number"),
        (str, "string"),
        (list, "array"),
        (dict, "object"),
    )
    return next((name for kind, name in names if isinstance(value, kind)), "null")


def _in_order(types: Any) -> list[str]:
    wanted = {types} if isinstance(types, str) else set(types)
    return [name for name in _TYPES if name in wanted]


def _equal_items(items: list[Any]) -> Iterator[tuple[int, int]]:
    seen: dict[str, int] = {}
    for place, item in enumerate(items):
        first = seen.setdefault(json.dumps(item, sort_keys=True), place)
        if first != place:
            yield first, place


def _quoted(names: list[str]) -> str:
    return ", ".join(map(_quote, names))


def _quote(text: str) -> str:
    escaped = json.dumps(text, ensure_ascii=False)[1:-1].replace('\\"', '"')
    return "'" + escaped.replace("'", "\\'") + "'"
