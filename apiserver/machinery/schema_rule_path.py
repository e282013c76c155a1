"""The ``fieldPath`` of a validation rule: a path of declared names below the value that the rule is for.

Source: ``kube-api.md`` 2.15.
"""

import re
from typing import Any, Final

from apiserver.machinery.field_path import at_key, at_name

_PIECE: Final = re.compile(r"\.([A-Za-z_][-A-Za-z0-9_]*)|\['((?:[^'\\]|\\['\\])+)'\]")


def rule_path(schema: dict[str, Any], text: str) -> tuple[str, ...] | None:
    """Return the pieces of a path, or None: it is no path, or leads where the schema has nothing."""
    pieces: list[str] = []
    at = 0
    node: Any = schema
    while at < len(text):
        match = _PIECE.match(text, at)
        if match is None or not isinstance(node, dict):
            return None
        at = match.end()
        name = match[1] or match[2].replace("\\'", "'").replace("\\\\", "\\")
        known = (node.get("properties") or {}).get(name)
        pieces.append(at_name(name) if known is not None else at_key(name))
        node = known if known is not None else node.get("additionalProperties")
        if node is None or node is False:
            return None
    return tuple(pieces)
