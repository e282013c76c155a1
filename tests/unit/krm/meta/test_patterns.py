"""Regular expressions of strangers: RE2's, told in Go's words."""

import pytest
from cost import metered

from krm.meta.patterns import PatternError, compile_pattern


@pytest.mark.parametrize(
    ("pattern", "error"),
    [
        ("(?=a)b", "invalid or unsupported Perl syntax: `(?=`"),
        ("(a", "missing closing ): `(a`"),
        ("[a", "missing closing ]: `[a`"),
        ("*", "missing argument to repetition operator: `*`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        (r"\1", r"invalid escape sequence: `\1`"),
        ("\\", "trailing backslash at end of expression: ``"),
    ],
)
def test_what_re2_refuses_is_told_as_go_tells_it(pattern: str, error: str) -> None:
    with pytest.raises(PatternError) as refused:
        compile_pattern(pattern)

    assert str(refused.value) == f"error parsing regexp: {error}"


def test_a_pattern_that_would_take_much_memory_is_refused() -> None:
    with pytest.raises(PatternError):
        compile_pattern(r"((\pL{1,30}){1,30}){1,30}")


def test_a_search_takes_time_in_proportion_to_the_text() -> None:
    with metered() as cost:
        assert compile_pattern("^(a|aa)+$").search("a" * 200_000 + "!") is None

    assert cost.seconds < 2
