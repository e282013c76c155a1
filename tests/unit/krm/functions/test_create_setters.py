import pytest
from function_run import config_of, failure, inline_config, messages, resources_of, run_function, text_after

TEXT = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: nginx-app
spec:
  replicas: 4
  image: "nginx:1.16.1" # old
  environments:
    - dev
    - stage
  flow: [stage, dev]
  ports: [80, 8080]
  inline: {image: nginx}
"""


def _after(data: dict[str, str], image: str = "create-setters") -> str:
    return text_after(image, TEXT, inline_config(data))


def test_scalars_that_hold_a_value_get_a_pattern_and_old_comments_go() -> None:
    assert _after({"image": "nginx", "tag": "1.16.1", "replicas": "4"}) == (
        TEXT.replace("name: nginx-app", "name: nginx-app # kpt-set: ${image}-app")
        .replace("replicas: 4", "replicas: 4 # kpt-set: ${replicas}")
        .replace("# old", "# kpt-set: ${image}:${tag}")
    )


def test_results_name_comment_value_field_and_file() -> None:
    result = run_function("create-setters", resources_of(TEXT), inline_config({"tag": "1.16.1"}))

    assert result.results == [
        {
            "message": 'Added line comment "kpt-set: nginx:${tag}" for field with value "nginx:1.16.1"',
            "field": {"path": "spec.image"},
            "file": {"path": "resources.yaml"},
        }
    ]


def test_list_matches_in_any_order_and_leaves_the_flow_style() -> None:
    text = _after({"env": "- stage\n- dev\n"})

    assert "  environments: # kpt-set: ${env}\n    - dev\n    - stage\n" in text
    assert "  flow: # kpt-set: ${env}\n    - stage\n    - dev\n" in text


def test_flow_list_with_a_scalars_value_is_written_one_element_per_line() -> None:
    assert "  ports:\n    - 80\n    - 8080 # kpt-set: ${port}\n" in _after({"port": "8080"})


def test_longest_value_is_replaced_first_and_names_are_not_searched() -> None:
    text = _after({"nginx": "app", "app": "nginx-app"})

    assert "name: nginx-app # kpt-set: ${app}\n" in text


def test_first_tag_searches_names_too() -> None:
    text = _after({"x": "nginx-app", "y": "x"}, "create-setters:v0.1.0")

    assert "name: nginx-app # kpt-set: ${${y}}\n" in text


def test_values_of_several_lines_get_no_comment() -> None:
    block = "apiVersion: v1\nkind: A\nmetadata:\n  name: x\na: mine\ndata: |\n  mine\n  w\n"

    assert text_after("create-setters", block, inline_config({"v": "mine"})) == block.replace(
        "a: mine", "a: mine # kpt-set: ${v}"
    )


@pytest.mark.parametrize("data", [{"x": "absent"}, {"x": "- a\n- b"}, {"x": ""}])
def test_setters_that_match_nothing_are_an_error(data: dict[str, str]) -> None:
    results, stderr = failure("create-setters", TEXT, inline_config(data))

    assert results == [
        {"message": "failed to create setters: no matches for the input list of setters", "severity": "error"}
    ]
    assert stderr == results[0]["message"]


def test_value_where_no_comment_can_stand_does_not_count() -> None:
    text = "apiVersion: v1\nkind: A\nmetadata: {name: abc}\n"

    assert failure("create-setters", text, inline_config({"n": "abc"}))[1].endswith(
        "no matches for the input list of setters"
    )


def test_empty_configuration_is_an_error() -> None:
    for config in (None, inline_config({}), config_of("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n")):
        assert failure("create-setters", TEXT, config)[1] == "failed to create setters: config map cannot be empty"


def test_lists_come_before_the_scalars_of_their_map() -> None:
    result = run_function("create-setters", resources_of(TEXT), inline_config({"env": "[dev, stage]", "r": "4"}))

    assert [message.split('"')[1] for message in messages(result)] == [
        "kpt-set: ${env}",
        "kpt-set: ${env}",
        "kpt-set: ${r}",
    ]


def test_what_is_created_is_applied_again() -> None:
    values = {"image": "nginx", "tag": "1.16.1", "replicas": "4", "env": "[dev, stage]"}
    text = _after(values)

    changed = text_after("apply-setters", text, inline_config({**values, "tag": "2.0", "env": "[prod]"}))

    assert 'image: "nginx:2.0" # kpt-set: ${image}:${tag}' in changed
    assert "  environments: # kpt-set: ${env}\n    - prod\n" in changed


def test_running_again_changes_nothing() -> None:
    values = {"image": "nginx", "tag": "1.16.1", "env": "[dev, stage]", "port": "80"}
    once = _after(values)

    assert text_after("create-setters", once, inline_config(values)) == once
