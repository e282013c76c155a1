"""The small functions of the catalog: each changes what its section says and nothing else."""

import pytest
from function_run import failure, inline_config, messages, resources_of, run_function, text_after

from krm.functions.runner import FunctionConfig, FunctionNotFound

LOCAL = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: gone
  annotations:
    config.kubernetes.io/local-config: {value}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: stays
"""


@pytest.mark.parametrize("value", ['"true"', "True", '"TRUE"'])
def test_local_configuration_is_removed(value: str) -> None:
    result = run_function("remove-local-config-resources", resources_of(LOCAL.format(value=value)))

    assert [item.data["metadata"]["name"] for item in result.items] == ["stays"]
    assert result.results == [
        {"message": "Number of resources pruned: 1", "severity": "info"},
        {"message": "Resource name: [gone]", "severity": "info", "file": {"path": "resources.yaml"}},
    ]


@pytest.mark.parametrize("value", ['"false"', '""', '"yes"'])
def test_what_is_not_exactly_local_stays(value: str) -> None:
    result = run_function("remove-local-config-resources", resources_of(LOCAL.format(value=value)))

    assert len(result.items) == 2
    assert result.results == [
        {"message": "Found no resources to prune with the local config annotation", "severity": "warning"}
    ]


POLICIES = """\
apiVersion: constraints.gatekeeper.sh/v1beta1
kind: K8sBanRoots
metadata:
  name: one
spec:
  enforcementAction: deny # for now
---
apiVersion: constraints.gatekeeper.sh/v1beta1
kind: K8sBanRoots
metadata:
  name: two
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: other
"""


def test_policies_get_the_action() -> None:
    result = run_function(
        "set-enforcement-action", resources_of(POLICIES), inline_config({"enforcementAction": "dryrun"})
    )

    assert result.items[0].text().endswith("  enforcementAction: dryrun # for now\n")
    assert result.items[1].data["spec"] == {"enforcementAction": "dryrun"}
    assert "spec" not in result.items[2].data
    assert messages(result) == [
        "Number of policies set to [dryrun]: 2",
        "Policy name: [one]",
        "Policy name: [two]",
    ]
    assert {entry["severity"] for entry in result.results} == {"info"}


def test_no_policy_is_worth_a_warning() -> None:
    text = POLICIES.replace("gatekeeper", "other")
    result = run_function("set-enforcement-action", resources_of(text), inline_config({"enforcementAction": "warn"}))

    assert result.results == [{"message": "Found no policy to set to [warn]", "severity": "warning"}]


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        (None, "expecting exactly 1 enforcementAction as part of the ConfigMap"),
        (inline_config({}), "expecting exactly 1 enforcementAction as part of the ConfigMap"),
        (
            inline_config({"enforcementAction": "deny", "x": "y"}),
            "expecting exactly 1 enforcementAction as part of the ConfigMap",
        ),
        (
            inline_config({"enforcementAction": "allow"}),
            "expected values for enforcementAction are [deny] or [warn] or [dryrun]",
        ),
    ],
    ids=str,
)
def test_an_unclear_action_is_refused(config: FunctionConfig | None, problem: str) -> None:
    message = f"failed to process policies: {problem}"

    assert failure("set-enforcement-action", POLICIES, config) == (
        [{"message": message, "severity": "error"}],
        f"[error]: {message}",
    )


def test_annotations_are_deleted_and_an_emptied_map_with_them() -> None:
    text = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: one
  annotations:
    a.io/x: "1"
    keep: "2" # why
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: two
  annotations:
    b: "1"
"""

    after = text_after("delete-annotations", text, inline_config({"annotationKeys": "a.io/x, b"}))

    assert after == text.replace('    a.io/x: "1"\n', "").replace('  annotations:\n    b: "1"\n', "")


@pytest.mark.parametrize("config", [None, inline_config({"annotationKeys": " , "})], ids=str)
def test_keys_to_delete_are_required(config: FunctionConfig | None) -> None:
    results, _ = failure("delete-annotations", LOCAL.format(value="x"), config)

    assert [result["message"] for result in results] == ["`annotationKeys` should not be empty"]


