"""CEL: what celpy gets wrong is right here, what cannot be is refused beforehand, and nothing runs without bound."""

from typing import Any

import pytest
from cost import metered
from hypothesis import given
from hypothesis import strategies as st

from krm.expressions.cel import (
    Budget,
    CelBudgetError,
    CelError,
    CelEvaluationError,
    CelSyntaxError,
    compile_expression,
)
from krm.expressions.grammar import MAX_LENGTH
from krm.expressions.types import INT, STRING, Type

TARGET: dict[str, Any] = {
    "name": "edge",
    "labels": {"region": "eu", "example.com/x": "dotted"},
    "ports": [80, 443],
    "ratio": 0.5,
    "on": True,
    "nothing": None,
}


def value_of(text: str, **variables: Any) -> Any:
    return compile_expression(text, variables).evaluate(variables)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("target.name + '-x'", "edge-x", id="concatenation"),
        pytest.param("target.labels['example.com/x']", "dotted", id="index"),
        pytest.param("string(true)", "true", id="string-of-bool"),
        pytest.param("string(1.0)", "1", id="string-of-double"),
        pytest.param("dyn(1) == dyn(1.0)", True, id="numbers-compare-across-types"),
        pytest.param("1 < 1.5", True, id="order-across-types"),
        pytest.param("[1, 2, 3].map(x, x > 1, x * 2)", [4, 6], id="map-with-a-filter"),
        pytest.param("'''a\nb'''", "a\nb", id="text-of-two-lines"),
        pytest.param("'\\u00e9\\x41\\101'", "éAA", id="escapes"),
        pytest.param("r'\\d+'", "\\d+", id="raw-text"),
        pytest.param("size('é')", 1, id="size-in-characters"),
        pytest.param("true || 1 / 0 == 1", True, id="or-ignores-an-error-on-the-right"),
        pytest.param("1 / 0 == 1 || true", True, id="or-ignores-an-error-on-the-left"),
        pytest.param("-7 / 2", -3, id="division-toward-zero"),
        pytest.param("-7 % 2", -1, id="remainder-of-the-dividend's-sign"),
        pytest.param("has(target.labels.region)", True, id="has"),
        pytest.param("has(target.labels.missing)", False, id="has-not"),
        pytest.param("target.?missing.orValue('none')", "none", id="optional-member"),
        pytest.param("target.ports[?5].hasValue()", False, id="optional-item"),
        pytest.param("target.labels.exists(k, v, k == 'region' && v == 'eu')", True, id="two-variables"),
        pytest.param("target.name in ['edge']", True, id="in-a-list"),
        pytest.param("'region' in target.labels", True, id="in-a-map"),
        pytest.param("target.on ? 'a' : 'b'", "a", id="conditional"),
        pytest.param("target.nothing == null", True, id="null"),
        pytest.param("'a,b'.split(',').join('+').upperAscii()", "A+B", id="text-functions"),
        pytest.param("duration('90m') > duration('1h')", True, id="durations"),
        pytest.param("timestamp('2026-01-05T10:00:00Z').getDayOfWeek()", 1, id="timestamps"),
        pytest.param("{'a': 1}['a'] + [1, 2].sum()", 4, id="literals"),
        pytest.param("type(target.on) == bool", True, id="types"),
        pytest.param("sets.contains(target.ports, [80])", True, id="sets"),
    ],
)
def test_an_expression_gives(text: str, value: Any) -> None:
    given_ = value_of(text, target=TARGET)

    assert given_ == value
    assert type(given_) is type(value)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        pytest.param("target.missing", "no such key: missing", id="member"),
        pytest.param("target['missing']", "no such key: missing", id="index"),
        pytest.param("has(target.missing.below)", "no such key: missing", id="has-does-not-hide-errors"),
        pytest.param("target.ports[5]", "index out of bounds: 5", id="bounds"),
        pytest.param("target.name[0]", "no such overload", id="a-text-has-no-items"),
        pytest.param("target.name + 1", "no such overload", id="mixed-addition"),
        pytest.param("target.ports[0] + 0.5", "no such overload", id="int-and-double"),
        pytest.param("target.on + target.on", "no such overload", id="truth-is-no-number"),
        pytest.param("target.ports[0] / 0", "division by zero", id="division"),
        pytest.param("target.ports[0] + 9223372036854775807", "integer overflow", id="overflow"),
        pytest.param("target.name.matches('(' + target.name)", "missing closing )", id="pattern"),
        pytest.param("target.name ? 1 : 2", "no such overload", id="condition"),
        pytest.param("int(target.name)", "type conversion error", id="conversion"),
        pytest.param("{'a': 1, target.name: 2, 'edge': 3}", "repeated key", id="repeated-key"),
    ],
)
def test_an_expression_without_a_value_says_why(text: str, error: str) -> None:
    with pytest.raises(CelEvaluationError, match=error.replace("(", r"\(").replace(")", r"\)")):
        value_of(text, target=TARGET)


