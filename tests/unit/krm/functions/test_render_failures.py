"""What is left of a package whose render fails: ``kpt.md`` 2.12 and 2.13."""

import pytest
from render_packages import CONFIG_MAP, Change, OwnFunctions, annotated, mutate, package

from krm.functions.pipeline import render
from krm.functions.resource import Resource
from krm.functions.runner import FunctionResult, ResourceList
from krm.package.contents import SYMLINK, File
from krm.package.kptfile import parse_kptfile

SAVE = "save-on-render-failure"


def _label(key: str) -> Change:
    def label(items: list[Resource]) -> None:
        for item in items:
            if item.data["kind"] != "Kptfile":
                item.data["metadata"].setdefault("labels", {})[key] = "yes"

    return label


def _half_done(items: list[Resource]) -> None:
    _label("half")(items)
    items[-1].path = "elsewhere.yaml"
    raise RuntimeError("boom")


FUNCTIONS = {"one": _label("one"), "two": _label("two"), "bad": _half_done}


def _text(contents: dict[str, File], path: str) -> str:
    return contents[path].data.decode()


def test_by_default_only_the_status_is_written() -> None:
    contents = package(mutate("one", "bad"), a_yaml=CONFIG_MAP)

    rendered = render(contents, OwnFunctions(FUNCTIONS))

    assert rendered.failed
    assert rendered.contents["a.yaml"] is contents["a.yaml"]
    condition = parse_kptfile(rendered.contents["Kptfile"].data).conditions[0]
    assert (condition["type"], condition["status"]) == ("Rendered", "False")


@pytest.mark.parametrize("order", [(), ("bfs-rendering",)], ids=["depth", "breadth"])
def test_saved_state_is_that_of_the_last_function_that_succeeded(order: tuple[str, ...]) -> None:
    contents = annotated(package(mutate("one", "two", "bad"), a_yaml=CONFIG_MAP), SAVE, *order)

    rendered = render(contents, OwnFunctions(FUNCTIONS))

    assert rendered.failed
    assert "elsewhere.yaml" not in rendered.contents
    assert "one: yes" in _text(rendered.contents, "a.yaml").replace("'", "").replace('"', "")
    assert "two" in _text(rendered.contents, "a.yaml")
    assert "half" not in _text(rendered.contents, "a.yaml")


def test_packages_that_had_no_turn_keep_their_input() -> None:
    contents = annotated(package(mutate("two"), a_yaml=CONFIG_MAP), SAVE)
    for name, image in (("x", "one"), ("y", "bad"), ("z", "one")):
        contents[f"{name}/Kptfile"] = package(mutate(image))["Kptfile"]
        contents[f"{name}/a.yaml"] = File(CONFIG_MAP.encode())
    runner = OwnFunctions(FUNCTIONS)

    rendered = render(contents, runner)

    assert runner.calls == ["one", "bad"]
    assert "one" in _text(rendered.contents, "x/a.yaml")
    assert {path for path, file in rendered.contents.items() if file is not contents[path]} == {"Kptfile", "x/a.yaml"}


def test_files_are_not_pruned_after_a_failure() -> None:
    functions = {"drop": lambda items: items[:1], "bad": _half_done}
    contents = annotated(package(mutate("drop", "bad"), a_yaml=CONFIG_MAP), SAVE)

    rendered = render(contents, OwnFunctions(functions))

    assert rendered.contents["a.yaml"] == contents["a.yaml"]


def test_file_whose_resources_moved_before_a_failure_does_not_keep_a_second_copy() -> None:
    def move(items: list[Resource]) -> None:
        items[-1].path = "b.yaml"

    contents = annotated(package(mutate("move", "bad"), a_yaml=CONFIG_MAP), SAVE)

    rendered = render(contents, OwnFunctions({"move": move, "bad": _half_done}))

    assert "a.yaml" not in rendered.contents
    assert _text(rendered.contents, "b.yaml") == CONFIG_MAP


