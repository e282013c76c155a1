"""Merging one document's text: the smallest edit, and the comments of both sides. ``kpt.md`` 3.4 and 3.8."""

import pytest

from krm.package.merge.conflicts import Kept
from krm.package.merge.document_merge import merge_documents
from krm.package.yaml_reader import YamlError, read_document


def merged(origin: str | None, updated: str | None, local: str | None) -> str | None:
    return merge_documents(origin, updated, local).text


@pytest.mark.parametrize(
    ("origin", "updated", "local", "expected"),
    [
        pytest.param("a: 1\n", "a: 2 # u\n", "a: 1\n", "a: 2 # u\n", id="comes-with-a-changed-value"),
        pytest.param("a: 1 # o\n", "a: 2 # u\n", "a: 1 # l\n", "a: 2 # u\n", id="changed-by-both-value-upstream"),
        pytest.param("a: 1 # o\n", "a: 2 # o\n", "a: 1 # l\n", "a: 2 # l\n", id="upstreams-did-not-change-local-stays"),
        pytest.param("a: 1\n", "a: 2\n", "a: 1 # l\n", "a: 2 # l\n", id="upstream-has-none-local-stays"),
        pytest.param("a: 1 # o\n", "a: 2\n", "a: 1 # o\n", "a: 2\n", id="removed-upstream"),
        pytest.param("a: 1 # o\n", "a: 2 # o\n", "a: 1\n", "a: 2\n", id="removed-here"),
        pytest.param("a: 1 # o\n", "a: 1 # u\n", "a: 1 # o\n", "a: 1 # u\n", id="only-the-comment-changed-upstream"),
        pytest.param("a: 1 # o\n", "a: 1 # u\n", "a: 1 # l\n", "a: 1 # l\n", id="only-the-comment-changed-by-both"),
        pytest.param(
            "a: 1\n", "a: 1 # kpt-set: ${x}\n", "a: 1\n", "a: 1 # kpt-set: ${x}\n", id="setter-added-upstream"
        ),
        pytest.param(
            "a: 1\n", "a: 1 # kpt-set: ${x}\n", "a: 3\n", "a: 3 # kpt-set: ${x}\n", id="setter-beside-local-value"
        ),
        pytest.param("# o\na: 1\n", "# u\na: 2\n", "# o\na: 1\n", "# u\na: 2\n", id="head"),
        pytest.param("a: 1\n", "a: 2\n", "# l\n# m\na: 1\n", "# l\n# m\na: 2\n", id="local-head"),
        pytest.param("# h\n\na: 1\n", "# h\n\na: 2\n", "# mine\n\na: 1\n", "# mine\n\na: 2\n", id="documents-head"),
        pytest.param(
            "a: 1\n",
            "a: 1\n# new\nb: # of b\n  c: 1 # of c\n",
            "a: 3\n",
            "a: 3\n# new\nb: # of b\n  c: 1 # of c\n",
            id="of-added-objects",
        ),
        pytest.param(
            "a: 1\n",
            "a: 1\nl: # kpt-set: ${l}\n- x # one\n",
            "a: 3\n",
            "a: 3\nl: # kpt-set: ${l}\n- x # one\n",
            id="of-added-lists",
        ),
        pytest.param(
            "l: # o\n- 1\n",
            "l: # o\n- 1\n- 2 # two\n",
            "l: # l\n- 1 # one\n",
            "l: # l\n- 1 # one\n- 2 # two\n",
            id="in-plain-lists",
        ),
        pytest.param(
            "l:\n- 1\n- 2\n",
            "l:\n- 2\n",
            "l:\n# one\n- 1\n# two\n- 2\n",
            "l:\n# two\n- 2\n",
            id="go-with-their-elements",
        ),
        pytest.param("l: [1]\n", "l: [1, 2] # u\n", "l: [1]\n", "l: [1, 2] # u\n", id="flow"),
        pytest.param("a: 1\nb: 1 # b\n", "b: 1 # b\n", "a: 1\nb: 2 # b\n", "b: 2 # b\n", id="neighbour-removed"),
        pytest.param("a: 1\n", "a: '#1'\n", "a: 1\n", "a: '#1'\n", id="a-hash-in-quotes-is-none"),
        pytest.param(
            "a: |\n  # x\n",
            "a: |\n  # y\n",
            "a: |\n  # x\nb: 1\n",
            "a: |\n  # y\nb: 1\n",
            id="a-hash-in-a-block-is-none",
        ),
    ],
)
def test_comments_of_both_sides(origin: str, updated: str, local: str, expected: str) -> None:
    result = merged(origin, updated, local)

    assert result is not None
    # How an added scalar is quoted is the editor's business.
    assert result.replace('"#1"', "'#1'") == expected


DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata:{merge_key}
  name: web
spec:
  template:
    spec:
      containers:
{containers}"""


def deployment(containers: str, *, merge_key: str = "") -> str:
    indented = "".join(f"      {line}\n" for line in containers.splitlines())
    return DEPLOYMENT.format(containers=indented, merge_key=merge_key)


def test_an_elements_comments_stay_with_it_when_others_come_and_go() -> None:
    origin = deployment("- name: a\n  image: a:1\n- name: b\n  image: b:1")
    updated = deployment("- name: b\n  image: b:2\n# upstream's\n- name: c # new\n  image: c:1 # kpt-set: ${c}")
    local = deployment(
        "# of a\n- name: a\n  image: a:1\n# of b\n- name: b # b\n  image: b:1 # mine\n# of l\n- name: l",
        merge_key=" # kpt-merge: /web",
    )

    result = merged(origin, updated, local)

    assert result == deployment(
        "# of b\n- name: b # b\n  image: b:2 # mine\n# of l\n- name: l\n"
        "# upstream's\n- image: c:1 # kpt-set: ${c}\n  name: c # new",
        merge_key=" # kpt-merge: /web",
    )


def test_the_merge_key_outlives_every_merge() -> None:
    keyed = deployment("- name: a", merge_key=" # kpt-merge: /web")

    assert merged(keyed, deployment("- name: b"), keyed) == deployment("- name: b", merge_key=" # kpt-merge: /web")


@pytest.mark.parametrize(
    "local",
    [
        "a: 1\r\nb: 'x' # c\r\n",
        "\ufeffa: 1\nb: x\n",
        "---\na: 1\nb: x\n...\n",
        "a:    1\nb: x",
        "{a: 1, b: x}\n",
        "a: &n 1\nb: x\n",
        "? a\n: 1\nb: !!str x\n",
    ],
    ids=["crlf", "bom", "markers", "no-final-newline", "flow", "anchor", "explicit"],
)
def test_only_the_value_that_changed_changes(local: str) -> None:
    assert merged("a: 1\n", "a: 1\n", local) == local
    assert merged("a: 1\n", "a: 7\n", local) == local.replace("1", "7")


@pytest.mark.parametrize("text", ["y", "n", "yes", "on", "off", "null", "~", "1", "0x1f", "1e3", "true", "012", ""])
def test_strings_that_a_reader_may_mistake_are_quoted(text: str) -> None:
    result = merged("k: 0\n", f"k: 0\nimage: '{text}'\n", "k: 0\nl: 1\n")

    assert result == f'k: 0\nl: 1\nimage: "{text}"\n'


def test_quoting_of_a_changed_value_stays_local() -> None:
    assert merged("a: x\nb: x\n", "a: y1\nb: y2\n", "a: 'x'\nb: \"x\"\n") == "a: 'y1'\nb: \"y2\"\n"


@pytest.mark.parametrize(
    ("origin", "updated", "local", "expected"),
    [
        pytest.param(None, None, None, None, id="nothing"),
        pytest.param("", "# c\n", "", None, id="without-content"),
        pytest.param(None, "a: 1 # u\n", None, "a: 1 # u\n", id="added-keeps-its-text"),
        pytest.param("a: 1\n", None, "a:  1\n", None, id="removed-upstream-same-data"),
        pytest.param("a: 1\n", "", "a: 2\n", "a: 2\n", id="removed-upstream-edited"),
        pytest.param("a: 1\n", "a: 2\n", None, None, id="removed-here"),
        pytest.param("a: 1\n", "a: 1\n", "- 1\n", "- 1\n", id="another-kind-here"),
        pytest.param("", "0", "!", "0", id="a-tag-without-a-value-here"),
        pytest.param("a: 1\n", "a: 2\n", "- 1\n", "a: 2\n", id="another-kind-here-changed-upstream"),
    ],
)
def test_documents_that_come_and_go(
    origin: str | None, updated: str | None, local: str | None, expected: str | None
) -> None:
    assert merged(origin, updated, local) == expected


def test_a_kept_document_that_upstream_removed_is_reported() -> None:
    (conflict,) = merge_documents("a: 1\n", None, "a: 2\n").conflicts

    assert (conflict.path, conflict.updated, conflict.local, conflict.kept) == ("", None, '{"a":2}', Kept.LOCAL)


def test_what_tools_note_in_a_resource_is_no_edit() -> None:
    origin = "metadata:\n  name: a\n  annotations:\n    config.kubernetes.io/index: '0'\n"
    local = (
        "metadata: # kpt-merge: /a\n  name: a\n  annotations:\n    config.kubernetes.io/index: '1'\n"
        "    internal.kpt.dev/upstream-identifier: '|K|default|a'\n"
    )

    assert merged(origin, None, local) is None
    assert merged(origin, None, local.replace("name: a", "name: b")) is not None
    assert merged(origin, None, local.replace("kpt-merge: /a", "important")) is not None


@pytest.mark.parametrize("tree", range(3))
def test_what_is_not_one_document_is_refused_with_its_line(tree: int) -> None:
    for text, line in (("a: 1\nb: [\n", 3), ("a: 1\n---\nb: 1\n", 0), ("a: 1\na: 2\n", 2)):
        states = ["a: 1\n", "a: 2\n", "a: 3\n"]
        states[tree] = text

        with pytest.raises(YamlError) as caught:
            merge_documents(*states)

        assert caught.value.line == line


def test_aliases_keep_agreeing_with_their_anchor() -> None:
    local = "a: &x\n  k: 1\nb: *x\nc: 1\n"

    result = merged("a: {k: 1}\nb: {k: 1}\nc: 1\n", "a: {k: 2}\nb: {k: 1}\nc: 2\n", local)

    assert read_document(result or "") == {"a": {"k": 2}, "b": {"k": 1}, "c": 2}


@pytest.mark.parametrize(
    ("origin", "updated", "local", "expected"),
    [
        pytest.param("a: 1.9\n", "a: 1.10\n", "a: 1.9\nz: 0\n", "a: 1.10\nz: 0\n", id="float"),
        pytest.param("a: 1.1\n", "a: 1.10\n", "a: 1.1\nz: 0\n", "a: 1.10\nz: 0\n", id="only-the-spelling"),
        pytest.param("a: 1.1\n", "a: 1.10\n", "a: 1.100\n", "a: 1.100\n", id="only-the-spelling-by-both"),
        pytest.param("a: 1\n", "a: 0644\n", "a: 1\nz: 0\n", "a: 0644\nz: 0\n", id="octal"),
        pytest.param("a: 1\n", "a: 1\nb: 1e3\nc: yes\nd: .5\n", "a: 2\n", "a: 2\nb: 1e3\nc: yes\nd: .5\n", id="added"),
        pytest.param("l: [1]\n", "l: [1, 0x1F]\n", "l: [1] # mine\n", "l: [1, 0x1F] # mine\n", id="in-lists"),
        pytest.param(
            "l:\n- 1.10\n- 2\n",
            "l:\n- 2\n- 1.10\n- 3.0\n",
            "# h\nl:\n- 1.10\n- 2\n",
            "# h\nl:\n- 2\n- 1.10\n- 3.0\n",
            id="moved",
        ),
        pytest.param(
            "a: 1\n", "a: 99999999999999999999\n", "a: 1\nz: 0\n", "a: 99999999999999999999\nz: 0\n", id="large"
        ),
        pytest.param("a: &x 1\n", "a: &x 2.0\nb: *x\n", "a: 1\nz: 0\n", "a: 2.0\nz: 0\nb: 2.0\n", id="anchored"),
    ],
)
def test_numbers_are_spelled_as_upstream_spells_them(origin: str, updated: str, local: str, expected: str) -> None:
    assert merged(origin, updated, local) == expected
