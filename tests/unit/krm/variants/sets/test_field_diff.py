"""Where two specs differ: as paths that people read, and exactly when the digests differ."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from krm.variants.sets.field_diff import MOST_DEPTH, MOST_DIFFERENCES, differences
from krm.variants.sets.specs import spec_digest

Json = dict[str, Any]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({}, {}, []),
        ({"a": "x"}, {"a": "x"}, []),
        ({"a": "x"}, {"a": "y"}, [{"path": "spec.a", "old": "x", "new": "y"}]),
        ({}, {"a": "y"}, [{"path": "spec.a", "new": "y"}]),
        ({"a": "x"}, {}, [{"path": "spec.a", "old": "x"}]),
        ({"a": {}, "b": None}, {"c": []}, []),
        ({"a": {"x.y/z": 1}}, {"a": {"x.y/z": 2}}, [{"path": 'spec.a["x.y/z"]', "old": 1, "new": 2}]),
        ({"a": {'"': 1}}, {}, [{"path": "spec.a", "old": {'"': 1}}]),
        (
            {"a": [{"n": 1}, {"n": 2}]},
            {"a": [{"n": 1}, {"n": 3}, {"n": 4}]},
            [{"path": "spec.a[1].n", "old": 2, "new": 3}, {"path": "spec.a[2]", "new": {"n": 4}}],
        ),
        ({"a": 1}, {"a": True}, [{"path": "spec.a", "old": 1, "new": True}]),
        ({"a": [1]}, {"a": {"b": 1}}, [{"path": "spec.a", "old": [1], "new": {"b": 1}}]),
        (
            {"upstream": {"revision": "v1"}},
            {"upstream": {"revision": 1}},
            [{"path": "spec.upstream.revision", "old": "v1", "new": 1}],
        ),
    ],
)
def test_a_difference_names_its_field_and_both_values(old: Json, new: Json, expected: list[Json]) -> None:
    assert [one.to_json() for one in differences(old, new)] == expected


def test_there_are_only_so_many_and_what_is_deep_is_compared_as_a_whole() -> None:
    many = differences({}, {f"k{number:03}": 1 for number in range(MOST_DIFFERENCES + 1)})
    deep: Json = {"a": 1}
    for _ in range(MOST_DEPTH + 5):
        deep = {"a": deep}
    (found,) = differences({"x": deep}, {"x": {"a": {**deep["a"], "b": 1}}})
    (whole,) = differences(nested(MOST_DEPTH + 5, 1), nested(MOST_DEPTH + 5, 2))

    assert len(many) == MOST_DIFFERENCES
    assert found.path == "spec.x.a.b"
    assert whole.path.count(".a") == MOST_DEPTH


def nested(depth: int, value: int) -> Json:
    """Return a map that is nested so deep."""
    found: Any = value
    for _ in range(depth):
        found = {"a": found}
    return found  # type: ignore[no-any-return] # depth is not 0


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["", "a", "b"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "b.c"]), inner, max_size=2),
    max_leaves=6,
)
SPECS = st.dictionaries(st.sampled_from(["upstream", "labels", "injectors"]), VALUES, max_size=3)


@given(SPECS, SPECS)
@pytest.mark.hypothesis
def test_there_is_a_difference_exactly_where_the_digests_differ(old: Json, new: Json) -> None:
    assert bool(differences(old, new)) == (spec_digest(old) != spec_digest(new))
