"""The text of a ResourceList: what goes through the pipes to and from a function, comments included.

Source: ``kpt.md`` 2.5 and 2.8.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from krm.functions.external.annotation_reconciliation import Item, annotations_for_writing
from krm.functions.external.resource_list import (
    API_VERSION,
    API_VERSIONS,
    KIND,
    LIST_INDENT,
    MalformedResourceList,
    checked_items,
)
from krm.functions.resource import Resource
from krm.functions.runner import FunctionConfig
from krm.package.resource_identity import annotations_of
from krm.package.yaml_edit_text import edit_document, new_document
from krm.package.yaml_reader import YamlError, read_document, read_documents, same

_METADATA = re.compile(r"^metadata:[ \t]*(?:#.*)?\n", re.MULTILINE)
_NEXT_KEY = re.compile(r"^[^\s#]", re.MULTILINE)
_FIRST_LIST = re.compile(r":[ \t]*(?:#.*)?\n(?:[ \t]*(?:#.*)?\n)*(?P<indent> *)- ")


@dataclass(slots=True)
class ParsedList:
    """A ResourceList as it was read; nothing in it is checked yet but its shape."""

    items: list[Item]
    config: Item | None = None
    results: Any = None
    is_wrapped: bool = True
    """False for a stream of bare resources."""


def write_resource_list(
    resources: Sequence[Resource], items: Sequence[Item], config: FunctionConfig | None = None
) -> str:
    """Return the text of a ResourceList of ``items``: the resources' own text wherever only annotations differ.

    ``items`` are the resources' data with the annotations for the wire; their ``seqindent`` is added here.
    """
    blocks = [_block(resource, item) for resource, item in zip(resources, items, strict=True)]
    _verify(blocks, items)
    head = f"apiVersion: {API_VERSION}\nkind: {KIND}\n"
    body = "items:\n" + "".join(map(_as_list_item, blocks)) if blocks else "items: []\n"
    return head + body + (new_document({"functionConfig": config.typed or config.data}) if config else "")


def read_resource_list(text: bytes | str) -> ParsedList:
    """Read a ResourceList, or a stream of bare resources, which upstream takes for one.

    Raises:
        MalformedResourceList: nothing is there, or what is there is neither.
        YamlError: not YAML, or over a limit.
    """
    documents = read_documents(text)
    if not documents:
        raise MalformedResourceList("expected a ResourceList, got nothing")
    first = documents[0]
    if isinstance(first, dict) and first.get("kind") == KIND:
        if first.get("apiVersion") not in API_VERSIONS:
            raise MalformedResourceList(
                f'a ResourceList has apiVersion {" or ".join(API_VERSIONS)}, got "{first.get("apiVersion") or ""}"'
            )
        if len(documents) > 1:
            raise MalformedResourceList("expected one ResourceList, got more documents behind it")
        config = first.get("functionConfig")
        return ParsedList(
            checked_items(first.get("items")), config if isinstance(config, dict) else None, first.get("results")
        )
    return ParsedList(checked_items(documents), is_wrapped=False)


def _block(resource: Resource, item: Item) -> str:
    """Return the text of one item, not yet indented."""
    text = resource.text().removeprefix("\ufeff").replace("\r\n", "\n")
    annotations_for_writing(item)[LIST_INDENT] = list_indent(text)
    if resource.is_json:
        return new_document(item)  # JSON may be indented with tabs, which YAML's blocks may not
    old = annotations_of(resource.data)
    added = {name: str(value) for name, value in annotations_of(item).items() if name not in old}
    if len(added) == len(annotations_of(item)) - len(old) and (inserted := _inserted(text, added, bool(old))):
        return inserted
    return edit_document(text, item, resource.data)


def list_indent(text: str) -> str:
    """Say how a document indents its lists, by its first one: ``wide`` (below the key) or ``compact``."""
    found = _FIRST_LIST.search(text)
    if found is None:
        return "compact"
    line = text[text.rfind("\n", 0, found.start()) + 1 : found.start()]
    key = line.lstrip(" -")
    return "wide" if len(found["indent"]) > len(line) - len(key) else "compact"


def _inserted(text: str, added: dict[str, str], has_annotations: bool) -> str:
    """Put annotations at the end of those a document has; empty when it is laid out in some other way.

    Whether the result reads as it should is checked later, for all items at once.
    """
    metadata = _METADATA.search(text)
    if metadata is None:
        return ""
    following = _NEXT_KEY.search(text, metadata.end())
    end = following.start() if following else len(text)
    indent = _indent_of_first(text[metadata.end() : end])
    start = metadata.end()
    deeper = indent + "  "
    lines = ""
    if has_annotations:
        key = re.compile(rf"^{indent}annotations:[ \t]*(?:#.*)?\n", re.MULTILINE).search(text, start, end)
        if key is None:
            return ""
        start = key.end()
        sibling = re.compile(rf"^ {{0,{len(indent)}}}[^\s#]", re.MULTILINE).search(text, start, end)
        end = sibling.start() if sibling else end
        deeper = _indent_of_first(text[start:end])
    else:
        lines = f"{indent}annotations:\n"
    if not indent or not deeper:
        return ""
    lines += "".join(f"{deeper}{name}: {_single_quoted(value)}\n" for name, value in added.items())
    place = _after_last_content(text, start, end)
    before = text[:place] if text[:place].endswith("\n") else text[:place] + "\n"
    return before + lines + text[place:]


def _indent_of_first(text: str) -> str:
    """Return the indentation of the first line that is neither blank nor a comment."""
    for line in text.splitlines():
        stripped = line.lstrip(" ")
        if stripped and not stripped.startswith("#"):
            return line[: len(line) - len(stripped)]
    return ""


def _after_last_content(text: str, start: int, end: int) -> int:
    """Return the place behind the last line before ``end`` that is neither blank nor a comment."""
    place = end
    while place > start:
        line_start = text.rfind("\n", start, place - 1) + 1 or start
        line = text[line_start:place].strip()
        if line and not line.startswith("#"):
            return place
        place = line_start
    return end


def _single_quoted(value: str) -> str:
    if value.isprintable():
        return "'" + value.replace("'", "''") + "'"
    return new_document(value).removesuffix("...\n").strip()


def _verify(blocks: list[str], items: Sequence[Item]) -> None:
    """Replace each block that does not read as its item by one without comments."""
    for place, (block, item) in enumerate(zip(blocks, items, strict=True)):
        try:
            is_right = same(read_document(block), item)
        except YamlError:
            is_right = False
        if not is_right:
            blocks[place] = new_document(item)


def _as_list_item(block: str) -> str:
    """Indent a document as an item of a list in its key's column; comments above it stay above the dash."""
    lines = block.removesuffix("\n").split("\n")
    first = next((place for place, line in enumerate(lines) if line.strip() and not line.startswith("#")), 0)
    start = next(place for place in range(first + 1) if lines[place].strip())
    above = "".join(line + "\n" for line in lines[start:first])
    below = "".join(f"  {line}\n" if line else "\n" for line in lines[first + 1 :])
    return f"{above}- {lines[first]}\n{below}"
