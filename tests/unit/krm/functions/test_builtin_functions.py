import re
from typing import Any

import pytest

from krm.functions.builtins import BuiltinRunner
from krm.functions.catalog.setter_comments import captured
from krm.functions.images import NEWEST, is_version_constraint, parse_image
from krm.functions.resource import Resource
from krm.functions.runner import FunctionConfig, FunctionNotFound, FunctionResult, ResourceList
from krm.package.yaml_reader import read_documents

PREFIX = "ghcr.io/kptdev/krm-functions-catalog/"


def _run(image: str, text: str, data: dict[str, str] | None) -> tuple[FunctionResult, list[Resource]]:
    documents = text.split("---\n")
    items = [
        Resource.of_document(read_documents(part)[0], part, path="a.yaml", index=index)
        for index, part in enumerate(documents)
    ]
    config = None
    if data is not None:
        config = FunctionConfig({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data})
    return BuiltinRunner().run(PREFIX + image, ResourceList(items, config)), items


def _messages(result: FunctionResult) -> list[str]:
    return [item["message"] for item in result.results]


def _object(kind: str, version: str, **more: Any) -> str:
    fields = "".join(f"{key}: {value}\n" for key, value in more.items())
    return f"apiVersion: {version}\nkind: {kind}\nmetadata:\n  name: x\n{fields}"


@pytest.mark.parametrize("image", ["nginx", "example.com/set-labels:v0.2", PREFIX + "set-labels:feature"])
def test_other_images_are_not_found(image: str) -> None:
    with pytest.raises(FunctionNotFound, match=image):
        BuiltinRunner().require(image)


@pytest.mark.parametrize("image", ["set-labels", "gcr.io/kpt-fn/set-namespace:unstable", PREFIX + "apply-setters:v0.2"])
def test_known_images_are_found_under_their_registries(image: str) -> None:
    BuiltinRunner().require(image)


@pytest.mark.parametrize(
    ("text", "version"),
    [("a", NEWEST), ("a:v0.4", (0, 4, 1 << 30)), ("a:0.4.1", (0, 4, 1)), ("a:v1.2.3-rc.1", (1, 2, 3)), ("a:x", None)],
)
def test_tags_are_versions(text: str, version: object) -> None:
    assert parse_image(text).version == version


@pytest.mark.parametrize(("tag", "is_range"), [("~0.2", True), (">=1 <2", True), ("0.1.x", True), ("v0.2.3", False)])
def test_version_ranges_are_told_from_tags(tag: str, is_range: bool) -> None:
    assert is_version_constraint(tag) == is_range


SETTERS = """\
apiVersion: v1
kind: Deployment
metadata:
  name: "my-app" # kpt-set: ${name}-app
spec:
  replicas: 4 # kpt-set: ${replicas}
  é: 'x' # kpt-set: ${quoted}
  image: nginx:1.0 # kpt-set: ${image}:${tag}
  list: # kpt-set: ${env}
    - dev # why
    - stage
  flow: [a, b] # kpt-set: ${env}
  plain: a # other
"""


def test_setters_keep_styles_and_comments() -> None:
    given = {"name": "your", "replicas": "7", "quoted": "it's", "tag": "2.0", "env": "[prod, stage]"}
    _, items = _run("apply-setters:v0.2.0", SETTERS, given)

    changed = (
        SETTERS.replace('"my-app"', '"your-app"')
        .replace("replicas: 4", "replicas: 7")
        .replace("'x'", "'it''s'")
        .replace("nginx:1.0", "nginx:2.0")
        .replace("- dev", "- prod")
        .replace(" [a, b] # kpt-set: ${env}", " # kpt-set: ${env}\n    - prod\n    - stage")
    )
    assert items[0].text() == changed
    assert items[0].data["spec"]["replicas"] == 7


@pytest.mark.parametrize(
    "value", ["", "a: b", "- x", "#x", "a #b", "true", "x\ny", "é\u200b", "'", '"\\', "-", "{a}", "*a"]
)
@pytest.mark.parametrize("old", ["old", "'old'", '"old"'])
def test_any_value_can_be_set_and_read_back(value: str, old: str) -> None:
    text = _object("X", "v1", field=f"{old} # kpt-set: ${{v}}")

    _, items = _run("apply-setters:v0.2.0", text, {"v": value})

    assert read_documents(items[0].text(), as_text=True)[0]["field"] == value
    assert "# kpt-set: ${v}" in items[0].text()


def test_missing_setter_values_are_named() -> None:
    result, _ = _run("apply-setters:v0.2.0", _object("X", "v1", field="x # kpt-set: ${a}${b}"), {"a": "1"})

    assert result.exit_code == 1
    assert _messages(result) == ["failed to apply setters: values for setters [${b}] must be provided"]


@pytest.mark.parametrize(
    ("literals", "text"),
    [
        (["", ":", ""], "a:b:c"),
        (["x-", "-y-", "-z"], "0x-1-y-2-y-3-z4-z"),
        (["", "/", ":", ""], "reg/a/b:1"),
        (["x", "x", ""], "xx"),
        (["", "aa", "a", ""], "aaaa"),
        (["n", ""], "old"),
        (["", "-", ""], "none"),
    ],
)
def test_values_are_derived_as_greedy_groups_would(literals: list[str], text: str) -> None:
    found = re.search("(.*)".join(map(re.escape, literals)), text)

    assert captured(text, literals) == (list(found.groups()) if found else [""] * (len(literals) - 1))


