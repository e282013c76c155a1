"""Quick checks of scalars: a value that passes keeps every rule of its schema, and costs one call.

What does not pass goes through ``schema_rules.py``, which says what is wrong, if anything is.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

Check = Callable[[Any], bool]

_HARD = frozenset({"allOf", "anyOf", "oneOf", "not", "multipleOf", "exclusiveMinimum", "exclusiveMaximum"})
_INT_LIMIT = 2**63
_REMEMBERED = 64
"""Texts that one pattern remembers; with their length, a bound on memory."""
_SHORT = 128
"""Characters of a text that is remembered."""
_UNBOUNDED = 2**62


def quick_check(schema: dict[str, Any], type_: str, pattern: Any, has_format: Check | None) -> Check | None:
    """Return the check of a schema, or None where there is none that is quick."""
    if not _HARD.isdisjoint(schema):
        return None
    if type_ == "string":
        return _string_check(schema, pattern, has_format)
    enum = schema.get("enum")
    if type_ == "boolean" and not enum:
        return lambda value: value is True or value is False
    if type_ == "integer" and not enum:
        return _integer_check(schema)
    return None


def _string_check(schema: dict[str, Any], pattern: Any, has_format: Check | None) -> Check:
    enum = frozenset(option for option in schema["enum"] if isinstance(option, str)) if schema.get("enum") else None
    fewest, most = schema.get("minLength") or 0, schema.get("maxLength")
    if enum is None and pattern is None and has_format is None and not fewest and most is None:
        return lambda value: type(value) is str
    most = _UNBOUNDED if most is None else most
    matches = _remembered(pattern) if pattern is not None else None

    def passes(value: Any) -> bool:
        return (
            type(value) is str
            and fewest <= len(value) <= most
            and (enum is None or value in enum)
            and (matches is None or matches(value))
            and (has_format is None or has_format(value))
        )

    return passes


def _remembered(pattern: Any) -> Check:
    """Return a search that remembers short texts: RE2 takes microseconds for what updates send again and again."""

    @lru_cache(maxsize=_REMEMBERED)
    def remembered(text: str) -> bool:
        return pattern.search(text) is not None

    return lambda text: remembered(text) if len(text) <= _SHORT else pattern.search(text) is not None


def _integer_check(schema: dict[str, Any]) -> Check:
    low, high = schema.get("minimum"), schema.get("maximum")
    least = -_INT_LIMIT if low is None else max(int(low), -_INT_LIMIT)
    greatest = _INT_LIMIT - 1 if high is None else min(int(high), _INT_LIMIT - 1)
    return lambda value: type(value) is int and least <= value <= greatest
