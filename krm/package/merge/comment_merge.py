"""Three-way merge of comments, onto a text whose data is merged already. Source: ``kpt.md`` 3.8.

What upstream changed, added or removed is taken over unless the comment was changed here too; then the
local one stays, but for a scalar whose value comes from upstream as well. Values that upstream added
bring their comments along, and an element's comments go where the element goes.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from krm.package.comments import Comment, Path, read_comments, write_comments
from krm.package.documents import Document
from krm.package.merge.conflicts import ABSENT
from krm.package.merge.field_merge import FieldMerge, Places
from krm.package.merge.list_elements import element_ids
from krm.package.yaml_reader import YamlError, same

Comments = Mapping[Path, Comment]
MERGE_KEY = "kpt-merge:"
"""Marks the comment that holds a resource's upstream identity, which must outlive every merge."""
_NOTHING = Comment()
_ORIGIN, _UPDATED, _LOCAL = range(3)


def merge_comments(text: str, merged: FieldMerge, states: tuple[Document | None, Document, Document]) -> str:
    """Return ``text``, which reads as ``merged``, with the comments merged.

    ``states`` are origin, updated and local. Comments that cannot be written where they belong are left out.
    """
    alignments = [_Alignment(merged, place, state.data if state else ABSENT) for place, state in enumerate(states)]
    found = [
        alignment.moved(read_comments(state.text) if state else {})
        for alignment, state in zip(alignments, states, strict=True)
    ]
    current = read_comments(text)
    local = alignments[_LOCAL]
    wanted = {}
    for path in dict.fromkeys(path for comments in (*found, current) for path in comments):
        origin, updated, here = (comments.get(path, _NOTHING) for comments in found)
        before = local.source(path)
        if before is ABSENT:
            comment = updated
        else:
            comment = _merged(origin, updated, here, is_taken=_is_changed_scalar(before, _value_at(merged.value, path)))
        if comment != current.get(path, _NOTHING):
            wanted[path] = comment
    try:
        return write_comments(text, wanted) if wanted else text
    except YamlError:
        return text


def _merged(origin: Comment, updated: Comment, local: Comment, *, is_taken: bool) -> Comment:
    return Comment(
        _part(origin.head, updated.head, local.head, is_taken=False),
        _part(origin.line, updated.line, local.line, is_taken=is_taken),
        _part(origin.foot, updated.foot, local.foot, is_taken=False),
    )


def _part(origin: str, updated: str, local: str, *, is_taken: bool) -> str:
    """Merge one comment; ``is_taken`` says that its value is upstream's now."""
    if updated == origin or MERGE_KEY in local:
        return local
    return updated if local == origin or is_taken else local


def _is_changed_scalar(before: Any, now: Any) -> bool:
    return not isinstance(before, (dict, list)) and not isinstance(now, (dict, list)) and not same(before, now)


class _Alignment:
    """Translates paths of one state to paths of the merged value, and back."""

    def __init__(self, merged: FieldMerge, side: int, data: Any) -> None:
        self._merged = merged
        self._side = side
        self._data = data
        self._moves: dict[Path, _Moves] = {}

    def moved(self, comments: Comments) -> dict[Path, Comment]:
        """Return comments by their paths in the merged value; those of values that are gone are left out."""
        found = {}
        for path, comment in comments.items():
            new = self._target(path)
            if new is not None:
                found[new] = comment
        return found

    def source(self, path: Path) -> Any:
        """Return the value that this state has for a path of the merged value, ABSENT if none."""
        data, value = self._data, self._merged.value
        done: Path = ()
        for step in path:
            if isinstance(step, int) and isinstance(value, list) and isinstance(data, list):
                data = _child(data, self._list_moves(done, data, value).back.get(step, -1))
            elif isinstance(data, dict):
                data = data.get(str(step), ABSENT)
            else:
                return ABSENT
            if data is ABSENT:
                return ABSENT
            value = _child(value, step)
            done = (*done, step)
        return data

    def _target(self, path: Path) -> Path | None:
        data, value = self._data, self._merged.value
        new: Path = ()
        for step in path:
            moved: str | int | None = step
            if isinstance(step, int):
                if not isinstance(data, list) or not isinstance(value, list):
                    return None
                moved = self._list_moves(new, data, value).forth.get(step)
            if moved is None:
                return None
            data, value = _child(data, step), _child(value, moved)
            if data is ABSENT or value is ABSENT:
                return None
            new = (*new, moved)
        return new

    def _list_moves(self, path: Path, data: list[Any], value: list[Any]) -> "_Moves":
        """Return where the elements of the list that is now at ``path`` went."""
        moves = self._moves.get(path)
        if moves is None:
            places = self._merged.elements.get(path)
            forth = _moves_by_value(data, value) if places is None else _moves_by_place(places, self._side)
            moves = self._moves[path] = _Moves(forth, {new: old for old, new in forth.items()})
        return moves


class _Moves(NamedTuple):
    """Places of a list's elements in one state and in the merged value."""

    forth: dict[int, int]
    back: dict[int, int]


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


def _child(value: Any, step: str | int) -> Any:
    if isinstance(value, dict):
        return value.get(str(step), ABSENT)
    if isinstance(value, list) and isinstance(step, int) and 0 <= step < len(value):
        return value[step]
    return ABSENT


def _value_at(value: Any, path: Path) -> Any:
    for step in path:
        value = _child(value, step)
    return value
