import contextlib

import pytest
import yaml
from cost import metered
from hypothesis import given
from hypothesis import strategies as st

from krm.package.documents import read_file
from krm.package.yaml_reader import YamlError, locate_keys, read_document, read_documents, same


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", True),
        ("off", False),
        ("~", None),
        ("0777", 511),
        ("0o17", 15),
        ("0x1f", 31),
        ("0b101", 5),
        ("1_000", 1000),
        ("-12", -12),
        ("08", 8.0),
        ("1e3", 1000.0),
        (".5", 0.5),
        (".inf", float("inf")),
        ("12:30:45", "12:30:45"),
        ("2020-01-01", "2020-01-01"),
        ("1.2.3", "1.2.3"),
        ("+", "+"),
        ("'1'", "1"),
        ("!!str 1", "1"),
        ("!!int '7'", 7),
        ("!custom x", "x"),
        ("10000000000000000000000", 10**22),
        ("1e999", "1e999"),
        ("9" * 500, "9" * 500),
        ("y", True),
        ("N", False),
        ("tRue", "tRue"),
        ("Null", None),
        ("NULL ", None),
        ("+12", 12),
        ("-0x1F", -31),
        ("0X1f", 31),
        ("0O17", 15),
        ("0B11", 3),
        ("00", 0),
        ("-017", -15),
        ("1_0_", 10),
        ("0_7", 7),
        ("1_000.5", 1000.5),
        ("+.5", 0.5),
        (".5e-1", 0.05),
        ("1.", 1.0),
        ("1e+2", 100.0),
        ("09.5", 9.5),
        ("-.INF", float("-inf")),
        (".NaN", float("nan")),
        ("._5", "._5"),
        (".1_0", ".1_0"),
        ("_1", "_1"),
        ("0x", "0x"),
        ("0x_", "0x_"),
        ("0b2", "0b2"),
        ("0o8", "0o8"),
        ("1e", "1e"),
        ("--1", "--1"),
        ("+-1", "+-1"),
        ("1__", 1),
        ("1,000", "1,000"),
        ("0.1.2", "0.1.2"),
        ("1 2", "1 2"),
        ("2001-12-14t21:59:43.10-05:00", "2001-12-14t21:59:43.10-05:00"),
        ("=", "="),
        ("!!float 1", 1.0),
        ("!!bool 'yes'", True),
        ("!!null x", None),
    ],
)
def test_scalars_follow_kubernetes_rules(text: str, value: object) -> None:
    assert same(read_document(f"a: {text}\n"), {"a": value})


def test_scalars_stay_text_for_typed_decoding() -> None:
    assert read_document("a: 1.10\nb: yes\nc: null\n", as_text=True) == {"a": "1.10", "b": "yes", "c": None}


def test_keys_are_text_and_merge_keys_are_merged() -> None:
    text = "base: &b {x: 1, y: 2}\n123: a\ntrue: b\nm:\n  <<: *b\n  y: 3\n"

    assert read_document(text) == {"base": {"x": 1, "y": 2}, "123": "a", "true": "b", "m": {"y": 3, "x": 1}}


def test_aliases_are_copies() -> None:
    data = read_document("a: &a [1]\nb: *a\n")
    data["b"].append(2)

    assert data["a"] == [1]


def test_documents_without_content_are_left_out() -> None:
    assert read_documents("---\n# only a comment\n---\na: 1\n---\n") == [{"a": 1}]


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, 'mapping key "a" already defined at line 1'),
        ("a:\n  - x: 1\n    x: 2\n", 3, 'mapping key "x" already defined at line 2'),
        ("? [a]\n: b\n", 1, "mapping keys must be scalars"),
        ("a: *b\n", 1, "unknown anchor 'b' referenced"),
        ("a: !!int x\n", 1, "cannot decode"),
        ("a: !!float " + "9" * 390 + "\n", 1, "cannot decode"),
        ("a: b: c\n", 1, "mapping values are not allowed"),
        ("[" * 300, 1, "nested deeper than 256 levels"),
        (b"a: 1\nb: \xff\n", 2, "invalid UTF-8"),
        ("a: \x01\n", 1, "control characters"),
        ("a: \ud800\n", 1, "invalid UTF-8"),
    ],
)
def test_faults_are_told_with_their_line(text: str | bytes, line: int, problem: str) -> None:
    with pytest.raises(YamlError) as caught:
        read_documents(text)

    assert caught.value.line == line
    assert problem in caught.value.problem


@pytest.mark.parametrize("text", ["\t", "---\n\x0b\n", "\x1c"])
def test_blanks_that_yaml_does_not_know_are_no_empty_document(text: str) -> None:
    with pytest.raises(YamlError) as caught:
        read_file(text.encode())

    assert caught.value.line == text.count("\n", 0, 4) + 1


def test_more_documents_than_any_package_has_are_refused() -> None:
    with pytest.raises(YamlError, match="more than 20000 documents") as caught:
        read_file(b"---\n" * 20_001)

    assert caught.value.line == 20_002


def test_last_duplicate_wins_when_not_strict() -> None:
    assert read_document("a: 1\na: 2\n", strict=False) == {"a": 2}


def test_alias_bomb_is_refused_quickly() -> None:
    bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True):
        bomb += f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]\n"
    with metered() as cost, pytest.raises(YamlError, match="excessive aliasing"):
        read_documents(bomb)

    assert cost.seconds < 0.5  # ten times what it takes, for a busy machine


def test_key_lines_are_found() -> None:
    located = locate_keys("a:\n  b:\n  - c: 1\n    d: 2\n")

    assert located.key_lines[("a", "b", 0, "d")] == 4


_PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abc", min_size=1), inner, max_size=4),
    max_leaves=12,
)


@given(_PLAIN)
def test_reads_back_what_json_style_writes(data: object) -> None:
    written = yaml.safe_dump({"data": data}, default_style='"', width=10_000)

    assert read_document(written, as_text=False) is not None


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(YamlError):
        assert isinstance(read_documents(text), list)
