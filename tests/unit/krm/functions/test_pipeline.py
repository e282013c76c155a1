import pytest
from kpt_cases import DATA, load_package
from render_packages import CONFIG_MAP, OwnFunctions, package

from krm.functions.builtins import BuiltinRunner
from krm.functions.pipeline import Rendered, render
from krm.functions.resource import Resource
from krm.functions.runner import FunctionResult, ResourceList
from krm.package.contents import EXECUTABLE, Contents, File
from krm.package.init import init_package
from krm.package.kptfile import parse_kptfile
from krm.package.yaml_reader import read_document, read_documents

IMAGE = "ghcr.io/kptdev/krm-functions-catalog"


def _mutate(image: str, config: str = "", more: str = "") -> str:
    text = f"pipeline:\n  mutators:\n  - image: {image}\n"
    return text + (f"    configMap: {config}\n" if config else "") + more


def _render(contents: Contents) -> Rendered:
    return render(contents, BuiltinRunner())


def test_new_package_is_only_marked_as_rendered() -> None:
    contents = init_package("a", "", [], "")

    rendered = _render(contents)

    assert not rendered.failed
    assert rendered.results == {}
    assert {path for path, file in rendered.contents.items() if file != contents[path]} == {"Kptfile"}
    assert parse_kptfile(rendered.contents["Kptfile"].data).conditions[0]["status"] == "True"
    assert _render(rendered.contents).contents == rendered.contents


def test_package_without_kptfile_is_left_alone() -> None:
    contents = {"a.yaml": File(b"x: [")}

    assert _render(contents) == Rendered(contents, {})


def test_setters_give_what_upstream_gives() -> None:
    directory = DATA / "porch" / "simple-render"

    rendered = _render(load_package(directory / "simple-bucket"))

    wanted = read_document((directory / "expected.txt").read_bytes())
    del wanted["metadata"]["annotations"]["cnrm.cloud.google.com/blueprint"]  # attribution, which we leave out
    assert read_document(rendered.contents["bucket.yaml"].data) == wanted


def test_unknown_image_fails_with_its_name_and_a_remedy() -> None:
    rendered = _render(package(_mutate("frobnicate:v0.5")))

    assert rendered.failed
    assert f'function "{IMAGE}/frobnicate:v0.5" not found: it is not a built-in function' in rendered.error
    assert rendered.cause in rendered.error
    assert rendered.results["exitCode"] == 1


def test_image_that_cannot_run_stops_the_package_before_any_function() -> None:
    seen: list[object] = []
    pipeline = _mutate("set-labels", "{a: b}", "  - exec: ./run.sh\n")

    rendered = render(package(pipeline), OwnFunctions(seen.append))

    assert seen == []
    assert "must run with `--allow-exec` option to allow running function binaries" in rendered.error


def test_only_changed_files_are_written_and_only_where_they_change() -> None:
    untouched = "# odd layout\napiVersion:   v1\r\nkind: Secret\nmetadata: {name: s, namespace:   prod}"
    contents = package(_mutate("set-namespace:v0.4.2", "{namespace: prod}"), a_yaml=CONFIG_MAP, b_yaml=untouched)
    contents["a.yaml"] = File(contents["a.yaml"].data, EXECUTABLE)
    contents["logo.png"] = File(b"\xff\0")

    rendered = _render(contents)

    assert rendered.contents["b.yaml"] == contents["b.yaml"]
    assert rendered.contents["logo.png"] == contents["logo.png"]
    changed = CONFIG_MAP.replace("  name: a\n", "  name: a\n  namespace: prod\n")
    assert rendered.contents["a.yaml"] == File(changed.encode(), EXECUTABLE)


def test_untouched_documents_of_a_changed_file_keep_their_bytes() -> None:
    text = f"# one\n{CONFIG_MAP}--- # two\napiVersion: x/v1\nkind:   Custom\nmetadata: {{ name: c }}\n---\n# nothing\n"

    rendered = _render(package(_mutate("set-namespace", "{namespace: prod}"), a_yaml=text))

    assert rendered.contents["a.yaml"].data.decode() == text.replace("  name: a\n", "  name: a\n  namespace: prod\n")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("kind: X\nmetadata:\n  name: a\n", "a.yaml: resource must have `apiVersion`"),
        ("apiVersion: v1\nmetadata:\n  name: a\n", "a.yaml: resource must have `kind`"),
        ("apiVersion: v1\nkind: X\n", "a.yaml: resource must have `metadata.name`"),
        ("- a\n", "a.yaml: resource must have `metadata`"),
        ("a: [\n", "a.yaml: yaml: line 2"),
        ("a: 1\na: 2\n", 'a.yaml: yaml: line 2: mapping key "a" already defined at line 1'),
    ],
)
def test_files_that_are_no_resources_fail_the_render(text: str, reason: str) -> None:
    rendered = _render(package(a_yaml=text))

    assert rendered.failed
    assert reason in rendered.error


