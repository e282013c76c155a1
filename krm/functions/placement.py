"""Where resources go in a package: what functions may say about it, and what they may not.

A function moves a resource by its ``path`` and ``index``, or by the annotations that stand for them on the
wire. In memory the annotations are never there, so one that appears is a wish of the function's. Source:
``kpt.md`` 2.5, 2.7 and 2.11.
"""

import posixpath
from collections.abc import Iterable, Iterator
from typing import Any

from krm.functions.external.annotation_reconciliation import ID, INDEX, INTERNAL, PATH, Pair
from krm.functions.go_text import quoted
from krm.functions.resource import Resource
from krm.package.contents import path_problem
from krm.package.resource_identity import annotations_of, identity_of

_TRANSPORT = frozenset((PATH.legacy, INDEX.legacy, ID.legacy))
_MOST_DIGITS = 9


class PlacementError(Exception):
    """A function returned what cannot be put into the package; the text is upstream's where clients compare it."""


Place = tuple[str, str, int | None]
"""Package, path and index."""


def place_of(resource: Resource) -> Place:
    """Return where a resource is now."""
    return resource.package, resource.path, resource.index


def settle(output: Iterable[Resource], before: dict[int, Place], package: str) -> bool:
    """Give the resources that a function returned their places: ``before`` has those it was given, by ``id``.

    New ones belong to ``package``, the one whose pipeline runs, and get a file named after them. Returns
    whether any is new or moved.

    Raises:
        PlacementError: a path leaves the package or cannot be one, or two names of a place disagree.
    """
    moved = False
    for item in output:
        known = before.get(id(item))
        if _has_transport_annotations(item.data):
            _obey_annotations(item)
        if known == place_of(item):
            continue
        moved = True
        if known is None and package and not f"{item.package}/".startswith(f"{package}/"):
            item.package = package
        item.path = _checked(item.path or _default_path(item.data))
    return moved


def refuse_duplicates(items: Iterable[Resource]) -> None:
    """Refuse two resources in the same place of the same file.

    Raises:
        PlacementError: naming the place.
    """
    taken: set[tuple[str, int | None]] = set()
    for item in items:
        key = item.root_path, item.index
        if key in taken:
            index = "" if item.index is None else item.index
            raise PlacementError(f'resource at path {quoted(item.path)} and index "{index}" already exists')
        taken.add(key)


def without_transport_annotations(data: Any) -> Any:
    """Return a resource's data without what is only there while functions run; ``data`` itself if it has none."""
    if not _has_transport_annotations(data):
        return data
    kept = {key: value for key, value in annotations_of(data).items() if not _is_transport(key)}
    return _with_annotations(data, kept)


def tidy_annotations(resource: Resource) -> None:
    """Drop an ``annotations`` field that says nothing; put one that is new behind the fields that were there.

    The latter because upstream's functions always find one, so that what they add comes after it.
    """
    metadata = resource.data.get("metadata")
    if not isinstance(metadata, dict) or "annotations" not in metadata:
        return
    old = resource.metadata_keys
    if not metadata["annotations"]:
        resource.data = _with_annotations(resource.data, {})
    elif old and "annotations" not in old and not resource.path.endswith("Kptfile"):
        first = [key for key in metadata if key in old]
        ordered = {key: metadata[key] for key in (*first, "annotations")}
        resource.data = {**resource.data, "metadata": {**ordered, **metadata}}


def _with_annotations(data: dict[str, Any], annotations: dict[str, Any]) -> dict[str, Any]:
    metadata = {**data["metadata"], "annotations": annotations}
    if not annotations:
        del metadata["annotations"]
    return {**data, "metadata": metadata}


def _has_transport_annotations(data: Any) -> bool:
    annotations = annotations_of(data) if isinstance(data, dict) else {}  # what is read may be anything
    return bool(annotations) and any(map(_is_transport, annotations))


def _is_transport(name: str) -> bool:
    return name in _TRANSPORT or name.startswith(INTERNAL)


def _obey_annotations(item: Resource) -> None:
    annotations = annotations_of(item.data)
    path = _wish(annotations, PATH, item.path)
    index = _wish(annotations, INDEX, "" if item.index is None else str(item.index))
    if index and not (index.isascii() and index.isdigit() and len(index) <= _MOST_DIGITS):
        raise PlacementError(f"resource at path {quoted(path)} has index {quoted(index)}: an index is a number from 0")
    item.data = without_transport_annotations(item.data)
    item.path, item.index = path, int(index) if index else None


def _wish(annotations: dict[str, Any], pair: Pair, now: str) -> str:
    """Return what the function wants: of the two names, the one whose value it changed."""
    wishes = {str(annotations[name]) for name in (pair.internal, pair.legacy) if annotations.get(name) is not None}
    wishes.discard(now)
    if len(wishes) > 1:
        message = f"resource input to function has mismatched legacy and internal {pair.title} annotations"
        raise PlacementError(message)
    return wishes.pop() if wishes else now


def _checked(path: str) -> str:
    cleaned = posixpath.normpath(path)
    if cleaned.startswith("/"):
        raise PlacementError("package paths may not be absolute paths")
    if cleaned == ".." or cleaned.startswith("../"):
        message = f"function must not modify resources outside of package: resource has path {cleaned}"
        raise PlacementError(message)
    if path.endswith("/") or cleaned == ".":
        raise PlacementError(f"config.kubernetes.io/path cannot be a directory: {quoted(path)}")
    if problem := path_problem(cleaned):
        raise PlacementError(f"resource has path {cleaned[:80]!r}: {problem}")
    return cleaned


def _default_path(data: dict[str, Any]) -> str:
    now = identity_of(data)
    file = f"{now.kind.lower()}_{now.name}.yaml"
    return f"{now.namespace}/{file}" if now.namespace else file


def directories(paths: Iterable[str]) -> Iterator[str]:
    """Yield every directory that one of the files ``paths`` lies in."""
    seen: set[str] = set()
    for path in paths:
        directory = posixpath.dirname(path)
        while directory and directory not in seen:
            seen.add(directory)
            yield directory
            directory = posixpath.dirname(directory)
