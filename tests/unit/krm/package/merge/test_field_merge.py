"""The field rules of ``kpt.md`` 3.6 and the worked examples of 3.13, on plain data."""

from typing import Any

import pytest

from krm.package.merge.associative_lists import ListKeys
from krm.package.merge.conflicts import ABSENT, Conflict, ConflictLog, Kept
from krm.package.merge.field_merge import merge

DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment"}


def merged(origin: Any, updated: Any, local: Any, *, infer: bool = False) -> Any:
    return merge(origin, updated, local, lists=ListKeys(infer=infer))


def conflicts(origin: Any, updated: Any, local: Any) -> list[Conflict]:
    log = ConflictLog()
    merge(origin, updated, local, lists=ListKeys(), on_conflict=log)
    return log.conflicts


def pod_spec(**fields: Any) -> dict[str, Any]:
    return {**DEPLOYMENT, "spec": {"template": {"spec": fields}}}


def merged_pod_spec(origin: Any, updated: Any, local: Any) -> Any:
    result = merged(*(pod_spec(**fields) for fields in (origin, updated, local)))
    return result["spec"]["template"]["spec"]


def containers(*found: dict[str, Any]) -> dict[str, Any]:
    return {"containers": list(found)}


A1, A2, A3 = {"a": 1}, {"a": 2}, {"a": 3}
NULL: dict[str, Any] = {"a": None}
NONE: dict[str, Any] = {}


@pytest.mark.parametrize(
    ("origin", "updated", "local", "expected"),
    [
        pytest.param(A1, A2, A3, A2, id="conflict-upstream-wins"),
        pytest.param(A1, NONE, A3, NONE, id="removed-upstream-local-change-lost"),
        pytest.param(A1, A1, NONE, NONE, id="local-deletion-kept"),
        pytest.param(A1, A2, NONE, A2, id="changed-upstream-beats-local-deletion"),
        pytest.param(NONE, A1, A2, A1, id="added-in-both"),
        pytest.param(A1, NULL, A1, NONE, id="explicit-clear"),
        pytest.param(NULL, A1, NULL, A1, id="null-of-origin-does-not-clear"),
        pytest.param(NULL, NULL, NULL, NULL, id="null-equal-in-all-three-stays"),
        pytest.param(A1, A2, NULL, NONE, id="cleared-locally"),
        pytest.param({"l": [1]}, {"l": [1]}, {"l": [1, 2]}, {"l": [1, 2]}, id="list-unchanged-upstream"),
        pytest.param({"l": [1]}, {"l": [1, 3]}, {"l": [1, 2]}, {"l": [1, 3]}, id="plain-list-is-upstreams"),
        pytest.param(NULL, NONE, A1, NONE, id="null-removed-upstream"),
        pytest.param(NONE, NONE, NULL, NULL, id="local-null-stays"),
        pytest.param(A1, A1, NULL, NULL, id="local-null-stays-while-upstream-does-not-change"),
        pytest.param(NONE, NULL, A1, NONE, id="cleared-what-only-local-has"),
        pytest.param(NONE, A1, NULL, NONE, id="added-upstream-cleared-locally"),
        pytest.param({"a": "1"}, {"a": 1}, A3, A3, id="scalars-are-compared-as-text"),
        pytest.param({"a": "1"}, {"a": 1}, {"a": "1"}, {"a": 1}, id="but-a-new-type-is-upstreams-where-nobody-edited"),
        pytest.param({"a": "1"}, {"a": 1}, NONE, NONE, id="a-new-type-brings-nothing-back"),
        pytest.param({"a": "true"}, {"a": True}, {"a": "x"}, {"a": "x"}, id="so-are-booleans"),
        pytest.param({"l": ["1"]}, {"l": [1]}, {"l": ["1", 2]}, {"l": [1]}, id="in-plain-lists-types-count"),
        pytest.param({"l": [1]}, NONE, {"l": [1, 2]}, NONE, id="list-removed-upstream"),
        pytest.param({"l": [1]}, {"l": [2]}, NONE, {"l": [2]}, id="list-changed-upstream-deleted-locally"),
        pytest.param(A1, {"a": {"b": 1}}, A3, {"a": {"b": 1}}, id="a-changed-kind-is-upstreams"),
        pytest.param({"a": {"b": 1}}, {"a": {"b": 2}}, A3, {"a": {"b": 2}}, id="kind-changed-locally-value-upstream"),
        pytest.param({"a": [1]}, {"a": {"b": 2}}, {"a": [1]}, {"a": {"b": 2}}, id="list-became-an-object"),
    ],
)
def test_field_of_three_states(origin: Any, updated: Any, local: Any, expected: Any) -> None:
    result = merged({"k": 0, **origin}, {"k": 0, **updated}, {"k": 0, **local})

    assert result == {"k": 0, **expected}
    assert repr(result) == repr({"k": 0, **expected})


