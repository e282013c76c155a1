"""Where the values of one state of a merge stand in the merged value, and back.

Keys stay what they are; elements of lists move. Source: ``kpt.md`` 3.8.
"""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from krm.package.comments import Path
from krm.package.merge.conflicts import ABSENT
from krm.package.merge.field_merge import FieldMerge, Places
from krm.package.merge.list_elements import element_ids

ORIGIN: Final = 0
"""Number of a state, in :class:`Alignment`."""
UPDATED: Final = 1
LOCAL: Final = 2


class Moves(NamedTuple):
    """Places of a list's elements in one state and in the merged value."""

    forth: dict[int, int]
    back: dict[int, int]


class Alignment:
    """Translates paths of one state to paths of the merged value, and back."""

    def __init__(self, merged: FieldMerge, side: int, data: Any) -> None:
        self._merged = merged
        self._side = side
        self._data = data
        self._moves: dict[Path, Moves] = {}

    def source(self, path: Path) -> Path | None:
        """Return the path that a value of the merged value has in this state, None when it is not there."""
        data, value = self._data, self._merged.value
        old: Path = ()
        for depth, step in enumerate(path):
            place: str | int | None = step
            if isinstance(step, int):
                if not isinstance(data, list) or not isinstance(value, list):
                    return None
                place = self.moves(path[:depth], data, value).back.get(step)
            if place is None:
                return None
            data, value = child(data, place), child(value, step)
            if data is ABSENT or value is ABSENT:
                return None
            old = (*old, place)
        return old

    def target(self, path: Path) -> Path | None:
        """Return the path that a value of this state has in the merged value, None when it is gone."""
        data, value = self._data, self._merged.value
        new: Path = ()
        for step in path:
            moved: str | int | None = step
            if isinstance(step, int):
                if not isinstance(data, list) or not isinstance(value, list):
                    return None
                moved = self.moves(new, data, value).forth.get(step)
            if moved is None:
                return None
            data, value = child(data, step), child(value, moved)
            if data is ABSENT or value is ABSENT:
                return None
            new = (*new, moved)
        return new

    def places(self, path: Path, data: Any, value: list[Any]) -> dict[int, int]:
        """Return where the elements of the merged list at ``path`` stood in this state's list, if that is one."""
        return self.moves(path, data, value).back if isinstance(data, list) else {}

    def moves(self, path: Path, data: list[Any], value: list[Any]) -> Moves:
        """Return where the elements of the list that is now at ``path`` went."""
        moves = self._moves.get(path)
        if moves is None:
            places = self._merged.elements.get(path)
            forth = _moves_by_value(data, value) if places is None else _moves_by_place(places, self._side)
            moves = self._moves[path] = Moves(forth, {new: old for old, new in forth.items()})
        return moves


def _moves_by_place(places: Iterable[Places], side: int) -> dict[int, int]:
    return {old: new for new, place in enumerate(places) if (old := place[side]) is not None}


def _moves_by_value(data: list[Any], value: list[Any]) -> dict[int, int]:
    """Match elements that are equal, and of the rest those in the same place."""
    old_ids, new_ids = element_ids((), data, value)
    targets = {identity: place for place, identity in enumerate(new_ids)}
    moves = {place: targets[identity] for place, identity in enumerate(old_ids) if identity in targets}
    taken = set(moves.values())
    for place in range(min(len(data), len(value))):
        if place not in moves and place not in taken:
            moves[place] = place
    return moves


def value_at(value: Any, path: Path) -> Any:
    """Return the value at a path, ABSENT when there is none."""
    for step in path:
        value = child(value, step)
    return value


def child(value: Any, step: str | int) -> Any:
    """Return an entry of a collection, ABSENT when there is none."""
    if isinstance(value, dict):
        return value.get(str(step), ABSENT)
    if isinstance(value, list) and isinstance(step, int) and 0 <= step < len(value):
        return value[step]
    return ABSENT
