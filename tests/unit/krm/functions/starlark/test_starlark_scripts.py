import pytest
from starlark_runs import CONFIG_MAP, IMAGE, error_of, printed, resources, run, starlark_run

from krm.functions.builtins import BuiltinRunner
from krm.functions.runner import FunctionConfig, ResourceList

ITEMS = 'items = ctx.resource_list["items"]\n'
WRONG_KIND = "`functionConfig` must be either /v1, Kind=ConfigMap or fn.kpt.dev/v1alpha1, Kind=StarlarkRun, but we got:"
FAILED = "failed to evaluate function: error: function failure"


def test_changes_keep_comments_order_and_layout() -> None:
    text = "# head\nkind: A # kind\napiVersion: v1\nmetadata: # meta\n  name: 'a'\nspec:\n  - z: 1\n    a: 2 # two\n"

    result = run(ITEMS + 'items[0]["spec"][0]["a"] = 3', text)

    assert result.items[0].text() == text.replace("a: 2", "a: 3")


def test_a_script_that_changes_nothing_leaves_every_byte() -> None:
    text = CONFIG_MAP + 'a: 1.0\nb: 0x10\nc: 1e3\nd: ~\ne: yes\nf: "1"\ng: 2020-01-01\nh: |-\n  x\n   y\n'

    assert run("pass", text).items[0].text() == text


@pytest.mark.parametrize("number", ["123456789012345678901234567890", "-9223372036854775809", "1.5", ".inf", "-.inf"])
def test_numbers_of_any_size_pass_through_and_can_be_copied(number: str) -> None:
    text = f"{CONFIG_MAP}number: {number}\n"

    result = run(ITEMS + 'items[0]["copy"] = items[0]["number"]', text)

    data = result.items[0].data
    assert data["copy"] == data["number"]
    assert type(data["copy"]) is type(data["number"])
    assert result.items[0].text().startswith(text)


def test_not_a_number_passes_through() -> None:
    text = f"{CONFIG_MAP}number: .nan\n"

    assert run("pass", text).items[0].text() == text


def test_keys_of_new_resources_are_in_alphabetical_order() -> None:
    result = run(ITEMS + 'items.append({"kind": "B", "apiVersion": "v1", "spec": {"z": {"d": 1, "c": 2}, "a": 3}})')

    assert result.items[0].text() == "apiVersion: v1\nkind: B\nspec:\n  a: 3\n  z:\n    c: 2\n    d: 1\n"
    assert result.items[0].path == ""


def test_new_keys_go_to_the_end_in_alphabetical_order() -> None:
    result = run(ITEMS + 'items[0]["data"].update({"z": "1", "b": "2"})', CONFIG_MAP)

    assert list(result.items[0].data["data"]) == ["key", "b", "z"]


def test_resources_can_be_removed_and_replaced_by_a_new_list() -> None:
    result = run('ctx.resource_list["items"] = [r for r in ctx.resource_list["items"] if r["kind"] == "B"]', CONFIG_MAP)

    assert result.items == []
    assert result.exit_code == 0


def test_the_same_resource_objects_come_back() -> None:
    given = resources(CONFIG_MAP, CONFIG_MAP)

    result = BuiltinRunner().run(IMAGE, ResourceList(given, starlark_run(ITEMS + "items.pop(0)")))

    assert result.items == [given[1]]


@pytest.mark.parametrize("name", ["config.kubernetes.io/path", "internal.config.kubernetes.io/path"])
def test_a_changed_path_annotation_moves_the_resource(name: str) -> None:
    result = run(ITEMS + f'items[0]["metadata"]["annotations"]["{name}"] = "b/c.yaml"', CONFIG_MAP)

    assert result.items[0].path == "b/c.yaml"
    assert result.items[0].text() == CONFIG_MAP


def test_two_different_new_paths_are_an_error() -> None:
    names = ("config.kubernetes.io/path", "internal.config.kubernetes.io/path")
    changes = "".join(f'items[0]["metadata"]["annotations"]["{name}"] = "{at}"\n' for at, name in enumerate(names))

    assert "mismatched legacy and internal path annotations" in error_of(ITEMS + changes, CONFIG_MAP)


def test_parameters_keep_their_types_and_the_script_can_read_its_own_configuration() -> None:
    source = 'print(ctx.resource_list["functionConfig"]["params"], ctx.resource_list["kind"])'

    assert run(source, params={"count": 3, "on": True}).stderr == '{"count": 3, "on": True} ResourceList'


