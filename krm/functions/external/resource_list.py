"""The ResourceList that functions outside this process read and write, as plain data.

Resources become items that carry in annotations where they are from; what comes back is put into the same
resources again. Its text is ``resource_list_text``'s business. Source: ``kpt.md`` 2.5 and 2.7.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from krm.functions.external.annotation_reconciliation import (
    ID,
    INDEX,
    INTERNAL,
    PATH,
    Item,
    Recorded,
    annotations_for_writing,
    drop_empty_annotations,
    reconcile,
    record,
)
from krm.functions.external.restoration import restore
from krm.functions.resource import Resource
from krm.package.yaml_reader import plain_copy

API_VERSION = "config.kubernetes.io/v1"
API_VERSIONS = (API_VERSION, "config.kubernetes.io/v1alpha1")
"""What is read; the first is what is written."""
KIND = "ResourceList"
LIST_INDENT = f"{INTERNAL}seqindent"
PACKAGE_PATH = f"{INTERNAL}package-path"
RESOURCE_ID = f"{INTERNAL}kpt-resource-id"
_PLACES = (PATH.legacy, PATH.internal, INDEX.legacy, INDEX.internal)
_TRANSIENT = (*_PLACES, ID.legacy, ID.internal, LIST_INDENT, PACKAGE_PATH, RESOURCE_ID)
"""Annotations that are only there while a function runs."""
_MAX_INDEX_DIGITS = 9


class MalformedResourceList(ValueError):
    """What a function wrote, or was given, is no ResourceList."""


def items_for_function(resources: Sequence[Resource]) -> tuple[list[Item], Recorded]:
    """Return copies of the resources' data with all annotations that a function sees, and what they said."""
    items = []
    for number, resource in enumerate(resources, 1):
        item = plain_copy(resource.data)
        annotations = annotations_for_writing(item)
        annotations.update(place_annotations(resource))
        annotations[PACKAGE_PATH] = resource.package or "."
        annotations[ID.legacy] = annotations[ID.internal] = str(number)
        items.append(item)
    return items, record(items)


def place_annotations(resource: Resource) -> dict[str, str]:
    """Return the annotations that say where a resource is from, under both names, in order."""
    index = None if resource.index is None else str(resource.index)
    path = resource.path
    found = ((INDEX.legacy, index), (PATH.legacy, path), (INDEX.internal, index), (PATH.internal, path))
    return {name: value for name, value in found if value}


def resources_from_function(items: Any, given: Sequence[Resource], recorded: Recorded) -> list[Resource]:
    """Return the resources that a function's items are: those of ``given`` by their id, changed, and new ones.

    The first item with an id is that resource; others with the same id are new. Nothing is changed when
    this raises.

    Raises:
        MalformedResourceList: the items are not a list of mappings, or an index is no number.
        AnnotationMismatch: a function changed both names of a place, to different values.
    """
    output = checked_items(items)
    reconcile(output, recorded)
    known = {str(number): resource for number, resource in enumerate(given, 1)}
    placed = [(known.pop(_id_of(item), None), item, place_of(item)) for item in output]
    return [_resource(resource, item, *place) for resource, item, place in placed]


def checked_items(items: Any) -> list[Item]:
    """Return ``items`` as the list of mappings it must be, an absent one as an empty list.

    Raises:
        MalformedResourceList: it is something else.
    """
    if items is None:
        return []
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise MalformedResourceList("the items of a ResourceList must be a list of mappings")
    return items


def place_of(item: Item) -> tuple[str, int | None]:
    """Return the path and the index that an item's annotations name.

    Raises:
        MalformedResourceList: the index is no number.
    """
    annotations = _annotations(item)
    path = annotations.get(PATH.internal, annotations.get(PATH.legacy))
    index = annotations.get(INDEX.internal, annotations.get(INDEX.legacy))
    if index is None or index == "":
        return str(path or ""), None
    digits = str(index)
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _MAX_INDEX_DIGITS):
        raise MalformedResourceList(f'annotation {INDEX.internal} of "{path or ""}" must be a number, got "{digits}"')
    return str(path or ""), int(digits)


def without_transient(item: Item) -> Item:
    """Remove, in place, the annotations that are only there while a function runs; return the item."""
    metadata = item.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    if isinstance(annotations, dict):
        for name in _TRANSIENT:
            annotations.pop(name, None)
        drop_empty_annotations(item)
    return item


def _resource(resource: Resource | None, item: Item, path: str, index: int | None) -> Resource:
    package = _annotations(item).get(PACKAGE_PATH)
    without_transient(item)
    if resource is None:
        package = package if isinstance(package, str) and package != "." else ""
        return Resource(item, path, index, package)
    _keep_emptiness(item, resource.data)
    restore(resource, item)
    resource.path, resource.index = path, index
    return resource


def _keep_emptiness(item: Item, before: Item) -> None:
    """Put back an empty or null ``annotations`` that the input had: its loss is not the function's doing."""
    old = before.get("metadata")
    if "metadata" in before and "metadata" not in item and not old:
        item["metadata"] = plain_copy(old)
    now = item.get("metadata")
    if not isinstance(old, dict) or not isinstance(now, dict):
        return
    if "annotations" in old and not old["annotations"] and "annotations" not in now:
        now["annotations"] = plain_copy(old["annotations"])


def _id_of(item: Item) -> str:
    annotations = _annotations(item)
    return str(annotations.get(ID.internal, annotations.get(ID.legacy, "")))


def _annotations(item: Item) -> Mapping[str, Any]:
    metadata = item.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    return annotations if isinstance(annotations, dict) else {}
