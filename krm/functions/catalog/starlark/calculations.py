"""The module ``math.star``. Source: ``kpt.md`` 4.9; names and meanings are those of Starlark's Go library."""

import math
from collections.abc import Callable
from typing import Any

from krm.functions.catalog.starlark.library import Library, LibraryError


def _guarded(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        try:
            result = function(*arguments)
        except (ValueError, OverflowError, TypeError, ZeroDivisionError) as error:
            raise LibraryError(f"math.{name}: {error}") from None
        return result

    return call


def _rounded(value: float) -> float:
    """Halves go away from zero, as in Go."""
    return math.copysign(math.floor(abs(value) + 0.5), value)


def _log(value: float, base: float | None = None) -> float:
    return math.log(value) if base is None else math.log(value, base)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "ceil": math.ceil,
    "floor": math.floor,
    "copysign": math.copysign,
    "fabs": math.fabs,
    "mod": math.fmod,
    "pow": math.pow,
    "remainder": math.remainder,
    "round": _rounded,
    "exp": math.exp,
    "sqrt": math.sqrt,
    "acos": math.acos,
    "asin": math.asin,
    "atan": math.atan,
    "atan2": math.atan2,
    "cos": math.cos,
    "hypot": math.hypot,
    "sin": math.sin,
    "tan": math.tan,
    "degrees": math.degrees,
    "radians": math.radians,
    "acosh": math.acosh,
    "asinh": math.asinh,
    "atanh": math.atanh,
    "cosh": math.cosh,
    "sinh": math.sinh,
    "tanh": math.tanh,
    "log": _log,
    "gamma": math.gamma,
}
_MEMBERS = ", ".join(f"{name}=_{name}" for name in _FUNCTIONS)
MATH = Library(
    f"math = struct(e={math.e!r}, pi={math.pi!r}, {_MEMBERS})\n",
    {f"_{name}": _guarded(name, function) for name, function in _FUNCTIONS.items()},
)
