"""Which items of a list became which of another, so that an edit leaves the rest of the list alone."""

from collections.abc import Callable
from difflib import SequenceMatcher
from typing import Any

from krm.package.yaml_reader import same

Pair = tuple[int | None, int | None]
"""The place in the old list (None: the item is new) and in the new one (None: the item is gone)."""

_MOST_COMPARISONS = 40_000
"""Of changed items with each other; longer stretches are matched by their place."""


def align(old: list[Any], new: list[Any]) -> list[Pair]:
    """Match the items of two lists, in order: named mappings by their name, anything else by its value."""
    start, end = _equal_ends(old, new)
    head: list[Pair] = [(place, place) for place in range(start)]
    tail: list[Pair] = [(len(old) - back, len(new) - back) for back in range(end, 0, -1)]
    before, after = old[start : len(old) - end], new[start : len(new) - end]
    if not before or not after or len(before) * len(after) > _MOST_COMPARISONS:
        return head + _by_place(range(start, len(old) - end), range(start, len(new) - end)) + tail
    middle: list[Pair] = []
    matcher = SequenceMatcher(None, _tokens(before), _tokens(after), autojunk=False)
    for _, i, j, k, m in matcher.get_opcodes():
        middle += _by_place(range(start + i, start + j), range(start + k, start + m))
    return head + middle + tail


def _by_place(old: range, new: range) -> list[Pair]:
    shared = min(len(old), len(new))
    pairs: list[Pair] = list(zip(old, new, strict=False))
    return pairs + [(place, None) for place in old[shared:]] + [(None, place) for place in new[shared:]]


def _tokens(items: list[Any]) -> list[tuple[str, str]]:
    return [_token(item) for item in items]


def _token(item: Any) -> tuple[str, str]:
    name = item.get("name") if isinstance(item, dict) else None
    return ("name", name) if isinstance(name, str) else (type(item).__name__, repr(item))


def _equal_ends(old: list[Any], new: list[Any]) -> tuple[int, int]:
    """Count the items that are equal at the start, and of the rest those equal at the end."""
    shorter = min(len(old), len(new))
    start = _equal(shorter, lambda place: same(old[place], new[place]))
    end = _equal(shorter - start, lambda place: same(old[-1 - place], new[-1 - place]))
    return start, end


def _equal(limit: int, is_equal: Callable[[int], bool]) -> int:
    return next((place for place in range(limit) if not is_equal(place)), limit)