def test_deriving_values_from_hostile_text_takes_no_time() -> None:
    pattern = "x".join(f"${{v{number}}}" for number in range(30))
    text = _object("X", "v1", field=f"{'x' * 5000} # kpt-set: {pattern}y")

    result, _ = _run("apply-setters", text, {"v1": "a"})

    assert result.exit_code == 1


def test_setters_without_match_say_so() -> None:
    result, _ = _run("apply-setters:v0.2.0", _object("X", "v1"), {"a": "1"})

    assert result.results == [{"message": "no matches for input setter(s)"}]


def test_list_setter_needs_a_list() -> None:
    text = _object("X", "v1", field="[a] # kpt-set: ${a}")

    result, _ = _run("apply-setters", text, {"a": "b"})

    assert _messages(result)[0].endswith('input to array setter must be an array of values, but found "b"')


def test_newer_setters_report_values_but_no_secrets() -> None:
    text = _object("X", "v1", password="old # kpt-set: ${a}", other="old # kpt-set: ${b}")

    result, _ = _run("apply-setters", text, {"a": "hunter2", "b": "new"})

    assert [item["field"]["proposedValue"] for item in result.results] == ["<redacted>", "new"]
    assert "hunter2" not in str(result.results)


DEPENDENT = _object("Deployment", "apps/v1").replace("  name: x\n", "  name: x\n  namespace: old\n")
CRD = _object("CustomResourceDefinition", "apiextensions.k8s.io/v1", spec="{}")


def test_pinned_set_namespace_sets_every_namespace_there_is_and_invents_none() -> None:
    result, items = _run("set-namespace:v0.4.1", DEPENDENT + "---\n" + CRD, {"namespace": "new"})

    assert _messages(result) == ['namespace "old" updated to "new", 1 value(s) changed']
    assert items[1].text() == CRD


def test_current_set_namespace_leaves_definitions_without_webhook_alone() -> None:
    _, items = _run("set-namespace:v0.4.5", CRD, {"namespace": "new"})

    assert items[0].text() == CRD


def test_matcher_leaves_objects_of_no_namespace_as_they_are() -> None:
    text = _object("Deployment", "apps/v1")

    result, items = _run("set-namespace", text, {"namespace": "new", "namespaceMatcher": "other"})

    assert items[0].text() == text
    assert _messages(result)[0] == 'all matching namespaces are already "new". no value changed'


def test_first_set_namespace_changes_the_one_namespace_in_use() -> None:
    result, items = _run("set-namespace:v0.3.4", DEPENDENT, {"namespace": "new"})

    assert _messages(result) == ['namespace "old" updated to "new", 1 values changed']
    assert items[0].data["metadata"]["namespace"] == "new"


@pytest.mark.parametrize(
    ("tag", "exit_code"), [("v0.4.1", 1), ("v0.4.2", 0), ("v0.4.5", 1), ("latest", 1), ("v0.3.4", 0)]
)
def test_bad_namespace_configuration_fails_by_tag(tag: str, exit_code: int) -> None:
    result, items = _run(f"set-namespace:{tag}", DEPENDENT, None)

    assert result.exit_code == exit_code
    assert result.results[0]["severity"] == "error"
    assert items[0].text() == DEPENDENT


def test_old_set_labels_reaches_affinities_and_reports_nothing() -> None:
    affinity = (
        "{template: {spec: {affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
        "[{labelSelector: {matchLabels: {}}}]}}}}}"
    )
    result, items = _run("set-labels:v0.1.5", _object("Deployment", "apps/v1", spec=affinity), {"a": "b"})

    affinity_terms = items[0].data["spec"]["template"]["spec"]["affinity"]["podAffinity"]
    assert affinity_terms["requiredDuringSchedulingIgnoredDuringExecution"][0]["labelSelector"]["matchLabels"] == {
        "a": "b"
    }
    assert result.results == []


def test_labels_on_something_else_than_a_map_fail_the_function() -> None:
    result, _ = _run("set-labels", _object("Service", "v1", spec="{selector: [a]}"), {"a": "b"})

    assert result.exit_code == 1
    assert result.results[0]["severity"] == "error"


@pytest.mark.parametrize(("tag", "count"), [("v0.1.4", 0), ("v0.1.5", 1)])
def test_annotations_are_reported_by_newer_tags(tag: str, count: int) -> None:
    result, items = _run(f"set-annotations:{tag}", _object("X", "v1"), {"a": "<b>"})

    assert items[0].data["metadata"]["annotations"] == {"a": "<b>"}
    assert _messages(result) == ['set annotations: {"a":"\\u003cb\\u003e"}'] * count


def test_annotating_two_resources_of_one_identity_is_refused() -> None:
    result, _ = _run("set-annotations", _object("X", "v1") + "---\n" + _object("X", "v1"), {"a": "b"})

    assert result.exit_code == 1
    assert "may not add resource with an already registered id" in _messages(result)[0]
