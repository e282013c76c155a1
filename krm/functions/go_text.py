"""Texts as Go's formatting writes them, where users compare messages. Source: ``kpt.md`` 0.3, point 6."""

import json
from collections.abc import Iterable, Mapping

_ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}
_ASCII = 0x7F
_BMP = 0xFFFF


def quoted(text: str) -> str:
    """Return ``text`` in double quotes with Go's escapes (``%q``); printable Unicode stays."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(map(_escaped, text)) + '"'


def bracketed(texts: Iterable[str]) -> str:
    """Return a list of texts as ``%v`` prints it: ``[a b]``."""
    return f"[{' '.join(texts)}]"


def json_text(value: Mapping[str, str]) -> str:
    """Return a map as Go's JSON encoder writes it: keys sorted, ``<``, ``>`` and ``&`` escaped."""
    text = json.dumps(dict(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    for char, escape in (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026")):
        text = text.replace(char, escape)
    return text


def _escaped(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():
        return char
    code = ord(char)
    if code <= _ASCII:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= _BMP else f"\\U{code:08x}"
