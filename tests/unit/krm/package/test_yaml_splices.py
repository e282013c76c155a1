"""What an edit makes of the text; most cases were counter-examples once."""

from typing import Any

import pytest

from krm.package.list_alignment import align
from krm.package.yaml_edit_text import EDIT_WAYS, edit_document
from krm.package.yaml_reader import read_document, same
from krm.package.yaml_writer import needs_quotes, new_block, new_document, new_flow


@pytest.mark.parametrize(
    ("text", "wanted", "expected"),
    [
        pytest.param("a: 'x' # c\n", {"a": "it's"}, "a: 'it''s' # c\n", id="single-quotes-stay"),
        pytest.param('a: "x" # c\n', {"a": 'q"\n'}, 'a: "q\\"\\n" # c\n', id="double-quotes-stay"),
        pytest.param("a: x # c\n", {"a": "yes"}, 'a: "yes" # c\n', id="other-type-is-quoted"),
        pytest.param("a: x\n", {"a": "2020-01-01"}, 'a: "2020-01-01"\n', id="date-is-quoted"),
        pytest.param("a: x\n", {"a": "1:30"}, 'a: "1:30"\n', id="sexagesimal-is-quoted"),
        pytest.param("a: x\n", {"a": "- b"}, "a: '- b'\n", id="syntax-is-quoted"),
        pytest.param("a: x\n", {"a": "😀 é"}, "a: '😀 é'\n", id="no-letter-is-escaped"),
        pytest.param('a: "3"\n', {"a": 3}, "a: 3\n", id="number-in-place-of-text"),
        pytest.param("a:\nb: 1\n", {"a": "x", "b": 1}, "a: x\nb: 1\n", id="no-value-yet"),
        pytest.param("a: # c\n", {"a": "x"}, "a: x # c\n", id="comment-in-place-of-a-value"),
        pytest.param("a: !!int '7' # c\n", {"a": "x"}, "a: 'x' # c\n", id="tag-that-no-longer-fits"),
        pytest.param("a: !custom x\n", {"a": "z"}, "a: !custom z\n", id="tag-that-fits"),
        pytest.param("a: &x 1\nb: 2\n", {"a": 3, "b": 2}, "a: &x 3\nb: 2\n", id="anchor-stays"),
        pytest.param("a: x\n  y\nb: 1\n", {"a": "z", "b": 1}, "a: z\nb: 1\n", id="plain-of-two-lines"),
        pytest.param("a: | # c\n  x\n\nb: 1\n", {"a": "z", "b": 1}, "a: z # c\n\nb: 1\n", id="literal-becomes-plain"),
        pytest.param(
            "a: x # c\nb: 1\n", {"a": "y\nz\n", "b": 1}, "a: | # c\n  y\n  z\nb: 1\n", id="plain-becomes-literal"
        ),
        pytest.param(
            "a: |\n  x\nb: 1\n", {"a": "y\nz", "b": 1}, "a: |-\n  y\n  z\nb: 1\n", id="literal-loses-its-break"
        ),
        pytest.param(
            "a: x\n  # c\nb: 1\n",
            {"a": "y\nz\n", "b": 1},
            'a: "y\\nz\\n"\n  # c\nb: 1\n',
            id="comment-below-would-join",
        ),
        pytest.param(
            "a: 1 # c\nb: 2\n",
            {"a": {"x": [1]}, "b": 2},
            "a: # c\n  x:\n  - 1\nb: 2\n",
            id="mapping-in-place-of-scalar",
        ),
        pytest.param("a: # c\n  x: 1\n  # d\n  y: 2\n", {"a": 5}, "a: 5 # c\n  # d\n", id="scalar-in-place-of-mapping"),
        pytest.param("a: # c\n  x: 1\nb: 2\n", {"a": {}, "b": 2}, "a: {} # c\nb: 2\n", id="emptied-mapping"),
        pytest.param("a:\n- x: 1\n  y: 2\n", {"a": [{}]}, "a:\n- {}\n", id="emptied-element"),
        pytest.param("# c\na: 1\n# d\nb: 2\n", {}, "# c\n{}\n# d\n", id="emptied-document"),
        pytest.param("a: {} # c\n", {"a": {"x": 1}}, "a: # c\n  x: 1\n", id="filled-mapping"),
        pytest.param(
            "a: 1\nb: 2 # c\n# d\nc: 3\n", {"a": 1, "c": 3}, "a: 1\n# d\nc: 3\n", id="deletion-leaves-the-neighbour"
        ),
        pytest.param("# c\na: 1\nb: 2\n", {"b": 2}, "# c\nb: 2\n", id="deletion-leaves-what-is-above"),
        pytest.param("- name: a # c\n  # d\n  x: 1\n", [{"x": 1}], "- # d\n  x: 1\n", id="first-key-behind-a-dash"),
        pytest.param("- name: a\n  y: 2\n  x: 1\n", [{"x": 1}], "- x: 1\n", id="first-keys-behind-a-dash"),
        pytest.param(
            "- name: a\n  x: 1\n",
            [{"new": 0, "name": "a", "x": 1}],
            "- new: 0\n  name: a\n  x: 1\n",
            id="new-first-key",
        ),
        pytest.param("a: 1\n# c\nb: 2\n", {"k": 0, "a": 1, "b": 2}, "k: 0\na: 1\n# c\nb: 2\n", id="new-first"),
        pytest.param(
            "a: 1 # c\n# d\nb: 2\n", {"a": 1, "k": 0, "b": 2}, "a: 1 # c\nk: 0\n# d\nb: 2\n", id="new-between"
        ),
        pytest.param(
            "x:\n  # c\n  b: 2\n", {"x": {"a": 1, "b": 2}}, "x:\n  a: 1\n  # c\n  b: 2\n", id="new-above-a-head-comment"
        ),
        pytest.param("a: 1", {"a": 1, "b": 2}, "a: 1\nb: 2", id="no-last-line-break"),
        pytest.param("a: |\n  x", {"a": "x", "b": 2}, "b: 2\na: |\n  x", id="literal-ends-the-text"),
        pytest.param("- |\n  x", ["x", 2], "- |-\n  x\n- 2", id="literal-ends-a-list"),
        pytest.param(
            "a: 1\n      ",
            {"a": 1, "b": "x\ny\n"},
            'a: 1\nb: "x\\ny\\n"\n      ',
            id="blanks-below-would-join-a-literal",
        ),
        pytest.param("a: 1", {"a": "x\ny\n"}, "a: |\n  x\n  y\n", id="literal-needs-its-line-break"),
        pytest.param(
            "a: |\n  x\n    \nb: 1\n",
            {"a": "x\n  \n", "k": 0, "b": 1},
            "a: |\n  x\n    \nk: 0\nb: 1\n",
            id="blanks-of-a-literal",
        ),
        pytest.param(
            "a: |+\n  x\n\nb: 1\n", {"a": "x\n\n", "k": 0, "b": 1}, "a: |+\n  x\n\nk: 0\nb: 1\n", id="kept-line-breaks"
        ),
        pytest.param(
            "a:\n  - x\nb: 1\n",
            {"a": ["x"], "b": {"c": ["z"]}},
            "a:\n  - x\nb:\n  c:\n    - z\n",
            id="lists-as-wide-as-others",
        ),
        pytest.param(
            "a:\n- x\nb: 1\n", {"a": ["x"], "b": ["z"]}, "a:\n- x\nb:\n- z\n", id="lists-as-compact-as-others"
        ),
        pytest.param("a: [x, u, z]\n", {"a": ["x", "z"]}, "a: [x, z]\n", id="out-of-a-flow-list"),
        pytest.param(
            "a: [\n  x, u,\n  z, w,\n]\n",
            {"a": ["x", "u", "w"]},
            "a: [\n  x, u,\n  w,\n]\n",
            id="first-of-a-line-in-flow",
        ),
        pytest.param('a: ["x"]\n', {"a": ["x", "y"]}, 'a: ["x", "y"]\n', id="into-a-quoted-flow-list"),
        pytest.param("a: [x]\n", {"a": ["x", "b, c"]}, "a: [x, 'b, c']\n", id="flow-signs-are-quoted"),
        pytest.param(
            "a: {x: 1}\n", {"a": {"x": 1, "w": {"z": "é"}}}, "a: {x: 1, w: {z: é}}\n", id="into-a-flow-mapping"
        ),
        pytest.param(
            '{"a": {"b": 1}}\n', {"a": {"b": "x", "c": [None]}}, '{"a": {"b": "x", "c": [null]}}\n', id="json-in-yaml"
        ),
        pytest.param('{\n  "a": 1\n}\n', {"a": 1, "b": "x"}, '{\n  "a": 1,\n  "b": "x"\n}\n', id="json-on-lines"),
        pytest.param(
            "a:\r\n- b\r\n- c\r\n", {"a": ["b", "k", "c"]}, "a:\r\n- b\r\n- k\r\n- c\r\n", id="carriage-returns"
        ),
        pytest.param(
            "true: a\n12: b\n", {"true": "x", "12": "b", "no": 1}, 'true: x\n12: b\n"no": 1\n', id="keys-are-text"
        ),
    ],
)
def test_text_becomes(text: str, wanted: Any, expected: str) -> None:
    before = EDIT_WAYS.copy()

    assert edit_document(text, wanted) == expected
    assert EDIT_WAYS - before == {"spliced": 1}


