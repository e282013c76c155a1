"""What the status tells of a save that was rendered, and of one that was refused."""

import json
from typing import Any

import pytest

from controllers.packagevariant.render_outcome import (
    MOST_BYTES,
    MOST_ITEMS,
    NOT_RENDERED,
    is_about_files,
    render_status_of,
    render_status_of_error,
)
from krm.meta.errors import Cause, Invalid
from krm.variants.conditions import MOST_CHARACTERS, shortened

Json = dict[str, Any]


def test_a_render_that_passed() -> None:
    item = {"image": "gcr.io/kpt-fn/set-labels:v0.1", "exitCode": 0}
    saved = {"status": {"renderStatus": {"result": {"metadata": {}, "exitCode": 0, "items": [item]}, "error": ""}}}

    assert render_status_of(saved) == {"error": "", "result": {"exitCode": 0, "items": [item]}}


@pytest.mark.parametrize(
    "saved", [{}, {"status": {}}, {"status": {"renderStatus": {}}}], ids=["none", "empty", "blank"]
)
def test_an_answer_that_says_nothing_of_its_render(saved: Json) -> None:
    assert render_status_of(saved) == NOT_RENDERED


def test_a_refused_save_names_each_function() -> None:
    causes = [
        Cause("FieldValueInvalid", "error rendering package", "spec.resources"),
        Cause("FunctionFailed", "set-labels: no labels", "spec.resources[a.yaml]"),
    ]
    told = render_status_of_error(Invalid("error rendering package", causes=causes))

    assert told == {
        "error": "error rendering package",
        "result": {"exitCode": 1, "items": [{"exitCode": 1, "stderr": "set-labels: no labels"}]},
    }


def test_a_refusal_without_functions_has_no_items() -> None:
    told = render_status_of_error(Invalid("the Kptfile cannot be read"))

    assert told == {"error": "the Kptfile cannot be read", "result": {"exitCode": 1}}


def test_what_is_told_is_bounded() -> None:
    causes = [Cause("FunctionFailed", "x" * 100_000)] * 1000
    told = render_status_of_error(Invalid("y" * 100_000, causes=causes))

    assert len(told["error"]) <= MOST_CHARACTERS
    assert 1 < len(told["result"]["items"]) <= MOST_ITEMS
    assert len(json.dumps(told["result"])) <= MOST_BYTES + 100


def test_functions_that_say_much_are_told_of_in_short() -> None:
    much = {"image": "talker:v1", "exitCode": 1, "results": [{"message": "first " + "x" * 9000}] * 500}
    little = {"image": "quiet:v1", "exitCode": 0}
    saved = {"status": {"renderStatus": {"result": {"exitCode": 1, "items": [much, little]}, "error": ""}}}

    items = render_status_of(saved)["result"]["items"]

    assert (items[0]["image"], items[0]["exitCode"], items[1]) == ("talker:v1", 1, little)
    assert items[0]["stderr"].startswith("first ")
    assert len(json.dumps(items)) < MOST_CHARACTERS


def test_many_functions_fit_as_far_as_they_do() -> None:
    items = [{"image": f"f{number}", "exitCode": 0, "stderr": "x" * 3000} for number in range(MOST_ITEMS)]
    saved = {"status": {"renderStatus": {"result": {"exitCode": 0, "items": items}, "error": ""}}}

    kept = render_status_of(saved)["result"]["items"]

    assert kept == items[: len(kept)]
    assert 1 < len(kept) < MOST_ITEMS


@pytest.mark.parametrize(
    ("causes", "expected"),
    [
        ([Cause("FieldValueInvalid", "", "spec.resources")], True),
        ([Cause("FieldValueInvalid", "", "spec.resources[Kptfile]")], True),
        ([Cause("FunctionFailed", "", "")], True),
        ([], True),
        ([Cause("FieldValueInvalid", "", "spec.lifecycle")], False),
        ([Cause("FieldValueInvalid", "", "metadata.resourceVersion")], False),
    ],
    ids=["files", "one file", "a function", "no causes", "no draft any more", "no version"],
)
def test_a_refusal_is_for_the_files_or_for_the_state_of_the_revision(causes: list[Cause], expected: bool) -> None:
    assert is_about_files(Invalid("refused", causes=causes)) is expected


def test_the_middle_of_a_long_text_is_left_out() -> None:
    assert shortened("a" * 10, 10) == "a" * 10
    cut = shortened("start" + "x" * 100 + "end", 20)
    assert len(cut) <= 20
    assert cut.startswith("start")
    assert cut.endswith("end")
