"""Merge patch and JSON patch: what they do, what they refuse, and that they change nothing they were given."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.machinery.patch import json_patch, merge_patch, unknown_members
from krm.meta.errors import Invalid, RequestEntityTooLarge

Json = dict[str, Any]


@pytest.mark.parametrize(
    ("target", "patch", "merged"),
    [
        pytest.param({"a": 1}, {"a": 2}, {"a": 2}, id="replace"),
        pytest.param({"a": 1, "b": 2}, {"a": None}, {"b": 2}, id="null-deletes"),
        pytest.param({"a": [1, 2]}, {"a": [3]}, {"a": [3]}, id="arrays-replace"),
        pytest.param({"a": {"b": 1, "c": 2}}, {"a": {"b": None}}, {"a": {"c": 2}}, id="nested"),
        pytest.param({"a": "text"}, {"a": {"b": 1}}, {"a": {"b": 1}}, id="object-over-scalar"),
        pytest.param({}, {"a": {"b": {"c": None}}}, {"a": {"b": {}}}, id="null-in-new-object"),
    ],
)
def test_merge_patch_follows_rfc_7386(target: Json, patch: Json, merged: Json) -> None:
    assert merge_patch(target, patch) == merged


objects = st.dictionaries(
    st.sampled_from("abc"),
    st.recursive(
        st.none() | st.integers(),
        lambda below: st.lists(below, max_size=2) | st.dictionaries(st.sampled_from("abc"), below),
        max_leaves=8,
    ),
)


@given(objects, objects)
def test_merge_patch_leaves_its_arguments_alone_and_can_be_repeated(target: Json, patch: Json) -> None:
    before = copy.deepcopy((target, patch))

    merged = merge_patch(target, patch)

    assert (target, patch) == before
    assert merge_patch(merged, patch) == merged


def test_results_share_no_lists_with_the_patch() -> None:
    patch = {"a": [{"b": 1}]}

    merged = merge_patch({}, patch)
    merged["a"][0].clear()

    assert patch == {"a": [{"b": 1}]}


def test_json_patch_applies_operations_in_order_on_a_copy() -> None:
    target = {"a": {"b": 1}, "list": [1, 2]}
    operations = [
        {"op": "test", "path": "/a/b", "value": 1},
        {"op": "copy", "from": "/a", "path": "/c"},
        {"op": "replace", "path": "/c/b", "value": 2},
        {"op": "move", "from": "/list/0", "path": "/list/-"},
        {"op": "remove", "path": "/a"},
        {"op": "add", "path": "/x~1y", "value": None},
    ]

    assert json_patch(target, operations) == {"list": [2, 1], "c": {"b": 2}, "x/y": None}
    assert target == {"a": {"b": 1}, "list": [1, 2]}


@pytest.mark.parametrize(
    "operations",
    [
        pytest.param([{"op": "test", "path": "/a", "value": 2}], id="failed-test"),
        pytest.param([{"op": "remove", "path": "/nowhere"}], id="missing-path"),
        pytest.param([{"op": "replace", "path": "/b/c", "value": 2}], id="missing-parent"),
        pytest.param([{"op": "add", "path": "/a/x", "value": 2}], id="into-a-number"),
        pytest.param([{"op": "copy", "from": "/nowhere", "path": "/b"}], id="copy-from-nowhere"),
        pytest.param([{"op": "add", "path": "/list/7", "value": 2}], id="beyond-the-list"),
        pytest.param([{"op": "replace", "path": "", "value": []}], id="no-object-left"),
    ],
)
def test_json_patch_that_does_not_fit_the_object_is_invalid(operations: list[Json]) -> None:
    with pytest.raises(Invalid):
        json_patch({"a": 1, "list": []}, operations)


@pytest.mark.parametrize(
    "operations",
    [
        pytest.param(["x"], id="not-an-object"),
        pytest.param([{"op": "fly", "path": "/a"}], id="unknown-op"),
        pytest.param([{"op": ["add"], "path": "/a"}], id="op-is-a-list"),
        pytest.param([{"op": "add", "value": 1}], id="no-path"),
        pytest.param([{"op": "add", "path": "/a"}], id="no-value"),
        pytest.param([{"op": "move", "path": "/a"}], id="no-from"),
        pytest.param([{"op": "remove", "path": "a"}], id="path-without-slash"),
    ],
)
def test_malformed_operations_are_invalid(operations: list[Any]) -> None:
    with pytest.raises(Invalid):
        json_patch({"a": 1}, operations)


def test_too_many_operations_are_too_large() -> None:
    with pytest.raises(RequestEntityTooLarge):
        json_patch({"a": 1}, [{"op": "test", "path": "/a", "value": 1}] * 10_001)


def test_copies_of_copies_are_stopped() -> None:
    doubling = [{"op": "copy", "from": "/a", "path": "/a/-"} for _ in range(40)]

    with pytest.raises(RequestEntityTooLarge):
        json_patch({"a": ["x" * 1000]}, doubling)


def test_operations_can_be_applied_again_to_fresh_state() -> None:
    operations = [{"op": "add", "path": "/a", "value": {"b": 1}}, {"op": "replace", "path": "/a/b", "value": 2}]

    assert json_patch({}, operations) == json_patch({}, operations) == {"a": {"b": 2}}


def test_strange_members_of_operations_are_named_for_strict_validation() -> None:
    operations = [{"op": "remove", "path": "/a"}, {"op": "remove", "path": "/a", "why": "because"}]

    assert unknown_members(operations) == ["[1].why"]
