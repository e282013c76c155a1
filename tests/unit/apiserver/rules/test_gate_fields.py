"""What clients may say of gates and conditions, and what becomes of it. Source: ``porch-api.md`` 4.3; ``variants.md`` R1, R2."""

from typing import Any

import pytest

from apiserver.rules.gate_bypass import BYPASS, check_reason, take_bypass
from apiserver.rules.gate_fields import check_gate_fields, merged_conditions, merged_gates, replaced_conditions
from apiserver.rules.pipeline_gate import MOST_ERROR, PIPELINE_GATE, failed, follow_rendered, passed, waiting
from apiserver.rules.revision_changes import ContentChange, asks_for_content, content_change
from krm.meta.errors import Invalid

Json = dict[str, Any]
RENDERED = {"type": "Rendered", "status": "True", "reason": "RenderSuccess"}


def condition(name: str, status: str = "True", **more: str) -> Json:
    return {"type": name, "status": status, **more}


def revision(gates: list[str] | None = None, conditions: list[Json] | None = None, **spec: Any) -> Json:
    made: Json = {"metadata": {"name": "r.p.w"}, "spec": {"packageMetadata": {}, **spec}, "status": {}}
    if gates is not None:
        made["spec"]["readinessGates"] = [{"conditionType": gate} for gate in gates]
    if conditions is not None:
        made["status"]["conditions"] = conditions
    return made


STORED = revision([PIPELINE_GATE, "a"], [passed(), RENDERED, condition("a", "False"), condition("b")])


@pytest.mark.parametrize(
    "wanted",
    [
        pytest.param(revision(), id="nothing-is-said"),
        pytest.param({}, id="not-even-a-spec"),
        pytest.param({**STORED}, id="what-was-read"),
        pytest.param(revision(["a"], [condition("a", "False"), condition("b")]), id="without-the-server's"),
        pytest.param(
            revision(
                ["a", PIPELINE_GATE],
                [waiting(), condition("a", "False"), condition("b"), condition("Rendered", "False")],
            ),
            id="the-server's-forged",
        ),
    ],
)
def test_what_changes_nothing_of_the_packages_own_changes_nothing(wanted: Json) -> None:
    change = content_change(STORED, wanted)

    assert change == ContentChange()
    assert not change.changes_kptfile
    assert not asks_for_content(STORED, wanted)


def test_gates_and_conditions_never_render_and_metadata_does() -> None:
    assert not content_change(STORED, revision(["b"], [])).renders
    assert content_change(STORED, revision(["b"], [])).changes_kptfile
    assert content_change(STORED, revision(packageMetadata={"labels": {"a": "b"}})).renders


def test_the_list_of_conditions_is_replaced_in_the_order_that_it_has() -> None:
    wanted = revision(conditions=[condition("c"), condition("b", "Unknown"), condition("a")])

    kept = replaced_conditions(STORED, wanted)

    assert kept == [RENDERED, condition("a"), condition("b", "Unknown"), condition("c")]
    assert replaced_conditions(STORED, revision(conditions=[])) == [RENDERED]
    assert asks_for_content(STORED, wanted)


def test_a_condition_goes_into_the_kptfile_with_the_fields_that_it_may_have_there() -> None:
    sent = condition("a", message="m", reason="", lastTransitionTime="2026-01-01T00:00:00Z")

    assert replaced_conditions(STORED, revision(conditions=[sent])) == [RENDERED, condition("a", message="m")]
    assert merged_conditions([], revision(conditions=[sent])) == [condition("a", message="m")]


def test_a_new_revision_has_its_sources_gates_and_conditions_and_its_own_win() -> None:
    """R1, G-G04."""
    wanted = revision(["b", PIPELINE_GATE, "c"], [condition("a", "False"), passed(), condition("Rendered", "False")])

    assert merged_gates(["a", "b"], wanted) == ["a", "b", "c"]
    assert merged_conditions([RENDERED, condition("a"), condition("d")], wanted) == [
        RENDERED,
        condition("a", "False"),
        condition("d"),
    ]
    assert merged_gates(["a"], revision()) is None
    assert merged_conditions([condition("a")], revision()) is None


@pytest.mark.parametrize(
    ("wanted", "fields"),
    [
        (revision(["", "a", "a"]), ["spec.readinessGates[0].conditionType", "spec.readinessGates[2].conditionType"]),
        (revision(["x" * 317]), ["spec.readinessGates[0].conditionType"]),
        (revision([f"g{n}" for n in range(101)]), ["spec.readinessGates"]),
        (revision(conditions=[condition("a", status) for status in ("true",)]), ["status.conditions[0].status"]),
        (revision(conditions=[{"type": "a"}]), ["status.conditions[0].status"]),
        (revision(conditions=[condition("")]), ["status.conditions[0].type"]),
        (revision(conditions=[condition("a"), condition("a")]), ["status.conditions[1].type"]),
        (revision(conditions=[condition("a", message="x" * 32769)]), ["status.conditions[0].message"]),
        (revision(conditions=[condition("a", reason="x" * 1025)]), ["status.conditions[0].reason"]),
        (revision(conditions=[condition(f"c{n}") for n in range(101)]), ["status.conditions"]),
        (revision([PIPELINE_GATE] * 2, [condition(PIPELINE_GATE, "nonsense")] * 2), []),
        (revision(["a"], [condition("a", status) for status in ("Unknown",)]), []),
    ],
)
def test_what_no_revision_may_have_is_named(wanted: Json, fields: list[str]) -> None:
    assert [cause.field for cause in check_gate_fields(wanted, {})] == fields
    if fields:
        with pytest.raises(Invalid):
            content_change(STORED, wanted)


def test_what_a_kptfile_says_may_be_sent_back_whatever_it_is() -> None:
    odd = [condition("a"), condition("a"), {"type": "b"}]
    stored = revision([PIPELINE_GATE, "a", "a"], [passed(), *odd])

    assert content_change(stored, stored) == ContentChange()
    assert check_gate_fields(revision(conditions=[{"type": "b"}, condition("c")]), stored) == []


def test_the_pipelines_condition_follows_the_last_render() -> None:
    otherwise = waiting()
    failure = condition("Rendered", "False", message="no such function\n")

    assert follow_rendered([condition("a", "False")], otherwise) is otherwise
    assert follow_rendered([RENDERED], otherwise) == passed()
    assert follow_rendered([failure], otherwise) == failed("no such function")
    assert follow_rendered([RENDERED, failure], otherwise) == failed("no such function")
    assert follow_rendered([condition("Rendered", "Unknown")], otherwise)["status"] == "False"
    assert len(failed("x" * 100_000)["message"]) == MOST_ERROR


def test_the_reason_of_an_override_is_taken_out_of_the_object() -> None:
    wanted: Json = {"metadata": {"annotations": {BYPASS: "because", "other": "x"}}}

    assert take_bypass(wanted) == "because"
    assert wanted == {"metadata": {"annotations": {"other": "x"}}}
    assert take_bypass(wanted) is None
    only: Json = {"metadata": {"annotations": {BYPASS: ""}}}
    assert take_bypass(only) == ""
    assert only == {"metadata": {}}
    assert take_bypass({}) is None


@pytest.mark.parametrize(("reason", "problems"), [("because", 0), ("", 1), ("\n ", 1), ("x" * 513, 1)])
def test_an_override_needs_a_reason_of_some_length(reason: str, problems: int) -> None:
    assert len(check_reason(reason)) == problems
