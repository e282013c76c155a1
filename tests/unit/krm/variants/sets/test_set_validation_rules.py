"""What is wrong with a PackageVariantSet: every sentence, and no error whatever the JSON (5.9; C-01, C-05, C-37, C-39)."""

from contextlib import suppress
from typing import Any

import pytest
from cost import metered
from hypothesis import given, settings
from hypothesis import strategies as st
from set_tables import cases, package_variant_set

from krm.variants.sets.targets import UnrollError, selected_kinds, target_filter, unroll
from krm.variants.sets.template import Template
from krm.variants.sets.validation import (
    MOST_EXPRESSION_TEXT,
    MOST_EXPRESSIONS,
    MOST_PROBLEMS,
    problems,
)
from krm.variants.shapes import MOST_SHOWN

Json = dict[str, Any]
COMPLETE: Json = {
    "upstream": {"repo": "catalog", "package": "foo", "revision": 1},
    "targets": [{"repositories": [{"name": "cluster-01"}]}],
}


@pytest.mark.parametrize("case", cases("validation"))
def test_problems_of_sets(case: Json) -> None:
    changes = case.get("with", {})
    if "template" in case:
        changes = {"targets": [{**COMPLETE["targets"][0], "template": case["template"]}]}
    spec = case.get("spec", {**COMPLETE, **changes})

    assert problems(package_variant_set(spec)) == case["says"]


def test_a_set_without_a_spec_lacks_everything() -> None:
    assert len(problems({"metadata": {"name": "x"}})) == 2
    assert problems({"metadata": {"name": "x"}, "spec": []}) == ["spec must be an object"]


scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
anything = st.recursive(
    scalars, lambda one: st.lists(one, max_size=3) | st.dictionaries(st.text(max_size=5), one, max_size=3), max_leaves=8
)
expressions = st.sampled_from(
    ["target.name", "repository.labels['a']", "'a'", "1", "", "nonsense", "(", "upstream.name"]
)
entry = anything | st.fixed_dictionaries(
    {},
    optional={
        "key": anything | st.just("a"),
        "value": anything,
        "keyExpr": anything | expressions,
        "valueExpr": anything | expressions,
        "name": anything,
        "nameExpr": anything | expressions,
        "image": anything | st.just("i"),
    },
)


def some(*names: str, of: Any = anything) -> Any:
    return anything | st.fixed_dictionaries({}, optional=dict.fromkeys(names, of))


entries = entry | st.lists(entry, max_size=2)
selector = some("matchLabels", "matchExpressions", "labelSelector", "packageNames", "apiVersion", "kind", "name")
template = anything | st.fixed_dictionaries(
    {},
    optional={
        "downstream": some("repo", "repoExpr", "package", "packageExpr", of=anything | expressions),
        "adoptionPolicy": anything,
        **dict.fromkeys(("labelExprs", "annotationExprs", "injectors", "injectorExprs"), entries),
        "labels": anything,
        "packageContext": some("data", "dataExprs", "removeKeys", "removeKeyExprs", of=entries),
        "pipeline": some("mutators", "validators", of=entries),
        "approval": some("propose", "publish", "delay"),
    },
)
target = anything | st.fixed_dictionaries(
    {},
    optional={
        "repositories": entries,
        "repositorySelector": selector,
        "objectSelector": selector,
        "packageNames": anything,
        "template": template,
    },
)
rollout = some("strategy", "maxInFlight", "failureThreshold", "waves", "rollback") | st.fixed_dictionaries(
    {"strategy": st.just("Waves"), "waves": st.lists(some("name", "match", "gate", "maxInFlight"), max_size=2)}
)
specs = anything | st.fixed_dictionaries(
    {},
    optional={
        "upstream": some("repo", "package", "revision", "workspaceName", "tag"),
        "targets": anything | st.lists(target, max_size=2),
        "guards": some("maxDeletions", "onEmptySelection"),
        "rollout": rollout,
        "errorPolicy": anything,
        "suspend": anything,
    },
)


@pytest.mark.hypothesis
@settings(deadline=None)
@given(specs)
def test_any_json_of_a_set_gives_sentences(spec: Any) -> None:
    found = problems(package_variant_set(spec))

    assert all(found)
    assert len(found) <= MOST_PROBLEMS + 1
    assert problems(package_variant_set(spec)) == found


@pytest.mark.hypothesis
@settings(deadline=None)
@given(target)
def test_what_is_valid_can_be_selected_and_made_ready(one: Any) -> None:
    spec = {**COMPLETE, "targets": [one]}
    if problems(package_variant_set(spec)):
        return
    with suppress(UnrollError):  # operators and their values
        unroll(spec, "default", [], dict.fromkeys(selected_kinds(spec), ()))
    target_filter(one)
    Template(one.get("template") or {})


def test_long_values_of_sets_are_not_repeated_in_full() -> None:
    written = {"labelExprs": [{"key": "a", "value": ["x" * 100_000]}]}
    (problem,) = problems(
        package_variant_set({**COMPLETE, "targets": [{**COMPLETE["targets"][0], "template": written}]})
    )

    assert len(problem) < MOST_SHOWN + 200


def test_values_of_sets_nested_without_end_are_survived() -> None:
    nested: Any = []
    for _ in range(100_000):
        nested = [nested]
    written = {"labelExprs": [{"key": "a", "value": nested}], "injectors": nested}

    found = problems(package_variant_set({**COMPLETE, "targets": [{**COMPLETE["targets"][0], "template": written}]}))

    assert len(found) == 2


def test_expressions_without_end_end() -> None:
    many = [{"key": f"k{number}", "valueExpr": f"'{number}'"} for number in range(MOST_EXPRESSIONS + 5)]
    long = [{"key": f"k{number}", "valueExpr": f"'{number:04090}'"} for number in range(MOST_EXPRESSION_TEXT // 4000)]

    for written in (many, long):
        template = {"labelExprs": written}
        found = problems(
            package_variant_set({**COMPLETE, "targets": [{**COMPLETE["targets"][0], "template": template}]})
        )

        assert found == ["a set may have 1000 expressions of 100000 characters in all; the others were not checked"]


def test_an_expression_has_4096_characters_at_most() -> None:
    def said(length: int) -> list[str]:
        template = {"downstream": {"packageExpr": f"'{'x' * (length - 2)}'"}}
        return problems(
            package_variant_set({**COMPLETE, "targets": [{**COMPLETE["targets"][0], "template": template}]})
        )

    assert said(4096) == []
    assert said(4097) == [
        "spec.targets[0].template.downstream.packageExpr: line 1 column 1: expression is limited to 4096 characters"
    ]


@pytest.mark.parametrize(
    "hostile", ["(" * 4000, "-" * 4000, "[" * 2000 + "]" * 2000, "a." * 2000 + "a", "1+" * 2000 + "1"]
)
def test_hostile_expressions_are_refused_or_taken_quickly(hostile: str) -> None:
    template = {"downstream": {"packageExpr": hostile}}
    with metered() as cost:
        found = problems(
            package_variant_set({**COMPLETE, "targets": [{**COMPLETE["targets"][0], "template": template}]})
        )

    assert len(found) == 1
    assert cost.seconds < 2
