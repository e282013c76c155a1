import pytest
from cost import metered
from function_run import config_of, failure, inline_config, messages, resources_of, run_function, text_after
from hypothesis import given
from hypothesis import strategies as st

from krm.functions.catalog.redaction import redacted
from krm.functions.catalog.setter_comments import SetterError, filled

HEAD = "apiVersion: v1\nkind: A\nmetadata:\n  name: x\n"


def _after(field: str, data: dict[str, str]) -> str:
    """Run the function on an object with one more field and return what the field became."""
    text = text_after("apply-setters", HEAD + field, inline_config(data))
    assert text.startswith(HEAD)
    return text.removeprefix(HEAD)


@pytest.mark.parametrize(
    ("field", "value", "after"),
    [
        pytest.param("a: 80 # kpt-set: ${v}\n", "8080", "a: 8080 # kpt-set: ${v}\n", id="plain-number"),
        pytest.param('a: "80" # kpt-set: ${v}\n', "8080", 'a: "8080" # kpt-set: ${v}\n', id="quoted-stays-text"),
        pytest.param("a: x # kpt-set: ${v}\n", "", 'a: "" # kpt-set: ${v}\n', id="empty-is-quoted"),
        pytest.param("a: # kpt-set: ${v}\n", "x", "a: x # kpt-set: ${v}\n", id="null-is-set"),
        pytest.param("a: !!str 1 # kpt-set: ${v}\n", "2", "a: 2 # kpt-set: ${v}\n", id="tag-is-cleared"),
        pytest.param("a: &x 1 # kpt-set: ${v}\nb: *x\n", "2", "a: &x 2 # kpt-set: ${v}\nb: *x\n", id="anchor-stays"),
        pytest.param("a: x # kpt-set: ${v}\n", "a: b", "a: 'a: b' # kpt-set: ${v}\n", id="quoted-where-it-must"),
        pytest.param("a: x # kpt-set: ${v}\n", "a,b", "a: a,b # kpt-set: ${v}\n", id="comma-in-block"),
        pytest.param("a: [x, # kpt-set: ${v}\n y]\n", "a,b", "a: ['a,b', # kpt-set: ${v}\n y]\n", id="comma-in-flow"),
        pytest.param("a: x # other: ${v}\n", "y", "a: x # other: ${v}\n", id="other-comment"),
        pytest.param("a: x # kpt-set: ${w}\n", "y", "a: x # kpt-set: ${w}\n", id="other-setter"),
        pytest.param("a: x-1 # kpt-set: ${w}-${v}\n", "2", "a: x-2 # kpt-set: ${w}-${v}\n", id="derived"),
        pytest.param(
            "- a: x # kpt-set: ${v}\n".replace("- ", "l:\n- "), "y", "l:\n- a: y # kpt-set: ${v}\n", id="in-list"
        ),
    ],
)
def test_scalars(field: str, value: str, after: str) -> None:
    assert _after(field, {"v": value}) == after


@pytest.mark.parametrize(
    ("field", "value", "after"),
    [
        pytest.param(
            "l: # kpt-set: ${v}\n  - a # why\n  - b\n", "[c, b]", "l: # kpt-set: ${v}\n  - c # why\n  - b\n", id="block"
        ),
        pytest.param(
            "l: [a] # kpt-set: ${v}\n", "- b\n- c\n", "l: # kpt-set: ${v}\n- b\n- c\n", id="flow-becomes-block"
        ),
        pytest.param("l: # kpt-set: ${v}\n  - a\n", "", "l: [] # kpt-set: ${v}\n", id="empty-becomes-flow"),
        pytest.param("l: [] # kpt-set: ${v}\n", "[a]", "l: # kpt-set: ${v}\n- a\n", id="empty-is-filled"),
        pytest.param("l: [a] # kpt-set: ${v}\n", "[1.10, 'x']", "l: # kpt-set: ${v}\n- 1.10\n- x\n", id="spelling"),
        pytest.param("m: {l: [a]} # kpt-set: ${v}\n", "[b]", "m: {l: [a]} # kpt-set: ${v}\n", id="comment-of-a-map"),
    ],
)
def test_lists(field: str, value: str, after: str) -> None:
    assert _after(field, {"v": value}).replace("  - a\n", "- a\n") == after.replace("  - a\n", "- a\n")


