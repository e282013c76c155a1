from typing import Any

import pytest
from cost import processor_seconds
from function_run import config_of, failure, inline_config, messages, resources_of, run_function, text_after

from krm.package.yaml_reader import read_document

FAILURE = "failed to evaluate function: error: function failure"
SPREAD = "topologySpreadConstraints: [{labelSelector: {matchLabels: {app: old}}}, {topologyKey: zone}]"
TERM = "{labelSelector: {matchLabels: {app: old}}}"
AFFINITY = (
    f"affinity: {{podAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: [{TERM}]}}, podAntiAffinity: "
    f"{{preferredDuringSchedulingIgnoredDuringExecution: [{{podAffinityTerm: {TERM}}}]}}}}"
)


def _object(kind: str, version: str, spec: str = "") -> str:
    return f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: x}}\n" + (f"spec: {spec}\n" if spec else "")


def _spec(kind: str, version: str, spec: str, image: str = "set-labels") -> tuple[Any, list[str]]:
    """Run the function and return the spec afterwards, and its messages."""
    items = resources_of(_object(kind, version, spec))
    result = run_function(image, items, inline_config({"app": "new", "tier": "web"}))
    assert result.exit_code == 0, result.results
    return items[0].data.get("spec"), messages(result)


BOTH = "{app: new, tier: web}"


@pytest.mark.parametrize(
    ("kind", "version", "spec", "after", "count"),
    [
        pytest.param("Service", "v1", "{selector: {app: old}}", f"{{selector: {BOTH}}}", 4, id="service"),
        pytest.param("Service", "v1", "{type: x}", f"{{type: x, selector: {BOTH}}}", 4, id="service-creates"),
        pytest.param("Service", "serving.knative.dev/v1", "{a: b}", "{a: b}", 2, id="service-of-another-group"),
        pytest.param(
            "ReplicationController",
            "v1",
            "{template: {}}",
            f"{{template: {{metadata: {{labels: {BOTH}}}}}, selector: {BOTH}}}",
            6,
            id="replication-controller",
        ),
        *(
            pytest.param(
                kind,
                version,
                "{template: {spec: {}}}",
                f"{{template: {{spec: {{}}, metadata: {{labels: {BOTH}}}}}, selector: {{matchLabels: {BOTH}}}}}",
                6,
                id=f"{kind}-{version}",
            )
            for kind, version in (
                ("Deployment", "apps/v1"),
                ("Deployment", "example.com/v1"),
                ("ReplicaSet", "extensions/v1beta1"),
                ("DaemonSet", "apps/v1"),
                ("StatefulSet", "apps/v1"),
            )
        ),
        pytest.param(
            "StatefulSet", "example.com/v1", "{template: {}}", "{template: {}}", 2, id="stateful-set-elsewhere"
        ),
        pytest.param("Deployment", "apps/v1", "{}", f"{{selector: {{matchLabels: {BOTH}}}}}", 4, id="no-template"),
        pytest.param(
            "StatefulSet",
            "apps/v1",
            "{volumeClaimTemplates: [{}, {metadata: {labels: {a: b}}}]}",
            f"{{volumeClaimTemplates: [{{metadata: {{labels: {BOTH}}}}}, {{metadata: {{labels: "
            f"{{a: b, app: new, tier: web}}}}}}], selector: {{matchLabels: {BOTH}}}}}",
            8,
            id="claim-templates",
        ),
        pytest.param("Job", "batch/v1", "{a: b}", "{a: b}", 4, id="job-selector-is-not-created-but-counted"),
        pytest.param(
            "Job",
            "batch/v1",
            "{selector: {matchLabels: {app: old}}}",
            "{selector: {matchLabels: {app: new}}}",
            4,
            id="job-selector-gets-no-new-label",
        ),
        pytest.param(
            "PodDisruptionBudget",
            "policy/v1",
            "{selector: {matchLabels: {app: old}}}",
            "{selector: {matchLabels: {app: new}}}",
            4,
            id="budget",
        ),
        pytest.param(
            "NetworkPolicy",
            "networking.k8s.io/v1",
            "{podSelector: {matchLabels: {app: old}}, ingress: [{from: [{podSelector: {matchLabels: {app: old}}}, {}]}, "
            "{}], egress: [{to: [{podSelector: {}}]}]}",
            "{podSelector: {matchLabels: {app: new}}, ingress: [{from: [{podSelector: {matchLabels: {app: new}}}, {}]}, "
            "{}], egress: [{to: [{podSelector: {}}]}]}",
            10,
            id="network-policy",
        ),
        pytest.param(
            "CronJob",
            "batch/v1",
            "{jobTemplate: {spec: {selector: {matchLabels: {app: old}}, template: {}}}}",
            f"{{jobTemplate: {{spec: {{selector: {{matchLabels: {{app: new}}}}, template: {{metadata: {{labels: {BOTH}}}}}}}, "
            f"metadata: {{labels: {BOTH}}}}}}}",
            8,
            id="cron-job",
        ),
        pytest.param(
            "Deployment",
            "apps/v1",
            f"{{template: {{spec: {{{SPREAD}, {AFFINITY}}}}}}}",
            f"{{template: {{spec: {{{SPREAD}, {AFFINITY}}}, metadata: {{labels: {BOTH}}}}}, selector: {{matchLabels: "
            f"{BOTH}}}}}".replace("app: old", "app: new"),
            14,
            id="spread-and-affinity",
        ),
        pytest.param("Widget", "example.com/v1", "{selector: {a: b}}", "{selector: {a: b}}", 2, id="custom"),
    ],
)
def test_table_of_fields(kind: str, version: str, spec: str, after: str, count: int) -> None:
    assert _spec(kind, version, spec) == (read_document(after), [f"set {count} labels in total"])


