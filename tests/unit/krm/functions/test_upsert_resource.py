import pytest
from cost import metered
from function_run import config_of, failure, inline_config, resources_of, run_function

from krm.functions.builtins import BuiltinRunner
from krm.functions.pipeline import render
from krm.functions.resource import Resource
from krm.package.contents import File

IMAGE = "upsert-resource:v0.2.0"

SERVICE = """\
apiVersion: v1
kind: Service
metadata:
  name: web # ours
  annotations:
    old: "1"
spec:
  selector:
    app: {app} # chosen
"""
NEW = "apiVersion: v1\nkind: Service\nmetadata:\n  name: web\nspec:\n  selector:\n    app: new\n"


def _upsert(config: str, items: list[Resource]) -> list[Resource]:
    result = run_function(IMAGE, items, config_of(config))
    assert (result.exit_code, result.results) == (0, [])
    return result.items


def test_a_match_is_replaced_where_it_is() -> None:
    items = resources_of(
        SERVICE.format(app="old") + "---\n" + SERVICE.format(app="x").replace("web", "other"), "a.yaml"
    )

    after = _upsert(NEW, items)

    assert [(item.path, item.index) for item in after] == [("a.yaml", 0), ("a.yaml", 1)]
    assert after[0].text() == SERVICE.format(app="new").replace('  annotations:\n    old: "1"\n', "")
    assert after[1].text() == items[1].text()


def test_a_resource_without_a_match_is_added_under_a_default_path() -> None:
    after = _upsert(NEW.replace("web", "fresh"), resources_of(SERVICE.format(app="old")))

    assert len(after) == 2
    assert (after[1].path, after[1].index) == ("", None)
    assert after[1].data["metadata"] == {"name": "fresh"}


def test_numbers_of_the_resource_stay_numbers() -> None:
    after = _upsert(NEW + "  ports:\n  - port: 80\n    mode: 0777\n    on: 'true'\n", [])

    assert after[0].data["spec"]["ports"] == [{"port": 80, "mode": 0o777, "on": "true"}]


AT_PATH = NEW.replace(
    "  name: web\n", "  name: web\n  annotations:\n    config.kubernetes.io/target-path: dir/../b.yaml\n"
)


def test_a_target_path_says_where_to_look_and_where_to_add() -> None:
    items = resources_of(SERVICE.format(app="old"), "a.yaml")

    after = _upsert(AT_PATH, items)
    again = _upsert(AT_PATH, after)

    assert [(item.path, item.index) for item in after] == [("a.yaml", 0), ("b.yaml", 0)]
    assert after[1].data["metadata"] == {"name": "web"}
    assert [item.text() for item in again] == [item.text() for item in after]


def test_what_is_added_keeps_its_comments() -> None:
    after = _upsert("# header\n" + AT_PATH.replace("app: new", "app: new # why"), [])

    assert after[0].text() == "# header\n" + NEW.replace("app: new", "app: new # why")


def test_what_is_added_to_a_file_goes_behind_what_is_there() -> None:
    items = resources_of(
        SERVICE.format(app="old").replace("web", "a") + "---\n" + SERVICE.replace("web", "b"), "b.yaml"
    )
    config = "apiVersion: v1\nkind: List\nmetadata: {name: l}\nitems:\n" + "".join(
        f"- apiVersion: v1\n  kind: Service\n  metadata:\n    name: s{number}\n"
        "    annotations: {config.kubernetes.io/target-path: b.yaml}\n"
        for number in range(2)
    )

    assert [(item.path, item.index) for item in _upsert(config, items)] == [
        ("b.yaml", 0),
        ("b.yaml", 1),
        ("b.yaml", 2),
        ("b.yaml", 3),
    ]


def test_in_a_pipeline_the_configuration_is_added_where_its_annotation_says() -> None:
    kptfile = (
        "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: p\npipeline:\n  mutators:\n"
        "  - image: upsert-resource:v0.2\n    configPath: new.yaml\n"
    )
    contents = {"Kptfile": File(kptfile.encode()), "new.yaml": File(("# header\n" + AT_PATH).encode())}

    rendered = render(contents, BuiltinRunner())

    assert rendered.error == ""
    assert rendered.contents["b.yaml"].data.decode() == "# header\n" + NEW
    assert rendered.contents["new.yaml"] == contents["new.yaml"]


def test_all_matches_are_replaced() -> None:
    items = resources_of(SERVICE.format(app="old"), "a.yaml") + resources_of(SERVICE.format(app="old"), "b.yaml")

    assert [item.data["spec"]["selector"]["app"] for item in _upsert(NEW, items)] == ["new", "new"]


@pytest.mark.parametrize("annotation", ["config.kubernetes.io/function", "config.k8s.io/function"])
def test_configurations_of_functions_are_never_matched(annotation: str) -> None:
    items = resources_of(SERVICE.format(app="old").replace("old:", f"{annotation}:"))
    config = NEW.replace("  name: web\n", f"  name: web\n  annotations:\n    {annotation}: x\n    keep: z\n")

    after = _upsert(config, items)

    assert len(after) == 2
    assert after[0].data["spec"]["selector"]["app"] == "old"
    assert after[1].data["metadata"]["annotations"] == {"keep": "z"}


def test_group_kind_namespace_and_name_must_agree_but_not_the_version() -> None:
    items = resources_of("apiVersion: apps/v1beta1\nkind: Deployment\nmetadata: {name: a, namespace: n}\n")
    config = "apiVersion: {}\nkind: Deployment\nmetadata: {{name: a, namespace: {}}}\n"

    assert len(_upsert(config.format("apps/v1", "n"), items)) == 1
    assert items[0].data["apiVersion"] == "apps/v1"
    assert len(_upsert(config.format("extensions/v1", "n"), items)) == 2
    assert len(_upsert(config.format("apps/v1", "m"), items)) == 2


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ("kind: Service\nmetadata: {name: a}\n", "resource must have `apiVersion`"),
        ("apiVersion: v1\nkind: Service\n", "resource must have `metadata.name`"),
        ("apiVersion: v1\nkind: List\nitems: {}\n", "the items of a List must be a list"),
        ("apiVersion: v1\nkind: List\nitems: [a]\n", "resource must have `metadata`, `apiVersion` and `kind`"),
    ],
)
def test_what_is_no_resource_is_refused(config: str, problem: str) -> None:
    message = f"failed to upsert resource: {problem}"

    assert failure(IMAGE, NEW, config_of(config)) == (
        [{"message": message, "severity": "error"}],
        f"[error]: {message}",
    )


def test_a_configuration_is_required() -> None:
    results, _ = failure(IMAGE, NEW)

    assert results[0]["message"].startswith("failed to upsert resource: functionConfig is missing")


def test_an_inline_configuration_is_a_resource_like_any_other() -> None:
    result = run_function(IMAGE, [], inline_config({"a": "b"}))

    assert result.items[0].data["metadata"]["name"] == "function-input"


def test_a_long_list_takes_linear_time() -> None:
    services = [NEW.replace("web", f"s{number}") for number in range(1000)]
    entries = "".join(
        f"- apiVersion: v1\n  kind: Service\n  metadata: {{name: s{number}}}\n" for number in range(500, 1500)
    )
    config = config_of(f"apiVersion: v1\nkind: List\nmetadata: {{name: l}}\nitems:\n{entries}")
    items = resources_of("---\n".join(services))
    with metered() as cost:
        result = run_function(IMAGE, items, config)

    assert len(result.items) == 1500
    assert cost.seconds < 1
