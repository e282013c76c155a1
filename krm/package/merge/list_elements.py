"""Which elements of a list's three states are the same element. Source: ``kpt.md`` 3.7."""

import json
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

ElementId = Hashable

_MAX_UNIFIED_KEYS = 4
"""Keys of a list whose incomplete elements are still matched: the work doubles with each."""


def element_ids(keys: Sequence[str], *states: list[Any]) -> list[list[ElementId]]:
    """Return an id per element, for each state of a list; equal ids mean the same element.

    Keys that no element has are ignored. An element that lacks some keys is the one that agrees in the
    others, if no state holds both. An element without any key is told apart by its value, and those that
    are still alike by their order: every id is unique within its state.
    """
    used = [key for key in keys if any(_has(element, key) for state in states for element in state)]
    names = [[_name(element, used) for element in state] for state in states]
    if 1 < len(used) <= _MAX_UNIFIED_KEYS:
        names = _unified(names)
    return [_numbered(state) for state in names]


def text_of(value: Any) -> str:
    """Return the text of a scalar in its canonical form, and compact JSON of all else."""
    if isinstance(value, str):
        return value
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)


def _has(element: Any, key: str) -> bool:
    return isinstance(element, dict) and element.get(key) is not None


def _name(element: Any, keys: Sequence[str]) -> tuple[str, ...]:
    """Name an element by its key values, empty ones missing; one without any by its type and value."""
    if isinstance(element, dict):
        name = tuple("" if element.get(key) is None else text_of(element[key]) for key in keys)
        if any(name):
            return name
    return ("", type(element).__name__, json.dumps(element, sort_keys=True, ensure_ascii=False, default=str))


def _unified(names: list[list[tuple[str, ...]]]) -> list[list[tuple[str, ...]]]:
    """Give an element that lacks secondary keys the name of the element it agrees with in the others."""
    states: dict[tuple[str, ...], set[int]] = {}
    for place, state in enumerate(names):
        for name in state:
            states.setdefault(name, set()).add(place)
    complete = [name for name in states if all(name)]
    whole: dict[tuple[str, ...], tuple[str, ...]] = {}
    indexes: dict[tuple[bool, ...], dict[tuple[str, ...], list[tuple[str, ...]]]] = {}
    for name, holders in states.items():
        mask = tuple(map(bool, name))
        if all(mask) or not mask[0]:
            continue
        if mask not in indexes:
            indexes[mask] = _by_part(complete, mask)
        for candidate in indexes[mask].get(name, ()):
            if holders.isdisjoint(states[candidate]):
                whole[name] = candidate
                # The next incomplete name must not become the same element of one state.
                states[candidate] |= holders
                break
    return [[whole.get(name, name) for name in state] for state in names]


def _by_part(names: Iterable[tuple[str, ...]], mask: tuple[bool, ...]) -> dict[tuple[str, ...], list[tuple[str, ...]]]:
    found: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    for name in names:
        part = tuple(value if is_used else "" for value, is_used in zip(name, mask, strict=False))
        found.setdefault(part, []).append(name)
    return found


def _numbered(names: list[tuple[str, ...]]) -> list[ElementId]:
    """Tell equal names apart by how many came before."""
    seen: Counter[tuple[str, ...]] = Counter()
    ids: list[ElementId] = []
    for name in names:
        ids.append((name, seen[name]))
        seen[name] += 1
    return ids
