"""What a scalar stands for, by the rules of Kubernetes' YAML.

``yes`` and ``on`` are booleans, ``0777`` is octal, dates and sexagesimals stay text; numbers as go-yaml
reads them. Source: ``libraries.md`` 2.3, ``kpt.md`` 7.3.
"""

import re
from collections.abc import Callable
from math import isinf
from typing import Any

_TRUE = frozenset(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"))
_FALSE = frozenset(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"))
_NULL = frozenset(("", "~", "null", "Null", "NULL"))
_WORDS = {**dict.fromkeys(_TRUE, True), **dict.fromkeys(_FALSE, False), **dict.fromkeys(_NULL)}
_NUMBER_START = frozenset("+-.0123456789")
_DECIMAL = re.compile(r"[-+]?(?:0|[1-9][0-9]*)\Z")
_RADIXES = (
    (re.compile(r"([-+]?)0[xX]([0-9a-fA-F]+)\Z"), 16),
    (re.compile(r"([-+]?)0[oO]?([0-7]+)\Z"), 8),
    (re.compile(r"([-+]?)0[bB]([01]+)\Z"), 2),
)
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_SPECIAL = {
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}
_LONGEST_INT = 400
"""Characters; longer integers are read as floats, and so are text when they are out of range."""


def resolve_scalar(text: str) -> Any:
    """Return the value a plain scalar stands for: None, bool, int, float or the text itself."""
    if text in _WORDS:
        return _WORDS[text]
    return _number(text) if text[0] in _NUMBER_START else text


def text_scalar(text: str) -> Any:
    """Return the text of a plain scalar, None for a null: how typed string fields are decoded."""
    return None if text in _NULL else text


def _number(text: str) -> Any:
    """Read what begins like a number as go-yaml does: underscores count nowhere but behind a leading dot."""
    digits = text.replace("_", "") if "_" in text and text[0] != "." else text
    if len(digits) < _LONGEST_INT:
        if _DECIMAL.match(digits):
            return int(digits)
        if digits.lstrip("+-").startswith("0"):
            for pattern, base in _RADIXES:
                if found := pattern.match(digits):
                    return int(found[1] + found[2], base)
    if _FLOAT.match(digits):
        value = float(digits)
        # Go reads no number that is out of range.
        return text if isinf(value) else value
    return _SPECIAL.get(text, text)


def _tagged_int(text: str) -> int:
    value = resolve_scalar(text)
    if type(value) is not int:
        raise ValueError(text)
    return value


def _tagged_float(text: str) -> float:
    value = resolve_scalar(text)
    if type(value) not in (int, float):
        raise ValueError(text)
    try:
        return float(value)
    except OverflowError:
        raise ValueError(text) from None


def _tagged_bool(text: str) -> bool:
    value = _WORDS.get(text)
    if value is None:
        raise ValueError(text)
    return value


TAGGED: dict[str, Callable[[str], Any]] = {
    "tag:yaml.org,2002:str": str,
    "tag:yaml.org,2002:int": _tagged_int,
    "tag:yaml.org,2002:float": _tagged_float,
    "tag:yaml.org,2002:bool": _tagged_bool,
    "tag:yaml.org,2002:null": lambda _: None,
}
"""What the text of a scalar with one of YAML's own tags stands for; ValueError when it cannot."""
