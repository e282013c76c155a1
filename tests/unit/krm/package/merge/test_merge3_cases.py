"""kyaml's own tables of the field merge: data, order of keys and comments of every shown case."""

import json
from pathlib import Path
from typing import Any

import pytest

from krm.package.comments import read_comments
from krm.package.merge.associative_lists import ListKeys
from krm.package.merge.document_merge import merge_documents
from krm.package.yaml_reader import read_document

CASES = json.loads((Path(__file__).parents[4] / "data/kpt/merge3/cases.json").read_text())

DEVIATIONS: dict[str, str] = {}
"""Cases whose expected output we do not give, each with the reason: none."""


def ordered(value: Any) -> Any:
    """Show mappings as lists of pairs, so that their order counts."""
    if isinstance(value, dict):
        return [(key, ordered(item)) for key, item in value.items()]
    return [ordered(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in CASES if case["id"] not in DEVIATIONS])
def test_case_of_the_field_merge(case: dict[str, Any]) -> None:
    result = merge_documents(case["origin"], case["update"], case["local"], lists=ListKeys(infer=case["infer"]))

    assert result.text is not None
    assert ordered(read_document(result.text)) == ordered(read_document(case["expected"]))
    assert read_comments(result.text) == read_comments(case["expected"])


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in CASES])
def test_merging_a_case_again_changes_nothing(case: dict[str, Any]) -> None:
    lists = ListKeys(infer=case["infer"])
    once = merge_documents(case["origin"], case["update"], case["local"], lists=lists).text

    assert merge_documents(case["update"], case["update"], once, lists=lists).text == once


def test_all_shown_cases_are_here() -> None:
    assert len(CASES) == 48
