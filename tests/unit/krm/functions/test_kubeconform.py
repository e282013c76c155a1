import json
from pathlib import Path
from typing import Any

import pytest

from krm.functions.builtins import BuiltinRunner
from krm.functions.catalog.kubeconform import check, kubeconform
from krm.functions.images import NEWEST, parse_image
from krm.functions.resource import Resource
from krm.functions.runner import FunctionConfig, FunctionNotFound, FunctionResult, ResourceList
from krm.functions.toolchain import function_runner
from krm.package.yaml_reader import read_documents

FAILED = "failed to evaluate function: error: function failure"
DEPLOYMENT = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: nginx\n  namespace: web\n"
CUSTOM = "apiVersion: example.com/v1\nkind: Custom\nmetadata:\n  name: c\n"
KPTFILE = "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: app\n"
CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: customs.example.com}
spec:
  group: example.com
  names: {kind: Custom, plural: customs}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
"""


def _run(text: str, directory: Path | None = None, **data: str) -> FunctionResult:
    items = [
        Resource.of_document(document, "", path="a.yaml", index=index)
        for index, document in enumerate(read_documents(text))
    ]
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "function-input"}, "data": data}
    return check(ResourceList(items, FunctionConfig(config, typed=config)), directory)


def _found(text: str, **data: str) -> list[tuple[str, str]]:
    return [(result.get("field", {}).get("path", ""), result["message"]) for result in _run(text, None, **data).results]


def _custom(spec_schema: str, spec: str) -> str:
    """A definition whose spec has this schema, and an object of it."""
    schema = "".join(f"            {line}\n" for line in spec_schema.splitlines())
    return f"{CRD}{schema}---\n{CUSTOM}spec: {spec}\n"


def test_missing_properties_are_reported_as_upstream_reports_them() -> None:
    result = _run(DEPLOYMENT + "spec:\n  replicas: 3\n")

    assert (result.exit_code, result.stderr) == (1, FAILED)
    assert result.results == [
        {
            "message": "missing properties 'selector', 'template'",
            "severity": "error",
            "resourceRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "nginx", "namespace": "web"},
            "field": {"path": "spec"},
            "file": {"path": "a.yaml"},
        }
    ]


@pytest.mark.parametrize(
    ("text", "path", "message"),
    [
        ('replicas: "3"', "spec.replicas", "got string, want null or integer"),
        ("replicas: 1.5", "spec.replicas", "got number, want null or integer"),
        ("paused: 1", "spec.paused", "got number, want null or boolean"),
        ("template: []", "spec.template", "got array, want object"),
        ("selector: null", "spec.selector", "got null, want object"),
        ("template: {spec: {containers: {}}}", "spec.template.spec.containers", "got object, want array"),
        ("template: {spec: {containers: [{}]}}", "spec.template.spec.containers.0", "missing property 'name'"),
        (
            "strategy: {rollingUpdate: {maxSurge: [1]}}",
            "spec.strategy.rollingUpdate.maxSurge",
            "got array, want null or integer or string",
        ),
    ],
)
def test_wrong_types_name_what_is_there_and_what_may_be(text: str, path: str, message: str) -> None:
    assert (path, message) in _found(f"{DEPLOYMENT}spec:\n  {text}\n")


def test_valid_objects_pass_unchanged() -> None:
    text = (
        DEPLOYMENT + "spec:\n  replicas: null\n  selector: {matchLabels: {a: b}}\n"
        "  strategy: {rollingUpdate: {maxSurge: 25%, maxUnavailable: 1}}\n"
        "  template:\n    metadata: {creationTimestamp: null}\n    spec:\n      containers:\n"
        "      - {name: a, resources: {limits: {cpu: 1, memory: 1Gi}}, livenessProbe: {httpGet: {port: http}}}\n"
    )

    result = _run(text, strict="true")

    assert (result.exit_code, result.results, result.stderr) == (0, [], "")
    assert len(result.items) == 1


def test_unknown_properties_are_errors_in_strict_mode_only() -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, lable: {}}\ndat: {}\nbin: {}\n"

    assert _found(text) == []
    assert _found(text, strict="true") == [
        ("", "additional properties 'dat', 'bin' not allowed"),
        ("metadata", "additional properties 'lable' not allowed"),
    ]


def test_the_second_document_of_a_file_is_named_by_its_index() -> None:
    result = _run(f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\n---\n{DEPLOYMENT}")

    assert [item["file"] for item in result.results] == []
    result = _run(f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\n---\n{DEPLOYMENT}spec: 1\n")
    assert [item["file"] for item in result.results] == [{"path": "a.yaml", "index": 1}]


@pytest.mark.parametrize("text", [CUSTOM, KPTFILE, "apiVersion: apps/v2\nkind: Deployment\nmetadata: {name: a}\n"])
def test_kinds_without_schema_are_errors_that_name_the_ways_out(text: str) -> None:
    (path, message), *more = _found(text)

    assert (path, more) == ("", [])
    assert message.startswith("could not find schema for ")
    assert "`ignore_missing_schemas`" in message
    assert "`skip_kinds`" in message


@pytest.mark.parametrize(
    "data",
    [
        {"ignore_missing_schemas": "true"},
        {"skip_kinds": "Kptfile, Custom"},
        {"skip_kinds": "kpt.dev/v1/Kptfile,example.com/v1/Custom"},
    ],
)
def test_kinds_without_schema_can_be_let_pass(data: dict[str, str]) -> None:
    assert _found(f"{CUSTOM}---\n{KPTFILE}", **data) == []


def test_skipped_kinds_are_not_checked() -> None:
    assert _found(DEPLOYMENT + "spec: 1\n", skip_kinds="Deployment") == []


def test_ignoring_missing_schemas_still_checks_the_others() -> None:
    assert _found(f"{CUSTOM}---\n{DEPLOYMENT}spec: 1\n", ignore_missing_schemas="true") == [
        ("spec", "got number, want null or object")
    ]


@pytest.mark.parametrize(
    ("schema", "spec", "path", "message"),
    [
        ("properties: {a: {type: integer}}", "{a: x}", "spec.a", "got string, want integer"),
        ("properties: {a: {type: integer}}", "{a: null}", "spec.a", "got null, want integer"),
        ("properties: {a: {type: integer, minimum: 1}}", "{a: 0}", "spec.a", "minimum: got 0, want 1"),
        ("properties: {a: {type: string, enum: [x, z1]}}", "{a: z}", "spec.a", "value must be one of 'x', 'z1'"),
        ("properties: {a: {type: string, enum: [x]}}", "{a: z}", "spec.a", "value must be 'x'"),
        ("properties: {a: {pattern: ^a+$}}", "{a: b}", "spec.a", "'b' does not match pattern '^a+$'"),
        ("properties: {a: {minLength: 2}}", "{a: é}", "spec.a", "minLength: got 1, want 2"),
        ("properties: {a: {maxItems: 1}}", "{a: [1, 2]}", "spec.a", "maxItems: got 2, want 1"),
        ("properties: {a: {uniqueItems: true}}", "{a: [1, 2, 1]}", "spec.a", "items at 0 and 2 are equal"),
        ("properties: {a: {x-kubernetes-int-or-string: true}}", "{a: true}", "spec.a", "got boolean, want integer or string"),
        ("additionalProperties: {type: string}", "{a: 1}", "spec.a", "got number, want string"),
        ("required: [a]", "{}", "spec", "missing property 'a'"),
        ("properties: {a: {anyOf: [{type: string}, {type: integer}]}}", "{a: []}", "spec.a", "anyOf failed"),
        ("properties: {a: {oneOf: [{type: string}, {type: integer}]}}", "{a: []}", "spec.a", "oneOf failed, none matched"),
        ("properties: {a: {not: {type: string}}}", "{a: x}", "spec.a", "not failed"),
    ],
)  # fmt: skip
def test_definitions_in_the_package_are_used(schema: str, spec: str, path: str, message: str) -> None:
    assert _found(_custom(schema, spec)) == [(path, message)]


@pytest.mark.parametrize(
    ("schema", "spec"),
    [
        ("properties: {a: {type: string, nullable: true}}", "{a: null}"),
        ("properties: {a: {type: string, nullable: true, enum: [x]}}", "{a: null}"),
        ("properties: {a: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}}", "{a: 1}"),
        ("x-kubernetes-preserve-unknown-fields: true\nproperties: {a: {type: string}}", "{b: 1}"),
        ("properties: {a: {type: object, x-kubernetes-embedded-resource: true, properties: {spec: {type: object}}}}", "{a: {apiVersion: v1, kind: A, metadata: {}, spec: {}}}"),
        ("properties: {a: {type: object, properties: {b: {}, c: {}}, anyOf: [{required: [b]}, {properties: {c: {type: integer}}}]}}", "{a: {b: 1, c: 2}}"),
    ],
)  # fmt: skip
def test_kubernetes_extensions_of_schemas_are_understood(schema: str, spec: str) -> None:
    assert _found(_custom(schema, spec), strict="true") == []


def test_every_version_has_its_schema_and_old_definitions_share_one() -> None:
    old = CRD.replace("apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1").partition("  versions:")[0]
    old += "  version: v1\n  validation: {openAPIV3Schema: {type: object, required: [data]}}\n"

    assert _found(f"{old}---\n{CUSTOM}", skip_kinds="CustomResourceDefinition") == [("", "missing property 'data'")]


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ('properties: {a: {$ref: "http://localhost/x"}}', "is not in its own document"),
        ('properties: {a: {$ref: "#/definitions/x"}}', "is not defined"),
        ("properties: {a: {pattern: '('}}", "the schema cannot be used"),
        ("properties: {a: {pattern: '(?=x)'}}", "the schema cannot be used"),
        ("properties: {a: {type: nonsense}}", "the schema cannot be used"),
        (f"anyOf: [{', '.join(['{}'] * 1001)}]", "more than 1000 alternatives"),
        ("required: [[1]]", "the schema cannot be used"),
    ],
)
def test_unusable_schemas_are_errors_of_the_objects_they_are_for(schema: str, reason: str) -> None:
    (path, message), *more = _found(_custom(schema, "{a: x}"), skip_kinds="CustomResourceDefinition")

    assert (path, more) == ("", [])
    assert message.startswith("schema of Custom (example.com/v1): ")
    assert reason in message


@pytest.mark.parametrize("spec", ["1", "[]", "{versions: 1}", "{versions: [1]}", "{names: [], versions: [{name: v1}]}"])
def test_malformed_definitions_define_nothing(spec: str) -> None:
    crd = f"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: a}}\nspec: {spec}\n"

    assert _found(f"{crd}---\n{CUSTOM}", skip_kinds="CustomResourceDefinition")[0][1].startswith(
        "could not find schema"
    )


def test_patterns_take_linear_time() -> None:
    text = _custom("properties: {a: {pattern: '^(a+)+$'}}", "{a: " + "a" * 50_000 + "b}")

    assert _found(text)[0][0] == "spec.a"


def test_violations_of_one_object_are_bounded() -> None:
    text = (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {"
        + ", ".join(f"k{n}: 1" for n in range(5000))
        + "}"
    )

    assert len(_found(text)) == 100


V3 = {
    "openapi": "3.0.0",
    "components": {
        "schemas": {
            "Custom": {
                "type": "object",
                "x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Custom"}],
                "properties": {"spec": {"allOf": [{"$ref": "#/components/schemas/Spec"}], "default": {}}},
            },
            "Spec": {
                "type": "object",
                "properties": {"size": {"type": "integer"}, "self": {"$ref": "#/components/schemas/Spec"}},
            },
        }
    },
}


def test_a_document_of_the_schema_folder_can_be_named(tmp_path: Path) -> None:
    (tmp_path / "v3.json").write_text(json.dumps(V3))

    result = _run(CUSTOM + "spec: {self: {self: {size: x}}}\n", tmp_path, additional_schema_locations="v3.json")

    assert [(item["field"]["path"], item["message"]) for item in result.results] == [
        ("spec.self.self.size", "got string, want integer")
    ]


def test_a_schema_location_takes_the_place_of_kubernetes_schemas(tmp_path: Path) -> None:
    (tmp_path / "v3.json").write_text(json.dumps(V3))

    assert "could not find schema" in _run(DEPLOYMENT, tmp_path, schema_location="v3.json").results[0]["message"]
    assert _run(DEPLOYMENT, tmp_path, schema_location="default,v3.json").results == []


def test_the_documents_that_kubernetes_serves_can_be_read(tmp_path: Path) -> None:
    swagger: dict[str, Any] = {"swagger": "2.0", "definitions": {"v1.Custom": V3["components"]["schemas"]["Custom"]}}  # type: ignore[index]
    (tmp_path / "v2.json").write_text(json.dumps(swagger).replace("components/schemas/Spec", "definitions/Spec"))

    message = _run(CUSTOM, tmp_path, schema_location="v2.json").results[0]["message"]

    assert message == "schema of Custom (example.com/v1): schema refers to Spec, which is not defined"


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("https://localhost/schema.json", "functions have no network"),
        ("file:///etc/passwd", "functions have no network"),
        ("/etc/passwd", "must be a path inside the schema folder"),
        ("../secret.json", "must be a path inside the schema folder"),
        ("link.json", "must be a path inside the schema folder"),
        ("missing.json", "cannot be read: No such file or directory"),
        (".", "cannot be read: "),
        ("no.json", "not JSON"),
        ("list.json", "not an OpenAPI document"),
        ("other.json", "it has neither definitions (v2) nor components.schemas (v3)"),
    ],
)
def test_other_schema_locations_are_refused_with_the_reason(tmp_path: Path, location: str, reason: str) -> None:
    folder = tmp_path / "schemas"
    folder.mkdir()
    (tmp_path / "secret.json").write_text("{}")
    (folder / "link.json").symlink_to(tmp_path / "secret.json")
    for name, text in (("no.json", "no"), ("list.json", "[]"), ("other.json", "{}")):
        (folder / name).write_text(text)

    result = _run(DEPLOYMENT, folder, schema_location=location)

    assert (result.exit_code, result.stderr) == (1, FAILED)
    assert result.results[0]["message"].startswith(f"schema location {location}")
    assert reason in result.results[0]["message"]


def test_without_a_schema_folder_only_the_carried_schemas_can_be_named() -> None:
    assert "no schema folder is configured" in _found(DEPLOYMENT, schema_location="a.json")[0][1]


def test_another_kind_of_configuration_is_refused() -> None:
    config = {"apiVersion": "example.com/v1", "kind": "Other"}

    result = check(ResourceList([], FunctionConfig(config, typed=config)))

    assert result.results[0]["message"] == "unknown FunctionConfig `Other.example.com`, expect `ConfigMap.v1`"


@pytest.mark.parametrize(
    "image", ["gcr.io/kpt-fn/kubeval:v0.3", "ghcr.io/kptdev/krm-functions-catalog/kubeconform:v0.1.1"]
)
def test_both_names_run_without_configuration(image: str) -> None:
    item = Resource.of_document(read_documents(DEPLOYMENT + "spec: 1\n")[0], "", path="a.yaml", index=0)

    assert BuiltinRunner().run(image, ResourceList([item])).results[0]["field"] == {"path": "spec"}


def test_a_function_can_be_made_for_a_schema_folder(tmp_path: Path) -> None:
    (tmp_path / "v3.json").write_text(json.dumps(V3))
    config = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"schema_location": "v3.json"}}
    item = Resource.of_document(read_documents(CUSTOM)[0], "", path="a.yaml", index=0)
    given = ResourceList([item], FunctionConfig(config, typed=config))

    assert kubeconform(tmp_path).run(given, parse_image("kubeconform"), NEWEST).exit_code == 0


def test_the_toolchain_hands_the_schema_folder_on(tmp_path: Path) -> None:
    (tmp_path / "v3.json").write_text(json.dumps(V3))
    config = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"schema_location": "v3.json"}}
    item = Resource.of_document(read_documents(CUSTOM)[0], "", path="a.yaml", index=0)
    given = ResourceList([item], FunctionConfig(config, typed=config))

    runner = function_runner(schema_directory=tmp_path)

    assert runner.run("gcr.io/kpt-fn/kubeconform:v0.1", given).exit_code == 0
    assert not runner.is_deterministic("gcr.io/kpt-fn/kubeconform:v0.1", given.config)


@pytest.mark.parametrize(("base", "tool"), [("gatekeeper", "Rego"), ("render-helm-chart", "helm")])
def test_functions_that_need_a_tool_of_their_own_say_which(base: str, tool: str) -> None:
    with pytest.raises(FunctionNotFound, match=f"{base}.*it is not built in, because it works with .*{tool}"):
        BuiltinRunner().require(f"gcr.io/kpt-fn/{base}:v0.2")


def test_other_registries_keep_their_own_functions_of_these_names() -> None:
    with pytest.raises(FunctionNotFound, match="it is not a built-in function"):
        BuiltinRunner().require("example.com/gatekeeper:v0.2")


@pytest.mark.parametrize(
    "text",
    [
        "apiVersion: [v1]\nkind: {a: b}\nmetadata: {name: {a: b}}\n",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: 1\n",
        "apiVersion: v1\nkind: Pod\nmetadata: {name: [a], annotations: [1]}\nspec: text\n",
        "kind: Kustomization\n",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: .nan, b: .inf, c: 123456789012345678901234567890}\n",
    ],
)
def test_odd_objects_are_answered_with_errors(text: str) -> None:
    result = _run(text)

    assert result.exit_code == 1
    assert all(item["message"] and item["severity"] == "error" for item in result.results)