def test_a_config_map_holds_the_script_and_its_parameters() -> None:
    data = {"source": 'print(ctx.resource_list["functionConfig"]["data"]["name"])', "name": "x"}
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data}

    result = BuiltinRunner().run(IMAGE, ResourceList([], FunctionConfig(config, typed=config)))

    assert (result.exit_code, result.stderr) == (0, "x")


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (None, "FunctionConfig is missing. Expect `ConfigMap` or `StarlarkRun`"),
        ({"apiVersion": "fn.kpt.dev/v1alpha1", "kind": "StarlarkRun", "source": ""}, "`source` must not be empty"),
        ({"apiVersion": "v1", "kind": "ConfigMap", "data": None}, "`source` must not be empty"),
        (
            {"apiVersion": "apps/v1", "kind": "Deployment"},
            f"{WRONG_KIND} apps/v1, Kind=Deployment",
        ),
        (
            {"apiVersion": "v1", "kind": "Secret"},
            f"{WRONG_KIND} /v1, Kind=Secret",
        ),
    ],
)
def test_a_configuration_without_script_is_an_error(config: dict[str, object] | None, message: str) -> None:
    given = ResourceList([], FunctionConfig(config, typed=config) if config else None)

    result = BuiltinRunner().run(IMAGE, given)

    assert result.results == [{"message": message, "severity": "error"}]
    assert (result.exit_code, result.stderr) == (1, FAILED)


@pytest.mark.parametrize(
    ("tag", "program"),
    [
        ("v0.4.3", "stalark"),
        ("v0.5.0", "stalark"),
        ("v0.5.1", "starlark"),
        ("v0.5", "starlark"),
        ("latest", "starlark"),
    ],
)
def test_the_default_name_is_spelled_as_the_release_spells_it(tag: str, program: str) -> None:
    result = run("x = undefined", image=f"gcr.io/kpt-fn/starlark:{tag}", metadata={})

    assert result.results[0]["message"] == f"{program}-function-run:1:5: undefined: undefined"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ('def f(r):\n  return r and\n  r["x"]', "script:2:15: got newline, want primary expression"),
        ('def f(r):\n  return r == "v1" and \n  r', "script:2:24: got newline, want primary expression"),
        ("x = (1 +", "script:1:9: got newline, want primary expression"),
        ("if True\n  pass", "script:1:8: got newline, want ':'"),
        ("for x in [1]:\npass", "script:2:1: got pass, want indent"),
        ("import os", "script:1:1: syntax error: import is a reserved word"),
        ("return 1", "script:1:1: return statement not within a function"),
        ("break", "script:1:1: break not in a loop"),
        ("\n\n  y = 1", "script:3:1: got indent"),
        ('x = "a', "script:1:5: unexpected newline in string"),
    ],
)
def test_syntax_errors_are_told_as_upstream_tells_them(source: str, message: str) -> None:
    assert error_of(source) == message


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ('\n{}["a"]', 'script:2:1: key "a" not in dict'),
        ('"a" + 1', "script:1:1: unknown binary op: string + int"),
        ("{}.x", "script:1:1: dict has no .x field or method"),
        ("1()", "script:1:1: invalid call of non-function (int)"),
        ("for x in 1: pass", "script:1:1: int value is not iterable"),
        ("1 // 0", "script:1:1: floored division by zero"),
        ('None["a"]', "script:1:1: unhandled index operation NoneType[string]"),
        ("{}[[]]", "script:1:1: unhashable type: list"),
        ("len(1)", "script:1:1: len: value of type int has no len"),
        ('"a" < 1', "script:1:1: cannot compare string with int"),
        ("None[0] = 1", "script:1:1: value is immutable: it is None, a constant, or belongs to a module"),
        ("def f(): pass\nf(1)", "script:2:1: Found 1 extra positional argument(s) for call to f"),
        ("def f(a): pass\nf()", "script:2:1: function f missing 1 argument (a)"),
        ("def f():\n  x += 1\nf()", "script:2:3: local variable x referenced before assignment"),
        ("def f():\n  g()\ndef g():\n  [][1]\nf()", "script:4:3: index 1 out of range"),
    ],
)
def test_errors_at_run_time_name_their_place(source: str, message: str) -> None:
    assert error_of(source) == message


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ('fail("a", "b", [1, "c"])', 'fail: a b [1, "c"]'),
        ('fail("a", 1, sep="-")', "fail: a-1"),
        ("fail()", "fail: "),
        ('fail("first\\nerror: x\\n --> <script>:1:1\\n")', "fail: first\nerror: x\n --> <script>:1:1\n"),
    ],
)
def test_fail_gives_its_arguments_and_nothing_else(call: str, message: str) -> None:
    assert error_of(f"def f():\n  {call}\nf()") == message


def test_print_goes_to_stderr_even_when_the_script_fails() -> None:
    result = run('print("a", 1, ["b"])\nprint("c")\nfail("x")')

    assert result.stderr == f'a 1 ["b"]\nc\n{FAILED}'


