"""The annotations that tell a function where each item is from, in their old and their new names.

Functions know one name, the other or both, and may change either: before a call both are there, after it
the one that was changed wins. Everything works on plain items, in place. Source: ``kpt.md`` 2.5.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

Item = dict[str, Any]

INTERNAL = "internal.config.kubernetes.io/"
"""Begins the names of all that is only there while a function runs."""
MIGRATION_ID = f"{INTERNAL}annotations-migration-resource-id"


@dataclass(frozen=True, slots=True)
class Pair:
    """One fact under its two names."""

    legacy: str
    internal: str
    title: str
    """What messages call it."""


PATH = Pair("config.kubernetes.io/path", f"{INTERNAL}path", "path")
INDEX = Pair("config.kubernetes.io/index", f"{INTERNAL}index", "index")
ID = Pair("config.k8s.io/id", f"{INTERNAL}id", "id")
_PAIRS = (PATH, INDEX, ID)
_PLACES = (PATH, INDEX)
"""What a function may change; an id it may only keep."""

_Values = tuple[str | None, str | None]
"""Under the legacy and the internal name."""


class AnnotationMismatch(ValueError):
    """The two names of one fact disagree, items do not agree which names they use, or annotations are no mapping."""


@dataclass(slots=True)
class Recorded:
    """What the items said before a call."""

    places: dict[str, dict[str, _Values]] = field(default_factory=dict)
    """Migration id → title of a pair → its values, both names filled."""
    uses_legacy: bool = True
    uses_internal: bool = True


def record(items: Sequence[Item]) -> Recorded:
    """Make the items ready for a function: both names are there, and each item is numbered.

    Raises:
        AnnotationMismatch: an item's names disagree, or some items use one family of names and some another.
    """
    recorded = Recorded()
    recorded.uses_legacy, recorded.uses_internal = _families(items)
    for number, item in enumerate(items):
        annotations = annotations_for_writing(item)
        for pair in _PAIRS:
            legacy, internal = _values(annotations, pair)
            if legacy is not None and internal is None:
                annotations[pair.internal] = legacy
            elif legacy is None and internal is not None:
                annotations[pair.legacy] = internal
            elif legacy != internal:
                raise _mismatch(pair)
        recorded.places[str(number)] = {pair.title: _values(annotations, pair) for pair in _PLACES}
        annotations[MIGRATION_ID] = str(number)
    return recorded


def reconcile(items: Sequence[Item], recorded: Recorded) -> None:
    """Make both names agree again in what a function returned, and leave only those that the input used.

    Raises:
        AnnotationMismatch: a function changed both names of a place, to different values.
    """
    for item in items:
        annotations = annotations_for_writing(item)
        number = _text(annotations.pop(MIGRATION_ID, None))
        for pair in _PAIRS:
            _fill(annotations, pair)
        before = recorded.places.get(number or "")
        if before is not None:
            for pair in _PLACES:
                _follow(annotations, pair, before[pair.title])
        for pair in _PAIRS:
            if not recorded.uses_legacy:
                annotations.pop(pair.legacy, None)
            if not recorded.uses_internal:
                annotations.pop(pair.internal, None)
        drop_empty_annotations(item)


def annotations_for_writing(item: Item) -> dict[str, Any]:
    """Return the item's annotations, put there when they are not.

    Raises:
        AnnotationMismatch: they, or the metadata, are something else than a mapping, which would be lost.
    """
    return _mapping_in(_mapping_in(item, "metadata", "metadata"), "annotations", "metadata.annotations")


def _mapping_in(data: dict[str, Any], key: str, path: str) -> dict[str, Any]:
    if data.get(key) is None:
        data[key] = {}
    found = data[key]
    if not isinstance(found, dict):
        raise AnnotationMismatch(f"{path} must be a mapping, got {found!r:.40}")
    return found


def drop_empty_annotations(item: Item) -> None:
    """Remove annotations, and metadata, that hold nothing."""
    metadata = item.get("metadata")
    if isinstance(metadata, dict):
        if not metadata.get("annotations"):
            metadata.pop("annotations", None)
        if not metadata:
            del item["metadata"]


def _families(items: Sequence[Item]) -> tuple[bool, bool]:
    """Say which names the items use, legacy and internal; both when none uses any."""
    found: set[tuple[bool, bool]] = set()
    for item in items:
        metadata = item.get("metadata")
        annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
        if isinstance(annotations, dict):
            used = (any(p.legacy in annotations for p in _PAIRS), any(p.internal in annotations for p in _PAIRS))
            if any(used):
                found.add(used)
    if len(found) > 1:
        raise AnnotationMismatch("the annotation formatting in the input resources is not consistent")
    return found.pop() if found else (True, True)


def _fill(annotations: dict[str, Any], pair: Pair) -> None:
    legacy, internal = _values(annotations, pair)
    if legacy is None and internal is not None:
        annotations[pair.legacy] = internal
    elif internal is None and legacy is not None:
        annotations[pair.internal] = legacy


def _follow(annotations: dict[str, Any], pair: Pair, before: _Values) -> None:
    """Let the name that the function did not change follow the one it did."""
    legacy, internal = _values(annotations, pair)
    if legacy == internal:
        return
    if internal != before[1]:
        if legacy != before[0]:
            raise _mismatch(pair)
        annotations[pair.legacy] = internal
    else:
        annotations[pair.internal] = legacy


def _mismatch(pair: Pair) -> AnnotationMismatch:
    return AnnotationMismatch(f"resource input to function has mismatched legacy and internal {pair.title} annotations")


def _values(annotations: dict[str, Any], pair: Pair) -> _Values:
    return _text(annotations.get(pair.legacy)), _text(annotations.get(pair.internal))


def _text(value: Any) -> str | None:
    """Return an annotation as text: functions write ``0`` where they mean ``"0"``."""
    return None if value is None else str(value)
