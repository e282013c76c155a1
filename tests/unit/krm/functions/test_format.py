import pytest
from function_run import resources_of, run_function, text_after
from hypothesis import given
from hypothesis import strategies as st

from krm.package.yaml_edit_text import new_document
from krm.package.yaml_reader import read_document, same

UNORDERED = """\
# of the document

kind: Deployment # k
# above version
apiVersion: apps/v1
spec:
  # about template
  template:
    spec:
      containers:
        # b
        - image: nginx # i
          # above name
          name: b
        - image: z
          name: a
          args: [1, -x]
    metadata:
      labels: {b: 1, a: x}
  replicas: 3
metadata:
  annotations:
    z: |
      a

      b
    a: yes
  name: x
"""
ORDERED = """\
# of the document

# above version
apiVersion: apps/v1
kind: Deployment # k
metadata:
  name: x
  annotations:
    a: "yes"
    z: |
      a

      b
spec:
  replicas: 3
  # about template
  template:
    metadata:
      labels: {b: "1", a: x}
    spec:
      containers:
        - name: a
          args: ["1", -x]
          image: z
        # b
        - # above name
          name: b
          image: nginx # i
"""


def test_fields_and_containers_are_ordered_with_their_comments() -> None:
    assert text_after("format", UNORDERED) == ORDERED


def test_formatting_again_changes_nothing() -> None:
    assert text_after("format", ORDERED) == ORDERED


@pytest.mark.parametrize("ending", ["", "\n"])
def test_line_breaks_stay_what_they_were(ending: str) -> None:
    text = "kind: A\r\napiVersion: v1\r\nspec:\r\n  b: 1\r\n  a: 2\r\nmetadata:\r\n  name: x" + ending.replace(
        "\n", "\r\n"
    )

    assert text_after("format", text) == (
        "apiVersion: v1\r\nkind: A\r\nmetadata:\r\n  name: x\r\nspec:\r\n  a: 2\r\n  b: 1"
        + ending.replace("\n", "\r\n")
    )


def test_annotation_keeps_a_resource_as_it_is() -> None:
    text = UNORDERED.replace("    a: yes\n", "    config.kubernetes.io/formatting: none\n")

    assert text_after("format", text) == text


@pytest.mark.parametrize(
    ("field", "after"),
    [
        ("data: {a: 1}", 'data: {a: "1"}'),
        ("data: {a: x}", "data: {a: x}"),
        ("data: {a: }", "data: {a: }"),
        ("data: {a: '1'}", "data: {a: '1'}"),
    ],
)
def test_texts_of_config_maps_are_quoted_where_they_look_like_something_else(field: str, after: str) -> None:
    head = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\n"

    assert text_after("format", f"{head}{field}\n") == f"{head}{after}\n"


def test_values_of_unknown_kinds_stay() -> None:
    text = "apiVersion: x.io/v1\nkind: A\nmetadata:\n  name: x\nspec:\n  args: [1]\n  env:\n    - name: a\n      value: 1\n"

    assert text_after("format", text) == text


@pytest.mark.parametrize(
    "text",
    [
        "{kind: A, apiVersion: v1, metadata: {name: x}}\n",
        "kind: A\napiVersion: v1\nmetadata:\n  ? name\n  : x\n",
        "kind: &k A\napiVersion: v1\nmetadata:\n  name: *k\n",
    ],
)
def test_what_lines_cannot_be_moved_in_reads_the_same_afterwards(text: str) -> None:
    assert same(read_document(text_after("format", text)), read_document(text))


_KEYS = st.sampled_from(["name", "kind", "spec", "data", "a", "b", "metadata", "on", "1"])
_DATA = st.recursive(
    st.sampled_from(["x", "", "a\nb\n", 1, True, None]),
    lambda below: st.dictionaries(_KEYS, below, max_size=4) | st.lists(below, max_size=3),
    max_leaves=12,
)


@given(_DATA)
def test_any_document_reads_the_same_when_it_is_formatted_and_is_then_done(spec: object) -> None:
    text = new_document({"spec": spec, "kind": "A", "apiVersion": "x.io/v1", "metadata": {"name": "x"}})
    items = resources_of(text)

    run_function("format", items)
    once = items[0].text()

    assert same(read_document(once), read_document(text))
    assert once.index("apiVersion") < once.index("\nkind")
    assert text_after("format", once) == once
