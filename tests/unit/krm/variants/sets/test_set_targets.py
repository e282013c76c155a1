"""What targets select, and which variants a set has then (3.2, 5.11; C-05, C-25, C-26, C-34, C-43; decisions 16)."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from set_tables import cases, package_variant_set, repositories, selected, table, upstream

from krm.variants.sets.plan import plan
from krm.variants.sets.rendering import render
from krm.variants.sets.targets import (
    SelectedObject,
    Unrolled,
    UnrollError,
    selected_kinds,
    selects,
    target_filter,
    unroll,
)
from krm.variants.sets.validation import problems
from krm.variants.sets.vocabulary import REPOSITORY

Json = dict[str, Any]
TABLE = table("targets")


def the_set(case: Json) -> Json:
    spec = {"upstream": case.get("upstream", TABLE["upstream"]), "targets": case["targets"]}
    body = package_variant_set(spec, case.get("set", "example"))
    assert problems(body) == []
    return body


def known_repositories(case: Json) -> dict[str, SelectedObject]:
    return repositories(case["repositories"] if "repositories" in case else TABLE["repositories"])


def unrolled(case: Json) -> Unrolled:
    objects: dict[tuple[str, str], Any] = {}
    for kind, named in case.get("objects", {}).items():
        api_version, _, name = kind.partition(" ")
        there = named.items() if isinstance(named, dict) else ()
        listed = [selected(one, labels, (api_version, name)) for one, labels in there]
        objects[api_version, name] = listed if isinstance(named, dict) else named
    spec = the_set(case)["spec"]
    assert selected_kinds(spec) >= objects.keys()
    return unroll(spec, "default", list(known_repositories(case).values()), objects)


@pytest.mark.parametrize("case", cases("targets", "fan_out"))
def test_targets(case: Json) -> None:
    if "refused" in case:
        with pytest.raises(UnrollError) as refused:
            unrolled(case)
        assert [refused.value.reason, str(refused.value)] == case["refused"]
        return
    found = unrolled(case)

    assert list(found.empty) == case.get("empty", [])
    if "contexts" in case:
        named = [
            [one.target_index, one.repo_default, one.package_default, *([one.target.name] if one.target else [])]
            for one in found.contexts
        ]
        assert named == case["contexts"]
    if "variants" in case:
        body = the_set(case)
        rendered = render(body, upstream(), found.contexts, known_repositories(case))
        asked = plan(body, rendered, [])
        assert [one.message for one in asked.failures] == case.get("failures", [])
        source = body["spec"]["upstream"]
        assert {name: without_place(name, spec, body, case) for name, spec in asked.creates} == case["variants"]
        assert all(spec["upstream"] == source for _, spec in asked.creates)


def without_place(name: str, spec: Json, body: Json, case: Json) -> Json:
    """Leave out the upstream, and the downstream where the name tells it."""
    rest = {key: value for key, value in spec.items() if key not in ("upstream", "downstream")}
    place = spec["downstream"]
    if "downstream" in (case["variants"].get(name) or {}):
        return {**rest, "downstream": place}
    assert name == f"{body['metadata']['name']}-{place['repo']}-{place['package']}"
    return rest


def test_selected_objects_carry_their_metadata() -> None:
    meta = {
        "namespace": "default",
        "name": "a",
        "labels": {"b": "c"},
        "annotations": {"d": "e"},
        "deletionTimestamp": "x",
    }

    found = SelectedObject.of({"kind": "PartialObjectMetadata", "metadata": meta}, ("v1", "Pod"))

    assert found == SelectedObject("v1", "Pod", "default", "a", {"b": "c"}, {"d": "e"}, deleting=True)
    assert SelectedObject.of({"metadata": {"name": "a"}}, ("v1", "Node")).namespace == ""


def test_other_namespaces_are_not_selected_and_the_cluster_is() -> None:
    kind = ("x/v1", "Cluster")
    listed = [
        selected("here", kind=kind),
        selected("there", kind=kind, namespace="other"),
        selected("everywhere", kind=kind, namespace=""),
    ]
    spec = {"upstream": TABLE["upstream"], "targets": [{"objectSelector": {"apiVersion": "x/v1", "kind": "Cluster"}}]}

    assert [one.repo_default for one in unroll(spec, "default", [], {kind: listed}).contexts] == ["everywhere", "here"]


def test_repositories_that_are_being_deleted_get_nothing_new() -> None:
    spec = {"upstream": TABLE["upstream"], "targets": [{"repositorySelector": {}}]}
    listed = [selected("a"), selected("b", deletionTimestamp="2026-01-01T00:00:00Z")]

    assert [one.repo_default for one in unroll(spec, "default", listed, {}).contexts] == ["a"]


@pytest.mark.parametrize(
    "targets",
    [
        [{"repositorySelector": {}, "packageNames": [f"p{number}" for number in range(20_000)]}],
        [{"repositories": [{"name": "a", "packageNames": ["p"] * 60_000}]}],
        [{"repositories": [{"name": "a", "packageNames": ["p"] * 30_000}]}] * 2,
    ],
)
def test_a_set_cannot_ask_for_variants_without_end(targets: list[Json]) -> None:
    spec = {"upstream": TABLE["upstream"], "targets": targets}

    with pytest.raises(UnrollError, match="a set may have 50000 package variants") as refused:
        unroll(spec, "default", [selected("a"), selected("b"), selected("c")], {})

    assert refused.value.reason == "UnexpectedError"


def test_the_kinds_of_a_set_are_those_of_its_object_selectors() -> None:
    pods, repository = {"apiVersion": "v1", "kind": "Pod"}, dict(zip(("apiVersion", "kind"), REPOSITORY, strict=True))
    targets = [{"repositories": [{"name": "a"}]}, {"repositorySelector": {}}, {"objectSelector": pods}]

    assert selected_kinds({"targets": targets}) == {("v1", "Pod")}
    assert selected_kinds({"targets": [{"objectSelector": repository}]}) == set()
    assert selected_kinds({}) == set()


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ({"repositories": [{"name": "a"}, {"name": "c"}]}, {"a", "c"}),
        ({"repositorySelector": {}}, {"a", "b", "c"}),
        ({"repositorySelector": {"matchLabels": {"x": "1"}}}, {"a"}),
        ({"repositorySelector": {"matchExpressions": [{"key": "x", "operator": "Maybe"}]}}, {"a", "b", "c"}),
        ({"objectSelector": {"apiVersion": "v1", "kind": "Pod"}}, {"pod"}),
        ({"objectSelector": {"apiVersion": "v1", "kind": "Pod", "name": "other"}}, set()),
        ({"objectSelector": {"apiVersion": "v2", "kind": "Pod"}}, set()),
    ],
)
def test_events_concern_only_the_targets_that_select_their_object(target: Json, expected: set[str]) -> None:
    candidates = [selected("a", {"x": "1"}), selected("b"), selected("c"), selected("pod", kind=("v1", "Pod"))]

    assert {one.name for one in candidates if selects(target, one)} == expected


values = st.sampled_from(["1", "2"])
selectors = st.fixed_dictionaries(
    {},
    optional={
        "matchLabels": st.dictionaries(st.sampled_from("xy"), values, max_size=2),
        "matchExpressions": st.lists(
            st.fixed_dictionaries(
                {
                    "key": st.sampled_from("xy"),
                    "operator": st.sampled_from(["In", "NotIn"]),
                    "values": st.lists(values, min_size=1),
                }
            )
            | st.fixed_dictionaries(
                {"key": st.sampled_from("xy"), "operator": st.sampled_from(["Exists", "DoesNotExist"])}
            ),
            max_size=2,
        ),
    },
)


@pytest.mark.hypothesis
@settings(deadline=None)
@given(selectors, st.lists(st.dictionaries(st.sampled_from("xy"), values), max_size=5), st.randoms())
def test_what_wakes_a_set_is_what_it_selects_in_any_order(selector: Json, labels: list[Json], random: Any) -> None:
    spec = {"upstream": TABLE["upstream"], "targets": [{"repositorySelector": selector}]}
    listed = [selected(f"r{place}", each) for place, each in enumerate(labels)]
    before = unroll(spec, "default", listed, {})
    random.shuffle(listed)

    wakes = target_filter(spec["targets"][0])

    assert unroll(spec, "default", listed, {}) == before
    assert sorted(one.name for one in listed if wakes(one)) == [one.repo_default for one in before.contexts]
