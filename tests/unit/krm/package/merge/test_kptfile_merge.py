"""Merging Kptfiles: kpt's own table, and what ``kpt.md`` 3.5 says beyond it."""

import json
from pathlib import Path
from typing import Any

import pytest

from krm.package.merge.kptfile_merge import merge_kptfiles
from krm.package.yaml_reader import read_document

_CASES = json.loads((Path(__file__).parents[4] / "data/kpt/kptfile-merge/cases.json").read_text())


@pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in _CASES])
def test_kpts_own_cases_give_the_expected_data(case: dict[str, Any]) -> None:
    updated = case.get("updated", case.get("update"))

    merged = merge_kptfiles(
        case["origin"].encode(),
        updated.encode(),
        case["local"].encode(),
        update_upstream=case["updateUpstream"],
    )

    assert read_document(merged.data) == read_document(case["expected"])
