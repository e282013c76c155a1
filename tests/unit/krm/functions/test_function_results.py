"""Results of functions, in the forms that functions have written over the years."""

from typing import Any

import pytest

from krm.functions.external.results import MAX_RESULTS, uplifted


def test_result_of_today_stays_as_it_is() -> None:
    result = {
        "message": "m",
        "severity": "error",
        "resourceRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "n", "namespace": "ns"},
        "field": {"path": "spec.replicas", "currentValue": "1", "proposedValue": "2"},
        "file": {"path": "a.yaml", "index": 1},
        "tags": {"a": "b"},
    }

    assert uplifted([result]) == [result]


def test_older_forms_become_those_of_today() -> None:
    older = {
        "name": "fn",
        "items": [
            {
                "message": "m",
                "resourceRef": {"kind": "X", "metadata": {"name": "n", "namespace": "ns"}},
                "field": {"path": "a.b", "currentValue": 1, "suggestedValue": {"c": True}},
                "file": {"path": "a.yaml", "index": 0},
            }
        ],
    }

    assert uplifted(older) == [
        {
            "message": "m",
            "resourceRef": {"kind": "X", "name": "n", "namespace": "ns"},
            "field": {"path": "a.b", "currentValue": "1", "proposedValue": "c: true"},
            "file": {"path": "a.yaml"},
        }
    ]


@pytest.mark.parametrize("results", [None, "text", 1, {}, {"items": "x"}, [1, "a", None]])
def test_what_is_no_result_is_left_out(results: Any) -> None:
    assert uplifted(results) == []


def test_fields_of_the_wrong_type_do_no_harm() -> None:
    assert uplifted([{"message": 1, "field": "x", "file": [], "resourceRef": 3, "tags": "t"}]) == [{"message": "1"}]


def test_flood_of_results_is_cut() -> None:
    found = uplifted([{"message": "m"}] * (MAX_RESULTS + 5))

    assert len(found) == MAX_RESULTS + 1
    assert found[-1] == {"message": "5 more results are left out", "severity": "warning"}
