"""Strategic merge: keyed lists, primitive sets and the directives."""

import copy
from typing import Any

import pytest

from apiserver.machinery.strategic import strategic_merge
from krm.meta.errors import BadRequest

Json = dict[str, Any]
KEYS = {"status.conditions": "type"}


def merged(target: Json, patch: Json) -> Json:
    before = copy.deepcopy((target, patch))
    result = strategic_merge(target, patch, KEYS)
    assert (target, patch) == before
    return result


def test_maps_merge_null_deletes_and_plain_lists_replace() -> None:
    target = {"data": {"a": "1", "b": "2"}, "list": [1, 2]}

    assert merged(target, {"data": {"a": None, "c": "3"}, "list": [3]}) == {"data": {"b": "2", "c": "3"}, "list": [3]}


def test_items_of_a_keyed_list_merge_by_their_key() -> None:
    target = {"status": {"conditions": [{"type": "A", "status": "True", "reason": "x"}, {"type": "B"}]}}
    patch = {"status": {"conditions": [{"type": "A", "status": "False"}, {"type": "C"}]}}

    assert merged(target, patch)["status"]["conditions"] == [
        {"type": "A", "status": "False", "reason": "x"},
        {"type": "C"},
        {"type": "B"},
    ]


def test_an_item_can_be_deleted_by_its_key() -> None:
    target = {"status": {"conditions": [{"type": "A"}, {"type": "B"}]}}
    patch = {"status": {"conditions": [{"type": "A", "$patch": "delete"}]}}

    assert merged(target, patch) == {"status": {"conditions": [{"type": "B"}]}}


def test_a_keyed_list_can_be_replaced() -> None:
    target = {"status": {"conditions": [{"type": "A"}]}}
    patch = {"status": {"conditions": [{"type": "B"}, {"$patch": "replace"}]}}

    assert merged(target, patch) == {"status": {"conditions": [{"type": "B"}]}}


def test_a_map_can_be_replaced_or_deleted() -> None:
    target = {"data": {"a": "1"}, "other": {"b": "2"}}

    assert merged(target, {"data": {"$patch": "replace", "c": "3"}}) == {"data": {"c": "3"}, "other": {"b": "2"}}
    assert merged(target, {"data": {"$patch": "delete"}}) == {"other": {"b": "2"}}


def test_finalizers_are_a_set_and_owners_go_by_uid() -> None:
    owner = {"uid": "1", "name": "a", "kind": "K", "apiVersion": "v1"}
    target = {"metadata": {"finalizers": ["a/b"], "ownerReferences": [owner]}}
    patch = {"metadata": {"finalizers": ["a/b", "c/d"], "ownerReferences": [{"uid": "1", "controller": True}]}}

    assert merged(target, patch)["metadata"] == {
        "finalizers": ["a/b", "c/d"],
        "ownerReferences": [{**owner, "controller": True}],
    }


def test_items_can_be_deleted_from_a_primitive_list() -> None:
    target = {"metadata": {"finalizers": ["a/b", "c/d"]}}

    result = merged(target, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a/b"]}})

    assert result == {"metadata": {"finalizers": ["c/d"]}}


def test_set_element_order_sorts_what_it_knows() -> None:
    target = {"metadata": {"finalizers": ["a/a", "b/b", "c/c"]}}
    patch = {"metadata": {"$setElementOrder/finalizers": ["c/c", "a/a", "d/d"], "finalizers": ["d/d"]}}

    assert merged(target, patch) == {"metadata": {"finalizers": ["b/b", "c/c", "a/a", "d/d"]}}


def test_retain_keys_drops_the_others() -> None:
    target = {"strategy": {"type": "Rolling", "rolling": {}}}
    patch = {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}

    assert merged(target, patch) == {"strategy": {"type": "Recreate"}}


@pytest.mark.parametrize(
    "patch",
    [
        pytest.param({"data": {"$patch": "explode"}}, id="unknown-directive"),
        pytest.param({"status": {"conditions": [{"status": "True"}]}}, id="no-merge-key"),
        pytest.param({"status": {"conditions": ["x"]}}, id="scalar-in-keyed-list"),
        pytest.param({"metadata": {"finalizers": [{}]}}, id="object-in-primitive-list"),
        pytest.param({"metadata": {"$deleteFromPrimitiveList/finalizers": "x"}}, id="directive-without-list"),
        pytest.param({"data": {"$retainKeys": ["a"], "b": "c"}}, id="key-not-retained"),
    ],
)
def test_malformed_patches_are_a_bad_request(patch: Json) -> None:
    with pytest.raises(BadRequest):
        strategic_merge({"metadata": {"finalizers": ["a/b"]}}, patch, KEYS)


def test_what_a_patch_removes_from_a_set_and_adds_to_it_is_there() -> None:
    target = {"metadata": {"finalizers": ["a", "b"]}}
    patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"], "finalizers": ["a"]}}

    assert sorted(merged(target, patch)["metadata"]["finalizers"]) == ["a", "b"]


def test_items_to_delete_are_no_items_of_a_list_that_is_replaced() -> None:
    target = {"secrets": [{"name": "x"}]}
    patch = {"secrets": [{"name": "y"}, {"name": "x", "$patch": "delete"}, {"$patch": "replace"}]}

    assert strategic_merge(target, patch, {"secrets": "name"}) == {"secrets": [{"name": "y"}]}
