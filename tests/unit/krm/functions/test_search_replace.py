import pytest
from cost import metered
from function_run import failure, inline_config, messages, resources_of, run_function, text_after

from krm.functions.catalog.patterns import PatternError, field_pattern, file_pattern
from krm.functions.runner import FunctionConfig

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: the-deployment # who
  namespace: my-space
spec:
  replicas: 3
  paused: "3"
  tiers: [web, db]
  template:
    spec:
      containers:
        - name: nginx
          image: nginx:1.10
          args:
            - --port=8080
        - name: sidecar
          image: sidecar:1.10
"""


def _run(text: str = DEPLOYMENT, **matchers: str) -> tuple[str, list[str], list[str]]:
    """Run the function and return the text afterwards, its messages and the fields it names."""
    items = resources_of(text)
    result = run_function("search-replace", items, _config(matchers))
    assert result.exit_code == 0, result.results
    fields = [item["field"]["path"] for item in result.results if "field" in item]
    return "---\n".join(item.text() for item in result.items), messages(result), fields


def _config(matchers: dict[str, str]) -> FunctionConfig:
    return inline_config({name.replace("_", "-"): value for name, value in matchers.items()})


def _failure(**matchers: str) -> str:
    results, stderr = failure("search-replace", DEPLOYMENT, _config(matchers))
    assert results[0]["severity"] == "error"
    assert results[0]["message"] == stderr
    return stderr


def test_value_and_path_must_both_match() -> None:
    text, told, fields = _run(by_value="3", by_path="spec.replicas", put_value="4")

    assert text == DEPLOYMENT.replace("replicas: 3", "replicas: 4")
    assert (told, fields) == (['Mutated field value to "4"'], ["spec.replicas"])


def test_results_carry_message_field_and_file_only() -> None:
    result = run_function("search-replace", resources_of(DEPLOYMENT), inline_config({"by-value": "nginx"}))

    path = "spec.template.spec.containers[0].name"
    assert result.results == [
        {"message": 'Matched field value "nginx"', "field": {"path": path}, "file": {"path": "resources.yaml"}}
    ]


def test_value_alone_is_found_everywhere_and_its_style_decides_what_the_new_one_is() -> None:
    text, told, fields = _run(by_value="3", put_value="4")

    assert text == DEPLOYMENT.replace("replicas: 3", "replicas: 4").replace('"3"', '"4"')
    assert fields == ["spec.replicas", "spec.paused"]
    assert told == ['Mutated field value to "4"'] * 2


def test_new_text_is_written_to_the_letter() -> None:
    text, _, _ = _run(by_path="spec.replicas", by_value="3", put_value="1.10")

    assert "replicas: 1.10\n" in text


def test_plain_text_becomes_what_it_reads_as() -> None:
    items = resources_of(DEPLOYMENT)

    run_function("search-replace", items, inline_config({"by-value": "my-space", "put-value": "8080"}))

    assert items[0].data["metadata"]["namespace"] == 8080


def test_text_of_a_number_is_compared_not_its_value() -> None:
    _, told, _ = _run(DEPLOYMENT.replace("replicas: 3", "replicas: 0x3"), by_value="0x3")

    assert told == ['Matched field value "0x3"']
    assert _run(DEPLOYMENT, by_value="3.0")[1] == ["no matches"]


def test_groups_of_the_expression_fill_value_and_comment() -> None:
    text, _, fields = _run(
        by_value_regex="(nginx|sidecar):(.*)",
        by_path="**.image",
        put_value="registry/${1}:v${2}",
        put_comment="kpt-set: ${1}:${tag}",
    )

    assert "image: registry/nginx:v1.10 # kpt-set: nginx:${tag}\n" in text
    assert "image: registry/sidecar:v1.10 # kpt-set: sidecar:${tag}\n" in text
    assert fields == [f"spec.template.spec.containers[{place}].image" for place in (0, 1)]


def test_expression_is_searched_and_the_whole_value_replaced() -> None:
    text, _, _ = _run(by_value_regex="port=([0-9]+)", put_value="--listen=${1}")

    assert "- --listen=8080\n" in text


def test_comment_replaces_the_one_that_was_there() -> None:
    text, _, _ = _run(by_path="metadata.name", put_comment="kpt-set: ${name}")

    assert text == DEPLOYMENT.replace("# who", "# kpt-set: ${name}")


def test_comment_of_a_list_stands_behind_its_key_and_the_list_below() -> None:
    text, told, fields = _run(by_path="spec.tiers", put_comment="kpt-set: ${tiers}")

    assert "  tiers: # kpt-set: ${tiers}\n    - web\n    - db\n" in text
    assert fields == ["spec.tiers # kpt-set: ${tiers}"]
    assert told == ['Mutated field value to "[web, db]"']


@pytest.mark.parametrize(
    ("path", "count"),
    [
        ("metadata.name", 1),
        ("metadata.*", 2),
        ("**.name", 3),
        ("**", 13),
        ("**.containers[0].name", 1),
        ("**.containers[*].name", 2),
        ("spec.template.spec.containers[1].*", 2),
        ("spec.**.args[*]", 1),
        ("**.*[0].image", 1),
        ("*.name", 1),
        ("name", 0),
        ("metadata.nam", 0),
        ("metadata.name.x", 0),
    ],
)
def test_paths(path: str, count: int) -> None:
    told = _run(by_path=path)[1]

    assert len([message for message in told if message.startswith("Matched")]) == count


def test_keys_with_dots_are_split_like_paths() -> None:
    text = "apiVersion: v1\nkind: A\nmetadata:\n  name: x\n  annotations:\n    a.b/c: v\n"

    assert _run(text, by_path="metadata.annotations.a.b/c")[1] == ['Matched field value "v"']


def test_nothing_matches_without_a_matcher() -> None:
    assert _run(put_value="x")[:2] == (DEPLOYMENT, ["no matches"])


def test_path_of_one_field_creates_it_in_every_resource() -> None:
    other = "apiVersion: v1\nkind: A\nmetadata:\n  name: x\n"

    text, told, fields = _run(f"{DEPLOYMENT}---\n{other}", by_path="metadata.labels.tier", put_value="1.10")

    assert text.count("  labels:\n    tier: 1.10\n") == 2
    assert (told, fields) == (['Mutated field value to "1.10"'] * 2, ["metadata.labels.tier"] * 2)


def test_path_of_one_field_keeps_the_style_of_a_value_that_is_there() -> None:
    assert _run(by_path="spec.paused", put_value="7")[0] == DEPLOYMENT.replace('"3"', '"7"')


def test_path_through_a_scalar_cannot_be_created() -> None:
    assert "replicas is not a map" in _failure(by_path="spec.replicas.x", put_value="1")


@pytest.mark.parametrize(
    ("glob", "matches"),
    [
        ("resources.yaml", True),
        ("*.yaml", True),
        ("**/*.yaml", True),
        ("dir/*.yaml", False),
        ("{a,resources}.yaml", True),
        ("[a-q]*.yaml", False),
        ("resource?.yaml", True),
        ("**", True),
    ],
)
def test_only_files_of_the_glob_are_searched(glob: str, matches: bool) -> None:
    assert (_run(by_value="nginx", by_file_path=glob)[1] != ["no matches"]) == matches


@pytest.mark.parametrize(
    ("glob", "path", "matches"),
    [
        ("a/*.yaml", "a/b.yaml", True),
        ("a/*.yaml", "a/b/c.yaml", False),
        ("a/**/c.yaml", "a/c.yaml", True),
        ("a/**/c.yaml", "a/b/b/c.yaml", True),
        ("a/**", "a/b/c.yaml", True),
        ("a/**", "b/c.yaml", False),
        ("a**.yaml", "ab.yaml", True),
        ("a**.yaml", "ab/c.yaml", False),
        ("[!a]/c.yaml", "b/c.yaml", True),
        ("[!a]/c.yaml", "a/c.yaml", False),
        (r"a\*", "a*", True),
        (r"a\*", "ab", False),
        ("a.b", "axb", False),
    ],
)
def test_file_globs(glob: str, path: str, matches: bool) -> None:
    assert file_pattern(glob).is_all_of(path) == matches


def test_unknown_matchers_are_named() -> None:
    assert _failure(by_name="x") == (
        'failed to perform search-replace operation: "invalid matcher \\"by-name\\", must be one of '
        '[\\"by-value\\" \\"by-file-path\\" \\"by-value-regex\\" \\"by-path\\" \\"put-value\\" \\"put-comment\\"]"'
    )


def test_both_value_matchers_are_refused() -> None:
    assert 'only one of [\\"by-value\\", \\"by-value-regex\\"] can be provided' in _failure(
        by_value="a", by_value_regex="b"
    )


@pytest.mark.parametrize("put", ["put_value", "put_comment"])
def test_group_that_nothing_fills_is_refused(put: str) -> None:
    assert _failure(by_value_regex="the-(.*)|(x)", **{put: "${2}"}).endswith('"unable to resolve capture groups"')
    assert _failure(by_value="nginx", **{put: "${1}"}).endswith('"unable to resolve capture groups"')


@pytest.mark.parametrize("expression", ["(a", "a(?=b)", r"(a)\1", "a{9999}"])
def test_expression_that_re2_does_not_have_is_refused(expression: str) -> None:
    assert "error parsing regexp" in _failure(by_value_regex=expression)


def test_hostile_expression_and_globs_take_linear_time() -> None:
    text = DEPLOYMENT.replace("my-space", "a" * 20_000)
    with metered() as cost:
        _run(text, by_value_regex="(a*)*(a*)*(a*)*b")
        field_pattern("**.".join("a" * 20)).is_all_of("a." * 10_000)
        file_pattern("*a" * 50).is_all_of("a" * 20_000 + "b")

    assert cost.seconds < 2


def test_value_that_would_blow_up_is_refused() -> None:
    text = DEPLOYMENT.replace("my-space", "a" * 20_000)
    config = inline_config({"by-value-regex": "(a+)", "put-value": "${1}" * 1000})

    assert "longer than" in failure("search-replace", text, config)[1]


def test_pattern_that_is_too_long_is_refused() -> None:
    with pytest.raises(PatternError):
        file_pattern("a" * 100_000)


def test_block_scalar_stays_one() -> None:
    text = "apiVersion: v1\nkind: A\nmetadata:\n  name: x\ndata:\n  a: |\n    one\n    two\n"

    assert _run(text, by_value_regex="two", put_value="three\nfour\n")[0] == text.replace(
        "one\n    two", "three\n    four"
    )


def test_json_stays_json() -> None:
    items = resources_of('{"apiVersion": "v1", "kind": "A", "metadata": {"name": "x"}, "n": 3}', "a.json")
    items[0].is_json = True

    run_function("search-replace", items, inline_config({"by-path": "n", "by-value": "3", "put-value": "four"}))

    assert items[0].data["n"] == "four"
    assert '"four"' in items[0].text()


def test_untouched_resources_keep_every_byte() -> None:
    odd = "apiVersion:   v1\nkind: A\nmetadata: {name:  x}\n\n\nspec:\n    a:   'b'   #   c\n"

    assert text_after("search-replace", odd, inline_config({"by-value": "zzz", "put-value": "y"})) == odd