def _kptfile(pipeline: str = "") -> str:
    return f"apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: p\n{pipeline}"


STEP = "pipeline:\n  mutators:\n  - image: {} # first\n    configMap:\n{}"


@pytest.mark.parametrize(
    ("pipeline", "after"),
    [
        (
            STEP.format("gcr.io/kpt-fn/apply-setters:v0.1", "      a: b\n"),
            STEP.format("gcr.io/kpt-fn/apply-setters:v0.1", "      a: b\n      project-id: p1\n"),
        ),
        (
            STEP.format("apply-setters", "      project-id: other\n"),
            STEP.format("apply-setters", "      project-id: other\n"),
        ),
    ],
)
def test_the_project_becomes_a_setter(pipeline: str, after: str) -> None:
    assert text_after("set-project-id", _kptfile(pipeline), inline_config({"project-id": "p1"})) == _kptfile(after)


def test_a_package_without_setters_gets_a_step() -> None:
    after = resources_of(text_after("set-project-id", _kptfile(), inline_config({"project-id": "p1"})))

    assert after[0].data["pipeline"] == {
        "mutators": [{"image": "gcr.io/kpt-fn/apply-setters:v0.2", "configMap": {"project-id": "p1"}}]
    }


def test_setters_in_a_file_get_the_project_there() -> None:
    items = resources_of(
        _kptfile("pipeline:\n  mutators:\n  - image: apply-setters\n    configPath: ./setters.yaml\n"), "Kptfile"
    )
    items += resources_of("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: s\ndata:\n  a: b\n", "setters.yaml")

    result = run_function("set-project-id", items, inline_config({"project-id": "p1"}))

    assert result.items[1].data["data"] == {"a": "b", "project-id": "p1"}


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("storage.cnrm.cloud.google.com/v1beta1", {"cnrm.cloud.google.com/project-id": "p1"}),
        ("core.cnrm.cloud.google.com/v1beta1", None),
        ("apps/v1", None),
    ],
)
def test_resources_of_the_config_connector_name_the_project(version: str, expected: object) -> None:
    text = f"apiVersion: {version}\nkind: X\nmetadata:\n  name: x\n"

    result = run_function("set-project-id", resources_of(text), inline_config({"project-id": "p1"}))

    assert result.items[0].data["metadata"].get("annotations") == expected


def test_a_project_that_is_named_already_stays() -> None:
    text = (
        "apiVersion: sql.cnrm.cloud.google.com/v1beta1\nkind: X\nmetadata:\n  name: x\n"
        "  annotations:\n    cnrm.cloud.google.com/project-id: mine\n"
    )

    assert text_after("set-project-id", text, inline_config({"project-id": "p1"})) == text


@pytest.mark.parametrize("config", [None, inline_config({"project-id": ""})], ids=str)
def test_a_project_is_required(config: FunctionConfig | None) -> None:
    results, _ = failure("set-project-id", _kptfile(), config)

    assert [result["message"] for result in results] == ["`data.project-id` should not be empty"]


SERVICES = """\
apiVersion: blueprints.cloud.google.com/v1alpha1
kind: ProjectServiceSet
metadata:
  name: proj1-service
  namespace: ns
spec:
  services:
  - compute.googleapis.com
  - redis.googleapis.com
  projectID: proj1
"""


def test_a_set_expands_to_services_beside_it() -> None:
    result = run_function("enable-gcp-services", resources_of(SERVICES, "infra/set.yaml"))

    assert [item.path for item in result.items[1:]] == [
        "infra/service_proj1-service-compute.yaml",
        "infra/service_proj1-service-redis.yaml",
    ]
    assert result.items[1].data == {
        "apiVersion": "serviceusage.cnrm.cloud.google.com/v1beta1",
        "kind": "Service",
        "metadata": {
            "name": "proj1-service-compute",
            "namespace": "ns",
            "annotations": {"blueprints.cloud.google.com/managed-by-enable-gcp-services": "proj1-service"},
        },
        "spec": {"resourceID": "compute.googleapis.com", "projectRef": {"external": "proj1"}},
    }
    assert messages(result) == ["generated service", "generated service"]


