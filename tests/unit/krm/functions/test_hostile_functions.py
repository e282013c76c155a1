"""Whatever a function writes: no crash, no loss, and nothing of the wire in the package."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from krm.functions.external.annotation_reconciliation import ID, INDEX, INTERNAL, PATH
from krm.functions.external.child_process import Finished
from krm.functions.external.external_call import ExternalCall
from krm.functions.external.resource_stream import read_stream, write_placed_resources
from krm.functions.resource import Resource
from krm.functions.runner import ResourceList
from krm.package.documents import read_file
from krm.package.resource_identity import annotations_of
from krm.package.yaml_reader import same

TEXT = "kind: A # kind\nmetadata:\n  name: a\n---\nkind: B\nmetadata:\n  name: b\n  annotations:\n    c: d\n"

SCALARS = st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False) | st.text(max_size=5)
NAMES = st.sampled_from(["kind", "metadata", "name", "annotations", PATH.internal, INDEX.legacy, ID.internal, "x"])
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3))
PLACES: st.SearchStrategy[dict[str, Any]] = st.dictionaries(
    st.sampled_from([name for pair in (PATH, INDEX, ID) for name in (pair.legacy, pair.internal)]),
    st.sampled_from(["1", "2", "0", "a.yaml", "../x", "", 1, None, True, [], {}]),
    max_size=4,
)
ITEMS = st.lists(VALUES | PLACES.map(lambda places: {"metadata": {"name": "n", "annotations": places}}), max_size=4)


def _call() -> ExternalCall:
    documents = read_file(TEXT.encode())[1]
    resources = [
        Resource.of_document(document.data, document.text, path="a.yaml", index=index)
        for index, document in enumerate(documents)
    ]
    return ExternalCall.of(ResourceList(resources))


@settings(max_examples=300, deadline=None)
@given(items=ITEMS | VALUES, results=VALUES, code=st.sampled_from([0, 0, 1]))
def test_any_resource_list_is_an_answer_or_a_failure(items: Any, results: Any, code: int) -> None:
    call = _call()
    answer = {"apiVersion": "config.kubernetes.io/v1", "kind": "ResourceList", "items": items, "results": results}

    result = call.result(Finished(code, json.dumps(answer).encode(), b""))

    if result.exit_code:
        assert [item.text() for item in result.items] == [one.text() for one in _call().given.items]
    for item in result.items:
        assert not [name for name in annotations_of(item.data) if name.startswith(INTERNAL)]
        assert isinstance(item.path, str)
        item.text()


@settings(max_examples=200, deadline=None)
@given(data=st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_any_bytes_are_a_failure_that_deletes_nothing(data: bytes) -> None:
    result = _call().result(Finished(0, data, b""))

    if result.exit_code:
        assert [item.data["kind"] for item in result.items] == ["A", "B"]
        assert "the function's output is not usable" in result.stderr or "must be" in result.stderr


KEYS = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), min_size=1, max_size=6)
DATA = st.dictionaries(KEYS, VALUES, max_size=4)


@settings(max_examples=200, deadline=None)
@given(objects=st.lists(DATA, min_size=1, max_size=3), path=KEYS)
def test_any_resources_survive_a_stream(objects: list[dict[str, Any]], path: str) -> None:
    resources = [Resource({"kind": "X", **data}, path, index) for index, data in enumerate(objects)]
    wanted = [dict(resource.data) for resource in resources]

    again = read_stream(write_placed_resources(resources).encode()).resources

    assert [item.path for item in again] == [path] * len(again)
    for item, data in zip(again, wanted, strict=True):
        if isinstance(data.get("metadata", {}), dict) and isinstance(
            data.get("metadata", {}).get("annotations", {}), dict
        ):
            assert {key: value for key, value in item.data.items() if key != "metadata"} == {
                key: value for key, value in data.items() if key != "metadata"
            }
            assert same(item.data.get("x"), data.get("x"))
