"""Checks of an applied configuration: only what the kind declares, in the right form, list items told apart.

Source: ``kube-api.md`` 2.10.
"""

from collections.abc import Iterator
from typing import Any, Final

from apiserver.machinery.apply import field_set
from apiserver.machinery.apply.typed import KeyMissing, Shape, Type, item_type, step_of

Json = dict[str, Any]

MAX_PROBLEMS: Final = 20
"""Problems that one answer names."""

_CONTAINERS: Final = {Shape.MAP: (dict, "map"), Shape.SET: (list, "list"), Shape.LIST_MAP: (list, "list")}


def problems_of(config: Json, type_: Type) -> list[str]:
    """Return a sentence per part of a configuration that its kind has no place for (at most ``MAX_PROBLEMS``)."""
    found = _problems(config, type_, ())
    return [text for _, text in zip(range(MAX_PROBLEMS), found, strict=False)]


def _problems(value: Any, type_: Type, path: tuple[str, ...]) -> Iterator[str]:
    """Check a value whose type is that of a container."""
    wanted, name = _CONTAINERS[type_.shape]
    if value is None:
        return
    if not isinstance(value, wanted):
        yield f"{field_set.path_text(path)}: expected {name}, got {type(value).__name__}"
    elif type_.shape is Shape.MAP:
        yield from _map_problems(value, type_, path)
    else:
        yield from _list_problems(value, type_, path)


def _map_problems(value: Json, type_: Type, path: tuple[str, ...]) -> Iterator[str]:
    for name, entry in value.items():
        below = type_.fields.get(name) or type_.element
        if below is None:
            yield f"{field_set.path_text((*path, field_set.field(name)))}: field not declared in schema"
        elif below.shape in _CONTAINERS:
            yield from _problems(entry, below, (*path, field_set.field(name)))


def _list_problems(items: list[Any], type_: Type, path: tuple[str, ...]) -> Iterator[str]:
    seen: set[str] = set()
    where = field_set.path_text(path)
    for position, item in enumerate(items):
        if (wrong := _item_problem(item, type_)) is not None:
            yield f"{where}: element {position}: {wrong}"
            continue
        step = step_of(item, type_, type_.shape)
        if step in seen:
            yield f"{where}: duplicate entries for key {field_set.path_text((step,))}"
        seen.add(step)
        if item_type(type_).shape in _CONTAINERS:
            yield from _problems(item, item_type(type_), (*path, step))


def _item_problem(item: Any, type_: Type) -> str | None:
    if type_.shape is Shape.SET:
        return "items of a set must not be null" if item is None else None
    if not isinstance(item, dict):
        return "items of an associative list must be objects"
    try:
        step_of(item, type_, type_.shape)
    except KeyMissing as error:
        return str(error)
    return None
