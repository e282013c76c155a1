import pytest
from cost import metered
from function_run import config_of, failure, resources_of, run_function
from replacement_cases import CONTEXT, DEPLOYMENT, LENIENT, PODS, SOURCE, STRICT, replacement, replacement_failure

from krm.functions.runner import FunctionConfig


def test_many_replacements_on_many_resources_take_linear_time() -> None:
    pod, _, _ = PODS.partition("---\n")
    pods = "---\n".join(pod.replace("name: a", f"name: a{number}") for number in range(1000))
    replacements = "".join(
        f"- source: {{kind: Pod, name: a{number}}}\n"
        f"  targets: [{{select: {{kind: Pod, name: a{number + 1}}}, fieldPaths: [spec.x]}}]\n"
        for number in range(999)
    )
    config = config_of(f"apiVersion: fn.kpt.dev/v1alpha1\nkind: ApplyReplacements\nreplacements:\n{replacements}")
    items = resources_of(pods)
    with metered() as cost:
        result = run_function(STRICT, items, config)

    assert result.items[999].data["spec"]["x"] == "a998"
    assert cost.seconds < 3


def test_large_regular_expressions_are_stopped() -> None:
    paths = ", ".join(
        f"'spec.template.spec.containers.[name=(a{{{{100}}}}){'b?' * 1900}{number}|.*].image'" for number in range(50)
    )
    with metered() as cost:
        message = replacement_failure(
            STRICT, CONTEXT, f"{{{DEPLOYMENT}[{paths.replace('{{', '{').replace('}}', '}')}]}}"
        )

    assert "more than 1000000 values" in message
    assert cost.seconds < 5


def repeated(replacement: str, times: int) -> FunctionConfig:
    return config_of("apiVersion: fn.kpt.dev/v1alpha1\nkind: ApplyReplacements\nreplacements:\n" + replacement * times)


INTO_ITSELF = """\
- source: {{kind: ConfigMap, fieldPath: {source}}}
  targets: [{{select: {{kind: ConfigMap}}, fieldPaths: [{targets}], options: {options}}}]
"""
DEEPER = INTO_ITSELF.format(source="metadata", targets="metadata.x", options="{create: true}")
WIDER = INTO_ITSELF.format(source="data", targets="data.a, data.b", options="{create: true}")
LONGER = INTO_ITSELF.format(source="data.name", targets="data.name", options="{delimiter: '-', index: -1}")


@pytest.mark.parametrize(
    ("replacement", "problem"),
    [
        (DEEPER, "nested deeper than 256 levels"),
        (WIDER, "more than 1000000 values"),
        (LONGER, "more than 1000000 values"),
    ],
    ids=["deeper", "wider", "longer"],
)
def test_values_that_grow_with_each_replacement_are_stopped(replacement: str, problem: str) -> None:
    with metered() as cost:
        results, _ = failure(LENIENT, SOURCE, repeated(replacement, 300))

    assert problem in results[0]["message"]
    assert cost.seconds < 5


def test_a_configuration_that_compares_everything_with_everything_is_stopped() -> None:
    pod, _, _ = PODS.partition("---\n")
    pods = "---\n".join(pod.replace("name: a", f"name: a{number}") for number in range(1000))
    rejections = ", ".join(f"{{name: x{number}}}" for number in range(1000))
    with metered() as cost:
        results, _ = failure(
            STRICT,
            pods,
            replacement("{name: a1}", f"{{select: {{kind: Pod}}, reject: [{rejections}], fieldPaths: [spec.x]}}"),
        )

    assert "more than 1000000 values would be looked at or written" in results[0]["message"]
    assert cost.seconds < 5