@pytest.mark.parametrize(
    ("origin", "updated", "local", "expected"),
    [
        pytest.param({"x": A1}, {}, {"x": A1}, {}, id="object-removed-upstream-leaves-nothing"),
        pytest.param({"x": A1}, {}, {"x": {"a": 1, "b": 2}}, {"x": {"b": 2}}, id="but-for-local-fields"),
        pytest.param({"x": A1}, {"x": A1}, {}, {}, id="local-deletion-of-an-object-holds"),
        pytest.param({"x": A1}, {"x": A1, "y": 1}, {}, {"y": 1}, id="also-while-upstream-changes-something-else"),
        pytest.param({"x": {"a": 1, "b": 1}}, {"x": A1}, {}, {}, id="also-when-upstream-removes-a-field-of-it"),
        pytest.param(
            {"x": {"a": 1, "b": 1}}, {"x": {"a": 1, "b": 2}}, {}, {"x": {"b": 2}}, id="only-the-change-is-back"
        ),
        pytest.param({}, {"x": {}}, {}, {"x": {}}, id="empty-object-added-upstream"),
        pytest.param({"x": A1}, {"x": {}}, {"x": A1}, {"x": {}}, id="emptied-upstream"),
        pytest.param({"x": A1}, {"x": NULL}, {"x": A1}, {"x": {}}, id="emptied-upstream-by-null"),
        pytest.param(
            {"x": {"a": 1, "b": 1}}, {"x": A1}, {"x": {"b": 1}}, {"x": {}}, id="emptied-by-both-may-mean-something"
        ),
        pytest.param({"x": {"y": A1}}, {}, {"x": {"y": A1}}, {}, id="nested-objects-go-with-their-parents"),
        pytest.param({"x": None}, {"x": A1}, {"x": None}, {"x": A1}, id="null-became-an-object"),
        pytest.param({"x": None}, {"x": A1}, {"x": {"b": 1}}, {"x": {"b": 1, "a": 1}}, id="null-counts-as-nothing"),
    ],
)
def test_objects_that_become_empty(origin: Any, updated: Any, local: Any, expected: Any) -> None:
    assert merged(origin, updated, local) == expected


def test_new_fields_follow_the_local_ones_in_alphabetical_order() -> None:
    updated = {"k": 0, "z": 1, "b": {"y": 1, "x": 2}, "a": 1}

    result = merged({"k": 0}, updated, {"m": 1, "k": 0, "d": 2})

    assert list(result) == ["m", "k", "d", "a", "b", "z"]
    assert list(result["b"]) == ["x", "y"]


def test_a_plain_list_is_taken_with_its_own_order_of_keys() -> None:
    result = merged({}, {"l": [{"z": 1, "a": None}]}, {})

    assert list(result["l"][0].items()) == [("z", 1), ("a", None)]


