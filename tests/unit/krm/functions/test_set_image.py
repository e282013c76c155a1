import pytest
from function_run import config_of, failure, inline_config, messages, resources_of, run_function, text_after

from krm.functions.runner import FunctionConfig

NEW = "set-image:unstable"
OLD = "set-image:v0.1.1"
DIGEST = "sha256:e1d6f00f191515945233f562777fc9ab3b7637ea75169b3dd628d46c9b24400f"


def _pod(*images: str) -> str:
    containers = "".join(f"  - name: c{number}\n    image: {image}\n" for number, image in enumerate(images))
    return f"apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\nspec:\n  containers:\n{containers}"


def _workload(kind: str, version: str = "apps/v1", before: str = "spec:\n  template:\n    spec:\n") -> str:
    indent = " " * (before.rsplit("\n", 2)[-2].index("s") + 2)
    lists = "".join(
        f"{indent}{name}:\n{indent}- name: c\n{indent}  image: nginx:1\n" for name in ("containers", "initContainers")
    )
    return f"apiVersion: {version}\nkind: {kind}\nmetadata:\n  name: w\n{before}{lists}"


@pytest.mark.parametrize("image", [NEW, OLD])
@pytest.mark.parametrize(
    ("config", "old", "new"),
    [
        ({"name": "nginx", "newTag": "2"}, "nginx:1", "nginx:2"),
        ({"name": "nginx", "newTag": "2"}, "nginx", "nginx:2"),
        ({"name": "nginx", "newName": "bitnami/nginx", "newTag": "2"}, "nginx:1", "bitnami/nginx:2"),
        ({"name": "nginx", "newName": "bitnami/nginx", "digest": DIGEST}, "nginx:1", f"bitnami/nginx@{DIGEST}"),
        ({"name": "nginx", "newName": "x"}, "nginx:1.2", "x:1.2"),
        ({"name": "nginx", "newName": "x"}, f"nginx@{DIGEST}", f"x@{DIGEST}"),
        ({"name": "nginx", "newName": "x"}, "nginx", "x"),
        ({"name": "nginx", "newTag": "2"}, f"nginx@{DIGEST}", "nginx:2"),
        ({"name": "localhost:5000/app", "newTag": "2"}, "localhost:5000/app:1", "localhost:5000/app:2"),
        ({"name": "localhost:5000/app", "newTag": "2"}, "localhost:5000/app", "localhost:5000/app:2"),
        ({"name": "nginx", "newTag": "2"}, "nginx:${tag}", "nginx:${tag}"),
        ({"name": "nginx", "newTag": "2"}, "nginx:{tag}", "nginx:2"),
        ({"name": "nginx", "newTag": "2"}, "nginx-extra:1", "nginx-extra:1"),
        ({"name": "nginx", "newTag": "2"}, "library/nginx:1", "library/nginx:1"),
        ({"name": "nginx", "newTag": "1.0"}, '"nginx:1" # pinned', '"nginx:1.0" # pinned'),
    ],
)
def test_an_image_gets_a_name_a_tag_or_a_digest(image: str, config: dict[str, str], old: str, new: str) -> None:
    assert text_after(image, _pod(old, "other:1"), inline_config(config)) == _pod(new, "other:1")


def test_a_digest_behind_a_tag_is_replaced_with_it() -> None:
    text = _pod(f"nginx:1@{DIGEST}")

    assert text_after(NEW, text, inline_config({"name": "nginx", "newTag": "2"})) == _pod("nginx:2")
    assert text_after(NEW, text, inline_config({"name": "nginx", "newName": "x"})) == _pod(f"x:1@{DIGEST}")


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "ReplicaSet", "DaemonSet"])
def test_init_containers_of_workloads_count_too(kind: str) -> None:
    text = _workload(kind)

    result = run_function(NEW, resources_of(text), inline_config({"name": "nginx", "newTag": "2"}))

    assert result.items[0].text() == text.replace("nginx:1", "nginx:2")
    assert result.results == [{"message": "summary: updated a total of 2 image(s)", "severity": "info"}]


def test_a_pod_template_has_its_containers_elsewhere() -> None:
    text = _workload("PodTemplate", "v1", "template:\n  spec:\n")

    assert text_after(NEW, text, inline_config({"name": "nginx", "newTag": "2"})) == text.replace("nginx:1", "nginx:2")


def test_the_newer_function_knows_only_some_kinds_and_the_older_all_but_one() -> None:
    config = inline_config({"name": "nginx", "newTag": "2"})
    custom, definition = _workload("Rollout", "x.io/v1"), _workload("CustomResourceDefinition", "x.io/v1")

    assert text_after(NEW, custom, config) == custom
    assert text_after(OLD, custom, config) == custom.replace("nginx:1", "nginx:2")
    assert text_after(OLD, definition, config) == definition


