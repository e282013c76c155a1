"""Where functions may put resources: ``kpt.md`` 2.5, 2.7 and 2.11."""

from typing import Any

import pytest
from render_packages import CONFIG_MAP, OwnFunctions, mutate, package

from krm.functions.pipeline import Rendered, render
from krm.functions.resource import Resource
from krm.package.contents import SYMLINK, Contents, File
from krm.package.yaml_reader import read_document, read_documents

LEGACY = "config.kubernetes.io"
INTERNAL = "internal.config.kubernetes.io"


def _annotate(**annotations: Any) -> OwnFunctions:
    """Annotate the last resource; in the names, ``l`` and ``i`` stand for the old and the new family."""
    named = {f"{LEGACY if key[0] == 'l' else INTERNAL}/{key[2:]}": value for key, value in annotations.items()}

    def annotate(items: list[Resource]) -> None:
        items[-1].data["metadata"].setdefault("annotations", {}).update(named)

    return OwnFunctions(annotate)


def _render(runner: OwnFunctions, contents: Contents | None = None) -> Rendered:
    return render(contents or package(mutate("x"), a_yaml=CONFIG_MAP), runner)


def _place(path: str) -> OwnFunctions:
    def place(items: list[Resource]) -> None:
        items[-1].path = path

    return OwnFunctions(place)


@pytest.mark.parametrize("name", ["l_path", "i_path"])
def test_either_path_annotation_moves_the_resource_and_is_not_kept(name: str) -> None:
    rendered = _render(_annotate(**{name: "b/./c.yaml"}))

    assert "a.yaml" not in rendered.contents
    assert rendered.contents["b/c.yaml"].data.decode() == CONFIG_MAP


def test_both_annotations_may_say_the_same() -> None:
    assert "b.yaml" in _render(_annotate(l_path="b.yaml", i_path="b.yaml")).contents


def test_annotation_that_repeats_the_place_gives_way_to_the_one_that_changes_it() -> None:
    assert "b.yaml" in _render(_annotate(l_path="b.yaml", i_path="a.yaml")).contents


def test_annotations_that_disagree_are_refused() -> None:
    rendered = _render(_annotate(l_path="b.yaml", i_path="c.yaml"))

    assert rendered.cause == "resource input to function has mismatched legacy and internal path annotations"


@pytest.mark.parametrize("index", ["1.5", "-1", "x", "9" * 30])
def test_index_must_be_a_number(index: str) -> None:
    assert "an index is a number from 0" in _render(_annotate(l_index=index)).cause


def test_index_annotations_reorder_a_file() -> None:
    def swap(items: list[Resource]) -> None:
        for item, index in zip(items[1:], (1, 0), strict=True):
            item.data["metadata"]["annotations"] = {f"{LEGACY}/index": index}

    other = CONFIG_MAP.replace("name: a", "name: b")
    contents = package(mutate("x"), a_yaml=f"{CONFIG_MAP}---\n{other}")

    assert _render(OwnFunctions(swap), contents).contents["a.yaml"].data.decode() == f"{other}---\n{CONFIG_MAP}"


def test_annotations_of_transport_in_a_file_are_taken_out() -> None:
    text = CONFIG_MAP.replace("name: a\n", f"name: a\n  annotations:\n    {LEGACY}/path: z.yaml\n    keep: me\n")

    rendered = _render(OwnFunctions(lambda _: None), package(mutate("x"), a_yaml=text))

    assert read_document(rendered.contents["a.yaml"].data)["metadata"]["annotations"] == {"keep": "me"}


def test_annotations_that_say_nothing_go_from_what_changes_only() -> None:
    empty = CONFIG_MAP.replace("name: a\n", "name: a\n  annotations: {}\n  labels: {}\n")

    def change(items: list[Resource]) -> None:
        items[1].data["data"]["x"] = "z"

    rendered = _render(OwnFunctions(change), package(mutate("x"), a_yaml=empty, b_yaml=empty))

    assert read_document(rendered.contents["a.yaml"].data)["metadata"] == {"name": "a", "labels": {}}
    assert rendered.contents["b.yaml"].data.decode() == empty


