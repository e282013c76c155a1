"""What of its variables decides an expression's value, loops inside loops, and functions of some expressions alone."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from krm.expressions.cel import CelError, CelEvaluationError, CelSyntaxError, Function, compile_expression

VARIABLES = ("a", "b")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", [("a",)]),
        ("'x'", []),
        ("a.b.c", [("a", "b", "c")]),
        ("a['b'].c + b", [("a", "b", "c"), ("b",)]),
        ("a.b == a.b ? a['b'] : b.c", [("a", "b"), ("b", "c")]),
        ("has(a.b.c)", [("a", "b", "c")]),
        ("a.?b.orValue('x')", [("a", "b")]),
        ("a[?'b'].orValue('x')", [("a", "b")]),
        ("a[b.c]", [("a",), ("b", "c")]),
        ("a[0]", [("a",)]),
        ("a.__dash__b", [("a", "-b")]),
        ("a.size() + size(b.c)", [("a",), ("b", "c")]),
        ("[a.x, {'k': b.y}.k]", [("a", "x"), ("b", "y")]),
    ],
)
def test_paths_that_decide_a_value(text: str, expected: list[tuple[str, ...]]) -> None:
    found = compile_expression(text, VARIABLES).paths()

    assert found is not None
    assert sorted(found) == sorted(expected)


@pytest.mark.parametrize("text", ["a.map(b, b.x)", "a.exists(x, x == b)", "a.all(a, a == 1)"])
def test_loops_hide_variables_so_that_nothing_is_said(text: str) -> None:
    assert compile_expression(text, VARIABLES).paths() is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", True),
        ("a.b['c']", True),
        ("a.?b", False),
        ("a[?'b']", False),
        ("a[b]", False),
        ("'x'", False),
        ("a + b", False),
    ],
)
def test_what_is_only_a_path(text: str, expected: bool) -> None:
    assert compile_expression(text, VARIABLES).is_path is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", 0),
        ("a.map(x, x)", 1),
        ("a.map(x, x) + b.map(x, x)", 1),
        ("a.map(x, b.map(y, y))", 2),
        ("a.map(x, x).map(x, x)", 2),
        ("a.all(x, b.exists(y, [x].filter(z, z == y).size() > 0))", 3),
    ],
)
def test_loops_inside_one_another(text: str, expected: int) -> None:
    assert compile_expression(text, VARIABLES).nested_loops() == expected


leaves = st.sampled_from(["x", "y"])
maps = st.recursive(leaves, lambda one: st.dictionaries(st.sampled_from("bcd"), one, max_size=2), max_leaves=6)
texts = st.sampled_from(
    [
        "a.b.c",
        "a['b'] + b.c",
        "has(a.b) ? a.b.c : 'none'",
        "a.?b.?c.orValue('x')",
        "a[?'b'].orValue({}).size() == 0 ? 'e' : a.b.d",
        "a.b == 'x' || b.c == 'y'",
        "'b' in a ? b : a.c",
    ]
)


def outcome(text: str, variables: dict[str, Any]) -> Any:
    try:
        return compile_expression(text, VARIABLES).evaluate(variables)
    except CelError as error:
        return type(error), str(error)


def end(variables: Any, path: tuple[str, ...]) -> Any:
    """Return what a path leads to, or where and at what it ends."""
    value = variables
    for depth, key in enumerate(path):
        if not isinstance(value, dict) or key not in value:
            return depth, isinstance(value, dict)
        value = value[key]
    return [value]


@pytest.mark.hypothesis
@settings(deadline=None)
@given(texts, maps, maps, maps, maps)
def test_the_same_ends_of_paths_have_the_same_outcome(text: str, a: Any, b: Any, other_a: Any, other_b: Any) -> None:
    paths = compile_expression(text, VARIABLES).paths()
    assert paths is not None
    one, other = {"a": a, "b": b}, {"a": other_a, "b": other_b}

    if all(end(one, path) == end(other, path) for path in paths):
        assert outcome(text, one) == outcome(text, other)


def shout(text: str) -> str:
    if not text:
        raise CelEvaluationError("nothing to shout")
    return f"{text}!"


SHOUT = {"shout": Function(((("string",), "string"),), shout)}


def test_a_function_is_known_only_where_it_is_given() -> None:
    assert compile_expression("shout('a' + shout('b'))", (), functions=SHOUT).evaluate({}) == "ab!!"
    with pytest.raises(CelSyntaxError, match="undeclared reference to 'shout'"):
        compile_expression("shout('a')", ())
    with pytest.raises(CelSyntaxError, match="found no matching overload for 'shout' applied to '\\(int\\)'"):
        compile_expression("shout(1)", (), functions=SHOUT)
    with pytest.raises(CelEvaluationError, match="nothing to shout"):
        compile_expression("shout('')", (), functions=SHOUT).evaluate({})
    assert compile_expression("size('abc')", (), functions=SHOUT).evaluate({}) == 3
