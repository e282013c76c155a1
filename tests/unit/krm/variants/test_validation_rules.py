"""What is wrong with a PackageVariant: every sentence, and no error whatever the JSON (5.1; C-27, C-28)."""

from typing import Any

import pytest
from case_tables import cases
from hypothesis import given
from hypothesis import strategies as st

from krm.variants.shapes import MOST_SHOWN
from krm.variants.validation import MOST_PROBLEMS, problems
from krm.variants.variant import Variant

Json = dict[str, Any]
UPSTREAM = {"repo": "blueprints", "package": "foo", "revision": 1}
DOWNSTREAM = {"repo": "deployments", "package": "bar"}

scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5)
)
anything = st.recursive(
    scalars, lambda one: st.lists(one, max_size=3) | st.dictionaries(st.text(max_size=5), one, max_size=3), max_leaves=8
)
NAMES = {
    "": [
        "upstream",
        "downstream",
        "adoptionPolicy",
        "deletionPolicy",
        "labels",
        "annotations",
        "packageContext",
        "pipeline",
        "injectors",
        "suspend",
        "driftPolicy",
    ],
    "upstream": ["repo", "package", "revision", "workspaceName", "tag", "allowDowngrade"],
    "downstream": ["repo", "package"],
    "packageContext": ["data", "removeKeys"],
    "pipeline": ["mutators", "validators"],
}
parts = {
    name: anything | st.fixed_dictionaries({}, optional=dict.fromkeys(inner, anything))
    for name, inner in NAMES.items()
    if name
}
specs = st.fixed_dictionaries({}, optional={name: parts.get(name, anything) for name in NAMES[""]})


def body(spec: Any) -> Json:
    return {"metadata": {"namespace": "default", "name": "my-pv", "uid": "u", "generation": 1}, "spec": spec}


@pytest.mark.parametrize("case", cases("validation"))
def test_problems(case: Json) -> None:
    spec = case.get("spec", {"upstream": UPSTREAM, "downstream": DOWNSTREAM, **case.get("with", {})})

    assert problems(body(spec)) == case["says"]


def test_a_body_without_a_spec_lacks_everything() -> None:
    assert len(problems({"metadata": {"name": "x"}})) == 2


@pytest.mark.hypothesis
@given(specs | anything)
def test_any_json_gives_sentences(spec: Any) -> None:
    found = problems(body(spec))

    assert all(found)
    assert len(found) <= MOST_PROBLEMS + 1
    assert problems(body(spec)) == found


@pytest.mark.hypothesis
@given(specs | anything)
def test_any_json_can_be_read_so_that_its_variant_can_be_deleted(spec: Any) -> None:
    read = Variant.of(body(spec))

    assert (read.name, read.uid) == ("my-pv", "u")
    assert hash((read.upstream, read.injectors)) == hash((Variant.of(body(spec)).upstream, read.injectors))
    assert all(isinstance(text, str) for text in (read.upstream.repo, read.upstream.tag, read.downstream_package))


@pytest.mark.hypothesis
@given(specs)
def test_what_is_valid_is_read_as_it_was_written(spec: Json) -> None:
    written = {**spec, "upstream": UPSTREAM, "downstream": DOWNSTREAM}
    if problems(body(written)):
        return
    read = Variant.of(body(written))

    assert (read.upstream.repo, read.downstream_package) == ("blueprints", "bar")
    assert read.labels == (written.get("labels") or {})
    assert list(read.mutators) == ((written.get("pipeline") or {}).get("mutators") or [])


def test_long_values_are_not_repeated_in_full() -> None:
    data = {"name": "x" * 100_000}
    (problem,) = problems(body({"upstream": UPSTREAM, "downstream": DOWNSTREAM, "packageContext": {"data": data}}))

    assert len(problem) < MOST_SHOWN + 200


def test_problems_without_end_end() -> None:
    injectors: list[Json] = [{}] * 10_000

    found = problems(body({"upstream": UPSTREAM, "downstream": DOWNSTREAM, "injectors": injectors}))

    assert len(found) == MOST_PROBLEMS + 1
    assert found[-1] == "and more"


def test_values_nested_without_end_are_survived() -> None:
    nested: Any = []
    for _ in range(100_000):
        nested = [nested]

    assert len(problems(body({"upstream": UPSTREAM, "downstream": DOWNSTREAM, "injectors": [nested]}))) == 1
