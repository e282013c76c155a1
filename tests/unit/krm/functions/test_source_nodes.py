import pytest
from cost import metered
from function_run import resources_of
from hypothesis import given
from hypothesis import strategies as st

from krm.functions.catalog.line_comments import set_line_comments
from krm.functions.catalog.list_style import write_as_block
from krm.functions.catalog.scalar_edits import replace_scalars, respell, set_value, written_scalar
from krm.functions.catalog.source_nodes import SourceList, SourceScalar, scalar_texts, source_nodes
from krm.functions.go_text import bracketed, json_text, quoted
from krm.package.yaml_edit_text import new_document
from krm.package.yaml_reader import YamlError, read_document

TEXT = """\
a: 1.10 # one
b: 'it''s'
l: # of l
- x # of x
- {k: v} # of the map
f: [1, "2"] # of f
m: {l: [a]}
n:
t: |
  # no comment
s: &s !!str 5 # five
r: *s
"""


def _scalar(text: str, *path: str | int) -> SourceScalar:
    return next(node for node in source_nodes(text) if node.path == path and isinstance(node, SourceScalar))


def test_scalars_have_text_style_and_comment() -> None:
    found = {node.path: node for node in source_nodes(TEXT) if isinstance(node, SourceScalar)}

    assert (found["a",].text, found["a",].style, found["a",].comment) == ("1.10", None, "# one")
    assert (found["b",].text, found["b",].style) == ("it's", "'")
    assert found["l", 0].comment == "# of x"
    assert (found["l", 1, "k"].comment, found["l", 1, "k"].in_flow) == ("", True)
    assert (found["n",].text, found["n",].start) == ("", found["n",].end)
    assert (found["t",].is_block, found["t",].comment) == (True, "")
    assert (found["s",].anchor, found["s",].comment) == ("s", "# five")
    assert ("r",) not in found


def test_offsets_are_those_of_the_text() -> None:
    for text in (TEXT, "\ufeff" + TEXT, "é: ü\n" + TEXT):
        nodes = list(source_nodes(text))
        for node in nodes:
            if isinstance(node, SourceScalar) and node.style is None and not node.anchor:
                assert text[node.start : node.end] == node.text
        assert text[slice(*next(node for node in nodes if node.path == ("f",)).items[0])] == "1"  # type: ignore[union-attr]


def test_lists_have_style_elements_and_the_comment_of_their_key() -> None:
    found = {node.path: node for node in source_nodes(TEXT) if isinstance(node, SourceList)}

    assert (found["l",].is_flow, found["l",].texts, found["l",].comment) == (False, None, "# of l")
    assert (found["f",].is_flow, found["f",].texts, found["f",].comment) == (True, ("1", "2"), "# of f")
    assert found["m", "l"].in_flow


def test_lists_are_visited_with_their_map() -> None:
    nodes = sorted(source_nodes("a: 1\nm:\n  b: 2\n  l: [3]\nl: [4]\n"), key=lambda node: node.visit)

    assert [node.path for node in nodes] == [("l",), ("a",), ("m", "l"), ("m", "b"), ("m", "l", 0), ("l", 0)]


_DATA = st.recursive(
    st.sampled_from(["x", "", "a b", "1", "- a", "a\nb\n", 1, True, None]),
    lambda below: st.dictionaries(st.sampled_from("abcd"), below, max_size=4) | st.lists(below, max_size=4),
    max_leaves=15,
)


@given(st.dictionaries(st.sampled_from("abcd"), _DATA, min_size=1))
def test_paths_lead_to_the_values_of_the_data(data: dict[str, object]) -> None:
    read = read_document(new_document(data), as_text=True)
    for path, text in scalar_texts(new_document(data)).items():
        value = read
        for part in path:
            value = value[part]
        assert (value or "") == text or text in ("null", "~")


def test_elements_are_written_below_the_key_with_its_comment() -> None:
    item = resources_of("apiVersion: v1\nspec:\n  a:\n    [ {b: c}, 'd' ] # why\n  e: []\n  f: [[1], {}]\n")[0]

    write_as_block(item, {("spec", "a"), ("spec", "e"), ("spec", "f")})

    assert item.text() == "apiVersion: v1\nspec:\n  a: # why\n  - {b: c}\n  - 'd'\n  e: []\n  f:\n  - [1]\n  - {}\n"