def test_output_is_cut_off() -> None:
    stderr = run('for _ in range(1000):\n  print("x" * 1000)').stderr

    assert len(stderr) < 70_000
    assert stderr.endswith("(output is cut off after 65536 characters)")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ('ctx.resource_list["items"] = 3', "`items` must be a list of resources, got int"),
        (ITEMS + "items.append(1)", "items[0]: a resource must be a dict, got int"),
        (ITEMS + 'items.append({"a": [{1: 2}]})', 'items[0]["a"][0]: keys must be strings, got 1'),
        (
            ITEMS + 'items.append({"a": lambda: 1})',
            "script: Operation `serde::serialize` not supported on type `function`",
        ),
        (
            ITEMS + 'a = {}\na["a"] = a\nitems.append(a)',
            "script: Cycle detected when serializing value of type `dict` to JSON",
        ),
    ],
)
def test_items_that_are_no_resources_are_named(source: str, message: str) -> None:
    assert error_of(source) == message


def test_the_process_environment_cannot_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STARLARK_CANARY", "secret")

    assert printed("print(ctx.environment)") == "{}"


def test_the_open_api_document_is_that_of_kubernetes() -> None:
    assert printed('print("io.k8s.api.apps.v1.Deployment" in ctx.open_api["definitions"])') == "True"


@pytest.mark.parametrize(
    "name", ["json", "len", "type", "repr", "enumerate", "items", "struct", "ctx", "fail", "print"]
)
def test_names_that_a_script_defines_do_not_reach_the_interpreter(name: str) -> None:
    text = CONFIG_MAP + "n: 123456789012345678901234567890\nf: .inf\n"

    assert run(f"{name} = None", text).items[0].text() == text


@pytest.mark.parametrize("value", ["None", "lambda: None", "lambda: [1, 2]", 'lambda: ["", {}]'])
def test_a_script_that_takes_the_interpreters_own_names_fails(value: str) -> None:
    assert run(f"_result = {value}").exit_code == 1


def test_one_script_cannot_change_what_the_next_one_sees() -> None:
    change = 'load("krmfn.star", "krmfn")\nkrmfn = None\ndef fail(*args): pass\nlen = None\nctx.environment["a"] = 1'
    assert run(change).exit_code == 0

    assert printed('load("krmfn.star", "krmfn")\nprint(ctx.environment, len([krmfn.match_name]))') == "{} 1"


@pytest.mark.parametrize(
    "source",
    [
        "x = 1\nx = 2\nfor i in range(2):\n  x += i\nif x == 3:\n  print(x)",
        "def f(n):\n  return 0 if n == 0 else 1 + f(n - 1)\nprint(f(300) - 297)",
        "print(len(set([1, 2, 2, 3])))",
        "print(len(set([1, 2]) | set([2, 3])))",
    ],
)
def test_the_dialect_has_reassignment_recursion_and_sets(source: str) -> None:
    assert printed(source) == "3"


def test_f_strings_and_types_are_not_in_the_dialect() -> None:
    assert error_of('f"{1}"').startswith("script:1:1: ")
    assert error_of("x: int = 1").startswith("script:1:4: ")


@pytest.mark.parametrize("metadata", ["[a]", "{annotations: [a]}", "{annotations: text}"])
def test_metadata_that_cannot_carry_annotations_is_an_error_and_stays(metadata: str) -> None:
    given = resources(f"apiVersion: v1\nkind: A\nmetadata: {metadata}\n")
    before = given[0].text()

    result = BuiltinRunner().run(IMAGE, ResourceList(given, starlark_run("pass")))

    assert "must be a mapping" in result.results[0]["message"]
    assert given[0].text() == before


def test_new_content_is_bounded() -> None:
    few = ITEMS + 'items.append({"a": "x" * (17 << 20)})'
    many = ITEMS + "items.extend([{} for _ in range(10001)])"

    assert error_of(few) == "the script made more than 16 MiB of new content"
    assert error_of(many) == "the script made more than 10000 new resources"


def test_large_numbers_in_the_configuration_stay_there() -> None:
    config = starlark_run('print(ctx.resource_list["functionConfig"]["params"])', params={"a": 1 << 70})

    result = BuiltinRunner().run(IMAGE, ResourceList([], config))

    assert result.stderr == f'{{"a": {1 << 70}}}'
    assert config.typed["params"] == {"a": 1 << 70}


def test_a_script_always_gives_the_same_so_that_it_may_be_remembered() -> None:
    config = starlark_run('load("time.star", "time")\nprint(time.from_timestamp(0).year)')

    assert BuiltinRunner().is_deterministic(IMAGE, config)
