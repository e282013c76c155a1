"""Merging the resources of a package: the table of ``kpt.md`` 3.4, files, order, moves, definitions."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from krm.package.contents import EXECUTABLE, SYMLINK, File
from krm.package.merge.conflicts import Kept
from krm.package.merge.resource_files import DuplicateResource, UnreadableFile
from krm.package.merge.resource_merge import MergedResources, merge_resources
from krm.package.yaml_reader import read_document

CASES = Path(__file__).parents[4] / "data/kpt/resource-merge"
Texts = Mapping[str, str]


def contents(texts: Texts) -> dict[str, File]:
    return {path: File(text.encode()) for path, text in texts.items()}


def run(origin: Texts, updated: Texts, local: Texts) -> MergedResources:
    return merge_resources(contents(origin), contents(updated), contents(local))


def merged(origin: Texts, updated: Texts, local: Texts) -> dict[str, str]:
    return {path: file.data.decode() for path, file in run(origin, updated, local).files.items()}


def config(name: str, value: str = "1", *, comment: str = "", more: str = "", kind: str = "ConfigMap") -> str:
    return f"apiVersion: v1\nkind: {kind}\nmetadata:{comment}\n  name: {name}\n{more}data:\n  k: '{value}'\n"


KEPT_KEY = "  annotations:\n    internal.kpt.dev/upstream-identifier: '|ConfigMap|default|a'\n"
A, A2, A3 = config("a"), config("a", "2"), config("a", "3")
A_KEYED = config("a", comment=" # kpt-merge: /a", more=KEPT_KEY)
B, C = config("b"), config("c")


def rows(*texts: str) -> str:
    return "---\n".join(texts)


@pytest.mark.parametrize(
    ("origin", "updated", "local", "expected"),
    [
        pytest.param(None, None, A, A, id="only-local"),
        pytest.param(None, A, None, A, id="added-upstream"),
        pytest.param(None, A, A3, A, id="added-by-both"),
        pytest.param(A, None, A, None, id="removed-upstream"),
        pytest.param(A, None, A3, A3, id="removed-upstream-edited-here"),
        pytest.param(A, None, A_KEYED, None, id="merge-keys-are-no-edit"),
        pytest.param(A, None, A.replace("'1'", "'1' # mine"), A.replace("'1'", "'1' # mine"), id="comments-are"),
        pytest.param(A, A2, None, None, id="removed-here"),
        pytest.param(A, None, None, None, id="removed-by-both"),
        pytest.param(A, A2, A, A2, id="changed-upstream"),
        pytest.param(A, A, A3, A3, id="changed-here"),
        pytest.param(A, A2, A3, A2, id="changed-by-both"),
        pytest.param(A, A2, A_KEYED, A_KEYED.replace("'1'", "'2'"), id="merge-keys-stay"),
        pytest.param(
            A, A2, config("z", comment=" # kpt-merge: /a"), config("z", "2", comment=" # kpt-merge: /a"), id="renamed"
        ),
        pytest.param(
            A.replace("v1", "apps/v1"),
            A2.replace("v1", "apps/v2"),
            A.replace("v1", "apps/v1"),
            A2.replace("v1", "apps/v2"),
            id="version-is-no-identity",
        ),
    ],
)
def test_one_resource(origin: str | None, updated: str | None, local: str | None, expected: str | None) -> None:
    states = ({} if text is None else {"f.yaml": text} for text in (origin, updated, local))

    assert merged(*states) == ({} if expected is None else {"f.yaml": expected})


@pytest.mark.parametrize(
    ("origin", "updated", "local", "kept"),
    [
        pytest.param(A, None, A3, Kept.LOCAL, id="removed-upstream-edited-here"),
        pytest.param(A, A2, None, Kept.LOCAL, id="removed-here-changed-upstream"),
    ],
)
def test_a_removal_against_a_change_is_reported(
    origin: str, updated: str | None, local: str | None, kept: Kept
) -> None:
    states = ({"o.yaml": C} if text is None else {"f.yaml": text, "o.yaml": C} for text in (origin, updated, local))

    conflicts = run(*states).conflicts

    assert [(one.file, one.resource, one.path, one.kept) for one in conflicts] == [
        ("f.yaml", "|ConfigMap||a", "", kept)
    ]


def test_a_field_conflict_names_file_resource_and_values() -> None:
    (conflict,) = run({"d/f.yaml": A}, {"d/f.yaml": A2}, {"d/f.yaml": A3}).conflicts

    assert (conflict.file, conflict.resource, conflict.path) == ("d/f.yaml", "|ConfigMap||a", "data.k")
    assert (conflict.origin, conflict.updated, conflict.local) == ('"1"', '"2"', '"3"')
    assert "d/f.yaml: |ConfigMap||a: data.k" in str(conflict)


def test_group_kind_namespace_and_name_tell_resources_apart() -> None:
    others = [config("a", kind="Secret"), A.replace("name: a", "name: a\n  namespace: n"), A.replace("v1", "x.y/v1")]
    origin = rows(A, *others)

    assert merged({"f.yaml": origin}, {"f.yaml": rows(A2, *others)}, {"f.yaml": rows(A, *others, B)}) == {
        "f.yaml": rows(A2, *others, B)
    }


@pytest.mark.parametrize(
    ("origin", "updated", "local", "expected"),
    [
        pytest.param([A, B, C], [C, A, B], [A, B, C], [C, A, B], id="reordered-upstream"),
        pytest.param([A, B, C], [A2, B, C], [C, A, B], [C, A2, B], id="reordered-here"),
        pytest.param([A, B], [A, C, B], [A, B], [A, C, B], id="added-in-between-upstream"),
        pytest.param([A, B], [A2, B], [A, C, B], [A2, C, B], id="added-in-between-here"),
        pytest.param(
            [A, C], [A, B, C], [A, config("l"), C], [A, B, config("l"), C], id="added-by-both-upstreams-first"
        ),
        pytest.param([A, B, C], [B, C], [A, B, C], [B, C], id="first-removed-upstream"),
        pytest.param([A, B, C], [A, B], [A, B, C, config("l")], [A, B, config("l")], id="removed-upstream-added-here"),
    ],
)
def test_order_in_a_file(origin: list[str], updated: list[str], local: list[str], expected: list[str]) -> None:
    assert merged(*({"f.yaml": rows(*texts)} for texts in (origin, updated, local))) == {"f.yaml": rows(*expected)}


def test_documents_keep_what_stands_between_them() -> None:
    local = f"# top\n---\n{A}# a ends\n--- # here\n# comment only\n---\n{B}...\n---\n{C}# end\n"

    result = merged({"f.yaml": rows(A, B, C)}, {"f.yaml": rows(A2, B, C)}, {"f.yaml": local})

    assert result == {"f.yaml": local.replace("k: '1'", "k: '2'", 1)}


def test_a_document_between_others_is_taken_out_with_its_separator() -> None:
    local = f"---\n{A}---\n{B}---\n{C}"

    assert merged({"f.yaml": rows(A, B, C)}, {"f.yaml": rows(A, C)}, {"f.yaml": local}) == {
        "f.yaml": f"---\n{A}---\n{C}"
    }
    assert merged({"f.yaml": rows(A, B, C)}, {"f.yaml": rows(B, C)}, {"f.yaml": local}) == {
        "f.yaml": f"---\n{B}---\n{C}"
    }


def test_an_added_document_keeps_upstreams_text_and_the_files_line_ends() -> None:
    new = "# about c\n" + C.replace("data:", "data:   # odd   spacing").rstrip("\n")
    local = A.replace("'1'", "'3'").replace("\n", "\r\n").rstrip()

    result = merged({"f.yaml": A}, {"f.yaml": rows(A, new)}, {"f.yaml": local})

    assert result["f.yaml"] == f"{local}\r\n---\r\n{new}"


def test_a_file_nobody_touched_here_becomes_upstreams_byte_for_byte() -> None:
    origin = "---\n" + rows(A, B)
    updated = f"\ufeff# new header\n---\n{A2}--- # x\n{C}...\n"

    assert merged({"f.yaml": origin}, {"f.yaml": updated}, {"f.yaml": origin}) == {"f.yaml": updated}


def test_a_null_that_clears_a_field_clears_it_in_untouched_files_too() -> None:
    result = merged({"f.yaml": A}, {"f.yaml": A.replace("'1'", "null")}, {"f.yaml": A})

    assert read_document(result["f.yaml"])["data"] == {}


def test_a_file_without_resources_left_is_removed_but_not_one_that_had_none() -> None:
    local = {"f.yaml": "# header\n---\n" + A, "notes.yaml": "# only a comment\n"}

    assert merged({"f.yaml": A, "notes.yaml": B}, {"notes.yaml": B}, local) == {"notes.yaml": "# only a comment\n"}


def test_other_files_are_left_to_others() -> None:
    assert merged({}, {"Kptfile": A, "x.json": "{}", "a.yml": B}, {"README.md": "x"}) == {"a.yml": B}


@pytest.mark.parametrize(
    ("origin", "updated", "local", "expected"),
    [
        pytest.param({"f": A}, {"f": A2}, {"g": A_KEYED}, {"g": A_KEYED.replace("'1'", "'2'")}, id="moved-here"),
        pytest.param({"f": A}, {"g": A2}, {"f": A_KEYED}, {"g": A_KEYED.replace("'1'", "'2'")}, id="moved-upstream"),
        pytest.param({"f": A}, {"g": A2}, {"h": A}, {"h": A2}, id="moved-by-both"),
        pytest.param({"f": A}, {"g": A}, {"f": A}, {"g": A}, id="only-moved-upstream"),
        pytest.param({"f": A}, {}, {"g": A_KEYED}, {}, id="moved-here-removed-upstream"),
        pytest.param({"f": A, "g": A}, {"f": A2, "g": A}, {"h": A, "g": A}, {"h": A, "g": A}, id="ambiguous"),
        pytest.param({}, {"f": A}, {"g": A2}, {"f": A, "g": A2}, id="added-by-both-elsewhere"),
        pytest.param({"f": A}, {"f": A, "g": A2}, {"f": A}, {"f": A, "g": A2}, id="a-second-one-upstream"),
        pytest.param(
            {"f": rows(A, B)}, {"f": rows(A2, B)}, {"f": B, "g": rows(C, A)}, {"f": B, "g": rows(C, A2)}, id="split"
        ),
    ],
)
def test_moved_resources(origin: Texts, updated: Texts, local: Texts, expected: Texts) -> None:
    def named(texts: Texts) -> Texts:
        return {f"{name}.yaml": text for name, text in texts.items()}

    assert merged(named(origin), named(updated), named(local)) == named(expected)


@pytest.mark.parametrize(("tree", "word"), [(0, "original"), (1, "updated"), (2, "dest")])
def test_two_resources_of_one_identity_are_refused(tree: int, word: str) -> None:
    states = [{"d/f.yaml": rows(A, B)} for _ in range(3)]
    states[tree] = {"d/f.yaml": rows(A, B, A2)}

    with pytest.raises(DuplicateResource) as caught:
        run(*states)

    assert str(caught.value) == (
        f'found duplicate "{word}" resources in file "d/f.yaml", please refer to "update" documentation for the fix'
    )
    assert caught.value.identity.name == "a"


def test_a_merge_comment_can_make_a_duplicate() -> None:
    twin = config("b", comment=" # kpt-merge: /a")

    with pytest.raises(DuplicateResource):
        run({}, {}, {"f.yaml": rows(A, twin)})


VALUES, VALUES2, VALUES3 = "replicas: 1\n", "replicas: 2\n", "replicas: 1\nmine: true\n"
BROKEN = "a: {{ .Values.x }}\n  b: [\n"


@pytest.mark.parametrize(
    ("origin", "updated", "local", "expected", "reported"),
    [
        pytest.param(VALUES, VALUES2, VALUES, VALUES2, False, id="no-kind"),
        pytest.param(VALUES, VALUES2, VALUES3, VALUES3, True, id="no-kind-changed-by-both"),
        pytest.param(VALUES, None, VALUES, None, False, id="no-kind-removed"),
        pytest.param(None, VALUES, None, VALUES, False, id="no-kind-added"),
        pytest.param("- 1\n", "- 2\n", "- 1\n", "- 2\n", False, id="list"),
        pytest.param(A, rows(A2, VALUES), A, rows(A2, VALUES), False, id="among-resources"),
        pytest.param(BROKEN, BROKEN + "#2", BROKEN, BROKEN + "#2", False, id="not-yaml"),
        pytest.param(BROKEN, BROKEN, A, A, False, id="not-yaml-upstream"),
        pytest.param(None, None, BROKEN, BROKEN, False, id="not-yaml-here"),
        pytest.param("# c\n", "# d\n", "# c\n", "# d\n", False, id="only-comments"),
    ],
)
def test_files_of_something_else_are_merged_as_files(
    origin: str | None, updated: str | None, local: str | None, expected: str | None, reported: bool
) -> None:
    result = run(*({} if text is None else {"f.yaml": text} for text in (origin, updated, local)))

    assert {path: file.data.decode() for path, file in result.files.items()} == (
        {} if expected is None else {"f.yaml": expected}
    )
    assert [conflict.file for conflict in result.conflicts] == (["f.yaml"] if reported else [])


def test_a_file_that_both_changed_and_nobody_can_read_is_refused_with_its_place() -> None:
    with pytest.raises(UnreadableFile) as caught:
        run({"d/f.yaml": A}, {"d/f.yaml": A2}, {"d/f.yaml": A + "---\nb: [\n"})

    assert (caught.value.path, caught.value.tree) == ("d/f.yaml", "dest")
    assert caught.value.line >= 8
    assert str(caught.value).startswith(f"d/f.yaml (dest): yaml: line {caught.value.line}: ")


def test_binary_files_and_links_are_not_looked_into() -> None:
    local = {"b.yaml": File(b"\xff\xfe"), "l.yaml": File(b"elsewhere", SYMLINK)}

    assert merge_resources({}, {}, local).files == local


def test_the_mode_is_upstreams_unless_it_was_changed_here() -> None:
    plain, executable = File(A.encode()), File(A2.encode(), EXECUTABLE)

    def mode(*files: File) -> int:
        return merge_resources(*({"f.yaml": file} for file in files)).files["f.yaml"].mode

    assert mode(plain, executable, plain) == EXECUTABLE
    assert mode(plain, File(A3.encode()), executable) == EXECUTABLE
    assert mode(executable, executable, plain) == plain.mode


def wrapped(path: Path) -> dict[str, str]:
    """Return the files that a case of porch keeps inside one object, the Kptfile left out."""
    files = read_document(path.read_text())["spec"]["resources"]
    return {name: text for name, text in files.items() if name != "Kptfile"}


def case_of(name: str) -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    crds = {path.name: path.read_text() for path in (CASES / name).glob("*.crd.yaml")}
    origin, updated, local = (
        wrapped(CASES / name / f"{tree}.yaml") | crds for tree in ("original", "updated", "destination")
    )
    return origin, updated, local


FRUITS = [
    pytest.param("one-key-crd", [("grape", 5), ("apple", 20), ("banana", 3), ("pear", 30)], id="one-key-crd"),
    pytest.param("one-key-crd-empty-dest", [("pear", 30), ("apple", 20)], id="one-key-crd-empty-dest"),
    pytest.param("non-assoc-crd", [("pear", 30), ("apple", 20), ("grape", 5)], id="non-assoc-crd"),
]


@pytest.mark.parametrize(("name", "fruits"), FRUITS)
def test_lists_of_custom_resources(name: str, fruits: list[tuple[str, int]]) -> None:
    result = merged(*case_of(name))

    spec = read_document(result["fruitstore.yaml"])["spec"]
    assert [(fruit["name"], fruit["amount"]) for fruit in spec["fruits"]] == fruits
    assert (spec["airConditioned"], spec["preferredTemperature"]) == (False, 10)


def test_a_simple_conflict_is_upstreams_and_reported() -> None:
    result = run(*case_of("simple-conflict"))

    deployment = read_document(result.files["deployment.yaml"].data)
    assert deployment["spec"]["template"]["spec"]["containers"] == [{"name": "test-app", "image": "test-image:updated"}]
    assert [conflict.path for conflict in result.conflicts] == ["spec.template.spec.containers[name=test-app].image"]


def test_nulls_of_origin_do_not_clear() -> None:
    folder = CASES / "keep-tagged-null"
    trees = (
        {"configmap.yaml": (folder / tree / "configmap.yaml").read_text()} for tree in ("origin", "updated", "dest")
    )

    result = merged(*trees)

    expected = (folder / "expected/configmap.yaml").read_text()
    assert read_document(result["configmap.yaml"]) == read_document(expected)
    assert result["configmap.yaml"].splitlines() == expected.splitlines()


def test_a_definition_of_any_tree_and_any_file_counts() -> None:
    origin, updated, local = case_of("one-key-crd")
    crd = local.pop("fruitstore.crd.yaml")
    del origin["fruitstore.crd.yaml"]
    updated["sub/definitions.yaml"] = rows(A, crd)
    del updated["fruitstore.crd.yaml"]

    result = merged(origin, updated, local)

    names = [fruit["name"] for fruit in read_document(result["fruitstore.yaml"])["spec"]["fruits"]]
    assert names == ["grape", "apple", "banana", "pear"]


def test_several_keys_of_a_definition() -> None:
    names = ("original", "updated", "destination")
    crd: Any = (CASES / "one-key-crd/fruitstore.crd.yaml").read_text().replace("[ name ]", "[ name, amount ]")
    origin, updated, local = (wrapped(CASES / "one-key-crd" / f"{name}.yaml") | {"crd.yaml": crd} for name in names)

    result = read_document(merged(origin, updated, local)["fruitstore.yaml"])

    fruits = [(fruit["name"], fruit["amount"]) for fruit in result["spec"]["fruits"]]
    assert fruits == [("grape", 5), ("apple", 25), ("banana", 3), ("pear", 30), ("apple", 20)]
