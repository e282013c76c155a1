"""What a write changes: the paths it adds, removes and gives other values. Source: ``kube-api.md`` 2.10."""

from dataclasses import dataclass, field
from typing import Any

from apiserver.machinery.apply import field_set
from apiserver.machinery.apply.field_set import Fields
from apiserver.machinery.apply.typed import Shape, Type, entry_type, item_type, shape_of, steps_of

Json = dict[str, Any]


@dataclass(slots=True)
class Comparison:
    """The paths that differ between two objects."""

    added: Fields = field(default_factory=dict)
    removed: Fields = field(default_factory=dict)
    modified: Fields = field(default_factory=dict)

    @property
    def taken(self) -> Fields:
        """The paths that are the new object's writer's from now on."""
        return field_set.union(self.modified, self.added)


def compare(old: Json, new: Json, type_: Type) -> Comparison:
    """Compare two objects of a kind.

    A map or list that only one of them has counts with everything below it; one that both have counts by what is in
    it. Lists that are atomic count as a whole.
    """
    found = Comparison()
    _compare_entries(old, new, type_, found)
    return found


def _compare_entries(old: Json, new: Json, type_: Type, into: Comparison) -> None:
    for name, value in new.items():
        below, step = entry_type(type_, name), field_set.field(name)
        if name not in old:
            into.added[step] = _whole(value, below)
        elif old[name] == value:
            continue
        elif below.shape is Shape.LEAF:
            into.modified[step] = {}
        else:
            _compare_values(step, old[name], value, below, into)
    for name, value in old.items():
        if name not in new:
            into.removed[field_set.field(name)] = _whole(value, entry_type(type_, name))


def _whole(value: Any, type_: Type) -> Fields:
    """Return a path and everything below it."""
    shape = shape_of(value, type_)
    if shape is Shape.LEAF or not value:
        return {}
    found: Fields = {field_set.SELF: {}}
    if shape is Shape.MAP:
        for name, below in value.items():
            found[field_set.field(name)] = _whole(below, entry_type(type_, name))
        return found
    element = item_type(type_)
    for step, item in zip(steps_of(value, type_, shape), value, strict=True):
        found[step] = _whole(item, element)
    return found


def _compare_values(step: str, old: Any, new: Any, type_: Type, into: Comparison) -> None:
    """Compare two values that differ."""
    before, after = shape_of(old, type_), shape_of(new, type_)
    if old is None or new is None:
        # Nothing takes the shape of what it is compared with.
        before = after = before if new is None else after
    if before is not after:
        into.modified[step] = {}
        _descend(step, old if before is Shape.MAP else {}, new if after is Shape.MAP else {}, Shape.MAP, type_, into)
    elif before is Shape.LEAF or not (old or new):
        into.modified[step] = {}
    else:
        empty: Any = {} if before is Shape.MAP else []
        _descend(step, old or empty, new or empty, before, type_, into)


def _descend(step: str, old: Any, new: Any, shape: Shape, type_: Type, into: Comparison) -> None:
    below = Comparison()
    if shape is Shape.MAP:
        _compare_entries(old, new, type_, below)
    else:
        _compare_items(old, new, type_, shape, below)
    for part, found in ((into.added, below.added), (into.removed, below.removed), (into.modified, below.modified)):
        if found:
            part[step] = field_set.owning(found) if step in part else found


def _compare_items(old: list[Any], new: list[Any], type_: Type, shape: Shape, into: Comparison) -> None:
    before, after = _by_step(old, type_, shape), _by_step(new, type_, shape)
    element = item_type(type_)
    for step, items in after.items():
        known = before.get(step)
        if known is None:
            into.added[step] = _whole(items[0], element)
        elif known == items:
            continue
        elif len(known) == len(items) == 1:
            _compare_values(step, known[0], items[0], element, into)
        else:
            # Items that cannot be told apart: objects stored before the list became one of unique items.
            into.modified[step] = {}
    for step, items in before.items():
        if step not in after:
            into.removed[step] = _whole(items[0], element)


def _by_step(items: list[Any], type_: Type, shape: Shape) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for step, item in zip(steps_of(items, type_, shape), items, strict=True):
        found.setdefault(step, []).append(item)
    return found
