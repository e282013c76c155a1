"""Literals of CEL: numbers, texts and bytes as they stand in an expression."""

import re
from typing import Any, Final

import lark

from krm.expressions.errors import CelSyntaxError
from krm.expressions.values import INT_MAX, INT_MIN, UINT_MAX, Uint

_ESCAPE: Final = re.compile(
    r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3})|(.))", re.DOTALL | re.IGNORECASE
)
_SIMPLE: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_QUOTED: Final = "\"'`?\\"
_TRIPLE: Final = 3
_MAX_RUNE: Final = 0x110000


def literal_value(token: lark.Token) -> Any:
    """Return the value of a literal.

    Raises:
        CelSyntaxError: a number that 64 bits do not hold, or an escape that is none.
    """
    text = str(token)
    if token.type in ("BOOL_LIT", "NULL_LIT"):
        return {"true": True, "false": False}.get(text)
    if token.type == "FLOAT_LIT":
        return float(text)
    if token.type in ("INT_LIT", "UINT_LIT"):
        return _integer(token, text)
    if token.type == "BYTES_LIT":
        return _unquoted(token, text[1:], as_bytes=True).encode("latin-1")
    return _unquoted(token, text, as_bytes=False)


def _integer(token: lark.Token, text: str) -> int:
    unsigned = token.type == "UINT_LIT"
    digits = text.rstrip("uU") if unsigned else text
    value = int(digits, 16) if "x" in digits else int(digits)
    if unsigned and 0 <= value <= UINT_MAX:
        return Uint(value)
    if unsigned or not INT_MIN <= value <= INT_MAX:
        raise _refused(token, "invalid uint literal" if unsigned else "invalid int literal")
    return value


def _unquoted(token: lark.Token, text: str, *, as_bytes: bool) -> str:
    raw = text[0] in "rR"
    text = text[1:] if raw else text
    quotes = _TRIPLE if text[:_TRIPLE] in ('"""', "'''") else 1
    inner = text[quotes:-quotes]
    if raw:
        return inner.encode().decode("latin-1") if as_bytes else inner

    def value(match: re.Match[str]) -> str:
        octet, short, long, octal, simple = match.groups()
        if simple is not None:
            if simple in _SIMPLE or simple in _QUOTED:
                return _SIMPLE.get(simple, simple)
            raise _refused(token, f"unable to unescape string: \\{simple}")
        code = int(octal, 8) if octal else int(octet or short or long, 16)
        if code >= _MAX_RUNE:
            raise _refused(token, "unable to unescape string")
        return chr(code).encode().decode("latin-1") if as_bytes and (short or long) else chr(code)

    if as_bytes:
        inner = inner.encode().decode("latin-1")
    return _ESCAPE.sub(value, inner)


def _refused(token: lark.Token, why: str) -> CelSyntaxError:
    return CelSyntaxError(f"Syntax error: {why}", token.line or 1, token.column or 1)