@pytest.mark.parametrize(
    ("origin", "updated", "local", "expected"),
    [
        pytest.param(["a"], ["a", "b"], ["a", "c"], ["a", "c", "b"], id="additions-of-both-local-first"),
        pytest.param(["a", "b"], ["b"], ["a", "b", "c"], ["b", "c"], id="removed-upstream"),
        pytest.param(["a", "b"], ["a", "b", "c"], ["b"], ["b", "c"], id="removed-locally"),
        pytest.param(["a", "b"], ["b", "a", "c"], ["a", "b"], ["a", "b", "c"], id="local-order-stays"),
    ],
)
def test_elements_are_matched_by_name(
    origin: list[str], updated: list[str], local: list[str], expected: list[str]
) -> None:
    states = ([{"name": name, "image": "i"} for name in names] for names in (origin, updated, local))

    result = merged_pod_spec(*({"containers": state} for state in states))

    assert [container["name"] for container in result["containers"]] == expected


def test_an_element_in_all_three_is_merged_field_by_field() -> None:
    origin = containers({"name": "web", "image": "web:1"})
    updated = containers({"name": "web", "image": "web:2"})
    local = containers({"name": "web", "image": "web:1", "tty": True})

    assert merged_pod_spec(origin, updated, local) == containers({"name": "web", "image": "web:2", "tty": True})


def test_an_element_removed_upstream_goes_with_its_local_edits() -> None:
    other = {"name": "b"}
    origin = containers({"name": "a", "image": "a:1"}, other)
    local = containers({"name": "a", "image": "a:1", "tty": True}, other)

    assert merged_pod_spec(origin, containers(other), local) == containers(other)


def test_an_element_deleted_locally_comes_back_whole_when_upstream_changed_it() -> None:
    """Upstream's tools bring back its key and the changed fields only, which is no container."""
    origin = containers({"name": "a", "image": "a:1", "tty": True}, {"name": "b"})
    updated = containers({"name": "a", "image": "a:2", "tty": True}, {"name": "b"})
    local = containers({"name": "b"})

    result = merged_pod_spec(origin, updated, local)

    assert result == containers({"name": "b"}, {"name": "a", "image": "a:2", "tty": True})
    found = conflicts(*(pod_spec(**state) for state in (origin, updated, local)))
    assert [(one.path, one.local, one.kept) for one in found] == [
        ("spec.template.spec.containers[name=a]", None, Kept.UPDATED)
    ]


def test_an_element_deleted_locally_stays_deleted_while_upstream_does_not_change_it() -> None:
    both = containers({"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1"})
    updated = containers({"name": "a", "image": "a:1"}, {"name": "b", "image": "b:2"})

    result = merged_pod_spec(both, updated, containers({"name": "b", "image": "b:1"}))

    assert result == containers({"name": "b", "image": "b:2"})


def test_a_list_removed_upstream_goes_with_local_additions_and_is_reported() -> None:
    origin, local = containers({"name": "a"}), containers({"name": "a"}, {"name": "b"})

    found = conflicts(*(pod_spec(**state) for state in (origin, {}, local)))

    assert merged(*(pod_spec(**state) for state in (origin, {}, local))) == pod_spec()
    assert [(one.path, one.updated) for one in found] == [("spec.template.spec.containers", None)]


@pytest.mark.parametrize(
    ("origin", "updated", "local", "expected"),
    [
        pytest.param(["a"], [], ["a"], {"containers": []}, id="emptied-upstream"),
        pytest.param(["a", "b"], ["a"], ["b"], {}, id="emptied-by-both"),
        pytest.param(["a", "b"], ["a"], [], {"containers": []}, id="empty-locally"),
    ],
)
def test_lists_that_become_empty(origin: list[str], updated: list[str], local: list[str], expected: Any) -> None:
    states = ({"containers": [{"name": name} for name in names]} for names in (origin, updated, local))

    result = merged_pod_spec(*({"hostname": "h", **state} for state in states))

    assert result == {"hostname": "h", **expected}


def test_a_list_deleted_locally_stays_deleted_when_upstream_only_takes_from_it() -> None:
    origin, updated = containers({"name": "a"}, {"name": "b"}), containers({"name": "a"})

    assert merged_pod_spec(origin, updated, {"hostname": "h"}) == {"hostname": "h"}