def test_kustomizations_and_ignored_files_need_not_be_resources() -> None:
    contents = package(kustomization_yaml="resources: []\n", sub__draft_yaml="a: [\n", _krmignore="# no\ndraft.yaml\n")

    assert _render(contents).error == ""


def test_deep_json_is_refused() -> None:
    contents = package(a_json='{"a":' * 300 + "1" + "}" * 300)

    assert "nested deeper than 256 levels" in _render(contents).error


def test_json_stays_json() -> None:
    text = '{\n  "apiVersion": "v1",\n  "kind": "ConfigMap",\n  "metadata": {"name": "a"}\n}\n'

    rendered = _render(package(_mutate("set-labels", "{a: b}"), a_json=text))

    data = read_document(rendered.contents["a.json"].data)
    assert data["metadata"] == {"name": "a", "labels": {"a": "b"}}
    assert rendered.contents["a.json"].data.startswith(b"{\n")


def test_deleted_document_goes_with_its_separator() -> None:
    text = f"{CONFIG_MAP}---\n{CONFIG_MAP.replace('name: a', 'name: b')}---\n{CONFIG_MAP.replace('name: a', 'name: c')}"

    def drop(items: list[Resource]) -> list[Resource]:
        return [item for item in items if item.data["metadata"]["name"] != "b"]

    rendered = render(package(_mutate("x"), a_yaml=text), OwnFunctions(drop))

    assert rendered.contents["a.yaml"].data.decode() == f"{CONFIG_MAP}---\n{CONFIG_MAP.replace('name: a', 'name: c')}"


def test_file_whose_resources_are_all_deleted_is_removed() -> None:
    rendered = render(package(_mutate("x"), a_yaml=CONFIG_MAP), OwnFunctions(lambda items: items[:1]))

    assert set(rendered.contents) == {"Kptfile"}


def test_deleting_everything_removes_the_kptfile_too() -> None:
    assert render(package(_mutate("x"), a_yaml=CONFIG_MAP), OwnFunctions(lambda _: [])).contents == {}


def test_generated_resources_get_a_file_in_theirpackage() -> None:
    made = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "prod"}}
    contents = package()
    sub = package(_mutate("x"))
    contents["sub/Kptfile"] = sub["Kptfile"]

    rendered = render(contents, OwnFunctions(lambda items: [*items, Resource(dict(made))]))

    assert read_document(rendered.contents["sub/prod/secret_s.yaml"].data) == made


def test_moved_resource_keeps_its_text_and_leaves_its_file() -> None:
    def move(items: list[Resource]) -> None:
        items[-1].path = "b/c.yaml"

    rendered = render(package(_mutate("x"), a_yaml="# c\n" + CONFIG_MAP), OwnFunctions(move))

    assert "a.yaml" not in rendered.contents
    assert rendered.contents["b/c.yaml"].data.decode() == "# c\n" + CONFIG_MAP


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("../x.yaml", "function must not modify resources outside of package: resource has path ../x.yaml"),
        ("/x.yaml", "package paths may not be absolute paths"),
        ("Kptfile", 'resource at path "Kptfile" and index "0" already exists'),
    ],
)
def test_paths_that_functions_must_not_choose(path: str, reason: str) -> None:
    def move(items: list[Resource]) -> None:
        items[-1].path = path

    contents = package(_mutate("x"), a_yaml=CONFIG_MAP)
    rendered = render(contents, OwnFunctions(move))

    assert reason in rendered.error
    assert rendered.contents["a.yaml"] is contents["a.yaml"]
    assert set(rendered.contents) == set(contents)


def test_function_output_must_be_resources() -> None:
    def spoil(items: list[Resource]) -> None:
        del items[-1].data["kind"]

    rendered = render(package(_mutate("x"), a_yaml=CONFIG_MAP), OwnFunctions(spoil))

    assert "output resource list must contain only KRM resources: a.yaml: resource must have `kind`" in rendered.error


def test_validators_change_nothing() -> None:
    pipeline = "pipeline:\n  validators:\n  - image: set-labels\n    configMap: {a: b}\n"
    rendered = _render(package(pipeline, a_yaml=CONFIG_MAP))

    assert rendered.contents["a.yaml"].data.decode() == CONFIG_MAP
    assert parse_kptfile(rendered.contents["Kptfile"].data).raw["status"]["renderStatus"]["validationSteps"]


@pytest.mark.parametrize(
    ("breadth_first", "order"), [(False, ["a", "b", "root"]), (True, ["root", "a", "b"])], ids=["depth", "breadth"]
)
def test_packages_are_rendered_in_order(breadth_first: bool, order: list[str]) -> None:
    contents = package(_mutate("root"))
    if breadth_first:
        text = contents["Kptfile"].data.replace(
            b"  name: app\n", b"  name: app\n  annotations: {kpt.dev/bfs-rendering: 'true'}\n"
        )
        contents["Kptfile"] = File(text)
    for name in ("b", "a"):
        contents[f"{name}/Kptfile"] = package(_mutate(name))["Kptfile"]

    rendered = render(contents, OwnFunctions(lambda _: None))

    assert [item["image"].rpartition("/")[2] for item in rendered.results["items"]] == [
        f"{name}:latest" for name in order
    ]