@pytest.mark.parametrize(
    ("text", "error", "column"),
    [
        pytest.param("self.replicas +", "mismatched input '<EOF>'", 16, id="unfinished"),
        pytest.param("self.name self", "extraneous input 'self' expecting <EOF>", 11, id="too-much"),
        pytest.param("self.name == @", "token recognition error at: '@'", 14, id="no-token"),
        pytest.param("other == 1", "undeclared reference to 'other' (in container '')", 1, id="unknown-name"),
        pytest.param("true || other", "undeclared reference to 'other' (in container '')", 9, id="in-a-dead-branch"),
        pytest.param("self.name.nope()", "undeclared reference to 'nope' (in container '')", 15, id="unknown-method"),
        pytest.param("self.nmae == ''", "undefined field 'nmae'", 5, id="unknown-field"),
        pytest.param(
            "self.name == 1", "found no matching overload for '_==_' applied to '(string, int)'", 11, id="types"
        ),
        pytest.param(
            "size(self.replicas)", "found no matching overload for 'size' applied to '(int)'", 5, id="argument"
        ),
        pytest.param("has(self)", "invalid argument to has() macro", 5, id="has"),
        pytest.param("99999999999999999999 > 1", "Syntax error: invalid int literal", 1, id="large-number"),
    ],
)
def test_what_cannot_be_is_refused_when_it_is_compiled(text: str, error: str, column: int) -> None:
    fields = {"name": STRING, "replicas": INT}

    with pytest.raises(CelSyntaxError) as refused:
        compile_expression(text, ["self"], {"self": Type("object", members=fields.get)})

    assert error in refused.value.message
    assert (refused.value.line, refused.value.column) == (1, column)


def test_an_error_points_at_its_place() -> None:
    with pytest.raises(CelSyntaxError) as refused:
        compile_expression("true &&\n  other", [])

    assert refused.value.pointing("true &&\n  other") == (
        "ERROR: <input>:2:3: undeclared reference to 'other' (in container '')\n |   other\n | ..^"
    )


def test_an_expression_names_the_variables_that_it_refers_to() -> None:
    expression = compile_expression("[1].all(x, x == self) || 'oldSelf' == ''", ["self", "oldSelf"])

    assert expression.names == {"self"}


BOMBS = {
    "loops": "l.all(a, l.all(b, l.all(c, l.all(d, l.all(e, a + b + c + d + e >= 0)))))",
    "doubling": "[0,0,0,0,0,0,0,0,0,0].all(x, l.map(y, text + text + text + text).size() >= 0)",
    "replacing": "text.replace('a', text).replace('a', text).size() > 0",
    "comparing": "l.all(a, l.all(b, text == text))",
}


@pytest.mark.parametrize("text", BOMBS.values(), ids=BOMBS)
def test_a_bomb_is_stopped_within_a_second_or_two(text: str) -> None:
    variables = {"l": list(range(50)), "text": "a" * 10_000}
    with metered() as cost, pytest.raises(CelError):
        compile_expression(text, variables).evaluate(variables)

    assert cost.seconds < 5


def test_a_hostile_pattern_takes_no_time() -> None:
    with metered() as cost:
        assert value_of("subject.matches('(a+)+$')", subject="a" * 5000 + "b") is False

    assert cost.seconds < 1


@pytest.mark.parametrize(
    "text",
    ["(" * 2000 + "1" + ")" * 2000, "1" + " + 1" * 500, "!" * 1000 + "true", "a" * (MAX_LENGTH + 1), "[" * 500],
    ids=["parentheses", "sum", "negations", "long", "brackets"],
)
def test_what_is_too_deep_or_too_long_is_refused(text: str) -> None:
    with pytest.raises(CelSyntaxError):
        compile_expression(text, [])


def test_a_budget_can_be_shared() -> None:
    budget = Budget(25)
    expression = compile_expression("[1, 2, 3].all(x, x > 0)", [])

    expression.evaluate({}, budget)

    with pytest.raises(CelBudgetError):
        expression.evaluate({}, budget)


def test_variables_are_not_changed() -> None:
    variables = {"x": [1, 2]}

    assert compile_expression("x.map(x, x + 1) + x", variables).evaluate(variables) == [2, 3, 1, 2]
    assert variables == {"x": [1, 2]}


@given(st.text(alphabet="ab01.()[]{}'\"+-*/%&|!<>=?:, \n\\xsize", max_size=40))
def test_any_text_is_compiled_or_refused(text: str) -> None:
    try:
        expression = compile_expression(text, ["a", "b"])
        expression.evaluate({"a": 1, "b": [1, "x"]})
    except CelError:
        return


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1))
def test_integers_divide_as_in_go(left: int, right: int) -> None:
    variables = {"left": left, "right": right}
    try:
        quotient = compile_expression("left / right", variables).evaluate(variables)
        rest = compile_expression("left % right", variables).evaluate(variables)
    except CelEvaluationError:
        assert right == 0 or (left, right) == (-(2**63), -1)
        return

    assert quotient * right + rest == left
    assert abs(rest) < abs(right)
