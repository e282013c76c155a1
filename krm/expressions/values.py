"""The values of CEL, as plain Python ones, and what its operators do with them.

null, bool, int, float, str, bytes, list and dict stand for themselves, datetime and timedelta for timestamps and
durations. celpy's wrappers are not used: ``BoolType`` is no ``bool`` and every context had to be converted.
Source: ``variants.md`` 7.2, and the CEL specification for operators.
"""

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from krm.expressions.errors import CelEvaluationError
from krm.expressions.keyed_list import KeyedList

INT_MAX: Final = 2**63 - 1
INT_MIN: Final = -(2**63)
UINT_MAX: Final = 2**64 - 1


class Uint(int):
    """An unsigned integer, which does not mix with others in arithmetic."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class TypeValue:
    """A type as a value: what ``type(x)`` gives."""

    name: str


@dataclass(frozen=True, slots=True)
class OptionalValue:
    """A value that may be absent: what ``a.?b`` gives, and ``oldSelf`` where it is optional."""

    value: Any = None
    present: bool = False


NONE: Final = OptionalValue()

_TYPE_NAMES: Final[dict[type, str]] = {
    type(None): "null_type",
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    list: "list",
    KeyedList: "list",
    dict: "map",
    datetime: "google.protobuf.Timestamp",
    timedelta: "google.protobuf.Duration",
    TypeValue: "type",
    OptionalValue: "optional_type",
}


def type_name(value: Any) -> str:
    """Return CEL's name for the type of a value."""
    return _TYPE_NAMES.get(type(value), type(value).__name__)


def no_overload(*_values: Any) -> CelEvaluationError:
    """Return the error of an operator or function that does not take these types."""
    return CelEvaluationError("no such overload")


def is_number(value: Any) -> bool:
    """Tell whether a value is a number; truth values are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def equal(left: Any, right: Any) -> bool:
    """Compare any two values: numbers by value across their types, values of other different types are not equal."""
    if is_number(left) and is_number(right):
        return bool(left == right)
    if isinstance(left, list) and isinstance(right, list):
        return _equal_lists(left, right)
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(equal(left[key], right[key]) for key in left)
    return bool(left == right)


def _equal_lists(left: list[Any], right: list[Any]) -> bool:
    if len(left) != len(right):
        return False
    keyed = left if isinstance(left, KeyedList) else right
    if not isinstance(keyed, KeyedList):
        return all(equal(a, b) for a, b in zip(left, right, strict=True))
    others = keyed.by_identity(right)
    return all(key in others and equal(item, others[key]) for key, item in keyed.by_identity(left).items())


def contains(container: Any, item: Any) -> bool:
    """Tell whether a list holds a value, or a map a key.

    Raises:
        CelEvaluationError: the container is neither.
    """
    if isinstance(container, list):
        return any(equal(item, other) for other in container)
    if isinstance(container, dict):
        return isinstance(item, str | int | bool) and item in container
    raise no_overload()


def less(left: Any, right: Any) -> bool:
    """Compare two values that have an order.

    Raises:
        CelEvaluationError: they have none, or are of different types.
    """
    if (is_number(left) and is_number(right)) or (type(left) is type(right) and isinstance(left, _ORDERED)):
        return bool(left < right)
    raise no_overload()


_ORDERED: Final = (str, bytes, bool, datetime, timedelta)


def _checked(value: int, kind: type) -> int:
    if kind is Uint:
        if not 0 <= value <= UINT_MAX:
            raise CelEvaluationError("unsigned integer overflow")
        return Uint(value)
    if not INT_MIN <= value <= INT_MAX:
        raise CelEvaluationError("integer overflow")
    return value


def add(left: Any, right: Any) -> Any:
    """Add numbers of one type, join texts, bytes and lists, and move times.

    Raises:
        CelEvaluationError: no such overload, or an overflow.
    """
    kind = type(left)
    if isinstance(left, list) and isinstance(right, list):
        return left.joined(right) if isinstance(left, KeyedList) else [*left, *right]
    if kind is type(right):
        if kind in (int, Uint):
            return _checked(left + right, kind)
        if kind in (float, str, bytes):
            return left + right
    if isinstance(left, datetime | timedelta) and isinstance(right, datetime | timedelta):
        return _on_times(operator.add, left, right)
    raise no_overload()


def subtract(left: Any, right: Any) -> Any:
    """Subtract numbers of one type, and times.

    Raises:
        CelEvaluationError: no such overload, or an overflow.
    """
    kind = type(left)
    if kind is type(right) and kind in (int, Uint):
        return _checked(left - right, kind)
    if kind is type(right) and kind is float:
        return left - right
    if isinstance(left, datetime | timedelta) and isinstance(right, datetime | timedelta):
        return _on_times(operator.sub, left, right)
    raise no_overload()


def _on_times(operation: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    try:
        return operation(left, right)
    except OverflowError as error:
        raise CelEvaluationError("timestamp overflow") from error
    except TypeError as error:
        raise no_overload() from error


def multiply(left: Any, right: Any) -> Any:
    """Multiply numbers of one type.

    Raises:
        CelEvaluationError: no such overload, or an overflow.
    """
    kind = type(left)
    if kind is type(right) and kind in (int, Uint):
        return _checked(left * right, kind)
    if kind is type(right) and kind is float:
        return left * right
    raise no_overload()


def divide(left: Any, right: Any) -> Any:
    """Divide numbers of one type; integers toward zero.

    Raises:
        CelEvaluationError: no such overload, an overflow, or an integer by zero.
    """
    kind = type(left)
    if kind is not type(right) or kind not in (int, Uint, float):
        raise no_overload()
    if kind is float:
        if right:
            return left / right
        return math.nan if not left or math.isnan(left) else math.copysign(math.inf, left) * math.copysign(1.0, right)
    if not right:
        raise CelEvaluationError("division by zero")
    quotient = abs(left) // abs(right)
    return _checked(quotient if (left < 0) == (right < 0) else -quotient, kind)


def remainder(left: Any, right: Any) -> Any:
    """Return the remainder of integers; it has the sign of the first.

    Raises:
        CelEvaluationError: no such overload, or by zero.
    """
    kind = type(left)
    if kind is not type(right) or kind not in (int, Uint):
        raise no_overload()
    if not right:
        raise CelEvaluationError("modulus by zero")
    rest = abs(left) % abs(right)
    return kind(rest if left >= 0 else -rest)


def negate(value: Any) -> Any:
    """Negate a number.

    Raises:
        CelEvaluationError: no such overload, or an overflow.
    """
    if type(value) is int:
        return _checked(-value, int)
    if type(value) is float:
        return -value
    raise no_overload()