def test_new_annotations_stand_behind_the_fields_that_were_there() -> None:
    def change(items: list[Resource]) -> None:
        items[-1].data["metadata"].update(namespace="n", annotations={"a": "b"})

    rendered = _render(OwnFunctions(change))

    assert list(read_document(rendered.contents["a.yaml"].data)["metadata"]) == ["name", "annotations", "namespace"]


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("b/", "config.kubernetes.io/path cannot be a directory"),
        (".", "config.kubernetes.io/path cannot be a directory"),
        ("sub", "config.kubernetes.io/path cannot be a directory"),
        ("notes.txt/a.yaml", '"notes.txt" is a file'),
        ("sub/../../a.yaml", "resource has path ../a.yaml"),
        (".git/config", "names Git's own directory"),
        ("a\nb.yaml", "control character"),
        ("x" * 300, "longer than 255 bytes"),
    ],
)
def test_paths_that_no_file_can_have_are_refused(path: str, reason: str) -> None:
    contents = package(mutate("x"), notes_txt="", sub__b_yaml=CONFIG_MAP, z_yaml=CONFIG_MAP)

    rendered = _render(_place(path), contents)

    assert reason in rendered.cause
    assert {name for name, file in rendered.contents.items() if contents.get(name) is not file} == {"Kptfile"}


def test_links_are_not_written_through() -> None:
    contents = {**package(mutate("x"), a_yaml=CONFIG_MAP), "link.yaml": File(b"/etc/passwd", SYMLINK)}

    rendered = _render(_place("link.yaml"), contents)

    assert rendered.failed
    assert rendered.contents["link.yaml"] is contents["link.yaml"]


def test_generated_resource_belongs_to_the_package_that_made_it() -> None:
    def generate(items: list[Resource]) -> list[Resource]:
        made = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
        return [*items, Resource(made, path="made.yaml")]

    contents = package()
    contents["sub/Kptfile"] = package(mutate("x"))["Kptfile"]

    assert "sub/made.yaml" in _render(OwnFunctions(generate), contents).contents


def test_generated_resources_of_a_file_keep_their_order_behind_what_is_there() -> None:
    def generate(items: list[Resource]) -> list[Resource]:
        names = ("z", "b")
        made = [{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}} for name in names]
        return [*items, Resource(made[0], path="a.yaml"), Resource(made[1], path="a.yaml", index=7)]

    rendered = _render(OwnFunctions(generate))

    names = [document["metadata"]["name"] for document in read_documents(rendered.contents["a.yaml"].data)]
    assert names == ["a", "z", "b"]


def test_two_resources_without_index_in_one_file_are_refused() -> None:
    def generate(items: list[Resource]) -> list[Resource]:
        made = [{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}} for name in ("b", "c")]
        return [*items, *(Resource(data, path="new.yaml") for data in made)]

    assert 'path "new.yaml" and index "" already exists' in _render(OwnFunctions(generate)).cause


def test_resource_returned_twice_is_refused() -> None:
    assert "already exists" in _render(OwnFunctions(lambda items: [*items, items[0]])).cause


def test_single_resource_of_a_new_json_file_is_json_with_sorted_keys() -> None:
    rendered = _render(_place("a.json"))

    wanted = (
        '{\n  "apiVersion": "v1",\n  "data": {\n    "x": "one"\n  },\n  "kind": "ConfigMap",\n'
        '  "metadata": {\n    "name": "a"\n  }\n}\n'
    )
    assert rendered.contents["a.json"].data.decode() == wanted


def test_several_resources_of_a_json_file_are_yaml() -> None:
    text = '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}}\n'

    rendered = _render(_place("b.json"), package(mutate("x"), b_json=text, z_yaml=CONFIG_MAP))
    assert "already exists" in rendered.cause

    def join(items: list[Resource]) -> None:
        items[-1].path, items[-1].index = "b.json", 1

    rendered = _render(OwnFunctions(join), package(mutate("x"), b_json=text, z_yaml=CONFIG_MAP))
    assert rendered.contents["b.json"].data.decode().startswith("apiVersion: v1\n")
    assert len(read_documents(rendered.contents["b.json"].data)) == 2


def test_json_moved_to_a_yaml_file_is_yaml() -> None:
    text = '{\n\t"apiVersion": "v1",\n\t"kind": "ConfigMap",\n\t"metadata": {"name": "b"}\n}\n'

    rendered = _render(_place("b.yaml"), package(mutate("x"), b_json=text))

    assert rendered.contents["b.yaml"].data.decode() == "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: b\n"


def test_functions_cannot_make_a_package_of_too_many_files() -> None:
    def generate(items: list[Resource]) -> list[Resource]:
        made = [{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"s{n}"}} for n in range(10_001)]
        return [*items, *map(Resource, made)]

    assert "more than 10000" in _render(OwnFunctions(generate)).cause
