"""Functions that work on text, on whatever text the reader accepts."""

import pytest
from function_run import inline_config, run_function
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from krm.functions.resource import Resource
from krm.package.yaml_reader import YamlError, read_document, same

_FRAGMENTS = (
    "a: ", "b:\n", "- ", "  ", "\n", "# c\n", " # kpt-set: ${x}", " # kpt-set: ${x}-${y}", '# {"$kpt-set":"x"}\n', "'q'",
    '"d"', "|\n  l\n", ">-\n  f\n", "&a ", "*a", "[a, b]", "{k: v}", "!!str ", "1.10", "null", "x-y", "? k\n: v\n", "é",
    "\t", "\r\n", "kind: A\n", "<<: *a\n", "[", "]", "{", "}", ",", "metadata:\n  name: x\n",
)  # fmt: skip
_TEXTS = st.lists(st.sampled_from(_FRAGMENTS), max_size=14).map(lambda parts: "apiVersion: v1\n" + "".join(parts))

# Most texts of such fragments are no YAML, which costs little.
_SETTINGS = settings(max_examples=40, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])


def _resource(text: str) -> Resource:
    try:
        data = read_document(text)
    except YamlError:
        assume(False)
    assume(isinstance(data, dict))
    return Resource.of_document(data, text, path="a.yaml", index=0)


@pytest.mark.parametrize(
    ("image", "data"),
    [
        ("apply-setters", {"x": "1", "y": "[a, 2.0]"}),
        ("apply-setters", {"x": "[c, 1.10]"}),
        ("apply-setters", {"x": ""}),
        ("search-replace", {"by-value-regex": "(a|b|v)", "put-value": "${1}: z", "put-comment": "k ${1}"}),
        ("search-replace", {"by-path": "a.b", "put-value": "0x1"}),
        ("fix", {}),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value),
)
@_SETTINGS
@given(_TEXTS)
def test_text_and_data_agree_afterwards(image: str, data: dict[str, str], text: str) -> None:
    item = _resource(text)

    run_function(image, [item], inline_config(data))

    assert same(read_document(item.text()), item.data)


@pytest.mark.parametrize(
    ("image", "data"),
    [
        ("create-setters", {"x": "a", "l": "[a, b]"}),
        ("search-replace", {"by-path": "**", "put-comment": "c"}),
        ("drop-comments", {}),
        ("list-setters", {}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@_SETTINGS
@given(_TEXTS)
def test_functions_that_write_comments_leave_the_data_alone(image: str, data: dict[str, str], text: str) -> None:
    item = _resource(text)

    run_function(image, [item], inline_config(data))

    assert same(item.data, read_document(text))
    assert same(read_document(item.text()), item.data)