def test_pattern_of_a_list_is_one_setter() -> None:
    text = HEAD + "l: # kpt-set: ${a}-${b}\n  - x\n"

    assert failure("apply-setters", text, inline_config({"a": "[y]"}))[1] == (
        'failed to apply setters: invalid setter pattern for array node: "${a}-${b}"'
    )


@pytest.mark.parametrize("value", ["x", "a: b", "[a", "3"])
def test_list_setter_needs_a_list(value: str) -> None:
    text = HEAD + "l: # kpt-set: ${a}\n  - x\n"

    results, stderr = failure("apply-setters", text, inline_config({"a": value}))

    assert stderr == f'failed to apply setters: input to array setter must be an array of values, but found "{value}"'
    assert results == [{"message": stderr, "severity": "error"}]


def test_setters_without_value_are_named_in_the_order_of_the_pattern() -> None:
    text = HEAD + "a: nothing # kpt-set: ${a}/${c}/${b}\n"

    assert failure("apply-setters", text, inline_config({"b": "x"}))[1] == (
        "failed to apply setters: values for setters [${a} ${c}] must be provided"
    )


def test_a_value_may_name_a_later_setter() -> None:
    assert filled("${a}", {"a": "${b}-${b}", "b": "x"}, "") == "x-x"


def test_setters_that_blow_up_are_refused_in_no_time() -> None:
    values = {f"s{n:03}": f"${{s{n + 1:03}}}" * 10 for n in range(100)}
    with metered() as cost, pytest.raises(SetterError, match="longer than"):
        filled("${s000}", values, "")

    assert cost.seconds < 1


def test_any_object_with_data_configures_and_kptfiles_are_set_too() -> None:
    kptfile = "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: x # kpt-set: ${name}\n"
    config = config_of("apiVersion: x/v1\nkind: Settings\nmetadata: {name: s}\ndata:\n  name: 007\n")

    assert "name: 007 # kpt-set" in text_after("apply-setters", kptfile, config)


OLD = HEAD + "spec:\n  list:\n    - image: a:1 # kpt-set: ${image}:${tag}\n"


def test_old_results_carry_message_field_and_file() -> None:
    result = run_function("apply-setters:v0.2.0", resources_of(OLD), inline_config({"tag": "2"}))

    assert result.results == [
        {
            "message": 'set field value to "a:2"',
            "field": {"path": "spec.list[0].image"},
            "file": {"path": "resources.yaml"},
        }
    ]


def test_new_results_carry_severity_resource_and_both_values() -> None:
    result = run_function("apply-setters", resources_of(OLD), inline_config({"tag": "2"}))

    assert result.results == [
        {
            "message": 'set field value to "a:2"',
            "severity": "info",
            "resourceRef": {"apiVersion": "v1", "kind": "A", "name": "x"},
            "field": {"path": "spec.list[0].image", "currentValue": "a:1", "proposedValue": "a:2"},
            "file": {"path": "resources.yaml"},
        }
    ]


@pytest.mark.parametrize(
    ("tag", "is_detailed"), [("v0.2.0", False), ("v0.2", False), ("v0.2.1", True), ("latest", True)]
)
def test_the_tag_that_upstream_bundles_has_the_results_of_its_program(tag: str, is_detailed: bool) -> None:
    result = run_function(f"apply-setters:{tag}", resources_of(OLD), inline_config({"tag": "2"}))

    assert ["resourceRef" in item for item in result.results] == [is_detailed]


def test_nothing_to_set_is_reported() -> None:
    for tag, more in (("v0.2.0", {}), ("v0.2.2", {"severity": "info"})):
        result = run_function(f"apply-setters:{tag}", resources_of(OLD), inline_config({"other": "2"}))

        assert result.results == [{"message": "no matches for input setter(s)", **more}]


