"""Resources on their way between commands: ``source | eval | sink``. Source: ``kpt.md`` 2.5 and 2.16.

A ResourceList whose items say which file they are from; comments and layout of the items survive.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from krm.functions.external.annotation_reconciliation import Item, annotations_for_writing, reconcile, record
from krm.functions.external.resource_list import place_annotations, place_of, without_transient
from krm.functions.external.resource_list_text import read_resource_list, write_resource_list
from krm.functions.external.results import uplifted
from krm.functions.resource import Resource
from krm.package.documents import split_documents
from krm.package.yaml_edit_text import new_document
from krm.package.yaml_reader import YamlError, decoded, plain_copy, read_document, same

_ITEMS = re.compile(r"^items:[ \t]*(?:#.*)?\n", re.MULTILINE)
_AFTER_ITEMS = re.compile(r"^[^\s#-]", re.MULTILINE)
_FIRST_DASH = re.compile(r"^( *)-(?: |$)", re.MULTILINE)


@dataclass(slots=True)
class ResourceStream:
    """What one command hands to the next."""

    resources: list[Resource]
    results: list[dict[str, Any]]


def write_placed_resources(resources: Sequence[Resource], results: Sequence[Mapping[str, Any]] = ()) -> str:
    """Return a ResourceList in which every item says which file it is from, and its place there."""
    items = []
    for resource in resources:
        item = plain_copy(resource.data)
        annotations_for_writing(item).update(place_annotations(resource))
        items.append(item)
    text = write_resource_list(resources, items)
    return text + (new_document({"results": list(results)}) if results else "")


def write_bare_resources(resources: Sequence[Resource]) -> str:
    """Return the resources alone, with ``---`` between them."""
    texts = (resource.yaml_text().removeprefix("\ufeff").replace("\r\n", "\n") for resource in resources)
    return "---\n".join(text if text.endswith("\n") else text + "\n" for text in texts)


def read_stream(data: bytes) -> ResourceStream:
    """Read a ResourceList, or a stream of bare resources, in the files that its items name.

    Raises:
        MalformedResourceList: it is neither.
        AnnotationMismatch: items contradict themselves about their place.
        YamlError: not YAML, or over a limit.
    """
    text = decoded(data).replace("\r\n", "\n")
    parsed = read_resource_list(text)
    blocks = (
        _item_blocks(text) if parsed.is_wrapped else [piece for piece in split_documents(text)[::2] if piece.strip()]
    )
    texts = blocks if len(blocks) == len(parsed.items) else [""] * len(parsed.items)
    originals = [plain_copy(item) for item in parsed.items]
    reconcile(parsed.items, record(parsed.items))
    resources = [_resource(*parts) for parts in zip(parsed.items, originals, texts, strict=True)]
    return ResourceStream(resources, uplifted(parsed.results))


def _resource(item: Item, original: Item, text: str) -> Resource:
    path, index = place_of(item)
    without_transient(item)
    try:
        is_its_text = bool(text) and same(read_document(text), original)
    except YamlError:
        is_its_text = False
    if not is_its_text:
        return Resource(item, path, index)
    resource = Resource.of_document(original, text, path=path, index=index)
    resource.data = item
    return resource


def _item_blocks(text: str) -> list[str]:
    """Cut the list of items into the texts of the items; what is cut wrongly is noticed when it is read."""
    key = _ITEMS.search(text)
    if key is None:
        return []
    following = _AFTER_ITEMS.search(text, key.end())
    body = text[key.end() : following.start() if following else len(text)]
    dash = _FIRST_DASH.search(body)
    return list(_blocks(body, dash[1])) if dash else []


def _blocks(body: str, indent: str) -> Iterator[str]:
    lines: list[str] = []
    above: list[str] = []
    for line in body.removesuffix("\n").split("\n"):
        if line.startswith(f"{indent}-"):
            if lines:
                yield "\n".join(lines) + "\n"
            lines, above = [*above, line[len(indent) + 2 :]], []
        elif line.startswith(f"{indent}#") or (above and not line):
            above.append(line[len(indent) :])
        else:
            # A comment in the dash's column inside an item was none of the next item's.
            lines += [*above, line[len(indent) + 2 :]]
            above = []
    if lines:
        yield "\n".join([*lines, *above]) + "\n"
