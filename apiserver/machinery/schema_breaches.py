"""How a broken rule of a schema is told: kube-apiserver's words for custom resources, with the path still open.

Source: ``kube-api.md`` 2.17.
"""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final

import orjson

from apiserver.machinery.field_path import NO_FIELD, CauseAt
from apiserver.machinery.schema_types import json_type
from krm.meta.errors import Cause

_LEAST_EXPONENT: Final = -4
_EXPONENT: Final = 6
"""Powers of ten outside of which Go writes a number with an exponent."""
_JSON_EXPONENT: Final = 1e21
"""The number from which on Go's JSON has an exponent."""


def shown(value: Any) -> str:
    """Write a value as Kubernetes does in messages: JSON, numbers as Go writes them."""
    if isinstance(value, float):
        return number_text(value)
    return orjson.dumps(_whole(value)).decode()


def _whole(value: Any) -> Any:
    """Return the value with its whole numbers as integers, which is how Go writes them in JSON."""
    if isinstance(value, dict):
        return {name: _whole(value[name]) for name in sorted(value)}
    if isinstance(value, list):
        return [_whole(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < _JSON_EXPONENT else value


def number_text(value: float) -> str:
    """Write a number as Go does: ``5``, ``1.5``, ``1e+06``."""
    if isinstance(value, int):
        return str(value)
    digits = Decimal(repr(value)).normalize()
    exponent = digits.adjusted()
    if digits and (exponent < _LEAST_EXPONENT or exponent >= _EXPONENT):
        mantissa = digits.scaleb(-exponent)
        return f"{mantissa:f}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    return f"{digits:f}"


def invalid(value: Any, detail: str) -> CauseAt:
    """Say that a value is invalid."""
    text = f"Invalid value: {shown(value)}: {detail}"
    return lambda path: Cause("FieldValueInvalid", text, path or NO_FIELD)


def in_body(value: Any, detail: str) -> CauseAt:
    """Say what a value of the body should be."""
    start = f"Invalid value: {shown(value)}: "
    return lambda path: Cause("FieldValueInvalid", f"{start}{path} in body {detail}", path or NO_FIELD)


def bad_factor(step: float) -> CauseAt:
    """Say that the schema's own ``multipleOf`` makes no sense for the value."""
    shown_step = number_text(step)
    message = f"Invalid value: {shown_step}: factor MultipleOf declared for %s must be positive: {shown_step}"
    return lambda path: Cause("FieldValueInvalid", message % path, path or NO_FIELD)


def wrong_type(wanted: str, value: Any) -> CauseAt:
    """Say that a value has another type than ``wanted``."""
    got = (
        "number" if isinstance(value, int) and wanted == "integer" and not isinstance(value, bool) else json_type(value)
    )
    return _type_invalid(wanted, f'"{got}"')


def wrong_format(wanted: str, value: str) -> CauseAt:
    """Say that a text does not have its format."""
    return _type_invalid(wanted, shown(value))


def _type_invalid(wanted: str, told: str) -> CauseAt:
    def cause(path: str) -> Cause:
        message = f"Invalid value: {told}: {path} in body must be of type {wanted}: {told}"
        return Cause("FieldValueTypeInvalid", message, path or NO_FIELD)

    return cause


def not_among(value: Any, options: Sequence[Any]) -> CauseAt:
    """Say that a value is none of those that are supported."""
    names = ", ".join(_quoted(option) for option in options)
    message = f"Unsupported value: {shown(value)}: supported values: {names}"
    return lambda path: Cause("FieldValueNotSupported", message, path or NO_FIELD)


def _quoted(option: Any) -> str:
    return shown(option) if isinstance(option, str) else shown(shown(option))


def too_long(most: int) -> CauseAt:
    """Say that a text is longer than ``most`` characters; Kubernetes calls them bytes."""
    message = f"Too long: may not be more than {most} byte{'' if most == 1 else 's'}"
    return lambda path: Cause("FieldValueTooLong", message, path or NO_FIELD)


def too_many(count: int, most: int) -> CauseAt:
    """Say that a list or an object has more than ``most`` members."""
    message = f"Too many: {count}: must have at most {most} item{'' if most == 1 else 's'}"
    return lambda path: Cause("FieldValueTooMany", message, path or NO_FIELD)


def duplicate(identity: Any) -> CauseAt:
    """Say that a list holds two items of one identity."""
    message = f"Duplicate value: {shown(identity)}"
    return lambda path: Cause("FieldValueDuplicate", message, path)


def junction(text: str) -> CauseAt:
    """Say that a combination of schemas does not hold; Kubernetes gives such causes no field."""
    return lambda path: Cause("FieldValueInvalid", f'Invalid value: "": "{path}" {text}', NO_FIELD)