def test_services_that_are_not_listed_any_more_go_and_others_are_brought_up_to_date() -> None:
    items = run_function("enable-gcp-services", resources_of(SERVICES)).items
    items[0].data["spec"]["services"] = ["redis.googleapis.com", "sql.googleapis.com"]
    items[2].data["spec"]["resourceID"] = "edited"
    foreign = resources_of(items[1].text().replace("managed-by-enable-gcp-services", "of-mine"), "mine.yaml")

    result = run_function("enable-gcp-services", items + foreign)

    assert [item.data["metadata"]["name"] for item in result.items] == [
        "proj1-service",
        "proj1-service-redis",
        "proj1-service-compute",
        "proj1-service-sql",
    ]
    assert result.items[1].data["spec"]["resourceID"] == "redis.googleapis.com"
    assert messages(result) == ["pruned service", "recreated service", "generated service"]


def test_sets_of_nested_packages_are_apart() -> None:
    items = resources_of(SERVICES, "set.yaml") + resources_of(SERVICES, "set.yaml")
    items[1].package = "sub"

    result = run_function("enable-gcp-services", items)

    assert [(item.package, item.path) for item in result.items[2:]] == [
        ("", "service_proj1-service-compute.yaml"),
        ("", "service_proj1-service-redis.yaml"),
        ("sub", "service_proj1-service-compute.yaml"),
        ("sub", "service_proj1-service-redis.yaml"),
    ]
    assert len(run_function("enable-gcp-services", result.items).items) == 6


def test_a_set_without_a_list_is_refused() -> None:
    results, _ = failure("enable-gcp-services", SERVICES.replace("  services:\n", "  other:\n"))

    expected = "ProjectServiceSet proj1-service: spec.services must be a list of names such as compute.googleapis.com"
    assert [result["message"] for result in results] == [expected]


def test_no_op_gives_back_what_it_got() -> None:
    assert text_after("no-op", SERVICES) == SERVICES


def test_the_package_context_is_generated_for_the_root() -> None:
    items = resources_of(_kptfile(), "Kptfile")

    result = run_function("builtins/gen-pkg-context", items, inline_config({"package-path": "a/b"}))

    assert result.items[1].path == "package-context.yaml"
    assert result.items[1].data["data"] == {"name": "p", "package-path": "a/b"}
    assert result.items[1].data["metadata"]["annotations"] == {"config.kubernetes.io/local-config": "true"}
    assert result.results == [
        {"message": "generated package context", "severity": "info", "file": {"path": "package-context.yaml"}}
    ]


def test_an_existing_package_context_keeps_other_keys_and_comments() -> None:
    context = "# ours\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: kptfile.kpt.dev\ndata:\n  name: old # is set\n  x: y\n"
    items = resources_of(context, "package-context.yaml") + resources_of(_kptfile(), "Kptfile")
    items += resources_of(context, "sub/package-context.yaml")
    nested = resources_of(context, "package-context.yaml")
    nested[0].package = "sub"

    result = run_function("builtins/gen-pkg-context", items + nested)

    assert [item.text() for item in result.items if item.data["kind"] == "ConfigMap"] == [
        context.replace("old", "p"),
        context,
    ]


@pytest.mark.parametrize("image", ["gen-pkg-context", "builtins/no-op"])
def test_only_the_generator_comes_without_a_registry(image: str) -> None:
    with pytest.raises(FunctionNotFound):
        run_function(image, resources_of(SERVICES))


def test_without_a_kptfile_there_is_no_package_context() -> None:
    result = run_function("builtins/gen-pkg-context", resources_of(SERVICES))

    assert (len(result.items), result.results) == (1, [])
