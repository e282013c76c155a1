import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from krm.package.yaml_edit_text import edit_document, edit_json, new_document
from krm.package.yaml_reader import plain_copy, read_document, same

DEPLOYMENT = """\
# licence
apiVersion: apps/v1
kind: Deployment
metadata: # kpt-merge: /web
  name: 'web'   # the name
  labels: {app: web, "tier": front}
spec:
    replicas: 3 # kpt-set: ${replicas}

    template:
        spec:
            containers:
              - name: a # first
                args: ["x", y]
              - name: b
            # last words
"""


def _edited(text: str, change: object) -> str:
    wanted = plain_copy(read_document(text))
    change(wanted)  # type: ignore[operator]
    edited = edit_document(text, wanted)
    assert same(read_document(edited), wanted)
    return edited


def test_text_without_change_is_returned_as_it_is() -> None:
    text = "a:   1  \r\n\r\nb: [ 1,2 ]"

    assert edit_document(text, {"b": [1, 2], "a": 1}) is text


def test_changed_scalar_touches_its_line_only() -> None:
    edited = _edited(DEPLOYMENT, lambda data: data["spec"].update(replicas=5))

    assert edited == DEPLOYMENT.replace("replicas: 3 #", "replicas: 5 #")


def test_quotes_and_comments_stay() -> None:
    edited = _edited(DEPLOYMENT, lambda data: data["metadata"].update(name="shop"))

    assert edited == DEPLOYMENT.replace("'web'   # the name", "'shop'   # the name")


def test_new_key_goes_where_the_data_has_it() -> None:
    def change(data: dict[str, dict[str, object]]) -> None:
        metadata = data["metadata"]
        data["metadata"] = {"name": metadata["name"], "namespace": "prod", "labels": metadata["labels"]}

    lines = _edited(DEPLOYMENT, change).splitlines()

    assert lines[5] == "  namespace: prod"
    assert [line for line in lines if line not in DEPLOYMENT.splitlines()] == ["  namespace: prod"]


def test_flow_mapping_stays_flow() -> None:
    edited = _edited(DEPLOYMENT, lambda data: data["metadata"]["labels"].update(zone="a"))

    assert 'labels: {app: web, "tier": front, zone: a}' in edited


@pytest.mark.parametrize("value", ["yes", "0777", "null", "1e3", "", "- x", "a: b", "x #y", "n", "é", "a\nb\n", " x"])
def test_strings_are_quoted_when_they_must_be(value: str) -> None:
    assert _edited("a: 1\n", lambda data: data.update(a=value, b=[value], c={value: value}))


@pytest.mark.parametrize("text", ["a: 1\r\nb:\r\n  c: 2\r\n", "a: 1\nb:\n  c: 2", "\ufeffa: 1\nb:\n  c: 2\n"])
def test_line_ends_and_byte_order_mark_stay(text: str) -> None:
    edited = _edited(text, lambda data: data["b"].update(c=3))

    assert edited == text.replace("c: 2", "c: 3")


def test_keys_that_look_like_other_types_can_be_changed() -> None:
    edited = _edited("123: a\ntrue: b\nnull: c\n", lambda data: data.update({"123": "x", "true": "z"}))

    assert edited == "123: x\ntrue: z\nnull: c\n"


def test_change_through_an_alias_is_made_right() -> None:
    def change(data: dict[str, dict[str, int]]) -> None:
        data["two"]["x"] = 9

    assert _edited("one: &a\n  x: 1\ntwo: *a # both\n", change).startswith("one: &a\n  x: 1\n")


def test_empty_document_gets_its_content_after_the_comments() -> None:
    assert edit_document("# head\n", {"a": 1}) == "# head\na: 1\n"


def test_json_stays_json() -> None:
    text = '{\n  "a": 1,\n  "b": {"c": "x"}\n}\n'
    wanted = {"a": 1, "b": {"c": "y", "d": [True]}}

    edited = edit_json(text, wanted, json.loads(text))

    assert json.loads(edited) == wanted
    assert edit_json(text, {"a": 1, "b": {"c": "y"}}, json.loads(text)) == text.replace('"x"', '"y"')


_SCALARS = st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text("ab:#-' \n\"é0x", max_size=6)
_DATA = st.recursive(
    _SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abyn1", min_size=1, max_size=3), inner, max_size=3)
    ),
    max_leaves=10,
)
_MAPPINGS = st.dictionaries(st.sampled_from(["a", "b", "c", "true", "1"]), _DATA, max_size=4)


@settings(max_examples=150, deadline=None)
@given(_MAPPINGS, _MAPPINGS)
def test_edit_always_gives_the_wanted_data(before: dict[str, object], wanted: dict[str, object]) -> None:
    edited = edit_document(new_document(before), wanted)

    assert same(read_document(edited), wanted)


@settings(max_examples=100, deadline=None)
@given(_MAPPINGS)
def test_new_document_reads_as_its_data(data: dict[str, object]) -> None:
    assert same(read_document(new_document(data)), data)
