"""Sets of field paths, in the very form in which they travel: the ``fieldsV1`` of a managedFields entry.

A set is a tree of dicts. A key is one step of a path: ``f:<field>``, ``k:<keys of a list item as JSON>``,
``v:<scalar as JSON>`` or ``i:<index>``. An empty dict below a step means that the path ending there is in the set; with
further steps below it, the step ``.`` says so. The root is never in a set, so an empty root is the empty set.

Because this is the wire form, stored sets are used without decoding and results without encoding. All functions
return new trees, which may share parts with their arguments: nothing here, or anywhere else, changes a tree after it
is made. Source: ``kube-api.md`` 2.10.
"""

from collections.abc import Iterator
from typing import Any, Final

import orjson

Fields = dict[str, Any]
"""A set of paths, or the part of one below a step."""

SELF: Final = "."
"""The step that stands for the path itself, where there is more below it."""
MAX_DEPTH: Final = 120
"""Steps of one path; bodies are not nested as deep (``decode.MAX_DEPTH``)."""

_FIELD: Final = "f:"
_KEY: Final = "k:"
_VALUE: Final = "v:"
_INDEX: Final = "i:"
_SCALARS: Final = (str, int, float, bool, type(None))


class FieldsError(ValueError):
    """Not a set of fields in the form ``FieldsV1``."""


def field(name: str) -> str:
    """Return the step to a field of an object, or to an entry of a map."""
    return _FIELD + name


def keyed(keys: dict[str, Any]) -> str:
    """Return the step to the item of a list of type map that has these keys."""
    return _KEY + orjson.dumps(keys, option=orjson.OPT_SORT_KEYS).decode()


def member(value: Any) -> str:
    """Return the step to an item of a list of type set."""
    return _VALUE + orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def index(position: int) -> str:
    """Return the step to an item that nothing but its position tells from others."""
    return f"{_INDEX}{position}"


def owned(below: Fields) -> bool:
    """Tell whether the path that leads to this part of a set is itself in the set."""
    return not below or SELF in below


def owning(below: Fields | None) -> Fields:
    """Return the same part of a set with the path that leads to it (None: nothing is below it)."""
    if not below:
        return {}
    return below if SELF in below else {SELF: {}, **below}


def union(left: Fields, right: Fields) -> Fields:
    """Return the paths that are in either set."""
    if not left:
        return right
    if not right:
        return left
    found = dict(left)
    for step, below in right.items():
        present = found.get(step)
        found[step] = below if present is None or step == SELF else _union_below(present, below)
    return found


def _union_below(left: Fields, right: Fields) -> Fields:
    if not left:
        return owning(right)
    return union(left, right) if right else owning(left)


def difference(left: Fields, right: Fields) -> Fields:
    """Return the paths of ``left`` that are not in ``right``; paths below a path of ``right`` stay."""
    if not left or not right:
        return left
    return _difference(left, right, own=False) or {}


def _difference(left: Fields, right: Fields, *, own: bool) -> Fields | None:
    """Do so below a step; ``own``: the step's path stays. None: nothing is left."""
    found: Fields = {SELF: {}} if own else {}
    for step, below in left.items():
        if step == SELF:
            continue
        other = right.get(step)
        if other is None:
            found[step] = below
        elif (kept := _difference(below, other, own=owned(below) and not owned(other))) is not None:
            found[step] = kept
    if len(found) == 1 and own:
        return {}
    return found or None


def intersection(left: Fields, right: Fields) -> Fields:
    """Return the paths that are in both sets."""
    if not left or not right:
        return {}
    return _intersection(left, right, own=False) or {}


def _intersection(left: Fields, right: Fields, *, own: bool) -> Fields | None:
    found: Fields = {SELF: {}} if own else {}
    for step, below in left.items():
        other = right.get(step)
        if other is None or step == SELF:
            continue
        if (shared := _intersection(below, other, own=owned(below) and owned(other))) is not None:
            found[step] = shared
    if len(found) == 1 and own:
        return {}
    return found or None


