"""A configuration merged into the live object, and paths removed from an object. Source: ``kube-api.md`` 2.10."""

from collections import deque
from typing import Any

from apiserver.machinery.apply import field_set
from apiserver.machinery.apply.field_set import Fields
from apiserver.machinery.apply.typed import Shape, Type, entry_type, item_type, shape_of, steps_of

Json = dict[str, Any]


def merge(live: Json, config: Json, type_: Type) -> Json:
    """Return the live object with everything that a configuration says; neither is changed.

    Maps merge entry by entry, sets and list maps item by item, all else is replaced. The result may share parts with
    both.
    """
    merged = dict(live)
    for name, wanted in config.items():
        below = entry_type(type_, name)
        whole = below.shape is Shape.LEAF or name not in live
        merged[name] = wanted if whole else _merged(live[name], wanted, below)
    return merged


def _merged(live: Any, config: Any, type_: Type) -> Any:
    # Nothing says nothing about the entries of a map.
    shape = shape_of(live if config is None else config, type_)
    if shape is Shape.LEAF or not live or shape is not shape_of(live, type_):
        return config
    if not config:
        return live
    if shape is Shape.MAP:
        return merge(live, config, type_)
    return _merged_items(live, config, type_, shape)


def _merged_items(live: list[Any], config: list[Any], type_: Type, shape: Shape) -> list[Any]:
    """Merge two lists: items of both in the configuration's order, all others where they stand in theirs."""
    element = item_type(type_)
    ours, theirs = steps_of(live, type_, shape), steps_of(config, type_, shape)
    live_items, wanted = dict(zip(ours, live, strict=True)), set(theirs)
    shared = deque(step for step in theirs if step in live_items)
    merged: list[Any] = []
    at = 0
    for step, item in zip(theirs, config, strict=True):
        # Items that only the live list has come before the shared item that they preceded there.
        while at < len(ours) and ours[at] != step and not (shared and ours[at] == shared[0]):
            if ours[at] not in wanted:
                merged.append(live[at])
            at += 1
        if shared and shared[0] == step:
            shared.popleft()
        merged.append(_merged(live_items[step], item, element) if step in live_items else item)
        if at < len(ours) and ours[at] == step:
            at += 1
    merged += [item for step, item in zip(ours[at:], live[at:], strict=True) if step not in wanted]
    return merged


def remove(obj: Json, fields: Fields, type_: Type) -> Json:
    """Return an object without the paths of a set; a map or list that loses everything becomes null."""
    return _removed(obj, fields, type_) or {}


def _removed(value: Any, fields: Fields, type_: Type) -> Any:
    shape = shape_of(value, type_)
    if shape is Shape.LEAF or not value:
        return value
    if shape is Shape.MAP:
        kept = {}
        for name, entry in value.items():
            below = fields.get(field_set.field(name))
            if below is None:
                kept[name] = entry
            elif not field_set.owned(below):
                kept[name] = _removed(entry, below, entry_type(type_, name))
        return kept or None
    return _removed_items(value, fields, type_, shape)


def _removed_items(items: list[Any], fields: Fields, type_: Type, shape: Shape) -> list[Any] | None:
    kept: list[Any] = []
    for step, item in zip(steps_of(items, type_, shape), items, strict=True):
        below = fields.get(step)
        if below is None:
            kept.append(item)
        elif not field_set.owned(below):
            kept.append(_removed(item, below, item_type(type_)))
    return kept or None
