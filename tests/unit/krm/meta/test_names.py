"""Rules for names, label keys and values."""

import pytest

from krm.meta import names


@pytest.mark.parametrize(
    ("rule", "good", "bad"),
    [
        pytest.param(names.dns_label_problem, ["a", "a-1", "x" * 63], ["", "A", "a.b", "-a", "a-", "x" * 64, "a\n"], id="label"),
        pytest.param(names.subdomain_problem, ["a", "a.b-c.d", "a" * 253], ["", "a..b", "a.", "A", "a_b", "a" * 254], id="subdomain"),
        pytest.param(names.path_segment_problem, ["a", "A_b", "..."], [".", "..", "a/b", "a%b"], id="segment"),
        pytest.param(names.qualified_name_problem, ["a", "A_.b", "k.io/A"], ["", "/a", "k.io/", "K/a", "a b", "-a", "a" * 64, "a/b/c"], id="key"),
        pytest.param(names.label_value_problem, ["", "a", "A.b_c-1", "x" * 63], ["-a", "a ", "a/b", "x" * 64, "é"], id="value"),
    ],
)  # fmt: skip
def test_rule_tells_good_from_bad(rule: "object", good: list[str], bad: list[str]) -> None:
    assert callable(rule)
    assert [text for text in good if rule(text)] == []
    assert [text for text in bad if not rule(text)] == []
