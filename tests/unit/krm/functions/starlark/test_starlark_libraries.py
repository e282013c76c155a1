import json

import pytest
from starlark_runs import CONFIG_MAP, error_of, printed, run

NAMES = {
    "encoding/base64.star": "base64",
    "encoding/csv.star": "csv",
    "encoding/json.star": "json",
    "encoding/yaml.star": "yaml",
    "hash.star": "hash",
    "krmfn.star": "krmfn",
    "math.star": "math",
    "re.star": "re",
    "time.star": "time",
}
LOADS = "".join(f'load("{file}", "{name}")\n' for file, name in NAMES.items())


@pytest.mark.parametrize(
    ("expression", "shown"),
    [
        ('base64.encode("hé?>")', "aMOpPz4="),
        ('base64.encode("hé?>", encoding="url_raw")', "aMOpPz4"),
        ('base64.decode("aMOpPz4", "standard_raw")', "hé?>"),
        ('csv.read_all("a;b\\n# c\\n1;\\"2;3\\"\\n", comma=";", comment="#")', '[["a", "b"], ["1", "2;3"]]'),
        ('csv.write_all([["a", 1], ["b,c", None]])', 'a,1\n"b,c",None\n'),
        ('json.encode({"b": 1, "a": [1.0, None, True, "<é>"]})', '{"a":[1.0,null,true,"<é>"],"b":1}'),
        ('json.decode("[1, 2.5, null]")', "[1, 2.5, None]"),
        ('json.decode("{", default="no")', "no"),
        ('json.indent("{\\"a\\":[1]}", indent=" ")', '{\n "a": [\n  1\n ]\n}'),
        ('yaml.loads("a: [1, x]\\nb: 0o10")', '{"a": [1, "x"], "b": 8}'),
        ('yaml.loads("")', "None"),
        ('yaml.dumps({"b": {"d": 1, "c": ["a"]}, "a": "1"})', 'a: "1"\nb:\n  c:\n  - a\n  d: 1\n'),
        ('hash.md5("a")', "0cc175b9c0f1b6a831c399e269772661"),
        ('hash.sha1("a")[:8], hash.sha256("a")[:8]', '("86f7e437", "ca978112")'),
        ("math.ceil(1.2), math.floor(-1.2), math.round(2.5), math.sqrt(9), math.pow(2, 3)", "(2, -2, 3.0, 3.0, 8.0)"),
        ('re.findall("a+(b)?", "ab aac")', '("ab", "aa")'),
        ('re.match("(a)(x)?", "ab")', '[("a", "a", "")]'),
        ('re.compile("[,;]").split("a,b;c")', '("a", "b", "c")'),
        ('re.split(",", "a,b,c", 1)', '("a", "b,c")'),
        ('re.sub("b+", "-", "abbcb", count=1)', "a-cb"),
        ('re.search("b", "ab")', "[1, 2]"),
        ('time.parse_time("2020-02-03T04:05:06Z").unix', "1580702706"),
        ("time.time(year=2020, month=2, day=3).rfc3339", "2020-02-03T00:00:00Z"),
        ("time.from_timestamp(0).year", "1970"),
        ('time.parse_duration("1h30m") / time.minute', "90.0"),
    ],
)
def test_library_functions(expression: str, shown: str) -> None:
    assert printed(f"{LOADS}value = {expression}\nprint(value)") == shown


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ('yaml.loads("{")', "yaml.loads: yaml: line 2: did not find expected node content"),
        ('base64.decode("?")', "base64.decode: "),
        ('base64.encode("a", "morse")', "base64: unknown encoding morse"),
        ('json.decode("{")', "json.decode: "),
        ('csv.read_all("a,b\\n1\\n")', "csv.read_all: wrong number of fields"),
        ("math.sqrt(-1)", "math.sqrt: math domain error"),
        ('re.findall("(", "a")', "error parsing regexp: "),
        ('time.parse_time("soon")', 'time.parse_time: "soon" is no RFC 3339 time'),
        ('time.parse_duration("1 day")', 'time.parse_duration: "1 day" is no duration'),
    ],
)
def test_library_errors_name_the_function_and_the_line(expression: str, message: str) -> None:
    assert error_of(f"{LOADS}def f():\n  return {expression}\nf()").startswith(f"script:{len(NAMES) + 2}")
    assert message in error_of(f"{LOADS}{expression}")


