"""Three-way merge of plain data: the fields of one resource. Source: ``kpt.md`` 3.6 and 3.8.

Upstream's changes are made to the local state; where both changed a field, upstream's wins, and the
conflict is reported. What upstream did not change stays as it is locally, whatever it is. Texts and
comments are not here.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from krm.package.comments import Path
from krm.package.merge.associative_lists import NO_SCHEMA, ListKeys, ListRule, Schema, is_atomic, retains_keys
from krm.package.merge.conflicts import ABSENT, Conflict, Kept, OnConflict, shown
from krm.package.merge.list_elements import ElementId, element_ids, text_of


class Places(NamedTuple):
    """Where one element of a merged list stood in the three states; None where it did not."""

    origin: int | None
    updated: int | None
    local: int | None


@dataclass(slots=True)
class FieldMerge:
    """The result of a merge, and where the elements of its associative lists came from."""

    value: Any
    elements: dict[Path, list[Places]] = field(default_factory=dict)
    """By the path of the merged list; a list that is missing here is one side's as a whole."""


def merge(origin: Any, updated: Any, local: Any, *, lists: ListKeys, on_conflict: OnConflict | None = None) -> Any:
    """Merge three states of one value; ABSENT stands for none, None is an explicit null.

    Scalars are compared as text, so that upstream's ``1`` for ``"1"`` changes no edited field. New fields come after the local ones, in
    alphabetical order. The result shares parts with its sources, which must not be changed afterwards.
    """
    return merge_fields(origin, updated, local, lists=lists, on_conflict=on_conflict).value


def merge_fields(
    origin: Any, updated: Any, local: Any, *, lists: ListKeys, on_conflict: OnConflict | None = None
) -> FieldMerge:
    """Do the same, and say where the elements of lists came from."""
    walk = _Walk(lists, on_conflict)
    value = walk.value(_ROOT, NO_SCHEMA, origin, updated, local)
    return FieldMerge(value, walk.elements)


class _Place(NamedTuple):
    """A link from a value to its parent: paths are built only where they are needed."""

    parent: Any
    step: str | int
    label: str

    def path(self) -> Path:
        return tuple(place.step for place in self._from_root())

    def shown(self) -> str:
        return "".join(place.label for place in self._from_root()).removeprefix(".")

    def _from_root(self) -> list["_Place"]:
        chain = []
        place = self
        while place.parent is not None:
            chain.append(place)
            place = place.parent
        return chain[::-1]


_ROOT = _Place(None, "", "")
_EMPTY: tuple[Any, ...] = (None, {})
"""What a merge may leave of an element, which is then dropped."""
_MAX_LABEL = 64
"""Characters of one step in the path of a conflict."""


