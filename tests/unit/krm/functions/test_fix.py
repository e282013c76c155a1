from pathlib import Path

import pytest
from cost import metered
from function_run import messages, resources_of, run_function

from krm.functions.catalog.alpha_setters import commented_setter
from krm.functions.resource import Resource
from krm.functions.runner import FunctionResult
from krm.package.kptfile import parse_kptfile
from krm.package.yaml_reader import read_document

ALPHA1 = """\
apiVersion: kpt.dev/v1alpha1
kind: Kptfile
metadata:
  name: nginx # who
upstream:
  type: git
  git:
    commit: 4d2aa98b45ddee4b5fa45fbca16f2ff887de9efb
    repo: https://example.com/kpt
    directory: package-examples/nginx
    ref: v0.2
packageMetadata:
  email: foo@example.com
  license: license text
  man: nginx man text
  shortDescription: describe this package
  tags:
    - tag1
    - tag2
  url: https://example.com/site
openAPI:
  definitions:
    io.k8s.cli.setters.image:
      x-k8s-cli:
        setter:
          name: image
          value: nginx
    io.k8s.cli.setters.list:
      type: array
      x-k8s-cli:
        setter:
          name: list
          value: ""
          listValues:
            - dev
            - "1"
    io.k8s.cli.setters.tag:
      x-k8s-cli:
        setter:
          name: tag
          value: 1.10
    io.k8s.cli.substitutions.fullimage:
      x-k8s-cli:
        substitution:
          name: fullimage
          pattern: IMAGE:TAG
          values:
            - marker: IMAGE
              ref: '#/definitions/io.k8s.cli.setters.image'
            - marker: TAG
              ref: '#/definitions/io.k8s.cli.setters.tag'
    io.k8s.cli.substitutions.id:
      x-k8s-cli:
        substitution:
          name: id
          pattern: deployment-${fullimage}
          values:
            - marker: ${fullimage}
              ref: '#/definitions/io.k8s.cli.substitutions.fullimage'
inventory:
  namespace: some-space
  name: inventory-1
  inventoryID: abc
"""
RESOURCE = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: deployment-nginx:1.10 # {"$kpt-set":"id"}
spec:
  replicas: 3 # why
  image: nginx:1.10 # {"$openapi":"fullimage"}
  tag: 1.10 # {"$ref":"#/definitions/io.k8s.cli.setters.tag"}
  list: # {"$kpt-set":"list"}
    - dev
    - "1"
"""
FUNCTION = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: my-config
  annotations:
    config.kubernetes.io/function: |
      container:
        image: gcr.io/kpt-fn/set-namespace:v0.1
data:
  namespace: foo
"""


def _fixed(*files: tuple[str, str]) -> tuple[dict[str, str], FunctionResult]:
    items = [item for path, text in files for item in resources_of(text, path)]
    result = run_function("fix", items)
    assert result.exit_code == 0, result.results
    return {item.path: item.text() for item in result.items}, result


def test_first_schema_becomes_v1() -> None:
    files, _ = _fixed(("Kptfile", ALPHA1), ("app/deployment.yaml", RESOURCE), ("fn/ns.yaml", FUNCTION))

    git = {"repo": "https://example.com/kpt", "directory": "package-examples/nginx", "ref": "v0.2"}
    commit = {"commit": "4d2aa98b45ddee4b5fa45fbca16f2ff887de9efb"}
    assert read_document(files["Kptfile"]) == {
        "apiVersion": "kpt.dev/v1",
        "kind": "Kptfile",
        "metadata": {"name": "nginx"},
        "upstream": {"type": "git", "git": git, "updateStrategy": "resource-merge"},
        "upstreamLock": {"type": "git", "git": {**git, **commit}},
        "info": {
            "site": "https://example.com/site",
            "emails": ["foo@example.com"],
            "license": "license text",
            "description": "describe this package",
            "keywords": ["tag1", "tag2"],
            "man": "nginx man text",
        },
        "pipeline": {
            "mutators": [
                {"image": "gcr.io/kpt-fn/apply-setters:v0.2", "configPath": "setters.yaml"},
                {"image": "gcr.io/kpt-fn/set-namespace:v0.1", "configPath": "fn/ns.yaml"},
            ]
        },
        "inventory": {"namespace": "some-space", "name": "inventory-1", "inventoryID": "abc"},
    }
    assert "name: nginx # who\n" in files["Kptfile"]
    assert list(read_document(files["Kptfile"]))[3:] == ["upstream", "upstreamLock", "info", "pipeline", "inventory"]
    assert parse_kptfile(files["Kptfile"].encode()).name == "nginx"


def test_definitions_become_a_file_of_setters() -> None:
    files, _ = _fixed(("Kptfile", ALPHA1))

    assert read_document(files["setters.yaml"]) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "setters"},
        "data": {"image": "nginx", "list": '- dev\n- "1"\n', "tag": "1.10"},
    }


def test_comments_become_patterns_with_substitutions_resolved() -> None:
    files, _ = _fixed(("Kptfile", ALPHA1), ("app/deployment.yaml", RESOURCE))

    assert files["app/deployment.yaml"] == (
        RESOURCE.replace('{"$kpt-set":"id"}', "kpt-set: deployment-${image}:${tag}")
        .replace('{"$openapi":"fullimage"}', "kpt-set: ${image}:${tag}")
        .replace('{"$ref":"#/definitions/io.k8s.cli.setters.tag"}', "kpt-set: ${tag}")
        .replace('{"$kpt-set":"list"}', "kpt-set: ${list}")
    )