@pytest.mark.parametrize(
    "expression",
    [
        "yaml.loads(1)",
        "base64.encode(None)",
        "base64.encode()",
        "json.decode([])",
        "csv.read_all({})",
        "csv.read_all('a', comma='')",
        "math.sqrt('a')",
        "math.pow(10, 1000)",
        "re.findall(1, 2)",
        "re.sub('a', 1, 'a')",
        "time.parse_time(1)",
        "time.time(year='x')",
        "time.from_timestamp(1 << 60)",
    ],
)
def test_values_of_wrong_types_are_errors_of_the_script(expression: str) -> None:
    message = error_of(f"{LOADS}{expression}")

    assert message.startswith(f"script:{len(NAMES) + 1}")
    assert "Error: " not in message


def test_the_time_of_day_is_not_offered() -> None:
    assert error_of('load("time.star", "time")\ntime.now()').startswith("script:2: time.now is not offered")


@pytest.mark.parametrize(
    ("load", "use"),
    [
        ('load("http.star", "http")', 'http.get("http://localhost")'),
        ('load("bsoup.star", "bsoup")', 'bsoup.parseHtml("")'),
        ('load("geo.star", "geo")', "geo.Point(1, 2)"),
        ('load("xlsx.star", "xlsx")', 'xlsx.get_url("")'),
        ('load("zipfile.star", "ZipFile")', 'ZipFile("")'),
        ('load("html.star", "html")', 'html("")'),
    ],
)
def test_modules_that_are_not_offered_can_be_loaded_but_not_used(load: str, use: str) -> None:
    assert run(load).exit_code == 0

    assert "is not offered here" in error_of(f"{load}\n{use}")


def test_unknown_modules_are_named_with_those_there_are() -> None:
    assert error_of('load("os.star", "os")').startswith("script:1:1: cannot load os.star: no such module; there are ")


def test_unknown_names_of_a_module_are_named() -> None:
    assert "nope" in error_of('load("krmfn.star", "nope")')


@pytest.mark.parametrize(
    ("call", "matches"),
    [
        ('match_gvk(r, "apps/v1", "Deployment")', True),
        ('match_gvk(r, "v1", "Deployment")', False),
        ('match_gvk(r, "apps/v1", "Pod")', False),
        ('match_name(r, "a")', True),
        ('match_namespace(r, "b")', True),
        ('match_namespace(r, "")', False),
    ],
)
@pytest.mark.parametrize("tag", ["v0.5.0", "v0.5.5"])
def test_krmfn_compares_whole_names(call: str, matches: bool, tag: str) -> None:
    text = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a, namespace: b}\n"
    source = f'load("krmfn.star", "krmfn")\nr = ctx.resource_list["items"][0]\nprint(krmfn.{call})'

    assert run(source, text, image=f"gcr.io/kpt-fn/starlark:{tag}").stderr == str(matches)


def test_krmfn_takes_objects_without_metadata() -> None:
    source = 'load("krmfn.star", "krmfn")\nprint(krmfn.match_name({}, "a"), krmfn.match_gvk({}, "v1", "A"))'

    assert printed(source) == "False False"


def test_yaml_of_a_resource_can_be_edited_inside_another() -> None:
    text = CONFIG_MAP.replace("value", json.dumps("a: 1\nb: [x]\n"))
    source = (
        'load("encoding/yaml.star", "yaml")\nd = ctx.resource_list["items"][0]["data"]\n'
        'v = yaml.loads(d["key"])\nv["b"].append("z")\nd["key"] = yaml.dumps(v)'
    )

    assert run(source, text).items[0].data["data"]["key"] == "a: 1\nb:\n- x\n- z\n"
