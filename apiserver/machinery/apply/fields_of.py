"""Which fields an object has, as a set: what a manager that applies it owns. Source: ``kube-api.md`` 2.10."""

from typing import Any

from apiserver.machinery.apply import field_set
from apiserver.machinery.apply.field_set import Fields
from apiserver.machinery.apply.typed import Shape, Type, entry_type, item_type, shape_of, steps_of

Json = dict[str, Any]


def fields_of(obj: Json, type_: Type) -> Fields:
    """Return the set of the fields of an object.

    Declared fields that hold others are not themselves in it: to own ``spec.replicas`` is not to own that there is
    a spec. Entries of maps, items of lists, and empty maps are.
    """
    return _below(obj, type_) or {}


def _below(value: Any, type_: Type) -> Fields | None:
    """Return the part of the set at a value; None: nothing there is in the set."""
    shape = shape_of(value, type_)
    if shape is Shape.LEAF:
        return {}
    if not value:
        return None
    if shape is Shape.MAP:
        return _entries(value, type_)
    return _items(value, type_, shape)


def _entries(value: Json, type_: Type) -> Fields | None:
    found: Fields = {}
    for name, entry in value.items():
        type_below = entry_type(type_, name)
        below = {} if type_below.shape is Shape.LEAF else _below(entry, type_below)
        if entry is None or entry == {} or name not in type_.fields:
            found[field_set.field(name)] = field_set.owning(below)
        elif below is not None:
            found[field_set.field(name)] = below
    return found or None


def _items(items: list[Any], type_: Type, shape: Shape) -> Fields:
    element = item_type(type_)
    found: Fields = {}
    for step, item in zip(steps_of(items, type_, shape), items, strict=True):
        found[step] = field_set.owning(_below(item, element))
    return found


def with_declared(fields: Fields, type_: Type) -> Fields:
    """Return the set with every declared field that leads to one of its paths: whoever owns what is in it keeps it."""
    found: Fields = {}
    for step, below in fields.items():
        if not below:
            found[step] = below
            continue
        kind, name = step[:2], step[2:]
        inner = _inner_type(kind, name, type_)
        deeper = with_declared(below, inner)
        declared = kind == "f:" and name in type_.fields
        found[step] = field_set.owning(deeper) if declared else deeper
    return found


def fitted(fields: Fields, type_: Type) -> Fields:
    """Return the set as the kind has it now: what is below a part that became one whole stands for that part.

    The schema of a custom resource can change after somebody's ownership was recorded.
    """
    found: Fields = {}
    for step, below in fields.items():
        if not below:
            found[step] = below
            continue
        inner = _inner_type(step[:2], step[2:], type_)
        found[step] = {} if inner.shape is Shape.LEAF else fitted(below, inner)
    return found


def _inner_type(kind: str, name: str, type_: Type) -> Type:
    if kind == "f:":
        return entry_type(type_, name)
    return type_.element or entry_type(type_, name)
