"""Flow lists made block lists, so that comments have a place behind their key. Source: ``kpt.md`` 4.10 to 4.12."""

from collections.abc import Collection

from krm.functions.catalog.source_nodes import SourceList, source_nodes
from krm.functions.resource import Resource
from krm.package.comments import Path
from krm.package.yaml_reader import YamlError, read_document, same


def write_as_block(resource: Resource, paths: Collection[Path]) -> None:
    """Write the lists at ``paths`` one element per line; a comment behind one comes to stand behind its key.

    Lists inside other flow collections, ones with comments between their elements and empty ones stay.
    """
    if resource.is_json:
        return
    text = resource.text()
    nodes = [node for node in source_nodes(text) if isinstance(node, SourceList)]
    lists = [node for node in nodes if node.path in paths and node.is_flow and _can_be_block(text, node)]
    indent = _indent(text, nodes) if lists else 0
    pieces = []
    done = 0
    for node in sorted(lists, key=lambda node: node.start):
        end = text.find("\n", node.end)
        end = len(text) if end < 0 else end
        end -= text[node.end : end].endswith("\r")
        pieces += [text[done : node.key[1]], _blocked(text, node, end, indent)]
        done = end
    new = "".join(pieces) + text[done:]
    if lists and _reads_the_same(new, resource):
        resource.set_text(new)


def _indent(text: str, nodes: list[SourceList]) -> int:
    """Return how far the first block list of the document is indented below its key."""
    first = min((node for node in nodes if not node.is_flow and node.items), key=lambda node: node.start, default=None)
    return 2 if first is not None and _column(text, first.start) > _column(text, first.key[0]) else 0


def _column(text: str, offset: int) -> int:
    return offset - (text.rfind("\n", 0, offset) + 1)


def _can_be_block(text: str, node: SourceList) -> bool:
    """Say whether nothing would be lost between the elements or before the list."""
    if node.in_flow or not node.items or text[node.start] != "[":
        return False
    gaps = [node.key[1], *(edge for item in node.items for edge in item), node.end]
    return all("#" not in text[start:end] for start, end in zip(gaps[::2], gaps[1::2], strict=True))


def _blocked(text: str, node: SourceList, end: int, indent: int) -> str:
    """Return what stands behind a list's key, up to the ``end`` of the line that the list ends in."""
    newline = "\r\n" if text.startswith("\r\n", end) else "\n"
    dash = " " * (_column(text, node.key[0]) + indent) + "- "
    rows = [dash + text[start:stop] for start, stop in node.items]
    return newline.join([f":{text[node.end : end].rstrip()}", *rows])


def _reads_the_same(text: str, resource: Resource) -> bool:
    try:
        return same(read_document(text), resource.data)
    except YamlError:
        return False