def test_key_fields_keep_their_type() -> None:
    """Upstream's tools write ``containerPort: "80"`` when they rebuild an element."""
    origin = containers({"name": "a", "ports": []})
    updated = containers({"name": "a", "ports": [{"containerPort": 80, "protocol": "TCP"}]})

    result = merged_pod_spec(origin, updated, origin)

    assert result["containers"][0]["ports"] == [{"containerPort": 80, "protocol": "TCP"}]


def ports(*found: Any) -> dict[str, Any]:
    keys = ("containerPort", "protocol", "name")
    return containers({"name": "a", "ports": [dict(zip(keys, port, strict=False)) for port in found]})


@pytest.mark.parametrize(
    ("origin", "updated", "local", "expected"),
    [
        pytest.param(
            ports((80,)), ports((80,), (90,)), ports((80,), (70,)), [(80,), (70,), (90,)], id="no-protocol-anywhere"
        ),
        pytest.param(
            ports((80, "TCP")),
            ports((80, "TCP"), (80, "UDP")),
            ports((80, "TCP")),
            [(80, "TCP"), (80, "UDP")],
            id="two-keys",
        ),
        pytest.param(
            ports((80,)), ports((80,), (90,)), ports((80, "TCP")), [(80, "TCP"), (90,)], id="missing-equals-any"
        ),
        pytest.param(
            ports((80, "TCP")),
            ports((80, "TCP", "http")),
            ports((80,)),
            [(80, "http")],
            id="missing-locally",
        ),
        pytest.param(
            ports((80,), (80, "UDP")),
            ports((80,), (80, "UDP"), (90,)),
            ports((80,), (80, "UDP")),
            [(80,), (80, "UDP"), (90,)],
            id="but-not-of-a-sibling",
        ),
        pytest.param(
            ports(("80",)), ports(("80",), (90,)), ports((80,)), [(80,), (90,)], id="keys-are-compared-as-text"
        ),
    ],
)
def test_lists_with_several_keys(origin: Any, updated: Any, local: Any, expected: list[tuple[Any, ...]]) -> None:
    result = merged_pod_spec(origin, updated, local)

    assert [tuple(port.values()) for port in result["containers"][0]["ports"]] == expected


def test_elements_of_one_key_are_matched_in_their_order() -> None:
    twins = [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]
    origin = containers({"name": "a", "env": twins})
    updated = containers({"name": "a", "env": [twins[0], {"name": "A", "value": "3"}]})

    assert merged_pod_spec(origin, updated, origin)["containers"][0]["env"] == updated["containers"][0]["env"]


def test_elements_without_a_key_are_matched_by_value() -> None:
    origin, updated = containers({"image": "x"}, {"name": "a"}), containers({"name": "a"}, {"image": "y"})

    result = merged_pod_spec(origin, updated, containers({"image": "x"}, {"name": "a"}, {"image": "z"}))

    assert result == containers({"name": "a"}, {"image": "z"}, {"image": "y"})


def test_sets_of_scalars_keep_additions_and_deletions_of_both_sides() -> None:
    def namespace(*finalizers: str) -> dict[str, Any]:
        return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"finalizers": list(finalizers)}}

    result = merged(namespace("a", "b", "c"), namespace("b", "c", "u"), namespace("a", "c", "d"))

    assert result == namespace("c", "d", "u")


def test_a_union_keeps_only_what_upstreams_new_state_has() -> None:
    """``retainKeys``: one volume cannot have two sources."""
    origin = {"volumes": [{"name": "v", "configMap": {"name": "a"}}]}
    updated = {"volumes": [{"name": "v", "configMap": {"name": "b"}}]}
    local = {"volumes": [{"name": "v", "emptyDir": {}}]}

    result = merged_pod_spec(origin, updated, local)

    assert result == {"volumes": [{"name": "v", "configMap": {"name": "b"}}]}
    found = conflicts(*(pod_spec(**state) for state in (origin, updated, local)))
    assert "spec.template.spec.volumes[name=v].emptyDir" in [one.path for one in found]


