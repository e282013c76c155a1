"""From PackageVariantSet v1alpha1 to v1alpha2 (1.7)."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from set_tables import cases, repositories, upstream

from krm.api.variants_v1alpha1 import PackageVariantSetV1Alpha1
from krm.variants.sets.conversion import convert, is_old
from krm.variants.sets.rendering import render
from krm.variants.sets.targets import unroll

Json = dict[str, Any]
SOURCE = {"package": {"repo": "r", "name": "p"}, "revision": "v1"}


def old_set(spec: Any, **metadata: Any) -> Json:
    return {
        "apiVersion": "config.porch.kpt.dev/v1alpha1",
        "kind": "PackageVariantSet",
        "metadata": {"namespace": "default", "name": "s", **metadata},
        "spec": spec,
    }


@pytest.mark.parametrize("case", cases("conversion", "upstreams"))
def test_sources_are_converted(case: Json) -> None:
    body = old_set({"upstream": case["old"], "targets": [{"package": {"repo": "a", "name": "b"}}]})
    PackageVariantSetV1Alpha1.model_validate(body)

    found = convert(body)

    assert found.body["spec"]["upstream"] == case["new"]
    assert list(found.problems) == case.get("problems", [])


@pytest.mark.parametrize("case", cases("conversion", "targets"))
def test_targets_are_converted(case: Json) -> None:
    body = old_set({"upstream": SOURCE, "targets": [case["old"]], **case.get("shared", {})})
    PackageVariantSetV1Alpha1.model_validate(body)

    found = convert(body)

    assert found.body["spec"]["targets"] == case["targets"]
    assert list(found.problems) == case.get("problems", [])


def test_metadata_and_kind_of_a_converted_set() -> None:
    body = old_set(
        {"upstream": SOURCE, "targets": []}, labels={"a": "b"}, annotations={"c": "d"}, uid="u", resourceVersion="1"
    )

    found = convert({**body, "status": {"conditions": []}})

    assert found.body["metadata"] == {
        "namespace": "default",
        "name": "s",
        "labels": {"a": "b"},
        "annotations": {"c": "d"},
    }
    assert (found.body["apiVersion"], found.body["kind"]) == ("config.porch.kpt.dev/v1alpha2", "PackageVariantSet")
    assert "status" not in found.body


def test_only_old_sets_are_old() -> None:
    assert is_old(old_set({}))
    assert not is_old(convert(old_set({})).body)
    assert not is_old({"kind": "PackageVariantSet"})
    assert not is_old([])


def test_a_converted_name_is_the_name_that_was_meant() -> None:
    name = {"namePrefix": {"value": "x-"}, "nameSuffix": {"fromField": "metadata.labels[env]"}}
    body = convert(old_set({"upstream": SOURCE, "targets": [{"repositories": {}, "packageName": name}]})).body
    known = repositories({"a": {"env": "prod"}})

    (one,) = render(body, upstream(), unroll(body["spec"], "default", list(known.values()), {}).contexts, known)

    assert (one.repo, one.package) == ("a", "x-pprod")


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda one: st.lists(one, max_size=3) | st.dictionaries(st.text(max_size=5), one, max_size=3),
    max_leaves=6,
)
source = anything | st.fixed_dictionaries({}, optional={"value": anything, "fromField": anything})
target = anything | st.fixed_dictionaries(
    {},
    optional={
        "package": anything | st.fixed_dictionaries({}, optional={"repo": anything, "name": anything}),
        "repositories": anything,
        "objects": anything
        | st.fixed_dictionaries({"selectors": st.lists(anything, max_size=2)}, optional={"repoName": source}),
        "packageName": anything
        | st.fixed_dictionaries({}, optional=dict.fromkeys(("baseName", "namePrefix", "nameSuffix"), source)),
    },
)


@pytest.mark.hypothesis
@settings(deadline=None)
@given(anything | st.fixed_dictionaries({}, optional={"upstream": anything, "targets": st.lists(target, max_size=2)}))
def test_any_json_is_converted_or_refused(spec: Any) -> None:
    found = convert(old_set(spec))

    assert all(isinstance(one, str) for one in found.problems)
    assert convert(old_set(spec)) == found
