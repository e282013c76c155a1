"""Limits of template expressions, what they give, what is evaluated once (3.4, 6.12, 7.2)."""

from typing import Any

import pytest
from cost import metered
from hypothesis import given, settings
from hypothesis import strategies as st

from krm.expressions.cel import CelEvaluationError, CelSyntaxError, Expression
from krm.meta.names import dns_label_problem
from krm.variants.sets import expressions
from krm.variants.sets.amounts import Amount, InvalidAmount
from krm.variants.sets.expressions import (
    BEFORE_REPOSITORY,
    MAX_RESULT,
    ExpressionError,
    compile_template_expression,
    dns_label,
    text_of,
)

Json = dict[str, Any]
EMPTY: Json = {"name": "n", "namespace": "d", "labels": {}, "annotations": {}}
VARIABLES: Json = {"repoDefault": "r", "packageDefault": "p", "upstream": EMPTY, "target": EMPTY, "repository": EMPTY}
LONG = "'" + "x" * 500 + "'"


def value(text: str, **variables: Any) -> str:
    return text_of(compile_template_expression(text))({**VARIABLES, **variables})


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("1", "1"),
        ("1u", "1"),
        ("1.5", "1.5"),
        ("true", "true"),
        ("null", "null"),
        ("['a']", '["a"]'),
        ("b'a'", "a"),
        ("{'a': 1}", '{"a": 1}'),
        ("duration('1h')", "3600s"),
        ("string", "string"),
        ("target.labels", "{}"),
        ("target.labels.?a", "optional.none()"),
        ("target.?name", 'optional.of("n")'),
        ("target", '{"annotations": {}, "labels": {}, "name": "n", "namespace": "d"}'),
        ("timestamp('2026-01-02T03:04:05Z')", "2026-01-02T03:04:05Z"),
    ],
)
def test_only_texts_are_texts(text: str, shown: str) -> None:
    with pytest.raises(ExpressionError) as refused:
        value(text)

    assert str(refused.value) == f"expression returned non-string value: {shown}"


def test_a_long_value_that_is_no_text_is_not_shown_in_full() -> None:
    with pytest.raises(ExpressionError) as refused:
        value(f"[{LONG}]")

    assert len(str(refused.value)) < 300


