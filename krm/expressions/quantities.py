"""Kubernetes' functions on quantities (``500Mi``) and semantic versions. Source: "CEL in Kubernetes"."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import semver

from krm.expressions.errors import CelEvaluationError
from krm.expressions.values import INT_MAX, INT_MIN, no_overload

_QUANTITY: Final = re.compile(
    r"([-+]?(?:\d{1,40}\.?\d{0,40}|\.\d{1,40}))([EPTGMk]i?|Ki|[munpfa]|[eE][-+]?\d{1,2})?", re.ASCII
)
_BINARY: Final = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_MAX_VERSION: Final = 256


@dataclass(frozen=True, slots=True, order=True)
class Quantity:
    """An amount of something."""

    amount: Decimal


def quantity(text: Any) -> Quantity:
    """Read a quantity.

    Raises:
        CelEvaluationError: it is none.
    """
    if not isinstance(text, str):
        raise no_overload()
    match = _QUANTITY.fullmatch(text)
    suffix = match[2] or "" if match else "?"
    if match is None or suffix in ("p", "f", "a", "ki"):
        raise CelEvaluationError(
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        )
    number = Decimal(match[1])
    if suffix in _BINARY:
        return Quantity(number * 1024 ** _BINARY[suffix])
    if suffix in _DECIMAL:
        return Quantity(number.scaleb(_DECIMAL[suffix]))
    return Quantity(number.scaleb(int(suffix[1:])) if suffix else number)


def version(text: Any) -> semver.Version:
    """Read a semantic version.

    Raises:
        CelEvaluationError: it is none.
    """
    if not isinstance(text, str):
        raise no_overload()
    try:
        return semver.Version.parse(text[:_MAX_VERSION])
    except ValueError as error:
        raise CelEvaluationError(f"semver parse error during conversion from string: {text[:64]!r}") from error


def _can(read: Callable[[Any], Any]) -> Callable[[Any], bool]:
    def check(text: Any) -> bool:
        if not isinstance(text, str):
            raise no_overload()
        try:
            read(text)
        except CelEvaluationError:
            return False
        return True

    return check


def _whole(value: Quantity) -> bool:
    return value.amount == value.amount.to_integral_value() and INT_MIN <= value.amount <= INT_MAX


def _as_integer(value: Quantity) -> int:
    if not _whole(value):
        raise CelEvaluationError("cannot convert value to integer")
    return int(value.amount)


def _operand(value: Any) -> Decimal:
    if isinstance(value, Quantity):
        return value.amount
    if isinstance(value, int) and not isinstance(value, bool):
        return Decimal(value)
    raise no_overload()


def _pair(left: Any, right: Any) -> tuple[Any, Any]:
    if type(left) is not type(right) or not isinstance(left, Quantity | semver.Version):
        raise no_overload()
    return left, right


def _is_less(left: Any, right: Any) -> bool:
    first, second = _pair(left, right)
    return bool(first < second)


def _compare(left: Any, right: Any) -> int:
    return -1 if _is_less(left, right) else int(_is_less(right, left))


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "quantity": quantity,
    "isQuantity": _can(quantity),
    "semver": version,
    "isSemver": _can(version),
}
METHODS: Final[Mapping[str, Callable[..., Any]]] = {
    "isInteger": _whole,
    "asInteger": _as_integer,
    "asApproximateFloat": lambda value: float(value.amount),
    "add": lambda value, other: Quantity(value.amount + _operand(other)),
    "sub": lambda value, other: Quantity(value.amount - _operand(other)),
    "isLessThan": _is_less,
    "isGreaterThan": lambda left, right: _is_less(right, left),
    "compareTo": _compare,
    "major": lambda value: value.major,
    "minor": lambda value: value.minor,
    "patch": lambda value: value.patch,
}