def test_labels_are_written_in_order_and_present_ones_stay_in_place() -> None:
    text = "apiVersion: v1\nkind: A\nmetadata:\n  name: x\n  labels:\n    tier: old # why\n    z: y\n"

    after = text_after("set-labels", text, inline_config({"tier": "new", "b": "1", "a": "yes"}))

    assert after == text.replace("old", "new") + '    a: "yes"\n    b: "1"\n'


def test_local_configuration_is_left_alone_and_the_kptfile_is_not() -> None:
    local = (
        'apiVersion: v1\nkind: A\nmetadata:\n  name: x\n  annotations: {config.kubernetes.io/local-config: "true"}\n'
    )
    kptfile = "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: x\n"

    after = text_after("set-labels", f"{local}---\n{kptfile}", inline_config({"a": "b"}))

    assert after == f"{local}---\n{kptfile}  labels:\n    a: b\n"


def test_no_resources_is_no_failure() -> None:
    result = run_function("set-labels", [], inline_config({"a": "b"}))

    assert (result.exit_code, result.results) == (0, [{"message": "no input resources", "severity": "info"}])


@pytest.mark.parametrize("config", [None, inline_config({})])
def test_no_configuration_fails_without_an_error(config: Any) -> None:
    assert failure("set-labels", _object("A", "v1"), config) == (
        [{"message": "`FunctionConfig` is not given", "severity": "info"}],
        FAILURE,
    )


def test_configuration_of_another_kind_is_named() -> None:
    config = config_of("apiVersion: fn.kpt.dev/v1alpha1\nkind: BadKind\nmetadata: {name: c}\n")

    results, stderr = failure("set-labels", _object("A", "v1"), config)

    assert results == [
        {
            "message": "unknown FunctionConfig `BadKind.fn.kpt.dev`, expect `SetLabels.fn.kpt.dev` or `ConfigMap.v1`",
            "severity": "error",
            "resourceRef": {"apiVersion": "fn.kpt.dev/v1alpha1", "kind": "BadKind", "name": "c"},
            "file": {"path": "fn-config.yaml"},
        }
    ]
    assert stderr == FAILURE


def test_configuration_without_labels_is_warned_about() -> None:
    config = config_of("apiVersion: fn.kpt.dev/v1alpha1\nkind: SetLabels\nmetadata: {name: c}\n")
    result = run_function("set-labels", resources_of(_object("A", "v1")), config)

    assert (result.exit_code, result.results) == (
        0,
        [{"message": "no `labels` arguments are given in FunctionConfig", "severity": "warning"}],
    )