def test_texts_have_an_end() -> None:
    doubled = "target.labels.x"
    for _ in range(3):
        doubled = f"[{doubled}, {doubled}].join()"

    assert len(value(doubled, target={"labels": {"x": "y" * (MAX_RESULT // 8)}})) == MAX_RESULT
    with pytest.raises(ExpressionError, match="more than 65536 characters"):
        value(doubled, target={"labels": {"x": "y" * (MAX_RESULT // 8 + 1)}})
    with pytest.raises(ExpressionError, match="more than 65536 characters"):
        value("target.labels.x", target={"labels": {"x": "y" * (MAX_RESULT + 1)}})


@pytest.mark.parametrize(
    "text",
    [
        "[{0}].map(a, [{0}].map(b, 'x').join()).join()".format(", ".join(map(str, range(400)))),
        "target.labels.map(a, target.labels.map(b, a + b).join()).join()",
        "target.labels.all(a, target.labels.all(b, a.matches('(k|e|y)*'))) ? 'a' : 'b'",
    ],
)
def test_costly_expressions_are_stopped(text: str) -> None:
    labels = {f"key-{number}-{'x' * 40}": "v" for number in range(500)}
    with metered() as cost, pytest.raises(ExpressionError, match="expression costs too much: operation cancelled"):
        value(text, target={**EMPTY, "labels": labels})

    assert cost.seconds < 1.5


def test_time_is_limited_as_well_as_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expressions, "MAX_SECONDS", 0.0)

    with pytest.raises(ExpressionError, match="it takes more than 0 s"):
        value("target.labels.map(a, a).join()", target={**EMPTY, "labels": dict.fromkeys(map(str, range(1000)), "")})
    assert value("'quick'") == "quick"


def test_the_same_expression_is_compiled_once() -> None:
    one = compile_template_expression("target.name + '-once'")

    assert compile_template_expression("target.name + '-once'") is one
    assert compile_template_expression("target.name + '-once'", BEFORE_REPOSITORY) is not one
    with pytest.raises(CelSyntaxError):
        compile_template_expression("repository.name", BEFORE_REPOSITORY)


def test_equal_inputs_are_evaluated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluated = []
    evaluate = expressions.evaluate

    def counted(expression: Expression, variables: Any) -> Any:
        evaluated.append(expression)
        return evaluate(expression, variables)

    monkeypatch.setattr(expressions, "evaluate", counted)
    text = text_of(compile_template_expression("repository.labels['region'] + '-' + packageDefault"))

    found = [
        text(
            {
                **VARIABLES,
                "packageDefault": "p",
                "repository": {"name": f"r{number}", "labels": {"region": f"x{number % 2}"}},
            }
        )
        for number in range(10)
    ]

    assert found == ["x0-p", "x1-p"] * 5
    assert len(evaluated) == 2


def test_errors_are_found_again_for_each_target() -> None:
    text = text_of(compile_template_expression("target.labels.a + 'x'"))

    for labels in ({}, {}, {"b": "c"}):
        with pytest.raises(ExpressionError, match="no such key: a"):
            text({**VARIABLES, "target": {"labels": labels}})
    assert text({**VARIABLES, "target": {"labels": {"a": "1"}}}) == "1x"


def test_paths_that_end_elsewhere_are_no_equal_inputs() -> None:
    text = text_of(compile_template_expression("has(target.a.b) ? 'there' : 'missing'"))

    assert text({**VARIABLES, "target": {"a": {}}}) == "missing"
    assert text({**VARIABLES, "target": {"a": {"b": "1"}}}) == "there"
    for target, message in (({}, "no such key: a"), ({"a": "1"}, "no such overload")):
        with pytest.raises(ExpressionError, match=message):
            text({**VARIABLES, "target": target})


@pytest.mark.parametrize("remembered", [0, 1])
def test_what_is_remembered_has_an_end(monkeypatch: pytest.MonkeyPatch, remembered: int) -> None:
    monkeypatch.setattr(expressions, "MAX_REMEMBERED", remembered)
    text = text_of(compile_template_expression("repoDefault + 'x'"))

    assert [text({**VARIABLES, "repoDefault": one}) for one in ("a", "b", "a", "b")] == ["ax", "bx", "ax", "bx"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("abc", "abc"),
        ("My_Cluster.01", "my-cluster-01"),
        ("-a-", "a"),
        ("ünïcode", "n-code"),
        ("x" * 63, "x" * 63),
        ("x" * 64, "x" * 54 + "-bb2fa3ee"),
    ],
)
def test_dns_labels(text: str, expected: str) -> None:
    assert dns_label(text) == expected


@pytest.mark.parametrize(("text", "message"), [("dnsLabel('')", 'made of ""'), ("dnsLabel('--')", 'made of "--"')])
def test_nothing_makes_no_dns_label(text: str, message: str) -> None:
    with pytest.raises(ExpressionError, match=message):
        value(text)
    with pytest.raises(ExpressionError, match="no such overload"):
        value("dnsLabel(target.labels)")


@pytest.mark.hypothesis
@settings(deadline=None)
@given(st.text(max_size=200))
def test_dns_labels_are_valid_and_stay(text: str) -> None:
    try:
        label = dns_label(text)
    except CelEvaluationError:
        assert not set(text.lower()) & set("abcdefghijklmnopqrstuvwxyz0123456789")
        return

    assert dns_label_problem(label) == ""
    assert dns_label(label) == label


@pytest.mark.parametrize(
    ("written", "total", "expected"),
    [(3, 10, 3), (0, 10, 0), ("5", 10, 5), ("100%", 7, 7), ("20%", 3, 1), ("50%", 7, 3), ("0%", 7, 0), ("1%", 0, 1)],
)
def test_amounts(written: object, total: int, expected: int) -> None:
    assert Amount.of(written).most(total) == expected


@pytest.mark.parametrize("written", [-1, True, 1.5, "101%", "%", "-1", "", "5 %", None, [], 10**12, "١"])
def test_what_is_no_amount(written: object) -> None:
    with pytest.raises(InvalidAmount):
        Amount.of(written)
