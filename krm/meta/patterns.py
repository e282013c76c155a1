"""Regular expressions of strangers: matched by RE2, in time linear in the text and within bounded memory.

No look-around and no back references: what Go's regular expressions, and so Kubernetes', do not have either.
"""

from collections.abc import Mapping
from typing import Any, Final

import re2

PATTERN_MEMORY: Final = 4 * 1024 * 1024
"""Bytes that one compiled pattern may take; RE2 refuses larger ones."""
_GO_WORDS: Final[Mapping[str, str]] = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
    "trailing \\": "trailing backslash at end of expression",
    "trailing \\ at end of regexp": "trailing backslash at end of expression",
}


class PatternError(ValueError):
    """The text is no regular expression, or one that takes too much memory; the message is Go's."""


def compile_pattern(pattern: str) -> Any:
    """Compile a pattern; the result has ``search``, ``fullmatch`` and ``finditer`` (``re2`` publishes no types).

    Raises:
        PatternError: RE2 does not take it.
    """
    options = re2.Options()
    options.log_errors = False
    options.max_mem = PATTERN_MEMORY
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0] if error.args else b""
        raise PatternError(_in_go(reason.decode(errors="replace") if isinstance(reason, bytes) else reason)) from error


def _in_go(reason: str) -> str:
    """Say what RE2 objects to in the words of Go's regular expressions, which are of the same family."""
    what, _, where = reason.partition(": ")
    return f"error parsing regexp: {_GO_WORDS.get(what, what)}: `{where}`"