def test_a_budgets_selector_is_replaced_as_a_whole() -> None:
    def budget(**labels: str) -> dict[str, Any]:
        return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "spec": {"selector": {"matchLabels": labels}}}

    assert merged(budget(a="1"), budget(a="2"), budget(a="1", b="1")) == budget(a="2")


def test_inferred_lists_need_a_name_in_every_element() -> None:
    named = [{"name": "a", "x": 1}], [{"name": "a", "x": 2}], [{"name": "a", "x": 1, "y": 1}, {"name": "b"}]
    unnamed = (*named[:2], [*named[2], {"x": 1}])

    assert merged(*({"l": state} for state in named), infer=True) == {
        "l": [{"name": "a", "x": 2, "y": 1}, {"name": "b"}]
    }
    assert merged(*({"l": state} for state in unnamed), infer=True) == {"l": [{"name": "a", "x": 2}]}


@pytest.mark.parametrize(
    ("origin", "updated", "local", "expected"),
    [
        pytest.param(A1, A2, A3, ("1", "2", "3", Kept.UPDATED), id="both-changed"),
        pytest.param(A1, NONE, A3, ("1", None, "3", Kept.UPDATED), id="removed-upstream"),
        pytest.param(A1, A2, NONE, ("1", "2", None, Kept.UPDATED), id="removed-locally"),
        pytest.param(NONE, A1, A2, (None, "1", "2", Kept.UPDATED), id="added-by-both"),
        pytest.param(A1, NULL, A3, ("1", "null", "3", Kept.UPDATED), id="cleared-upstream"),
        pytest.param(A1, A2, NULL, ("1", "2", "null", Kept.LOCAL), id="cleared-locally"),
    ],
)
def test_what_both_sides_changed_is_reported(origin: Any, updated: Any, local: Any, expected: tuple[Any, ...]) -> None:
    found = conflicts({"s": origin}, {"s": updated}, {"s": local})

    assert [(one.path, one.origin, one.updated, one.local, one.kept) for one in found] == [("s.a", *expected)]


@pytest.mark.parametrize(
    ("origin", "updated", "local"),
    [
        pytest.param(A1, A2, A2, id="the-same-change"),
        pytest.param(A1, NONE, NONE, id="the-same-removal"),
        pytest.param(A1, A1, A3, id="only-local"),
        pytest.param(A1, A2, A1, id="only-upstream"),
        pytest.param(A1, NULL, NULL, id="both-cleared"),
        pytest.param(A1, NONE, NULL, id="removed-and-cleared"),
        pytest.param(A1, NULL, A1, id="cleared-untouched"),
    ],
)
def test_what_one_side_changed_is_no_conflict(origin: Any, updated: Any, local: Any) -> None:
    assert conflicts(origin, updated, local) == []


def test_values_in_conflicts_are_cut_and_their_number_is_bounded() -> None:
    log = ConflictLog()
    names = [f"f{number}" for number in range(1200)]
    states = ({name: text * 100_000 if name == "f0" else text for name in names} for text in "abc")

    merge(*states, lists=ListKeys(), on_conflict=log)

    assert len(log.conflicts) == 1000
    assert log.omitted == 200
    assert max(len(str(conflict)) for conflict in log.conflicts) < 1000


def test_an_absent_state_is_no_state() -> None:
    assert merged(ABSENT, {"a": 1}, ABSENT) == {"a": 1}
    assert merged({"a": 1}, ABSENT, {"a": 1}) is ABSENT
    assert merged(ABSENT, ABSENT, {"a": None}) == {"a": None}


def test_deep_nesting_costs_no_more_than_the_reader_allows() -> None:
    def nested(leaf: int) -> Any:
        value: Any = {"leaf": leaf, "wide": list(range(20_000))}
        for depth in range(250):
            value = {"a": value} if depth % 2 else {"a": value, "b": depth}
        return value

    assert merged(nested(1), nested(2), nested(1)) == nested(2)
