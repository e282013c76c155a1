"""ResourceLists: what goes to functions and between commands, and what is made of what comes back."""

from pathlib import Path
from typing import Any

import pytest
from kpt_cases import DATA, load_package

from krm.functions.external.annotation_reconciliation import MIGRATION_ID
from krm.functions.external.resource_list import MalformedResourceList, items_for_function, resources_from_function
from krm.functions.external.resource_list_text import list_indent, read_resource_list, write_resource_list
from krm.functions.external.resource_stream import read_stream, write_bare_resources, write_placed_resources
from krm.functions.external.restoration import in_order_of, restore
from krm.functions.package_tree import RenderError, load_folder
from krm.functions.resource import Resource
from krm.functions.runner import FunctionConfig
from krm.package.contents import File
from krm.package.documents import read_file
from krm.package.yaml_reader import read_document, same

PACKAGES = sorted((DATA / "kpt" / "fn-render").iterdir()) + sorted((DATA / "kpt" / "catalog").iterdir())

AWKWARD = """\
# a licence

# about the first
apiVersion: v1
kind: ConfigMap # what it is
metadata: # who
    name:   first
    annotations:
        own: "kept"
        # below the last annotation
data:
    script: |
        # no comment

        line
    folded: >-
        some
        text
    list: [a, "b"]
# at the end
---
apiVersion: v1
kind: ConfigMap
metadata: {name: second, annotations: {a: b}}
---
apiVersion: v1
kind: List
metadata:
  name: third
  annotations: {}
items:
  - &anchor
    a: 1.10
  - *anchor
---
{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "fourth", "annotations": null}}
"""


def _resources(text: str, path: str = "dir/it's.yaml") -> list[Resource]:
    documents = read_file(text.encode())[1]
    return [
        Resource.of_document(document.data, document.text, path=path, index=index, package="sub")
        for index, document in enumerate(documents)
    ]


def test_function_gets_all_annotations_under_both_names_and_in_single_quotes() -> None:
    resources = _resources("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  n: 1.10 # one\n")
    items, _ = items_for_function(resources)

    text = write_resource_list(
        resources, items, FunctionConfig({"kind": "X", "size": "1"}, typed={"kind": "X", "size": 1})
    )

    assert text == (
        "apiVersion: config.kubernetes.io/v1\n"
        "kind: ResourceList\n"
        "items:\n"
        "- apiVersion: v1\n"
        "  kind: ConfigMap\n"
        "  metadata:\n"
        "    name: a\n"
        "    annotations:\n"
        "      config.kubernetes.io/index: '0'\n"
        "      config.kubernetes.io/path: 'dir/it''s.yaml'\n"
        "      internal.config.kubernetes.io/index: '0'\n"
        "      internal.config.kubernetes.io/path: 'dir/it''s.yaml'\n"
        "      internal.config.kubernetes.io/package-path: 'sub'\n"
        "      config.k8s.io/id: '1'\n"
        "      internal.config.kubernetes.io/id: '1'\n"
        "      internal.config.kubernetes.io/annotations-migration-resource-id: '0'\n"
        "      internal.config.kubernetes.io/seqindent: 'compact'\n"
        "  data:\n"
        "    n: 1.10 # one\n"
        "functionConfig:\n"
        "  kind: X\n"
        "  size: 1\n"
    )


def test_no_resources_are_an_empty_list() -> None:
    assert read_resource_list(write_resource_list([], [])).items == []


