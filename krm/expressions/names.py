"""How names of fields that are no identifiers are written in expressions: ``__dot__``, ``__dash__``, ``__namespace__``.

Source: ``kube-api.md`` 2.15; the escapes are those of Kubernetes' validation rules.
"""

import re
from functools import lru_cache
from typing import Final

RESERVED: Final = frozenset(
    {
        "as",
        "break",
        "const",
        "continue",
        "else",
        "false",
        "for",
        "function",
        "if",
        "import",
        "in",
        "let",
        "loop",
        "namespace",
        "null",
        "package",
        "return",
        "true",
        "var",
        "void",
        "while",
    }
)
_PARTS: Final = {"underscores": "__", "dot": ".", "dash": "-", "slash": "/"}
_ESCAPED: Final = re.compile(r"__(underscores|dot|dash|slash)__")
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@lru_cache(maxsize=4096)
def unescaped(written: str) -> str:
    """Return the name of the field that an identifier stands for."""
    if "__" not in written:
        return written
    if written.startswith("__") and written.endswith("__") and written[2:-2] in RESERVED:
        return written[2:-2]
    return _ESCAPED.sub(lambda match: _PARTS[match[1]], written)


@lru_cache(maxsize=4096)
def can_be_written(name: str) -> bool:
    """Tell whether some identifier stands for a field's name."""
    plain = name.replace(".", "_").replace("-", "_").replace("/", "_")
    return _IDENTIFIER.fullmatch(plain) is not None