@pytest.mark.parametrize(
    "spec",
    [
        "{selector: {matchLabels: [a]}}",
        "{selector: x}",
        "{template: x}",
        "{template: {spec: {topologySpreadConstraints: {a: b}}}}",
        "{template: {spec: {topologySpreadConstraints: [a]}}}",
        "{template: {spec: {affinity: [a]}}}",
    ],
)
def test_field_of_another_type_is_an_error_and_the_others_are_still_looked_at(spec: str) -> None:
    bad = _object("Deployment", "apps/v1", spec)
    results, stderr = failure("set-labels", f"{bad}---\n{_object('A', 'v1')}---\n{bad}", inline_config({"a": "b"}))

    assert [(item["severity"], item["file"], item["resourceRef"]["kind"]) for item in results] == [
        ("error", {"path": "resources.yaml"}, "Deployment"),
        ("error", {"path": "resources.yaml", "index": 2}, "Deployment"),
    ]
    assert stderr == FAILURE


OLD = "set-labels:v0.1.5"


def test_first_version_adds_to_selectors_it_finds_and_reports_nothing() -> None:
    spec, told = _spec("Deployment", "apps/v1", f"{{template: {{spec: {{{SPREAD}, {AFFINITY}}}}}}}", OLD)

    pod = spec["template"]["spec"]
    assert pod["topologySpreadConstraints"][0]["labelSelector"]["matchLabels"] == {"app": "new", "tier": "web"}
    assert str(pod["affinity"]).count("'tier': 'web'") == 2
    assert told == []


def test_first_version_reaches_affinities_of_deployments_and_stateful_sets_only() -> None:
    spec, _ = _spec("DaemonSet", "apps/v1", f"{{template: {{spec: {{{AFFINITY}}}}}}}", OLD)

    assert "old" in str(spec["template"]["spec"])


def test_first_version_includes_local_configuration_and_takes_more_fields() -> None:
    text = (
        "apiVersion: x/v1\nkind: A\nmetadata:\n  name: x\n  annotations:\n    config.kubernetes.io/local-config: 'true'\n"
        "spec:\n  list:\n    - a: {}\n"
    )
    config = (
        "apiVersion: fn.kpt.dev/v1alpha1\nkind: {kind}\nmetadata: {{name: c}}\nlabels: {{l: v}}\n"
        "{field}:\n- {{path: spec/list/a/labels, kind: A, create: true}}\n"
    )
    for kind, field in (("SetLabels", "additionalLabelFields"), ("SetLabelConfig", "fieldSpecs")):
        items = resources_of(text)

        run_function(OLD, items, config_of(config.format(kind=kind, field=field)))

        assert items[0].data["spec"]["list"] == [{"a": {"labels": {"l": "v"}}}]
        assert items[0].data["metadata"]["labels"] == {"l": "v"}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (None, "failed to configure function: `functionConfig` must be a `ConfigMap` or `SetLabels`"),
        (inline_config({}), "failed to configure function: input label list cannot be empty"),
    ],
)
def test_first_version_needs_labels(config: Any, message: str) -> None:
    assert failure(OLD, _object("A", "v1"), config) == (
        [{"message": message, "severity": "error"}],
        f"[error]: {message}",
    )


def test_first_version_refuses_two_resources_of_one_identity() -> None:
    _, stderr = failure(OLD, f"{_object('A', 'v1')}---\n{_object('A', 'v1')}", inline_config({"a": "b"}))

    assert "may not add resource with an already registered id" in stderr


def test_labels_of_thousands_of_deployments_take_microseconds_each() -> None:
    text = _object("Deployment", "apps/v1", "{selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}}}")
    items = [resources_of(text)[0] for _ in range(2000)]
    best = processor_seconds(
        lambda: run_function("set-labels", items, inline_config({"app": "x", "tier": "y"})), times=5
    )

    assert best / len(items) < 50e-6