def test_list_of_named_mappings_is_edited_by_name() -> None:
    """The comment of each stays with it when others come and go."""
    text = "- name: a # A\n  x: 1\n- name: b # B\n  x: 2\n- name: c # C\n  x: 3\n- name: d # D\n"
    wanted = [{"name": "b", "x": 5}, {"name": "d"}, {"name": "k"}]

    assert edit_document(text, wanted) == "- name: b # B\n  x: 5\n- name: d # D\n- name: k\n"


def test_merged_keys_are_left_to_the_other_ways() -> None:
    text = "base: &b\n  x: 1\nm: # m\n  <<: *b\n  y: 2\n"
    wanted = {"base": {"x": 1}, "m": {"y": 3, "x": 1}}

    assert edit_document(text, wanted) == text.replace("y: 2", "y: 3")


@pytest.mark.parametrize(
    ("old", "new", "pairs"),
    [
        ("abc", "abc", [(0, 0), (1, 1), (2, 2)]),
        ("abc", "ac", [(0, 0), (1, None), (2, 1)]),
        ("ac", "abc", [(0, 0), (None, 1), (1, 2)]),
        ("abcd", "xbd", [(0, 0), (1, 1), (2, None), (3, 2)]),
        ("", "a", [(None, 0)]),
        ("ab", "", [(0, None), (1, None)]),
    ],
)
def test_items_are_matched(old: str, new: str, pairs: list[tuple[int | None, int | None]]) -> None:
    assert align(list(old), list(new)) == pairs


def test_long_lists_that_differ_everywhere_are_matched_by_place() -> None:
    assert align(list(range(1000)), list(range(1, 1002)))[0] == (0, 0)


@pytest.mark.parametrize("text", ["y", "No", "~", "", "0o7", "1_0", ".inf", "12:30:45", "2001-1-1", "<<"])
def test_words_that_some_reader_takes_for_another_type_are_quoted(text: str) -> None:
    assert needs_quotes(text)
    assert new_document([text]) == f'- "{text}"\n'
    assert read_document(new_flow({text: text})) == {text: text}


def test_wide_blocks_read_as_compact_ones() -> None:
    data = {"a": [{"b": ["x\ny\n", []]}, [1, [2]]], "c": {"d": None}}

    assert new_block(data, wide=True).splitlines()[1] == "  - b:"
    assert same(read_document(new_block(data, wide=True)), data)
    assert new_block(data, wide=False) == new_document(data)