def test_defect_of_a_function_is_its_steps_failure_and_is_logged_with_its_place(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rendered = render(package(mutate("bad"), a_yaml=CONFIG_MAP), OwnFunctions(FUNCTIONS))

    assert "function runtime failed to evaluate function" in rendered.cause
    assert rendered.cause.endswith("RuntimeError: boom")
    assert rendered.steps[0].exit_code == 1
    assert "in _half_done" in caplog.text


@pytest.mark.parametrize(
    ("pipeline", "reason"),
    [
        ("  - {}\n", "must specify a functon (`image` or `exec`) to execute"),
        ("  - {image: x, exec: y}\n", "must not specify both `image` and `exec` at the same time"),
        ("  - {image: x, configPath: missing.yaml}\n", 'failed to open functionConfig from path "missing.yaml"'),
        ("  - {image: x, configPath: two.yaml}\n", "must not contain more than one config, got 2"),
        ("  - {image: x, configPath: nameless.yaml}\n", "resource must have `metadata.name`"),
        ("  - {image: x, configPath: '  '}\n", "path must not be empty"),
        ("  - {image: x, configPath: a...b/c.yaml}\n", "path must not be outside the package"),
    ],
)
def test_root_pipeline_that_is_invalid_leaves_no_status(pipeline: str, reason: str) -> None:
    files = {"two_yaml": f"{CONFIG_MAP}---\n{CONFIG_MAP}", "nameless_yaml": "apiVersion: v1\nkind: ConfigMap\n"}
    contents = package(f"pipeline:\n  mutators:\n{pipeline}", **files)
    runner = OwnFunctions(lambda _: None)

    rendered = render(contents, runner)

    assert reason in rendered.error
    assert rendered.cause.startswith('invalid pipeline: function "')
    assert rendered.contents == contents
    assert rendered.status is None
    assert runner.calls == []


def test_subpackage_with_an_invalid_pipeline_is_told_in_the_status() -> None:
    contents = package()
    contents["sub/Kptfile"] = package("pipeline:\n  mutators:\n  - {image: x, configPath: /x.yaml}\n")["Kptfile"]

    rendered = render(contents, OwnFunctions(lambda _: None))

    message = parse_kptfile(rendered.contents["Kptfile"].data).conditions[0]["message"]
    assert message.startswith('pkg.render: pkg ./sub: invalid pipeline: function "x": Kptfile is invalid:')


def test_blank_config_path_is_none() -> None:
    contents = package("pipeline:\n  mutators:\n  - {image: x, configPath: '', configMap: {a: b}}\n")

    assert not render(contents, OwnFunctions(lambda _: None)).failed


def test_missing_configuration_of_a_validator_stops_before_the_mutators() -> None:
    pipeline = mutate("one") + "  validators:\n  - {image: check, configPath: sub/c.yaml}\n"
    contents = package(pipeline, sub__c_yaml=CONFIG_MAP)
    contents["sub/Kptfile"] = package()["Kptfile"]
    runner = OwnFunctions(FUNCTIONS)

    rendered = render(contents, runner)

    assert 'functionConfig resource for validator "check" is missing from path "sub/c.yaml"' in rendered.cause
    assert runner.calls == []


def test_validator_that_cannot_run_is_found_out_after_the_mutators() -> None:
    runner = OwnFunctions(FUNCTIONS)

    rendered = render(package(mutate("one") + "  validators:\n  - exec: ./check.sh\n", a_yaml=CONFIG_MAP), runner)

    assert rendered.cause == "must run with `--allow-exec` option to allow running function binaries"
    assert runner.calls == ["one"]


def test_commands_run_when_they_are_allowed() -> None:
    class Commands:
        def run(self, command: str, resources: ResourceList) -> object:
            assert command == "./label.sh --now"
            return OwnFunctions(_label("shell")).run("", resources)

    pipeline = "pipeline:\n  mutators:\n  - exec: ./label.sh --now\n"
    rendered = render(package(pipeline, a_yaml=CONFIG_MAP), OwnFunctions({}), commands=Commands())  # type: ignore[arg-type]

    assert "shell" in _text(rendered.contents, "a.yaml")
    assert rendered.results["items"] == [{"exec": "./label.sh --now", "exitCode": 0}]


def test_failed_validator_keeps_the_mutators_work_when_asked_to() -> None:
    pipeline = mutate("one") + "  validators:\n  - image: bad\n"

    rendered = render(annotated(package(pipeline, a_yaml=CONFIG_MAP), SAVE), OwnFunctions(FUNCTIONS))

    assert rendered.failed
    assert "one" in _text(rendered.contents, "a.yaml")
    assert "half" not in _text(rendered.contents, "a.yaml")


def _status(contents: dict[str, File]) -> dict[str, object]:
    status: dict[str, object] = parse_kptfile(contents["Kptfile"].data).raw["status"]["renderStatus"]
    return status


def test_refused_command_is_in_the_status() -> None:
    rendered = render(package("pipeline:\n  mutators:\n  - {exec: ./run.sh, name: local}\n"), OwnFunctions({}))

    reason = "must run with `--allow-exec` option to allow running function binaries"
    assert _status(rendered.contents) == {
        "mutationSteps": [{"name": "local", "exec": "./run.sh", "executionError": reason, "exitCode": "1"}],
        "errorSummary": f"local: {reason}",
    }


def test_standard_error_of_a_command_that_succeeds_is_in_the_status() -> None:
    class Commands:
        def run(self, command: str, resources: ResourceList) -> FunctionResult:
            return FunctionResult(resources.items, stderr="hello\n")

    contents = package("pipeline:\n  mutators:\n  - exec: ./run.sh\n")
    rendered = render(contents, OwnFunctions({}), commands=Commands())

    assert _status(rendered.contents) == {"mutationSteps": [{"exec": "./run.sh", "stderr": "hello\n", "exitCode": "0"}]}


@pytest.mark.parametrize("image", ["one", "bad"])
def test_status_is_only_written_where_it_is_wanted(image: str) -> None:
    contents = package(mutate(image), a_yaml=CONFIG_MAP)

    rendered = render(contents, OwnFunctions(FUNCTIONS), records_status=False)

    assert rendered.contents["Kptfile"] is contents["Kptfile"]


def test_breadth_first_gives_what_a_parent_made_of_a_subpackage_to_that_subpackage() -> None:
    seen: dict[str, list[str]] = {}

    def note(name: str) -> Change:
        def run(items: list[Resource]) -> None:
            seen[name] = [item.root_path for item in items]

        return run

    def drop(items: list[Resource]) -> list[Resource]:
        note("root")(items)
        return [item for item in items if item.path != "gone.yaml"]

    contents = annotated(package(mutate("root"), a_yaml=CONFIG_MAP), "bfs-rendering")
    for name in ("x", "x/y", "z"):
        contents[f"{name}/Kptfile"] = package(mutate(name.replace("/", "-")))["Kptfile"]
    contents["x/y/gone.yaml"] = contents["x/y/kept.yaml"] = File(CONFIG_MAP.encode())

    rendered = render(contents, OwnFunctions({"root": drop, "x": note("x"), "x-y": note("x-y"), "z": note("z")}))

    assert not rendered.failed
    assert seen == {
        "root": ["Kptfile", "a.yaml", "x/Kptfile", "z/Kptfile", "x/y/Kptfile", "x/y/gone.yaml", "x/y/kept.yaml"],
        "x": ["x/Kptfile", "x/y/Kptfile", "x/y/kept.yaml"],
        "x-y": ["x/y/Kptfile", "x/y/kept.yaml"],
        "z": ["z/Kptfile"],
    }


def _set(value: object) -> Change:
    def change(items: list[Resource]) -> None:
        items[-1].data["data"] = value

    return change


def _nested(levels: int) -> object:
    value: object = "bottom"
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize("saves", [(), (SAVE,)], ids=["default", "saving"])
@pytest.mark.parametrize("value", ["\ud800", _nested(5000)], ids=["surrogate", "deep"])
def test_what_no_file_can_hold_fails_the_render(value: object, saves: tuple[str, ...]) -> None:
    contents = annotated(package(mutate("x", "two"), a_yaml=CONFIG_MAP), *saves)

    rendered = render(contents, OwnFunctions({"x": _set(value), "two": _label("two")}))

    assert rendered.failed
    assert rendered.cause
    assert rendered.contents["a.yaml"] is contents["a.yaml"]


def test_configuration_that_an_earlier_step_spoiled_is_told() -> None:
    pipeline = mutate("x") + "  - {image: two, configPath: a.yaml}\n"
    runner = OwnFunctions({"x": _set("\ud800"), "two": _label("two")})

    rendered = render(package(pipeline, a_yaml=CONFIG_MAP), runner)

    assert "Field: `pipeline.mutators[1].configPath`" in rendered.cause
    assert runner.calls == ["x"]


def test_link_called_kptfile_makes_no_package() -> None:
    contents = {**package(mutate("one"), a_yaml=CONFIG_MAP), "sub/Kptfile": File(b"../Kptfile", SYMLINK)}
    contents["sub/a.yaml"] = File(CONFIG_MAP.encode())

    rendered = render(contents, OwnFunctions(FUNCTIONS))

    assert "one" in _text(rendered.contents, "sub/a.yaml")


def test_kustomization_that_is_no_mapping_is_left_alone() -> None:
    seen: list[str] = []
    contents = package(mutate("x"), kustomization_yaml="- a\n", a_yaml=CONFIG_MAP)

    rendered = render(contents, OwnFunctions(lambda items: seen.extend(item.path for item in items)))

    assert seen == ["Kptfile", "a.yaml"]
    assert rendered.contents["kustomization.yaml"] is contents["kustomization.yaml"]
