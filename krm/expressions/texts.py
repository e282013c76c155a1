"""Functions on texts. Patterns go through RE2: time linear in the text, whatever the pattern."""

import json
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

from krm.expressions import times
from krm.expressions.errors import CelEvaluationError
from krm.expressions.values import OptionalValue, TypeValue, is_number, no_overload
from krm.meta.patterns import PatternError, compile_pattern

MAX_RESULT: Final = 1024 * 1024
"""Characters of a text that a function makes."""
_LOWER: Final = {ord(upper): ord(upper.lower()) for upper in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}
_UPPER: Final = {ord(lower): ord(lower.upper()) for lower in "abcdefghijklmnopqrstuvwxyz"}
_SPACES: Final = " \t\n\r\f\v\u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
_LONG_EXPONENT: Final = 21
_SHORT_EXPONENT: Final = -5
"""Powers of ten at and outside of which a number is written with an exponent."""


@lru_cache(maxsize=512)
def pattern(text: str) -> Any:
    """Compile a pattern.

    Raises:
        CelEvaluationError: RE2 does not take it.
    """
    try:
        return compile_pattern(text)
    except PatternError as error:
        raise CelEvaluationError(str(error)) from error


def _texts(*values: Any) -> None:
    if not all(isinstance(value, str) for value in values):
        raise no_overload()


def _bounded(length: int) -> None:
    if length > MAX_RESULT:
        raise CelEvaluationError(f"a text of more than {MAX_RESULT} characters is too long")


def matches(text: str, expression: str) -> bool:
    """Tell whether the pattern is found in the text."""
    _texts(text, expression)
    return pattern(expression).search(text) is not None


def _find(text: str, expression: str) -> str:
    _texts(text, expression)
    found = pattern(expression).search(text)
    return found[0] if found else ""


def _find_all(text: str, expression: str, limit: int = -1) -> list[str]:
    _texts(text, expression)
    found = [match[0] for match in pattern(expression).finditer(text)]
    return found if limit < 0 else found[:limit]


def index_of(text: str, part: str, start: int = 0) -> int:
    """Return where the part first begins, at ``start`` or later; -1 if nowhere."""
    _texts(text, part)
    _within(text, start)
    return text.find(part, start)


def last_index_of(text: str, part: str, start: int | None = None) -> int:
    """Return where the part last begins, at ``start`` or before; -1 if nowhere."""
    _texts(text, part)
    if start is None:
        return text.rfind(part)
    _within(text, start)
    return text.rfind(part, 0, start + len(part))


def _within(text: str, at: Any) -> None:
    if not isinstance(at, int) or isinstance(at, bool):
        raise no_overload()
    if not 0 <= at <= len(text):
        raise CelEvaluationError(f"index out of range: {at}")


def _char_at(text: str, at: int) -> str:
    _texts(text)
    _within(text, at)
    return text[at : at + 1]


def _replace(text: str, old: str, new: str, limit: int = -1) -> str:
    _texts(text, old, new)
    count = text.count(old) if limit < 0 else min(limit, text.count(old))
    _bounded(len(text) + count * len(new))
    return text.replace(old, new, limit)


def _split(text: str, separator: str, limit: int = -1) -> list[str]:
    _texts(text, separator)
    if limit == 0:
        return []
    if not separator:
        return list(text) if limit < 0 else [*text[: limit - 1], text[limit - 1 :]][:limit]
    return text.split(separator, limit - 1 if limit > 0 else -1)


def _substring(text: str, start: int, end: int | None = None) -> str:
    _texts(text)
    _within(text, start)
    stop = len(text) if end is None else end
    _within(text, stop)
    if start > stop:
        raise CelEvaluationError(f"invalid substring range. start: {start}, end: {stop}")
    return text[start:stop]


def float_text(value: float) -> str:
    """Write a number as CEL does: without an exponent unless it is very large or small."""
    if value != value:  # noqa: PLR0124 - only NaN differs from itself
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "+Inf" if value > 0 else "-Inf"
    digits = Decimal(repr(value)).normalize()
    exponent = digits.adjusted()
    if digits and not _SHORT_EXPONENT < exponent < _LONG_EXPONENT:
        return f"{digits.scaleb(-exponent):f}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    return f"{digits:f}"


def _format(template: str, arguments: list[Any]) -> str:
    """Fill in a template: ``%s``, ``%d``, ``%f``, ``%x``, ``%X``, ``%o``, ``%b`` and ``%%``."""
    _texts(template)
    pieces, taken, at = [], 0, 0
    while (percent := template.find("%", at)) >= 0:
        pieces.append(template[at:percent])
        end, precision = _clause_end(template, percent + 1)
        verb = template[end : end + 1]
        at = end + 1
        if verb == "%":
            pieces.append("%")
            continue
        if taken >= len(arguments):
            raise CelEvaluationError(f"index {taken} out of range")
        pieces.append(_formatted(verb, arguments[taken], precision))
        taken += 1
        _bounded(sum(map(len, pieces)))
    return "".join([*pieces, template[at:]])


def _clause_end(template: str, at: int) -> tuple[int, int]:
    if template[at : at + 1] != ".":
        return at, 6
    end = at + 1
    while template[end : end + 1].isdecimal():
        end += 1
    digits = template[at + 1 : end]
    return end, min(int(digits[:4] or 0), 100)


def _formatted(verb: str, value: Any, precision: int) -> str:
    if verb == "s":
        return shown(value)
    if verb == "f" and is_number(value):
        return f"{float(value):.{precision}f}"
    if verb == "d" and is_number(value) and not isinstance(value, float):
        return str(int(value))
    if verb in ("x", "X", "o", "b") and isinstance(value, int):
        return f"{int(value):{verb}}"
    if verb in ("x", "X") and isinstance(value, str | bytes):
        text = (value.encode() if isinstance(value, str) else value).hex()
        return text.upper() if verb == "X" else text
    raise CelEvaluationError(f'unrecognized formatting clause "{verb}" for this value')


def shown(value: Any) -> str:
    """Write any value as ``%s`` does."""
    if isinstance(value, list):
        return "[" + ", ".join(map(_quoted, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_quoted(key)}: {_quoted(value[key])}" for key in sorted(value, key=str)) + "}"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, float):
        return float_text(value)
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, datetime | timedelta):
        return times.text(value)
    if isinstance(value, OptionalValue):
        return f"optional.of({_quoted(value.value)})" if value.present else "optional.none()"
    return value.name if isinstance(value, TypeValue) else str(value)


def _quoted(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else shown(value)


def _text_method(function: Callable[..., Any]) -> Callable[..., Any]:
    def method(*arguments: Any) -> Any:
        _texts(*arguments)
        return function(*arguments)

    return method


METHODS: Final[Mapping[str, Callable[..., Any]]] = {
    "contains": _text_method(lambda text, part: part in text),
    "startsWith": _text_method(lambda text, part: text.startswith(part)),
    "endsWith": _text_method(lambda text, part: text.endswith(part)),
    "lowerAscii": _text_method(lambda text: text.translate(_LOWER)),
    "upperAscii": _text_method(lambda text: text.translate(_UPPER)),
    "trim": _text_method(lambda text: text.strip(_SPACES)),
    "matches": matches,
    "find": _find,
    "findAll": _find_all,
    "charAt": _char_at,
    "replace": _replace,
    "split": _split,
    "substring": _substring,
    "format": _format,
}