@pytest.mark.parametrize("field", ["a: [b, # c\n  d]\n", "a: # c\n  [b]\n", "m: {a: [b]}\n", "a: &x [b]\nr: *x\n"])
def test_list_that_would_lose_something_stays(field: str) -> None:
    item = resources_of(field)[0]

    write_as_block(item, {("a",), ("m", "a")})

    assert item.text() == field


def test_windows_line_breaks_stay() -> None:
    item = resources_of("a: [b, c] # d\r\ne: f\r\n")[0]

    write_as_block(item, {("a",)})

    assert item.text() == "a: # d\r\n- b\r\n- c\r\ne: f\r\n"


def test_comments_are_placed_where_they_can_be() -> None:
    item = resources_of("a: 1\nb: {c: 2}\nl: # old\n- x\n")[0]

    placed = set_line_comments(item, {("a",): "one", ("b", "c"): "two", ("l",): "# new", ("none",): "x"})

    assert item.text() == "a: 1 # one\nb: {c: 2}\nl: # new\n- x\n"
    assert placed == {("a",), ("l",)}


def test_comment_above_and_below_stay() -> None:
    text = "# above\na: 1 # old\n# below\n\nb: 2\n"
    item = resources_of(text)[0]

    set_line_comments(item, {("a",): "new"})

    assert item.text() == text.replace("old", "new")


@given(st.text(st.characters(codec="utf-8"), max_size=10), st.sampled_from([None, "'", '"']), st.booleans())
def test_any_text_is_written_as_one_scalar(text: str, style: str | None, in_flow: bool) -> None:
    written = written_scalar(text, style, in_flow=in_flow)

    if in_flow:
        assert read_document(f"a: [{written}, x]", as_text=True) == {"a": [text or "", "x"]} or text in ("~", "null")
    else:
        assert read_document(f"a: {written}\nb: x\n", as_text=True)["b"] == "x"
        assert scalar_texts(f"a: {written} # c\n")["a",] == text


def test_value_of_a_merge_key_cannot_be_set() -> None:
    with pytest.raises(YamlError, match="merge key"):
        set_value({"a": {}}, ("a", "<<", "b"), 1)


def test_numbers_can_be_respelled() -> None:
    item = resources_of("a: 1.1\nb: x\n")[0]

    respell(item, {("a",): "1.10", ("b",): "x"})

    assert item.text() == "a: 1.10\nb: x\n"


def test_several_scalars_are_replaced_at_once_whatever_their_order() -> None:
    text = "a: 1\nb: 2\n"
    item = resources_of(text)[0]

    replace_scalars(item, [(_scalar(text, "b"), "20"), (_scalar(text, "a"), "10")])

    assert item.text() == "a: 10\nb: 20\n"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a", '"a"'),
        ('a"b\\', '"a\\"b\\\\"'),
        ("é\u2028\x00\t\n", '"é\\u2028\\x00\\t\\n"'),
        ("\U0001f600\U000e0001", '"\U0001f600\\U000e0001"'),
    ],
)
def test_texts_are_quoted_as_go_does(text: str, shown: str) -> None:
    assert quoted(text) == shown


def test_lists_and_maps_are_shown_as_go_does() -> None:
    assert bracketed(["a", "b"]) == "[a b]"
    assert json_text({"b": "<&>", "a": "é"}) == '{"a":"é","b":"\\u003c\\u0026\\u003e"}'


@pytest.mark.parametrize(
    "line", ["a: b" + " " * 200_000 + "\n", "a:" + " " * 200_000 + "b\n", "a: '" + ": #" * 60_000 + "'\n"]
)
def test_blanks_without_end_take_linear_time(line: str) -> None:
    with metered() as cost:
        item = resources_of(line + "l: [1]\n")[0]
        write_as_block(item, {("l",)})

    assert item.text() == line + "l:\n- 1\n"
    assert cost.seconds < 2
