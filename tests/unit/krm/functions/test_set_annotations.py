from typing import Any

import pytest
from function_run import config_of, failure, inline_config, resources_of, run_function, text_after

from krm.functions.runner import FunctionConfig
from krm.package.yaml_reader import read_document

HEAD = "apiVersion: fn.kpt.dev/v1alpha1\nkind: SetAnnotations\nmetadata: {name: c}\n"
FRUIT = HEAD + "annotations: {fruit: apple, color: orange}\n"


def _object(kind: str, version: str, spec: str = "{}") -> str:
    return f"apiVersion: {version}\nkind: {kind}\nmetadata:\n  name: x\nspec: {spec}\n"


def _spec(kind: str, version: str, spec: str) -> Any:
    items = resources_of(_object(kind, version, spec))
    assert run_function("set-annotations", items, inline_config({"a": "b"})).exit_code == 0
    assert items[0].data["metadata"]["annotations"] == {"a": "b"}
    return items[0].data["spec"]


POD = "{template: {metadata: {annotations: {a: b}}}}"


@pytest.mark.parametrize(
    ("kind", "version", "after"),
    [
        ("ReplicationController", "v1", POD),
        ("ReplicationController", "x/v2", "{}"),
        ("Deployment", "apps/v1", POD),
        ("Deployment", "example.com/v9", POD),
        ("ReplicaSet", "apps/v1", POD),
        ("DaemonSet", "apps/v1", POD),
        ("StatefulSet", "apps/v1", POD),
        ("Job", "batch/v1", POD),
        ("Job", "example.com/v1", "{}"),
        (
            "CronJob",
            "batch/v1",
            "{jobTemplate: {metadata: {annotations: {a: b}}, spec: {template: {metadata: {annotations: {a: b}}}}}}",
        ),
        ("Service", "v1", "{}"),
    ],
)
def test_templates_get_the_annotations_and_are_created(kind: str, version: str, after: str) -> None:
    assert _spec(kind, version, "{}") == read_document(after)


def test_annotations_are_added_in_order_and_changed_in_place() -> None:
    text = "apiVersion: v1\nkind: A\nmetadata:\n  name: x\n  annotations:\n    fruit: pear # why\n    z: y\n"

    after = text_after("set-annotations", text, config_of(FRUIT))

    assert after == text.replace("pear", "apple") + "    color: orange\n"


def test_kptfile_and_local_configuration_are_included() -> None:
    text = (
        "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: x\n---\n"
        'apiVersion: v1\nkind: A\nmetadata:\n  name: x\n  annotations:\n    config.kubernetes.io/local-config: "true"\n'
    )

    assert text_after("set-annotations", text, inline_config({"a": "b"})).count("    a: b\n") == 2


def test_results_are_sorted_by_file_index_and_field() -> None:
    items = [
        *resources_of(_object("Deployment", "apps/v1"), "b.yaml"),
        *resources_of(_object("A", "v1") + "---\n" + _object("B", "v1"), "a.yaml"),
    ]

    result = run_function("set-annotations", items, config_of(FRUIT))

    message = 'set annotations: {"color":"orange","fruit":"apple"}'
    assert result.results == [
        {"message": message, "field": {"path": "metadata.annotations"}, "file": {"path": "a.yaml"}},
        {"message": message, "field": {"path": "metadata.annotations"}, "file": {"path": "a.yaml", "index": 1}},
        {"message": message, "field": {"path": "metadata.annotations"}, "file": {"path": "b.yaml"}},
        {"message": message, "field": {"path": "spec.template.metadata.annotations"}, "file": {"path": "b.yaml"}},
    ]


def test_older_tags_report_nothing() -> None:
    items = resources_of(_object("A", "v1"))

    assert run_function("set-annotations:v0.1.4", items, config_of(FRUIT)).results == []


def test_nothing_to_annotate_is_reported() -> None:
    assert run_function("set-annotations", [], config_of(FRUIT)).results == [{"message": "no annotations applied"}]


def test_additional_fields_traverse_lists_and_unescape_slashes() -> None:
    config = FRUIT + (
        "additionalAnnotationFields:\n"
        "- {path: spec/list/at, group: x.io, version: v1, kind: A, create: true}\n"
        "- {path: 'spec/a\\/b', create: true}\n"
        "- {path: spec/absent}\n"
    )
    items = resources_of(_object("A", "x.io/v1", "{list: [{}, {at: {k: v}}]}"))

    result = run_function("set-annotations", items, config_of(config))

    fruit = {"color": "orange", "fruit": "apple"}
    assert items[0].data["spec"] == {"list": [{"at": fruit}, {"at": {"k": "v", **fruit}}], "a/b": fruit}
    assert [item["field"]["path"] for item in result.results] == ["metadata.annotations", "spec.a/b", "spec.list.at"]


def test_legacy_kind_and_field_still_count() -> None:
    config = FRUIT.replace("SetAnnotations", "SetAnnotationConfig") + "fieldSpecs:\n- {path: spec/at, create: true}\n"
    items = resources_of(_object("A", "v1"))

    assert run_function("set-annotations", items, config_of(config)).exit_code == 0
    assert items[0].data["spec"]["at"] == {"color": "orange", "fruit": "apple"}


CONFIGURE = "failed to configure function: "


@pytest.mark.parametrize(
    ("config", "message"),
    [
        pytest.param(None, "`functionConfig` must be a `ConfigMap` or `SetAnnotations`", id="none"),
        pytest.param(
            config_of(FRUIT.replace("SetAnnotations", "Other")),
            "`functionConfig` must be a `ConfigMap` or `SetAnnotations`",
            id="another-kind",
        ),
        pytest.param(inline_config({}), "input annotation list cannot be empty", id="empty-map"),
        pytest.param(config_of(HEAD), "input annotation list cannot be empty", id="no-annotations"),
        pytest.param(
            config_of(FRUIT + "fieldSpecs: [{path: a}]\nadditionalAnnotationFields: [{path: b}]\n"),
            "`fieldSpecs` has been deprecated, please rename it to `additionalAnnotationFields`",
            id="both-names",
        ),
    ],
)
def test_bad_configurations(config: FunctionConfig | None, message: str) -> None:
    results, stderr = failure("set-annotations", _object("A", "v1"), config)

    assert results == [{"message": CONFIGURE + message, "severity": "error"}]
    assert stderr == f"[error]: {CONFIGURE}{message}"


def test_field_without_path_is_refused() -> None:
    results, _ = failure("set-annotations", _object("A", "v1"), config_of(FRUIT + "fieldSpecs: [{kind: A}]\n"))

    assert results[0]["message"].startswith(CONFIGURE)


def test_scalar_where_a_map_should_be_is_an_error() -> None:
    _, stderr = failure("set-annotations", _object("Deployment", "apps/v1", "{template: x}"), inline_config({"a": "b"}))

    assert "considering field 'spec/template/metadata/annotations'" in stderr


def test_two_resources_of_one_identity_are_refused() -> None:
    text = _object("A", "v1")

    assert "already registered id" in failure("set-annotations", f"{text}---\n{text}", inline_config({"a": "b"}))[1]
    assert text_after("set-annotations", f"{text}---\n{_object('A', 'v2')}", inline_config({"a": "b"}))