def test_functions_see_resources_in_the_order_of_a_walk() -> None:
    seen: list[str] = []
    files = {f"{path}.yaml": File(CONFIG_MAP.encode()) for path in ("b", "a-b/x", "a/x", "a/b/x", "a")}

    render({**package(_mutate("x")), **files}, OwnFunctions(lambda items: seen.extend(item.path for item in items)))

    assert seen == ["Kptfile", "a/b/x.yaml", "a/x.yaml", "a-b/x.yaml", "a.yaml", "b.yaml"]


def test_subpackage_does_not_see_its_siblings() -> None:
    seen: list[set[str]] = []
    contents = package()
    contents["a/Kptfile"] = package(_mutate("x"))["Kptfile"]
    contents["ab/Kptfile"] = package()["Kptfile"]

    render(contents, OwnFunctions(lambda items: seen.append({item.root_path for item in items})))

    assert seen == [{"a/Kptfile"}]


@pytest.mark.parametrize(
    "image", ["a:", "ab-.b/c", "a/a/", "a//a/a", "Foo/FarB", "generate-folders@v0.1.0", "patch@_@x"]
)
def test_malformed_image_is_refused(image: str) -> None:
    rendered = _render(package(_mutate(f"'{image}'")))

    assert "Field: `pipeline.mutators[0].image`" in rendered.error


def test_version_range_that_cannot_be_resolved_is_told() -> None:
    rendered = _render(package(_mutate("set-labels", "{a: b}", "    tag: ~7.2\n")))

    assert rendered.cause == 'no tag could be found matching the version constraint "~7.2"'


def test_version_range_runs_the_newest_tag_in_it() -> None:
    rendered = _render(package(_mutate("set-labels", "{a: b}", "    tag: ~0.1\n")))

    assert rendered.results["items"][0]["image"] == f"{IMAGE}/set-labels:v0.1.5"


def test_results_name_every_step() -> None:
    rendered = _render(package(_mutate("set-labels:v0.2", "{a: b}", "    name: mark\n"), a_yaml=CONFIG_MAP))

    assert rendered.results["kind"] == "FunctionResultList"
    assert rendered.results["items"] == [
        {
            "image": f"{IMAGE}/set-labels:v0.2",
            "exitCode": 0,
            "results": [{"message": "set 2 labels in total", "severity": "info"}],
        }
    ]


def test_replace_case_keeps_comments_and_order() -> None:
    contents = load_package(DATA / "porch" / "replace")
    before = contents["bucket.yaml"].data.decode().splitlines()

    after = _render(contents).contents["bucket.yaml"].data.decode().splitlines()

    assert len(before) == len(after)
    assert [line.partition(":")[0] for line in before] == [line.partition(":")[0] for line in after]
    assert len(read_documents("\n".join(after))) == 1


@pytest.mark.parametrize("image", ["gcr.io/a/b:v1", "a.b.c", f"patch@sha256:{'0' * 64}", "localhost:5000/a__b/c-d:x"])
def test_well_formed_image_is_accepted(image: str) -> None:
    runner = OwnFunctions(lambda _: None)

    assert not render(package(_mutate(f"'{image}'")), runner).failed
    assert len(runner.calls) == 1


def test_configuration_in_json_is_read() -> None:
    config = '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "b"}}'
    pipeline = "pipeline:\n  mutators:\n  - {image: set-labels, configPath: c.json}\n"

    rendered = _render(package(pipeline, c_json=config, a_yaml=CONFIG_MAP))

    assert read_document(rendered.contents["a.yaml"].data)["metadata"]["labels"] == {"a": "b"}


def test_configuration_named_by_an_unclean_path_is_the_file_as_it_was_read() -> None:
    """Only a path that is textually the same finds what an earlier step made of the file."""
    config = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\ndata:\n  a: before\n"
    pipeline = "pipeline:\n  mutators:\n"
    pipeline += (
        "  - {image: change}\n  - {image: clean, configPath: c.yaml}\n  - {image: unclean, configPath: ./c.yaml}\n"
    )
    seen: list[str] = []

    class Recorder(OwnFunctions):
        def run(self, image: str, resources: ResourceList) -> FunctionResult:
            if resources.config:
                seen.append(resources.config.data["data"]["a"])
            else:
                resources.items[-1].data["data"]["a"] = "after"
            return FunctionResult(resources.items)

    render(package(pipeline, c_yaml=config), Recorder({}))

    assert seen == ["after", "before"]