def test_every_change_is_reported_with_its_file() -> None:
    _, result = _fixed(("Kptfile", ALPHA1), ("app/deployment.yaml", RESOURCE), ("fn/ns.yaml", FUNCTION))

    assert {item["file"]["path"] for item in result.results} == {
        "Kptfile",
        "app/deployment.yaml",
        "fn/ns.yaml",
        "setters.yaml",
    }
    assert sum(item["file"]["path"] == "app/deployment.yaml" for item in result.results) == 4


def test_what_v1_has_no_place_for_is_named() -> None:
    _, result = _fixed(("Kptfile", ALPHA1 + "dependencies:\n- name: x\n"))

    assert {
        "message": "dropped [dependencies], for which kpt.dev/v1 has no place",
        "severity": "warning",
        "file": {"path": "Kptfile"},
    } in result.results


ALPHA2 = """\
apiVersion: kpt.dev/v1alpha2
kind: Kptfile
metadata:
  name: app
pipeline:
  mutators:
    # first
    - image: gcr.io/kpt-fn/apply-setters:v0.2 # setters
      configMap:
        tier: backend
        replicas: "3"
    - image: gcr.io/kpt-fn/set-labels:v0.2
      configMap:
        a: b
"""


def test_second_schema_keeps_all_but_its_setters() -> None:
    files, _ = _fixed(("Kptfile", ALPHA2))

    assert files["Kptfile"] == ALPHA2.replace("v1alpha2", "v1").replace(
        '      configMap:\n        tier: backend\n        replicas: "3"\n', "      configPath: setters.yaml\n"
    )
    assert read_document(files["setters.yaml"])["data"] == {"tier": "backend", "replicas": "3"}


def test_each_package_is_fixed_by_its_own_kptfile() -> None:
    files, _ = _fixed(
        ("Kptfile", ALPHA2),
        ("sub/Kptfile", ALPHA1),
        ("sub/a/x.yaml", RESOURCE),
        ("y.yaml", RESOURCE.replace("e: d", "e: e")),
    )

    assert "sub/setters.yaml" in files
    assert "kpt-set: ${list}" in files["sub/a/x.yaml"]
    assert '{"$kpt-set":"list"}' in files["y.yaml"]


def test_resources_of_no_package_are_left_alone() -> None:
    files, _ = _fixed(("sub/Kptfile", ALPHA1), ("/abs/x.yaml", RESOURCE), ("other/y.yaml", RESOURCE))

    assert files["/abs/x.yaml"] == files["other/y.yaml"] == RESOURCE


def test_file_that_is_there_is_not_overwritten() -> None:
    files, _ = _fixed(("Kptfile", ALPHA2), ("setters.yaml", FUNCTION))

    assert files["setters.yaml"] == FUNCTION
    assert "configPath: setters-2.yaml" in files["Kptfile"]


def test_fixing_again_changes_nothing() -> None:
    items = [*resources_of(ALPHA1, "Kptfile"), *resources_of(RESOURCE, "a.yaml")]
    once = run_function("fix", items).items
    texts = [item.text() for item in once]

    result = run_function("fix", once)

    assert messages(result) == ["no package needs fixing"]
    assert [item.text() for item in result.items] == texts


def test_function_that_is_no_container_is_left_to_the_user() -> None:
    strange = FUNCTION.replace(
        "      container:\n        image: gcr.io/kpt-fn/set-namespace:v0.1", "      starlark: {path: a}"
    )
    files, result = _fixed(("Kptfile", ALPHA1), ("fn.yaml", strange))

    assert "by hand" in " ".join(messages(result))
    assert files["fn.yaml"] == strange


@pytest.mark.parametrize(
    "comment",
    ["# {", "# {}", "# []", '# {"a": 1}', "# kpt-set: ${a}", '# {"$kpt-set": 3}', '# {"$ref": "x"}', "# " + "{" * 4000],
)
def test_other_comments_name_no_setter(comment: str) -> None:
    assert commented_setter(comment) == ""


def test_substitutions_that_blow_up_are_refused_in_no_time() -> None:
    parts = "".join(
        f"    io.k8s.cli.substitutions.s{n}:\n      x-k8s-cli:\n        substitution:\n          name: s{n}\n"
        f"          pattern: {'M' * 50}\n          values:\n            - marker: M\n"
        f"              ref: '#/definitions/io.k8s.cli.substitutions.s{(n + 1) % 30}'\n"
        for n in range(30)
    )
    kptfile = ALPHA1.replace("inventory:", parts + "inventory:")
    with metered() as cost:
        items: list[Resource] = [
            *resources_of(kptfile, "Kptfile"),
            *resources_of(RESOURCE.replace('"id"', '"s0"'), "a.yaml"),
        ]
        result = run_function("fix", items)

    assert result.exit_code == 1
    assert "longer than" in result.stderr
    assert cost.seconds < 2


def test_kptfile_of_kpts_own_tests_becomes_one_that_renders() -> None:
    case = Path(__file__).parents[3] / "data" / "kpt" / "fn-render" / "basicpipeline-v1alpha1" / "Kptfile"

    files, _ = _fixed(("Kptfile", case.read_text()))

    assert list(read_document(files["Kptfile"]))[-2:] == ["pipeline", "inventory"]
    assert [mutator.config_path for mutator in parse_kptfile(files["Kptfile"].encode()).mutators] == ["setters.yaml"]