@pytest.mark.parametrize("line_end", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_any_layout_reads_as_the_items_it_is_written_from(line_end: str) -> None:
    resources = _resources(AWKWARD.replace("\n", line_end))
    items, _ = items_for_function(resources)

    text = write_resource_list(resources, items)

    assert same(read_resource_list(text).items, items)
    for comment in ("# a licence", "# about the first", "# what it is", "# who", "# below the last annotation"):
        assert comment in text


def test_function_that_changes_nothing_leaves_every_byte() -> None:
    resources = _resources(AWKWARD)
    before = [resource.text() for resource in resources]
    items, recorded = items_for_function(resources)

    output = resources_from_function(
        read_resource_list(write_resource_list(resources, items)).items, resources, recorded
    )

    assert all(map(lambda one, other: one is other, output, resources))
    assert [resource.text() for resource in resources] == before
    assert {(resource.path, resource.index) for resource in resources} == {("dir/it's.yaml", n) for n in range(4)}


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_stream_gives_the_resources_of_a_folder_again(package: Path) -> None:
    try:
        resources = load_folder(load_package(package)).root.resources
    except RenderError:
        pytest.skip("the case is about a file that cannot be read")

    again = read_stream(write_placed_resources(resources).encode()).resources

    assert [(item.path, item.index) for item in again] == [(item.path, item.index) for item in resources]
    assert all(same(one.data, other.data) for one, other in zip(again, resources, strict=True))
    assert [item.comments() for item in again] == [item.comments() for item in resources]


def test_stream_keeps_comments_and_quotes_of_resources_whose_place_changes() -> None:
    resources = _resources("# head\napiVersion: v1\nkind: X\nmetadata:\n  name: 'a' # line\n", "a.yaml")
    text = write_placed_resources(resources).replace("'a.yaml'", "'b.yaml'")

    (again,) = read_stream(text.encode()).resources

    assert (again.path, again.text()) == ("b.yaml", "# head\napiVersion: v1\nkind: X\nmetadata:\n  name: 'a' # line\n")


def test_stream_of_bare_resources_is_read_as_well() -> None:
    resources = _resources("apiVersion: v1\nkind: X # x\nmetadata:\n  name: a\n---\nkind: Y\n")

    again = read_stream(write_bare_resources(resources).encode()).resources

    assert [item.text() for item in again] == [item.text() for item in resources]
    assert [item.path for item in again] == ["", ""]


def test_items_come_back_moved_changed_deleted_and_new() -> None:
    resources = _resources("kind: A\nmetadata:\n  name: a\n---\nkind: B\nmetadata:\n  name: b\n", "x.yaml")
    items, recorded = items_for_function(resources)
    moved, _deleted = items
    moved["spec"] = 1
    moved["metadata"]["annotations"]["config.kubernetes.io/path"] = "y.yaml"
    generated: dict[str, Any] = {"kind": "C", "metadata": {"annotations": {"config.kubernetes.io/index": 3}}}

    output = resources_from_function([generated, moved], resources, recorded)

    assert output[1] is resources[0]
    assert (output[1].path, output[1].index, output[1].package) == ("y.yaml", 0, "sub")
    assert output[1].text() == "kind: A\nmetadata:\n  name: a\nspec: 1\n"
    assert (output[0].path, output[0].index, output[0].data) == ("", 3, {"kind": "C"})


def test_second_item_with_the_id_of_another_is_new() -> None:
    resources = _resources("kind: A\nmetadata:\n  name: a\n")
    items, recorded = items_for_function(resources)
    text = write_resource_list(resources, items)
    copies = [read_resource_list(text).items[0] for _ in range(2)]

    output = resources_from_function(copies, resources, recorded)

    assert output[0] is resources[0]
    assert output[1] is not resources[0]
    assert output[1].data == resources[0].data


@pytest.mark.parametrize(
    ("items", "problem"),
    [
        ("text", "must be a list of mappings"),
        ([1], "must be a list of mappings"),
        ([{"metadata": {"annotations": {"config.kubernetes.io/index": "x"}}}], "must be a number"),
        ([{"metadata": {"annotations": {"config.kubernetes.io/index": "-1"}}}], "must be a number"),
        ([{"metadata": {"annotations": {"config.kubernetes.io/index": "9" * 30}}}], "must be a number"),
    ],
)
def test_items_that_are_none_are_refused_and_change_nothing(items: Any, problem: str) -> None:
    resources = _resources("kind: A\nmetadata:\n  name: a\n")
    _, recorded = items_for_function(resources)

    with pytest.raises(MalformedResourceList, match=problem):
        resources_from_function(items, resources, recorded)

    assert resources[0].data == {"kind": "A", "metadata": {"name": "a"}}


@pytest.mark.parametrize("version", ["config.kubernetes.io/v1", "config.kubernetes.io/v1alpha1"])
def test_both_versions_are_read(version: str) -> None:
    text = f"apiVersion: {version}\nkind: ResourceList\nitems:\n- kind: A\nresults:\n- message: m\n"

    parsed = read_resource_list(text)

    assert (parsed.items, parsed.results) == ([{"kind": "A"}], [{"message": "m"}])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# nothing\n",
        "apiVersion: v2\nkind: ResourceList\n",
        "- a\n",
        "just text",
        "kind: ResourceList\n---\na: b\n",
    ],
)
def test_what_is_no_resource_list_is_refused(text: str) -> None:
    with pytest.raises(MalformedResourceList):
        read_resource_list(text)


def test_transport_annotations_never_reach_the_package() -> None:
    resources = _resources("kind: A\nmetadata:\n  name: a\n")
    items, recorded = items_for_function(resources)
    assert MIGRATION_ID in items[0]["metadata"]["annotations"]

    resources_from_function(items, resources, recorded)

    assert resources[0].data == {"kind": "A", "metadata": {"name": "a"}}


@pytest.mark.parametrize(
    ("text", "style"),
    [
        ("a:\n  - b\n", "wide"),
        ("a:\n- b\n", "compact"),
        ("a:\n  b:\n  - c\nd:\n  - e\n", "compact"),
        ("a: # x\n  # y\n  - b\n", "wide"),
        ("a: [b]\n", "compact"),
        ("a: b\n", "compact"),
    ],
)
def test_list_indentation_is_that_of_the_first_list(text: str, style: str) -> None:
    assert list_indent(text) == style


def test_restored_resource_keeps_order_and_comments() -> None:
    text = "z: 1 # last letter\na:\n  y: 2\n  b: 3\nlist:\n- q: 1\n  p: 2\n"
    resource = Resource.of_document(read_document(text), text)

    restore(resource, {"a": {"b": 3, "new": 4, "y": 5}, "list": [{"p": 2, "q": 1}, {"p": 3}], "z": 1})

    assert list(resource.data) == ["z", "a", "list"]
    assert resource.text() == "z: 1 # last letter\na:\n  y: 5\n  b: 3\n  new: 4\nlist:\n- q: 1\n  p: 2\n- p: 3\n"


def test_restoration_pairs_only_what_has_the_same_shape() -> None:
    assert in_order_of({"b": 1, "a": 2}, ["x"]) == {"b": 1, "a": 2}
    assert in_order_of([{"b": 1, "a": 2}], [1, 2, 3]) == [{"b": 1, "a": 2}]
    assert list(in_order_of({"c": 0, "b": 1, "a": 2}, {"a": 0, "d": 0})) == ["a", "c", "b"]


def test_json_file_passes_through_a_stream_as_data() -> None:
    contents = {"a.json": File(b'{\n\t"kind": "A",\n\t"metadata": {"name": "a"}\n}\n')}
    resources = load_folder(contents).root.resources

    (again,) = read_stream(write_placed_resources(resources).encode()).resources

    assert (again.path, again.data) == ("a.json", {"kind": "A", "metadata": {"name": "a"}})