def test_results_follow_the_document_with_the_lists_of_a_map_first() -> None:
    text = (
        HEAD + "a: 1 # kpt-set: ${a}\nb:\n  c: 1 # kpt-set: ${a}\n  l: # kpt-set: ${l}\n    - x\nd: 1 # kpt-set: ${a}\n"
    )

    result = run_function("apply-setters", resources_of(text), inline_config({"a": "2", "l": "[y]"}))

    assert [item["field"]["path"] for item in result.results] == ["a", "b.l", "b.c", "d"]


@pytest.mark.parametrize(
    ("value", "path", "name", "shown"),
    [
        ("hunter2", "spec.password", "x", "<redacted>"),
        ("hunter2", "spec.x", "db-token", "<redacted>"),
        ("hunter2", "spec.x", "MyApiKey", "<redacted>"),
        ("hunter2", "spec.tls.cert", "x", "<redacted>"),
        ("-----BEGIN RSA PRIVATE KEY-----", "a", "x", "<redacted>"),
        ("eyJhbGciOi.eyJzdWIi.c2ln", "a", "x", "<redacted>"),
        ("AKIAIOSFODNN7EXAMPLE", "a", "x", "<redacted>"),
        ("ghp_" + "a" * 36, "a", "x", "<redacted>"),
        ("xoxb-123-456", "a", "x", "<redacted>"),
        ("sk-" + "a" * 32, "a", "x", "<redacted>"),
        ("QUJD" * 20, "a", "x", "<redacted>"),
        ("plain", "spec.image", "image", "plain"),
        ("a b " * 50, "a", "x", ("a b " * 50)[:128] + "... (truncated 72 chars)"),
    ],
)
def test_secrets_and_long_values_are_not_shown(value: str, path: str, name: str, shown: str) -> None:
    assert redacted(value, path, [name]) == shown


def test_message_quotes_as_go_does() -> None:
    result = run_function(
        "apply-setters", resources_of(HEAD + "a: x # kpt-set: ${v}\n"), inline_config({"v": 'a"é\t\\'})
    )

    assert messages(result) == ['set field value to "a\\"é\\t\\\\"']


@given(
    st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=12), st.sampled_from(["x", "'x'", '"x"'])
)
def test_quoted_values_read_back_as_they_were_given(value: str, old: str) -> None:
    items = resources_of(f"{HEAD}a: {old} # kpt-set: ${{v}}\n")

    result = run_function("apply-setters", items, inline_config({"v": value}))

    assert result.exit_code == 0 or "${" in value
    if result.exit_code == 0 and old != "x":
        assert items[0].data["a"] == value


def test_many_setters_in_many_fields_take_linear_time() -> None:
    text = HEAD + "l:\n" + "".join(f"- v{n} # kpt-set: ${{s{n}}}\n" for n in range(5000))
    with metered() as cost:
        changed = text_after("apply-setters", text, inline_config({f"s{n}": f"w{n}" for n in range(5000)}))

    assert changed == text.replace("- v", "- w")
    assert cost.seconds < 3


def test_many_list_setters_in_one_document_take_linear_time() -> None:
    text = HEAD + "".join(f"f{n}: [a, b] # kpt-set: ${{v}}\n" for n in range(3000))
    with metered() as cost:
        changed = text_after("apply-setters", text, inline_config({"v": "[c]"}))

    assert changed == HEAD + "".join(f"f{n}: # kpt-set: ${{v}}\n- c\n" for n in range(3000))
    assert cost.seconds < 10


@pytest.mark.parametrize("pattern", ["${" * 200_000, "${v}" + "${" * 200_000, "}" * 200_000])
def test_hostile_patterns_take_linear_time(pattern: str) -> None:
    with metered() as cost:
        run_function("apply-setters", resources_of(f"{HEAD}a: x # kpt-set: {pattern}\n"), inline_config({"v": "y"}))

    assert cost.seconds < 2