class _Walk:
    """One merge; all states of a value are looked at together, from the root down."""

    def __init__(self, lists: ListKeys, on_conflict: OnConflict | None) -> None:
        self.elements: dict[Path, list[Places]] = {}
        self._lists = lists
        self._on_conflict = on_conflict
        self._compared: dict[tuple[int, int], bool] = {}

    def value(self, place: _Place, schema: Schema, origin: Any, updated: Any, local: Any) -> Any:
        """Merge one value of any kind."""
        if self._same(origin, updated):
            return local
        if updated is None or (local is None and origin is not None):
            return self._cleared(place, origin, updated, local)
        if origin is None:
            origin = ABSENT
        if local is None:
            local = ABSENT
        kinds = {type(state) for state in (origin, updated, local) if state is not ABSENT}
        if kinds == {dict}:
            schema = self._schema(place, schema, local, updated, origin)
            if not is_atomic(schema):
                return self._object(place, schema, origin, updated, local)
        elif kinds == {list}:
            schema = self._schema(place, schema)
            rule = self._lists.rule(schema, (origin, updated, local))
            if rule is not None:
                return self._list(place, schema, rule, origin, updated, local)
        return self._whole(place, origin, updated, local)

    def _schema(self, place: _Place, schema: Schema, *objects: Any) -> Schema:
        """Return the schema that holds from here on: a comment's, the object's own, or the one that led here."""
        if self._lists.inline and (inline := self._lists.of_comment(place.path())) is not None:
            return inline
        for value in objects:
            if value is not ABSENT and (own := self._lists.of_object(value)) is not None:
                return own
        return schema

    def _cleared(self, place: _Place, origin: Any, updated: Any, local: Any) -> Any:
        """Remove a field that one side set to null."""
        if local is None and updated not in (None, ABSENT):
            self._report(place, origin, updated, local, Kept.LOCAL)
        elif updated is None and local not in (None, ABSENT) and not self._same(origin, local):
            self._report(place, origin, updated, local, Kept.UPDATED)
        return ABSENT

    def _whole(self, place: _Place, origin: Any, updated: Any, local: Any) -> Any:
        """Merge what is not merged inside: scalars, plain lists, values of different kinds."""
        if self._same(origin, local):
            return updated
        if _is_scalar(origin) and _is_scalar(updated) and text_of(origin) == text_of(updated):
            return local
        if not self._same(updated, local):
            self._report(place, origin, updated, local, Kept.UPDATED)
        return updated

    def _object(self, place: _Place, schema: Schema, origin: Any, updated: Any, local: Any) -> Any:
        states = origin or {}, updated or {}, local or {}
        merged = {}
        for name in _names(*states):
            inner = _Place(place, name, f".{name[:_MAX_LABEL]}")
            value = self.value(
                inner, self._lists.of_field(schema, name), *(state.get(name, ABSENT) for state in states)
            )
            if value is not ABSENT:
                merged[name] = value
        if updated is not ABSENT and local is not ABSENT and retains_keys(schema):
            self._retain(place, merged, origin, updated)
        if not merged and (updated is ABSENT or (local is ABSENT and origin is not ABSENT)):
            return ABSENT
        return merged

    def _retain(self, place: _Place, merged: dict[str, Any], origin: Any, updated: dict[str, Any]) -> None:
        """Drop the fields of a union that upstream's new state does not have."""
        for name in [name for name in merged if name not in updated]:
            state = (origin or {}).get(name, ABSENT)
            self._report(_Place(place, name, f".{name[:_MAX_LABEL]}"), state, ABSENT, merged.pop(name), Kept.UPDATED)

    def _list(self, place: _Place, schema: Schema, rule: ListRule, origin: Any, updated: Any, local: Any) -> Any:
        """Merge an associative list; a list that upstream removed goes with all local elements."""
        if updated is ABSENT:
            return self._whole(place, origin, updated, local)
        merge = _ListMerge(rule, [state or [] for state in (origin, updated, local)])
        schema = self._lists.of_items(schema)
        merged: list[Any] = []
        places: list[Places] = []
        for identity in merge.order():
            states = merge.states(identity)
            inner = _Place(place, len(merged), merge.label(identity))
            comes_whole = local is not ABSENT or rule.is_inferred
            value = self._element(inner, schema, rule, *states, comes_whole=comes_whole)
            if value is not ABSENT:
                merged.append(value)
                places.append(merge.places(identity))
        if not merged and (origin is not ABSENT if local is ABSENT else updated and local):
            return ABSENT
        self.elements[place.path()] = places
        return merged

    def _element(
        self,
        place: _Place,
        schema: Schema,
        rule: ListRule,
        origin: Any,
        updated: Any,
        local: Any,
        *,
        comes_whole: bool,
    ) -> Any:
        if updated is ABSENT:
            if origin is ABSENT:
                return local
            # Removed by upstream: unlike an object's, no local field of it stays.
            return self._whole(place, origin, updated, local)
        if local is not ABSENT or origin is ABSENT:
            value = self.value(place, schema, origin, updated, local)
            return ABSENT if value in _EMPTY and updated not in _EMPTY else value
        if self._same(origin, updated):
            return ABSENT
        self._report(place, origin, updated, local, Kept.UPDATED)
        if comes_whole:
            # Removed locally, changed upstream: the changed fields alone would not make an element.
            return self.value(place, schema, ABSENT, updated, ABSENT)
        return self._changes(place, schema, rule, origin, updated)

    def _changes(self, place: _Place, schema: Schema, rule: ListRule, origin: Any, updated: Any) -> Any:
        """Return what upstream changed in an element of a list that is gone locally, as for any object."""
        value = self.value(place, schema, origin, updated, ABSENT)
        if not isinstance(value, dict):
            return value
        keys = {key: updated[key] for key in rule.keys or ("name",) if key in updated}
        return dict(sorted({**value, **keys}.items()))

    def _report(self, place: _Place, origin: Any, updated: Any, local: Any, kept: Kept) -> None:
        if self._on_conflict is not None:
            self._on_conflict(Conflict(place.shown(), shown(origin), shown(updated), shown(local), kept))

    def _same(self, one: Any, other: Any) -> bool:
        """Compare values; those of collections are remembered, as parents are compared before their parts."""
        if type(one) is not type(other):
            return False
        if type(one) is not dict and type(one) is not list:
            return bool(one == other) or (one != one and other != other)  # noqa: PLR0124 - only NaN differs from itself
        if one is other:
            return True
        key = id(one), id(other)
        known = self._compared.get(key)
        if known is None:
            # Without a Python frame between the levels, so that depth costs one frame each.
            if type(one) is dict:
                known = one.keys() == other.keys() and all(map(self._same, one.values(), map(other.__getitem__, one)))
            else:
                known = len(one) == len(other) and all(map(self._same, one, other))
            self._compared[key] = known
        return known


class _ListMerge:
    """The elements of one list in its three states, matched."""

    def __init__(self, rule: ListRule, states: list[list[Any]]) -> None:
        self._keys = rule.keys
        self._states = states
        self._ids = element_ids(rule.keys, *states)
        self._places = [{identity: place for place, identity in enumerate(ids)} for ids in self._ids]

    def order(self) -> list[ElementId]:
        """Return the ids: local ones in their order, then upstream's new ones in theirs."""
        _, updated, local = self._ids
        return list(dict.fromkeys((*local, *updated)))

    def places(self, identity: ElementId) -> Places:
        return Places(*(places.get(identity) for places in self._places))

    def states(self, identity: ElementId) -> list[Any]:
        return [
            ABSENT if place is None else state[place]
            for state, place in zip(self._states, self.places(identity), strict=True)
        ]

    def label(self, identity: ElementId) -> str:
        """Return the step of a path that names the element."""
        element = next(state for state in self.states(identity) if state is not ABSENT)
        if isinstance(element, dict):
            parts = [
                f"{key}={text_of(element[key])[:_MAX_LABEL]}" for key in self._keys if element.get(key) is not None
            ]
        else:
            parts = [text_of(element)[:_MAX_LABEL]]
        return f"[{','.join(parts)}]"


def _names(origin: dict[str, Any], updated: dict[str, Any], local: dict[str, Any]) -> Iterator[str]:
    """Yield the local names in their order, then the others in alphabetical order."""
    yield from local
    yield from sorted(name for name in {**origin, **updated} if name not in local)


def _is_scalar(value: Any) -> bool:
    return value is not ABSENT and not isinstance(value, (dict, list))