def test_local_configuration_is_not_left_out() -> None:
    text = _pod("nginx:1").replace(
        "  name: p\n", "  name: p\n  annotations: {config.kubernetes.io/local-config: 'true'}\n"
    )

    assert "nginx:2" in text_after(NEW, text, inline_config({"name": "nginx", "newTag": "2"}))


def test_only_images_that_become_others_are_counted() -> None:
    config = inline_config({"name": "nginx", "newTag": "2"})

    result = run_function(NEW, resources_of(_pod("nginx:1", "nginx:2", "other:1")), config)

    assert messages(result) == ["summary: updated a total of 1 image(s)"]


def _set_image(more: str = "") -> FunctionConfig:
    return config_of(f"""\
apiVersion: fn.kpt.dev/v1alpha1
kind: SetImage
metadata: {{name: c}}
image: {{name: nginx, newTag: 1.10}}
additionalImageFields:
- {{group: dev.example.com, version: v1, kind: MyKind, path: 'spec/manifest/images[]/image', create: false}}
{more}""")


@pytest.mark.parametrize("image", [NEW, OLD])
def test_additional_fields_of_a_kind_are_images_too(image: str) -> None:
    text = """\
apiVersion: dev.example.com/v1
kind: {kind}
metadata:
  name: r
spec:
  manifest:
    images:
    - image: nginx:1.20
    - image: postgres:14
"""

    changed = text_after(image, text.format(kind="MyKind"), _set_image())

    assert changed == text.format(kind="MyKind").replace("nginx:1.20", "nginx:1.10")
    assert text_after(image, text.format(kind="Other"), _set_image()) == text.format(kind="Other")


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({"newTag": "1"}, "must specify `name`"),
        ({"name": "nginx"}, "must specify one of `newName`, `newTag`, or `digest`"),
    ],
)
def test_the_newer_function_ends_when_the_image_is_not_described(data: dict[str, str], problem: str) -> None:
    results, stderr = failure(NEW, _pod("nginx:1"), inline_config(data))

    assert results == [
        {"message": problem, "severity": "error"},
        {"message": f"function is terminated: {problem}", "severity": "error"},
    ]
    assert stderr == f"failed to evaluate function: function is terminated: {problem}"


@pytest.mark.parametrize("config", [None, inline_config({})], ids=str)
def test_the_newer_function_says_that_its_configuration_is_missing(config: FunctionConfig | None) -> None:
    results, _ = failure(NEW, _pod("nginx:1"), config)

    assert results[0] == {"message": "`FunctionConfig` is not given", "severity": "info"}
    assert results[1]["message"] == "must specify `name`"


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (inline_config({"name": "a", "tag": "1"}), "ConfigMap has wrong field name tag"),
        (
            config_of("apiVersion: fn.kpt.dev/v1\nkind: BadKind\nmetadata: {name: c}\n"),
            "unknown FunctionConfig `BadKind.fn.kpt.dev`, expect `SetImage.fn.kpt.dev` or `ConfigMap.v1`",
        ),
        (inline_config({"name": "(", "newTag": "1"}), "error parsing regexp: missing ): ^(?:()"),
    ],
)
def test_the_newer_function_refuses_a_configuration_it_cannot_use(config: FunctionConfig, message: str) -> None:
    results, stderr = failure(NEW, _pod("nginx:1"), config)

    assert [result["severity"] for result in results] == ["error"]
    assert results[0]["message"].startswith(message)
    assert stderr == "failed to evaluate function: error: function failure"


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({"newTag": "1"}, "missing image name"),
        ({"name": "a"}, "missing image newName, newTag, or digest"),
        ({"name": "a", "newTag": "1", "digest": DIGEST}, "image newTag and digest both set"),
    ],
)
def test_the_older_function_tells_on_stderr_what_is_missing(data: dict[str, str], problem: str) -> None:
    assert failure(OLD, _pod("a:1"), inline_config(data)) == ([], problem)


def test_the_older_function_reports_each_image_even_an_unchanged_one() -> None:
    items = resources_of(_pod("nginx:2", "nginx:1"))

    result = run_function(OLD, items, inline_config({"name": "nginx", "newTag": "2"}))

    assert [(entry["message"], entry["field"]["path"]) for entry in result.results] == [
        ("set image from nginx:2 to nginx:2", "spec.containers[0].image"),
        ("set image from nginx:1 to nginx:2", "spec.containers[1].image"),
    ]
    assert result.results[1] == {
        "message": "set image from nginx:1 to nginx:2",
        "severity": "info",
        "resourceRef": {"apiVersion": "v1", "kind": "Pod", "name": "p"},
        "field": {"path": "spec.containers[1].image", "currentValue": "nginx:1", "proposedValue": "nginx:2"},
        "file": {"path": "resources.yaml"},
    }


def test_the_older_function_says_when_nothing_matched() -> None:
    result = run_function(OLD, resources_of(_pod("nginx:1")), inline_config({"name": "x", "newTag": "2"}))

    assert result.results == [{"message": "no images changed", "severity": "info"}]
