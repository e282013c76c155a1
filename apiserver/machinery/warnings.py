"""``Warning`` headers: what a client should know about a request that succeeded all the same.

Source: ``kube-api.md`` 2.12.
"""

from collections.abc import Iterable

_BUDGET = 4096
"""Characters of all warnings together; beyond it each is cut to ``_CUT``."""
_CUT = 256


def warning_headers(warnings: Iterable[str]) -> list[tuple[bytes, bytes]]:
    """Return one header per different warning; control characters and quotes are made safe."""
    unique = list(dict.fromkeys(warnings))
    if sum(map(len, unique)) > _BUDGET:
        unique = [text[:_CUT] for text in unique][: _BUDGET // _CUT]
    return [(b"warning", f'299 - "{_escaped(text)}"'.encode()) for text in unique]


def _escaped(text: str) -> str:
    printable = "".join(character if character.isprintable() else " " for character in text)
    return printable.replace("\\", "\\\\").replace('"', '\\"')
