"""Label and field selectors: what the grammar takes, what it matches, what it refuses."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from krm.meta.errors import BadRequest
from krm.meta.selectors import FieldSelector, FieldTerm, LabelSelector

LABELS = {"a": "x", "n": "7", "kpt.dev/latest": "true", "empty": ""}


@pytest.mark.parametrize(
    ("text", "selected"),
    [
        pytest.param("", True, id="empty-selects-all"),
        pytest.param("a", True, id="exists"),
        pytest.param("b", False, id="exists-not"),
        pytest.param("!a", False, id="missing"),
        pytest.param(" ! b ", True, id="missing-with-space"),
        pytest.param("a=x", True, id="equal"),
        pytest.param("a==x", True, id="double-equal"),
        pytest.param("a=y", False, id="not-equal"),
        pytest.param("b!=y", True, id="unequal-matches-missing"),
        pytest.param("a!=x", False, id="unequal"),
        pytest.param("a in (y, x),!z", True, id="in"),
        pytest.param("b in (y)", False, id="in-missing"),
        pytest.param("b notin (y)", True, id="notin-missing"),
        pytest.param("a notin (x)", False, id="notin"),
        pytest.param("empty in ()", True, id="empty-parentheses-are-the-empty-value"),
        pytest.param("empty in (y,,z)", True, id="stray-comma-is-the-empty-value"),
        pytest.param("empty=", True, id="empty-value"),
        pytest.param("empty=,a=x", True, id="empty-value-before-comma"),
        pytest.param("n>5,n<8", True, id="numbers"),
        pytest.param("n>7", False, id="greater-is-strict"),
        pytest.param("a>5", False, id="no-number-never-matches"),
        pytest.param("m>5", False, id="missing-number-never-matches"),
        pytest.param("kpt.dev/latest=true", True, id="prefixed"),
        pytest.param("a=in", False, id="keyword-as-value"),
    ],
)
def test_label_selector_matches(text: str, selected: bool) -> None:
    assert LabelSelector.parse(text).matches(LABELS) is selected


@pytest.mark.parametrize(
    "text",
    ["a in x", "a in (x", "a in (x y)", "a b", "=x", "a=b,", ",", "n>x", "a=b c", "!", "a=b/c", "-a", "a=" + "x" * 64, "a===b",
     "a in (x))", "k%=v", "a in (=)"],
)  # fmt: skip
def test_label_selector_refuses_what_it_cannot_read(text: str) -> None:
    with pytest.raises(BadRequest, match=r"unable to parse requirement|expected: identifier after ','"):
        LabelSelector.parse(text)


def test_an_overlong_selector_is_refused() -> None:
    with pytest.raises(BadRequest):
        LabelSelector.parse("a," * 40_000 + "a")
    with pytest.raises(BadRequest):
        FieldSelector.parse("a=b," * 40_000)


@given(
    st.text(alphabet="ab=!,()<> in\\", max_size=30), st.dictionaries(st.sampled_from("ab"), st.sampled_from(["a", ""]))
)
def test_any_text_is_a_selector_or_a_bad_request(text: str, labels: Mapping[str, str]) -> None:
    for parse in (LabelSelector.parse, FieldSelector.parse):
        try:
            selector = parse(text)
        except BadRequest:
            continue
        if isinstance(selector, LabelSelector):
            assert selector.matches(labels) in (True, False)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        pytest.param("", (), id="empty"),
        pytest.param("a=b", (FieldTerm("a", "=", "b"),), id="equal"),
        pytest.param("a==b,c!=d", (FieldTerm("a", "=", "b"), FieldTerm("c", "!=", "d")), id="two"),
        pytest.param(r"a=x\,y\=z\\", (FieldTerm("a", "=", "x,y=z\\"),), id="escapes"),
        pytest.param("a=", (FieldTerm("a", "=", ""),), id="empty-value"),
        pytest.param("spec.labels[k.io/n]=v", (FieldTerm("spec.labels[k.io/n]", "=", "v"),), id="brackets"),
    ],
)
def test_field_selector_has_terms(text: str, terms: tuple[FieldTerm, ...]) -> None:
    assert FieldSelector.parse(text).terms == terms


@pytest.mark.parametrize("text", ["a", "a=b=c", r"a=\n", "a=b\\"])
def test_field_selector_refuses_what_it_cannot_read(text: str) -> None:
    with pytest.raises(BadRequest):
        FieldSelector.parse(text)


def test_exact_names_the_value_a_field_must_have() -> None:
    selector = FieldSelector.parse("a!=x,b=y")

    assert selector.exact("b") == "y"
    assert selector.exact("a") is None
