import pytest
from function_run import config_of, resources_of, run_function
from replacement_cases import BOTH, LENIENT, PODS, SOURCE, STRICT, replacement

from krm.functions.catalog.resource_ids import ResourceId, ResourceIndex


@pytest.mark.parametrize(
    ("select", "reject", "chosen"),
    [
        ("{kind: Pod}", "[]", "abc"),
        ("{kind: Pod}", "[{name: b}]", "ac"),
        ("{kind: Pod}", "[{}]", "abc"),
        ("{version: v1, kind: Pod}", "[{name: a}, {namespace: other}]", "b"),
        ("{kind: Pod, namespace: default}", "[]", "ab"),
        ("{kind: Pod, labelSelector: 'app in (one, two)'}", "[]", "a"),
        ("{kind: Pod, annotationSelector: team=red}", "[]", "b"),
        ("{kind: Pod}", "[{labelSelector: app}]", "bc"),
        ("{name: first}", "[]", "c"),
        ("{group: apps, kind: Pod}", "[]", ""),
    ],
)
def test_targets_are_chosen_by_all_fields_and_rejections(select: str, reject: str, chosen: str) -> None:
    config = replacement(
        "{kind: ConfigMap, name: context, fieldPath: data.name}",
        f"{{select: {select}, reject: {reject}, fieldPaths: [spec.x]}}",
    )

    result = run_function(STRICT, resources_of(SOURCE + "---\n" + PODS), config)

    assert result.exit_code == 0
    pods = [item.data for item in result.items[1:]]
    assert "".join(pod["metadata"]["name"] for pod in pods if pod["spec"]["x"] == "prod") == chosen


def test_a_rejected_former_name_rejects_the_resource_only_in_strict() -> None:
    config = replacement(
        "{kind: ConfigMap, name: context, fieldPath: data.name}",
        "{select: {kind: Pod}, reject: [{name: first}], fieldPaths: [spec.x]}",
    )
    values = {}
    for image in BOTH:
        result = run_function(image, resources_of(SOURCE + "---\n" + PODS), config)
        values[image] = result.items[3].data["spec"]["x"]

    assert values == {LENIENT: "prod", STRICT: "old"}


def test_later_replacements_see_what_earlier_ones_did() -> None:
    config = config_of("""\
apiVersion: fn.kpt.dev/v1alpha1
kind: ApplyReplacements
replacements:
- source: {kind: ConfigMap, name: context, fieldPath: data.word}
  targets: [{select: {kind: Pod, name: a}, fieldPaths: [metadata.name]}]
- source: {kind: Pod, name: abc}
  targets: [{select: {kind: Pod, name: b}, fieldPaths: [spec.x]}]
""")

    result = run_function(STRICT, resources_of(SOURCE + "---\n" + PODS), config)

    assert [item.data["metadata"]["name"] for item in result.items] == ["context", "abc", "b", "c"]
    assert result.items[2].data["spec"]["x"] == "abc"


def test_an_index_looks_only_at_resources_of_the_name() -> None:
    index = ResourceIndex(resources_of(PODS))

    assert index.effort(ResourceId(kind="Pod", name="b")) == 1
    assert index.effort(ResourceId(kind="Pod", name="first")) == 1
    assert index.effort(ResourceId(kind="Service")) == 0
    assert index.effort(ResourceId(namespace="other")) == 3
