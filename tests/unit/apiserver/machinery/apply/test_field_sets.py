"""Sets of field paths: their algebra against plain sets of paths, their order, their texts."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.machinery.apply.field_set import (
    Fields,
    FieldsError,
    checked,
    difference,
    field,
    intersection,
    keyed,
    leaves,
    member,
    ordered,
    owned,
    owning,
    path_text,
    union,
)

Path = tuple[str, ...]

STEPS = st.sampled_from([field("a"), field("b"), keyed({"name": "x", "port": 1}), member("v"), "i:0"])
PATHS = st.sets(st.lists(STEPS, min_size=1, max_size=3).map(tuple), max_size=8)


def set_of(paths: set[Path]) -> Fields:
    """Build a set one path at a time."""
    found: Fields = {}
    for path in paths:
        below: Fields = {}
        for step in reversed(path):
            below = {step: below}
        found = union(found, below)
    return found


def paths_of(fields: Fields, above: Path = ()) -> set[Path]:
    """List every path of a set."""
    found: set[Path] = set()
    for step, below in fields.items():
        if step == ".":
            continue
        path = (*above, step)
        found |= {path} if owned(below) else set()
        found |= paths_of(below, path)
    return found


@given(PATHS)
def test_a_set_holds_the_paths_it_was_made_of(paths: set[Path]) -> None:
    assert paths_of(set_of(paths)) == paths


@given(PATHS, PATHS)
def test_sets_are_joined_cut_and_shared_like_sets_of_paths(left: set[Path], right: set[Path]) -> None:
    one, other = set_of(left), set_of(right)

    assert paths_of(union(one, other)) == left | right
    assert paths_of(difference(one, other)) == left - right
    assert paths_of(intersection(one, other)) == left & right
    assert paths_of(one) == left, "arguments stay as they are"


@given(PATHS, PATHS)
def test_nothing_is_left_behind_where_no_path_is(left: set[Path], right: set[Path]) -> None:
    assert set_of(left - right) == _normal(difference(set_of(left), set_of(right)))
    assert not difference(set_of(left), set_of(left))


def _normal(fields: Fields) -> Fields:
    return set_of(paths_of(fields))


@given(PATHS)
def test_a_set_survives_the_wire(paths: set[Path]) -> None:
    fields = set_of(paths)

    assert checked(fields) == fields
    assert ordered(fields) == fields
    assert list(ordered(ordered(fields))) == list(ordered(fields))


@given(PATHS)
def test_leaves_are_the_paths_that_no_other_continues(paths: set[Path]) -> None:
    ends = {path for path in paths if not any(other[: len(path)] == path and other != path for other in paths)}

    assert set(leaves(set_of(paths))) == ends


def test_steps_are_written_in_the_order_of_kubernetes() -> None:
    steps = ["i:10", "i:9", 'v:"a"', "v:2", "v:10", 'k:{"p":80}', 'k:{"p":9}', "f:z", "f:a", "."]

    assert list(ordered({step: {} for step in steps})) == [
        ".",
        "f:a",
        "f:z",
        'k:{"p":9}',
        'k:{"p":80}',
        "v:2",
        "v:10",
        'v:"a"',
        "i:9",
        "i:10",
    ]


def test_paths_are_shown_as_people_write_them() -> None:
    path = (field("spec"), field("ports"), keyed({"protocol": "TCP", "port": 80}), field("name"))

    assert path_text(path) == '.spec.ports[port=80,protocol="TCP"].name'
    assert path_text((field("metadata"), field("finalizers"), member("a/b"))) == '.metadata.finalizers[="a/b"]'
    assert path_text((field("list"), "i:3")) == ".list[3]"


def test_a_path_and_what_is_below_it_are_told_apart() -> None:
    below: Fields = {"f:a": {}}

    assert not owned(below)
    assert owned(owning(below))
    assert owning(None) == {}
    assert difference({"f:x": owning(below)}, {"f:x": {}}) == {"f:x": below}
    assert difference({"f:x": owning(below)}, {"f:x": below}) == {"f:x": {}}


def test_foreign_keys_and_values_get_the_one_form() -> None:
    assert checked({'k:{"b": 1, "a":"x"}': {".": {}}, 'v: "y"': {}}) == {'k:{"a":"x","b":1}': {}, 'v:"y"': {}}


@pytest.mark.parametrize(
    "given",
    [
        [],
        {"f:a": 1},
        {"x:a": {}},
        {"a": {}},
        {"k:[]": {}},
        {"k:{}": {}},
        {'k:{"a":{}}': {}},
        {"k:{": {}},
        {"v:{}": {}},
        {"i:x": {}},
    ],
)
def test_what_is_no_set_of_fields_is_refused(given: Any) -> None:
    with pytest.raises(FieldsError):
        checked(given)


def test_a_set_that_is_nested_too_deep_is_refused() -> None:
    deep: Fields = {}
    for _ in range(500):
        deep = {"f:a": deep}

    with pytest.raises(FieldsError):
        checked(deep)
