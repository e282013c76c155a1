"""Functions of a variant in a Kptfile: ``variants.md`` 5.2 (names) and 5.3."""

from typing import Any

import pytest
from mutation_cases import HEAD, NAMED, cases, golden_ids, numbered, table, variant

from krm.functions.builtins import BuiltinRunner
from krm.functions.pipeline import render
from krm.package.contents import File
from krm.package.yaml_reader import read_document
from krm.variants.mutation import MutationError, mutate
from krm.variants.pipeline import function_name, is_function_of

Json = dict[str, Any]

NAMES = table("function_names")
PIPELINES = table("pipeline")


def test_every_golden_case_has_a_row() -> None:
    assert golden_ids(NAMES) == numbered("N", 6)
    assert golden_ids(PIPELINES) == numbered("P", 13)


@pytest.mark.parametrize("case", cases(row for row in NAMES if "named" in row))
def test_functions_are_called_after_their_variant(case: Json) -> None:
    named = function_name(case["variant"], case["function"], case["place"])

    assert named == case["named"]
    assert is_function_of(case["variant"], named)


@pytest.mark.parametrize("case", cases(row for row in NAMES if "own" in row))
def test_a_variants_own_functions_are_told_by_their_names(case: Json) -> None:
    assert is_function_of(case["variant"], case["name"]) is case["own"]


@pytest.mark.parametrize("case", cases(PIPELINES))
def test_functions_are_put_before_those_of_the_package(case: Json) -> None:
    files = {"Kptfile": HEAD + case["before"], **case.get("files", {})}
    wanted = {**files, "Kptfile": HEAD + (case["after"] if "after" in case else case["before"])}
    pv = variant(pipeline=case["pipeline"])

    once = mutate(pv, NAMED, files, {})
    twice = mutate(pv, NAMED, once.resources, {})

    assert once.resources == wanted
    assert twice.resources == wanted


@pytest.mark.parametrize("case", cases(row for row in PIPELINES if "rendered" in row))
def test_functions_of_both_run_when_the_server_renders(case: Json) -> None:
    files = {"Kptfile": HEAD + case["before"], **case["files"]}
    mutated = mutate(variant(pipeline=case["pipeline"]), NAMED, files, {}).resources

    rendered = render({path: File(text.encode()) for path, text in mutated.items()}, BuiltinRunner())

    for path, values in case["rendered"].items():
        for place, value in values.items():
            found = read_document(rendered.contents[path].data)
            for key in place.split("."):
                found = found[key]
            assert found == value


@pytest.mark.parametrize(
    ("kptfile", "problem"),
    [
        ("pipeline: [a]\n", "Kptfile: pipeline is not a mapping"),
        ("pipeline: {mutators: {a: b}}\n", "Kptfile: pipeline.mutators is not a list"),
        ("pipeline: {validators: x}\n", "Kptfile: pipeline.validators is not a list"),
        ("info: x\n", "Kptfile: info is not a mapping"),
        ("info: {readinessGates: x}\n", "Kptfile: info.readinessGates is not a list"),
        ("status: {conditions: [x]}\n", "Kptfile: status.conditions holds what is not a mapping"),
        ("metadata:\n", 'Kptfile: yaml: line 5: mapping key "metadata" already defined at line 3'),
        ("---\na: b\n", "Kptfile: a Kptfile is one document that is a mapping"),
    ],
)
def test_a_kptfile_that_cannot_be_edited_is_told(kptfile: str, problem: str) -> None:
    with pytest.raises(MutationError) as caught:
        mutate(variant(pipeline={"mutators": [{"image": "a"}]}), NAMED, {"Kptfile": HEAD + kptfile}, {})

    assert str(caught.value) == problem


def test_a_package_needs_a_kptfile_and_files() -> None:
    for files, problem in (({}, '"Kptfile" not found'), (None, "nil resources found for")):
        with pytest.raises(MutationError) as caught:
            mutate(variant(), NAMED, files, {})
        where = "in PackageRevisionResources" if files is not None else "PackageRevisionResources"
        assert str(caught.value) == f"{problem} {where} 'default/prr'"
