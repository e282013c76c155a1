"""Whatever a package holds, a function answers: with its work done, or with an error that it words itself."""

from typing import Any

import pytest
from function_run import config_of, inline_config, resources_of, run_function
from hypothesis import given, settings
from hypothesis import strategies as st

from krm.functions.runner import FunctionConfig

ODD = """\
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: [a], labels: x, annotations: [1]}
spec: text
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: 7, annotations: {config.kubernetes.io/depends-on: 5, config.kubernetes.io/local-config: [true]}}
spec: {template: [{spec: {containers: {image: nginx}, volumes: [[{configMap: 1}]]}}]}
---
apiVersion: [v1]
kind: {a: b}
metadata: {name: {a: b}}
---
apiVersion: kpt.dev/v1
kind: Kptfile
metadata: {name: k}
pipeline: [1]
---
apiVersion: constraints.gatekeeper.sh/v1beta1
kind: X
metadata: {name: c}
spec: [1]
---
apiVersion: blueprints.cloud.google.com/v1
kind: ProjectServiceSet
metadata: {name: s}
spec: {services: [a/../b.googleapis.com]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: r}
rules: [1, {apiGroups: x, resources: 2, resourceNames: [3, {}]}]
---
kind: Kustomization
"""
FUNCTIONS = [
    "apply-replacements",
    "apply-replacements:v0.1.1",
    "builtins/gen-pkg-context",
    "delete-annotations",
    "enable-gcp-services",
    "ensure-name-substring",
    "no-op",
    "remove-local-config-resources",
    "set-enforcement-action",
    "set-image",
    "set-image:v0.1.1",
    "set-name-prefix",
    "set-project-id",
    "upsert-resource",
]
CONFIGS = [
    None,
    inline_config({"prepend": "x-"}),
    inline_config({"name": "nginx", "newTag": "2"}),
    inline_config({"annotationKeys": "a", "prefix": "a", "project-id": "b", "oldPrefix": "r"}),
    inline_config({"enforcementAction": "deny"}),
    config_of("apiVersion: v1\nkind: ConfigMap\nmetadata: 1\ndata: [1]\n"),
    config_of("apiVersion: fn.kpt.dev/v1alpha1\nkind: SetImage\nmetadata: {name: c}\nimage: [a]\n"),
    config_of("apiVersion: fn.kpt.dev/v1alpha1\nkind: SetImage\nimage: {name: a, newTag: {a: b}}\n"),
    config_of(
        "apiVersion: fn.kpt.dev/v1alpha1\nkind: SetImage\nimage: {name: a, newTag: b}\nadditionalImageFields: [1]\n"
    ),
    config_of(
        "apiVersion: fn.kpt.dev/v1alpha1\nkind: EnsureNameSubstring\nsubstring: {a: b}\nadditionalNameFields: 1\n"
    ),
    config_of(
        "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Pod, metadata: {name: p, annotations: [1]}}]\n"
    ),
    config_of(
        "apiVersion: fn.kpt.dev/v1alpha1\nkind: ApplyReplacements\nreplacements:\n"
        "- source: {kind: Kptfile, fieldPath: pipeline}\n"
        "  targets: [{select: {}, fieldPaths: [spec.x.y, rules.*.a], options: {create: true}}]\n"
    ),
]


@pytest.mark.parametrize("config", CONFIGS, ids=range(len(CONFIGS)))
@pytest.mark.parametrize("image", FUNCTIONS)
def test_odd_resources_and_configurations_are_answered(image: str, config: FunctionConfig | None) -> None:
    result = run_function(image, resources_of(ODD), config)

    assert result.exit_code in (0, 1)
    assert result.exit_code == 0 or result.stderr
    for item in result.items:
        item.text()


@pytest.mark.parametrize("path", ["a" * 2000, "a/" * 100])
@pytest.mark.parametrize("image", ["set-image", "set-image:v0.1.1"])
def test_paths_without_measure_are_refused(image: str, path: str) -> None:
    fields = f"image: {{name: a, newTag: b}}\nadditionalImageFields: [{{path: {path}}}]\n"
    config = config_of(f"apiVersion: fn.kpt.dev/v1alpha1\nkind: SetImage\nmetadata: {{name: c}}\n{fields}")

    result = run_function(image, [], config)

    assert result.exit_code == 1
    assert "is longer than 1024 characters or 64 names" in result.stderr + str(result.results)


SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-9, 99), st.sampled_from(["a", "b-c", "0", "*", ""]))
VALUES = st.recursive(
    SCALARS,
    lambda below: (
        st.lists(below, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "0", "x.y"]), below, max_size=3)
    ),
    max_leaves=12,
)
PARTS = st.sampled_from(
    ["a", "b", "0", "1", "-", "*", "[a=b]", "[x.y]", "[=a]", "x\\.y", "[a=.*]", "data", "[", "]", ""]
)
PATHS = st.lists(PARTS, max_size=4).map(lambda parts: ".".join(["data", *parts]))
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "delimiter": st.sampled_from(["-", "a"]),
        "index": st.sampled_from(["-1", "0", "1", "9"]),
        "create": st.sampled_from(["true", "false"]),
    },
)


@settings(max_examples=300, deadline=None)
@given(data=VALUES, source=PATHS, target=PATHS, taken=OPTIONS, put=OPTIONS, image=st.sampled_from(FUNCTIONS[:2]))
def test_replacements_along_any_path_end_in_data_that_can_be_written(
    data: Any, source: str, target: str, taken: dict[str, str], put: dict[str, str], image: str
) -> None:
    items = resources_of("apiVersion: v1\nkind: A\nmetadata:\n  name: a\n")
    items[0].data["data"] = data
    replacement = {
        "source": {"kind": "A", "fieldPath": source, "options": taken},
        "targets": [{"select": {"kind": "A"}, "fieldPaths": [target], "options": put}],
    }
    config = {"apiVersion": "fn.kpt.dev/v1alpha1", "kind": "ApplyReplacements", "replacements": [replacement]}

    result = run_function(image, items, FunctionConfig(config))

    if result.exit_code:
        assert [set(entry) for entry in result.results] == [{"message", "severity"}]
    else:
        assert resources_of(items[0].text())[0].data == items[0].data
