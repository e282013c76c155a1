"""The functions of CEL and those that Kubernetes adds: texts, lists, sets, conversions, times, networks and quantities.

Missing: named formats (``format.dns1123Label()``). Source: the CEL specification, and
"CEL in Kubernetes" of the Kubernetes documentation.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from krm.expressions import lists, networks, quantities, texts, times
from krm.expressions.errors import CelEvaluationError
from krm.expressions.values import (
    INT_MAX,
    INT_MIN,
    NONE,
    UINT_MAX,
    OptionalValue,
    TypeValue,
    Uint,
    contains,
    equal,
    is_number,
    no_overload,
    type_name,
)


def _size(value: Any) -> int:
    if isinstance(value, str | bytes | list | dict):
        return len(value)
    raise no_overload()


def _int(value: Any) -> int:
    if isinstance(value, str):
        number = _parsed(value, "int")
    elif isinstance(value, datetime):
        number = int(value.timestamp() // 1)
    elif is_number(value):
        number = int(value)
    else:
        raise no_overload()
    if not INT_MIN <= number <= INT_MAX:
        raise CelEvaluationError("integer overflow")
    return number


def _uint(value: Any) -> Uint:
    number = _parsed(value, "uint") if isinstance(value, str) else int(value) if is_number(value) else None
    if number is None:
        raise no_overload()
    if not 0 <= number <= UINT_MAX:
        raise CelEvaluationError("unsigned integer overflow")
    return Uint(number)


_MAX_DIGITS: Final = 24


def _parsed(text: str, wanted: str) -> int:
    try:
        return int(text[:_MAX_DIGITS]) if text.strip() == text and "_" not in text else _unparsed(text, wanted)
    except ValueError:
        return _unparsed(text, wanted)


def _unparsed(text: str, wanted: str) -> int:
    raise CelEvaluationError(f"type conversion error from 'string' to '{wanted}': {text[:64]!r}")


def _double(value: Any) -> float:
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError as error:
            raise CelEvaluationError(f"type conversion error from 'string' to 'double': {value[:64]!r}") from error
    if is_number(value):
        return float(value)
    raise no_overload()


def _bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value in _TRUTHS:
        return _TRUTHS[value]
    raise CelEvaluationError(f"type conversion error from '{type_name(value)}' to 'bool'")


_TRUTHS: Final = {
    **dict.fromkeys(("1", "t", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "false", "FALSE", "False"), False),
}


def _string(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return texts.float_text(value)
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, bytes):
        return _decoded(value)
    if isinstance(value, datetime | timedelta):
        return times.text(value)
    if isinstance(value, networks.Ip | networks.Cidr):
        return str(value)
    raise no_overload()


def _decoded(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise CelEvaluationError("invalid UTF-8 in bytes, cannot convert to string") from error


def _bytes(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes):
        return value
    raise no_overload()


def _has_value(value: OptionalValue) -> bool:
    return value.present


def _value(value: OptionalValue) -> Any:
    if not value.present:
        raise CelEvaluationError("optional.none() dereference")
    return value.value


def _or_value(value: OptionalValue, default: Any) -> Any:
    return value.value if value.present else default


def _or(value: OptionalValue, other: OptionalValue) -> OptionalValue:
    return value if value.present else other


def _same_sets(left: Any, right: Any) -> bool:
    return _holds_all(left, right) and _holds_all(right, left)


def _holds_all(outer: Any, inner: Any) -> bool:
    if not isinstance(outer, list) or not isinstance(inner, list):
        raise no_overload()
    return all(contains(outer, item) for item in inner)


def _meet(left: Any, right: Any) -> bool:
    if not isinstance(left, list) or not isinstance(right, list):
        raise no_overload()
    return any(contains(right, item) for item in left)


_EMPTY: Final[tuple[Any, ...]] = (0, "", b"", False, [], {})


def _none_if_zero(value: Any) -> OptionalValue:
    zero = value is None or any(equal(value, empty) for empty in _EMPTY)
    return NONE if zero else OptionalValue(value, present=True)


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "size": _size,
    "int": _int,
    "uint": _uint,
    "double": _double,
    "bool": _bool,
    "string": _string,
    "bytes": _bytes,
    "dyn": lambda value: value,
    "type": lambda value: TypeValue(type_name(value)),
    "timestamp": times.timestamp,
    "duration": times.duration,
    "matches": texts.matches,
    **networks.FUNCTIONS,
    **quantities.FUNCTIONS,
}
METHODS: Final[Mapping[str, Callable[..., Any]]] = {
    "size": _size,
    "hasValue": _has_value,
    "value": _value,
    "orValue": _or_value,
    "or": _or,
    "indexOf": lambda owner, *rest: (lists if isinstance(owner, list) else texts).index_of(owner, *rest),
    "lastIndexOf": lambda owner, *rest: (lists if isinstance(owner, list) else texts).last_index_of(owner, *rest),
    **texts.METHODS,
    **lists.METHODS,
    **times.METHODS,
    **networks.METHODS,
    **quantities.METHODS,
}
NAMESPACES: Final[Mapping[str, Mapping[str, Callable[..., Any]]]] = {
    "sets": {"contains": _holds_all, "equivalent": _same_sets, "intersects": _meet},
    "optional": {
        "of": lambda value: OptionalValue(value, present=True),
        "none": lambda: NONE,
        "ofNonZeroValue": _none_if_zero,
    },
    "ip": networks.NAMESPACE,
}
