"""Writing new texts into the scalars of a resource, each in the style it had.

What a scalar stands for follows from its new text: a plain ``3`` is a number, a quoted one stays a string.
Source: ``kpt.md`` 4.10 and 4.12 ("the tag is cleared").
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from krm.functions.catalog.source_nodes import SourceScalar, source_nodes
from krm.functions.resource import Resource
from krm.package.comments import Path
from krm.package.yaml_reader import YamlError, resolve_scalar

_UNSAFE = re.compile(r"^[\s\-?:,\[\]{}#&*!|>'\"%@`]|[\n\r\t]|:\s|:$|\s#|\s$|^(?:---|\.\.\.)(?:\s|$)")
_UNSAFE_IN_FLOW = re.compile(r"[\[\]{},]")
_SAFE_START = re.compile(r"(?!---)[\-?:][^\s,\[\]{}]")
_BMP = 0xFFFF


def replace_scalars(resource: Resource, edits: Iterable[tuple[SourceScalar, str]]) -> None:
    """Give scalars of ``resource.text()`` new texts; all or, when the result cannot be read, none.

    Raises:
        YamlError: the document cannot be read afterwards.
    """
    text = resource.text()
    pieces: list[str] = []
    through_data = []
    done = 0
    for node, value in sorted(edits, key=lambda edit: edit[0].start):
        if node.is_block or resource.is_json:
            through_data.append((node, value))
            continue
        gap = " " if node.start == node.end and not text[node.start - 1 : node.start].isspace() else ""
        anchor = f"&{node.anchor} " if node.anchor else ""
        pieces += [text[done : node.start], gap, anchor, written_scalar(value, node.style, in_flow=node.in_flow)]
        done = node.end
    if pieces:
        resource.set_text("".join(pieces) + text[done:])
    for node, value in through_data:
        set_value(resource.data, node.path, value if node.style else resolve_scalar(value))


def set_value(data: Any, path: Path, value: Any) -> None:
    """Put ``value`` at an existing ``path`` of a resource's data.

    Raises:
        YamlError: the path leads through a merge key, so that its place is not in the data.
    """
    try:
        for part in path[:-1]:
            data = data[part]
        data[path[-1]] = value
    except (KeyError, IndexError, TypeError):
        shown = ".".join(map(str, path))
        raise YamlError(f"field {shown} cannot be changed: it comes from a merge key") from None


def respell(resource: Resource, texts: Mapping[Path, str]) -> None:
    """Make scalars that were just set read as these texts to the letter: ``1.10`` is no ``1.1``."""
    edits = [
        (node, texts[node.path])
        for node in source_nodes(resource.text())
        if node.path in texts and isinstance(node, SourceScalar) and node.text != texts[node.path]
    ]
    if edits:
        replace_scalars(resource, edits)


def written_scalar(value: str, style: str | None, *, in_flow: bool = False) -> str:
    """Return the source of a scalar: plain only where that reads back as one plain scalar, empty as ``""``."""
    if not value:
        return '""'
    if style == '"' or not value.isprintable():
        return _double_quoted(value)
    unsafe = _UNSAFE.search(value) and not (_SAFE_START.match(value) and not _UNSAFE.search("x" + value[1:]))
    if style == "'" or unsafe or (in_flow and _UNSAFE_IN_FLOW.search(value)):
        return "'" + value.replace("'", "''") + "'"
    return value


def _double_quoted(value: str) -> str:
    escaped = []
    for char in value:
        if char in '"\\':
            escaped.append("\\" + char)
        elif char == "\n":
            escaped.append("\\n")
        elif char == "\t":
            escaped.append("\\t")
        elif char.isprintable():
            escaped.append(char)
        else:
            code = ord(char)
            escaped.append(f"\\u{code:04x}" if code <= _BMP else f"\\U{code:08x}")
    return f'"{"".join(escaped)}"'
