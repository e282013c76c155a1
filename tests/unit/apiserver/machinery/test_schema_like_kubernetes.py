"""Custom resources are judged word for word as kube-apiserver judges them: against its recorded answers.

``tests/data/kube_schema`` holds what the validators of apiextensions-apiserver 0.34.2 answered, and how to record it again.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from apiserver.machinery.schema import CompiledSchema
from apiserver.machinery.schema_formats import format_check
from apiserver.machinery.structural import structural_causes

Json = dict[str, Any]

RECORDED = Path(__file__).parents[3] / "data" / "kube_schema"


def recorded(name: str) -> list[Json]:
    found: list[Json] = json.loads((RECORDED / f"{name}.json").read_text(encoding="utf-8"))
    return found


def judged(case: Json) -> Json:
    """Take an object through the stages that a write takes it through."""
    schema = CompiledSchema(case["schema"], custom=True)
    obj = case["object"]
    unknown = schema.prune(obj)
    schema.default(obj)
    assert schema.type_errors(obj) == []
    causes = schema.validate(obj, case.get("old"))
    return {
        "unknown": sorted(unknown),
        "result": obj,
        "causes": sorted([cause.reason, cause.field, cause.message] for cause in causes),
    }


@pytest.mark.parametrize("name", ["custom_resources", "generated_resources", "validation_rules"])
def test_objects_are_pruned_defaulted_and_judged_as_recorded(name: str) -> None:
    cases = recorded(name)

    differing = [
        case
        for case in cases
        if judged(json.loads(json.dumps(case)))
        != {"unknown": case.get("unknown", []), "result": case["result"], "causes": sorted(case.get("causes", []))}
    ]

    assert len(cases) >= 150
    assert differing == []


def test_formats_let_pass_what_kubernetes_lets_pass() -> None:
    wrong = [
        (case["format"], text)
        for case in recorded("formats")
        for text, expected in case["texts"].items()
        if (check := format_check(case["format"])) is not None and check(text) is not expected
    ]

    assert wrong == []


def test_formats_that_kubernetes_does_not_know_are_not_checked() -> None:
    assert format_check("no-such-format") is None
    assert format_check("int32") is None


def test_schemas_of_definitions_are_refused_with_the_recorded_causes() -> None:
    cases = recorded("definitions")

    answers = {
        case["name"]: sorted(
            [cause.reason, cause.field, cause.message]
            for cause in structural_causes(case["schema"], "spec.validation.openAPIV3Schema")
        )
        for case in json.loads(json.dumps(cases))
    }

    assert len(cases) >= 150
    assert answers == {case["name"]: sorted(case.get("causes", [])) for case in cases}