def leaves(fields: Fields) -> Iterator[tuple[str, ...]]:
    """Yield the paths of a set that no other path of it continues, in the order of :func:`ordered`."""
    for step in _sorted(fields):
        if step == SELF:
            continue
        below = fields[step]
        deeper = [(step, *path) for path in leaves(below)] if below else []
        yield from deeper or [(step,)]


def path_text(path: tuple[str, ...]) -> str:
    """Return a path as messages show it: ``.a.b``, ``[name="x"]``, ``[="v"]`` or ``[3]``."""
    return "".join(map(_step_text, path))


def _step_text(step: str) -> str:
    kind, rest = step[:2], step[2:]
    if kind == _FIELD:
        return f".{rest}"
    if kind == _VALUE:
        return f"[={rest}]"
    if kind == _KEY:
        shown = [f"{name}={orjson.dumps(value).decode()}" for name, value in orjson.loads(rest).items()]
        return f"[{','.join(shown)}]"
    return f"[{rest}]"


def ordered(fields: Fields) -> Fields:
    """Return the same set with its steps in the order in which Kubernetes writes them."""
    return {step: ordered(fields[step]) if fields[step] else {} for step in _sorted(fields)}


def _sorted(fields: Fields) -> list[str]:
    steps = sorted(fields)
    # Keys, values and positions have an order of their own; the first and the last text tell whether there are any.
    plain = not steps or (steps[0][0] in ".f" and steps[-1][0] in ".f")
    return steps if plain else sorted(fields, key=_rank)


def _rank(step: str) -> tuple[Any, ...]:
    kind, rest = step[:2], step[2:]
    if kind == _KEY:
        return (2, [(name, *_value_rank(value)) for name, value in orjson.loads(rest).items()])
    if kind == _VALUE:
        return (3, _value_rank(orjson.loads(rest)))
    if kind == _INDEX:
        return (4, int(rest))
    return (0, "") if step == SELF else (1, rest)


def _value_rank(value: Any) -> tuple[int, Any]:
    """Order scalars as Kubernetes does: numbers, texts, truth values, nothing."""
    if isinstance(value, bool):
        return (2, value)
    if isinstance(value, int | float):
        return (0, value)
    return (1, value) if isinstance(value, str) else (3, 0)


def checked(given: Any) -> Fields:
    """Return a client's ``fieldsV1`` as a set: every step known, keys and values in the one form we write.

    Raises:
        FieldsError: it is not of that form, or nested too deep.
    """
    return _checked(given, 0)


def _checked(given: Any, depth: int) -> Fields:
    if not isinstance(given, dict) or depth > MAX_DEPTH:
        raise FieldsError("a set of fields must be an object whose values are sets of fields")
    found = {_checked_step(step): _checked(below, depth + 1) for step, below in given.items()}
    if found.keys() == {SELF}:
        # The same as an empty object, but for the root, which cannot be in a set.
        return {}
    return found


def _checked_step(step: str) -> str:
    kind, rest = step[:2], step[2:]
    if step == SELF or kind == _FIELD:
        return step
    try:
        if kind == _KEY:
            return _checked_keys(orjson.loads(rest))
        if kind == _VALUE:
            value = orjson.loads(rest)
            if isinstance(value, _SCALARS):
                return member(value)
        elif kind == _INDEX:
            return index(int(rest))
    except ValueError as error:
        raise FieldsError(f"{step[:64]!r} is not a step of a path: {error}") from error
    raise FieldsError(f"{step[:64]!r} is not a step of a path: it must begin with f:, k:, v: or i:")


def _checked_keys(keys: Any) -> str:
    if not isinstance(keys, dict) or not keys or not all(isinstance(value, _SCALARS) for value in keys.values()):
        raise FieldsError("the keys of a list item must be an object of scalars")
    return keyed(keys)
