import pytest
from function_run import config_of, failure, inline_config, messages, resources_of, run_function, text_after
from replacement_cases import (
    BOTH,
    CONTEXT,
    CONVERT,
    DEPLOYMENT,
    LENIENT,
    STRICT,
    TARGET,
    changed_lines,
    replaced_text,
    replacement,
    replacement_failure,
)


@pytest.mark.parametrize("image", BOTH)
@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("metadata.name", "  name: prod # the name"),
        (".metadata.name", "  name: prod # the name"),
        ("spec.template.spec.containers.0.image", "        image: prod # pinned"),
        ("spec.template.spec.containers.[name=nginx].image", "        image: prod # pinned"),
        ("spec.template.spec.containers.1.image", "        image: prod"),
        ("spec.annotations.[a.b/c]", "    a.b/c: prod"),
        ("spec.annotations.a\\.b/c", "    a.b/c: prod"),
        ("spec.strategy", '  strategy: "prod"'),
    ],
)
def test_a_value_goes_where_the_path_leads_and_nothing_else_changes(image: str, path: str, line: str) -> None:
    assert changed_lines(replaced_text(image, "data.name", path)) == [line]


@pytest.mark.parametrize("image", BOTH)
@pytest.mark.parametrize(
    ("index", "line"),
    [
        (0, "  name: prod-front # the name"),
        (1, "  name: web-prod # the name"),
        (2, "  name: web-front-prod # the name"),
        (-1, "  name: prod-web-front # the name"),
    ],
)
def test_a_part_of_the_target_is_replaced_or_added(image: str, index: int, line: str) -> None:
    options = f"{{delimiter: '-', index: {index}}}"

    assert changed_lines(replaced_text(image, "data.name", "metadata.name", options=options)) == [line]


@pytest.mark.parametrize("image", BOTH)
def test_a_part_of_the_source_is_taken(image: str) -> None:
    text = replaced_text(image, "data.joined", "metadata.name", source_options="{delimiter: '-', index: 1}")

    assert changed_lines(text) == ["  name: b # the name"]


@pytest.mark.parametrize(
    ("image", "source", "path", "line"),
    [
        (LENIENT, "data.quoted", "spec.replicas", '  replicas: "8080"'),
        (LENIENT, "data.port", "spec.strategy", "  strategy: 8080"),
        (STRICT, "data.quoted", "spec.replicas", "  replicas: 8080"),
        (STRICT, "data.port", "spec.strategy", '  strategy: "8080"'),
        (STRICT, "data.octal", "spec.strategy", '  strategy: "0777"'),
        (STRICT, "data.word", "spec.replicas", "  replicas: abc"),
    ],
)
def test_lenient_copies_the_type_and_strict_keeps_the_target_s(image: str, source: str, path: str, line: str) -> None:
    assert changed_lines(replaced_text(image, source, path)) == [line]


@pytest.mark.parametrize("image", BOTH)
def test_local_configuration_and_the_kptfile_are_sources_and_targets(image: str) -> None:
    text = (
        "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: pkg\n---\n"
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\n"
        "  annotations: {config.kubernetes.io/local-config: 'true'}\ndata:\n  a: b\n"
    )
    there = replacement("{kind: Kptfile}", "{select: {kind: ConfigMap}, fieldPaths: [data.a]}")
    back = replacement("{kind: ConfigMap, fieldPath: data.a}", "{select: {kind: Kptfile}}")

    assert text_after(image, text, there) == text.replace("a: b", "a: pkg")
    assert text_after(image, text, back) == text.replace("name: pkg", "name: b")


@pytest.mark.parametrize("image", BOTH)
def test_a_file_of_json_stays_json(image: str) -> None:
    items = resources_of('{"apiVersion": "v1", "kind": "A", "metadata": {"name": "a"}, "port": 8080}', "a.json")
    config = replacement(
        "{kind: A, fieldPath: port}",
        "{select: {kind: A}, fieldPaths: [metadata.name], options: {delimiter: '-', index: 1}}",
    )

    result = run_function(image, items, config)

    assert result.items[0].text() == ('{"apiVersion": "v1", "kind": "A", "metadata": {"name": "a-8080"}, "port": 8080}')


@pytest.mark.parametrize("image", BOTH)
def test_a_collection_replaces_a_collection(image: str) -> None:
    text = replaced_text(image, "data.list", "spec.annotations")

    assert resources_of(text)[0].data["spec"]["annotations"] == ["x", "z"]


def test_strict_goes_to_every_element() -> None:
    path = "spec.template.spec.containers.*.image"

    assert changed_lines(replaced_text(STRICT, "data.name", path)) == [
        "        image: prod # pinned",
        "        image: prod",
    ]


def test_strict_matches_elements_by_a_whole_regular_expression() -> None:
    path = "spec.template.spec.containers.[name={}].image"

    assert len(changed_lines(replaced_text(STRICT, "data.name", path.format("nginx.*")))) == 2
    assert len(changed_lines(replaced_text(STRICT, "data.name", path.format("[a-z]+.s[a-z]*")))) == 1
    assert len(changed_lines(replaced_text(STRICT, "data.name", path.format("nginx")))) == 1


@pytest.mark.parametrize("path", ["spec.missing", "spec.template.spec.containers.[name=x].image", "spec.a.b.c"])
def test_lenient_skips_what_is_missing(path: str) -> None:
    assert replaced_text(LENIENT, "data.name", path) == TARGET


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        (CONTEXT, f"{{{DEPLOYMENT}[spec.x]}}", 'unable to find field "spec.x" in replacement target'),
        (
            CONTEXT,
            f"{{{DEPLOYMENT}['spec.template.spec.containers.*.ports.*.x.*'], options: {{create: true}}}}",
            'unable to find or create field "spec.template.spec.containers.*.ports.*.x.*" in replacement target',
        ),
        (
            CONTEXT,
            f"{{{DEPLOYMENT}[spec.template.spec.containers.7.image]}}",
            "index 7 specified but only 2 elements found",
        ),
        (
            CONTEXT,
            f"{{{DEPLOYMENT}['spec.template.spec.containers.[name=(].image']}}",
            "error parsing regexp: missing ): ( in the fieldPath element [...=(]",
        ),
    ],
)
def test_strict_refuses_what_is_not_there(source: str, target: str, message: str) -> None:
    assert replacement_failure(STRICT, source, target) == message


@pytest.mark.parametrize("image", BOTH)
@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ("{kind: Nothing}", f"{{{DEPLOYMENT}[]}}", "nothing selected by Nothing.[noVer].[noGrp]/[noName].[noNs]"),
        ("{version: v1}", f"{{{DEPLOYMENT}[]}}", "multiple matches for selector [noKind].v1.[noGrp]/[noName].[noNs]"),
        (
            "{kind: ConfigMap, fieldPath: data.x}",
            f"{{{DEPLOYMENT}[]}}",
            "fieldPath `data.x` is missing for replacement source ConfigMap.[noVer].[noGrp]/[noName].[noNs]",
        ),
        (
            "{kind: ConfigMap, fieldPath: data.empty}",
            f"{{{DEPLOYMENT}[]}}",
            "fieldPath `data.empty` is missing for replacement source ConfigMap.[noVer].[noGrp]/[noName].[noNs]",
        ),
        (
            "{kind: ConfigMap, fieldPath: data.joined, options: {delimiter: '-', index: 3}}",
            f"{{{DEPLOYMENT}[]}}",
            "options.index 3 is out of bounds for value a-b-c",
        ),
        (
            "{kind: ConfigMap, fieldPath: data.joined, options: {delimiter: '-', index: -1}}",
            f"{{{DEPLOYMENT}[]}}",
            "options.index -1 is out of bounds for value a-b-c",
        ),
        (
            "{kind: ConfigMap, fieldPath: data.list, options: {delimiter: '-'}}",
            f"{{{DEPLOYMENT}[]}}",
            "delimiter option can only be used with scalar nodes",
        ),
        (
            CONTEXT,
            f"{{{DEPLOYMENT}[spec.template], options: {{delimiter: '-'}}}}",
            "delimiter option can only be used with scalar nodes",
        ),
        (
            CONTEXT,
            f"{{{DEPLOYMENT}[spec.replicas.x]}}",
            "wrong Node Kind for spec.replicas.x expected: MappingNode was ScalarNode",
        ),
        (CONTEXT, f"{{{DEPLOYMENT}['.']}}", "fieldPath '.' names no field"),
        (CONTEXT, f"{{{DEPLOYMENT}[{'a' * 5000}]}}", f"fieldPath is longer than 4096 characters: {'a' * 80}..."),
        (CONTEXT, f"{{{DEPLOYMENT}[{'a.' * 300}]}}", f"fieldPath has more than 256 parts: {'a.' * 40}..."),
        (CONTEXT, "{fieldPaths: [a]}", "target must specify resources to select"),
        (
            CONTEXT,
            f"{{{DEPLOYMENT}a}}",
            f"{CONVERT}replacements[0].targets[0].fieldPaths: must be a list",
        ),
        (
            CONTEXT,
            f"{{{DEPLOYMENT}[a], options: {{index: x}}}}",
            f"{CONVERT}replacements[0].targets[0].options.index: must be an integer, got x",
        ),
    ],
)
def test_both_refuse_what_cannot_be_done(image: str, source: str, target: str, message: str) -> None:
    assert replacement_failure(image, source, target) == message


@pytest.mark.parametrize(
    ("replacements", "message"),
    [
        ("- targets: [{select: {kind: X}}]", "replacements must specify a source and at least one target"),
        ("- source: {kind: X}", "replacements must specify a source and at least one target"),
        ("  a: b", f"{CONVERT}replacements: must be a list"),
        ("- a", f"{CONVERT}replacements[0]: must be a map"),
    ],
)
def test_a_configuration_that_is_no_list_of_replacements_is_refused(replacements: str, message: str) -> None:
    config = config_of(
        "apiVersion: fn.kpt.dev/v1alpha1\nkind: ApplyReplacements\nmetadata: {name: r}\n"
        f"replacements:\n{replacements}\n"
    )

    reference = {"apiVersion": "fn.kpt.dev/v1alpha1", "kind": "ApplyReplacements", "name": "r"}
    told = {"message": message, "severity": "error", "resourceRef": reference, "file": {"path": "fn-config.yaml"}}
    assert failure(STRICT, TARGET, config)[0] == [told]


def test_another_kind_of_configuration_is_refused() -> None:
    expected = (
        "received functionConfig of kind ConfigMap and apiVersion v1, "
        "only functionConfig of kind ApplyReplacements and apiVersion fn.kpt.dev/v1alpha1 is supported"
    )

    assert messages(run_function(STRICT, resources_of(TARGET), inline_config({"a": "b"}))) == [expected]
    assert messages(run_function(STRICT, resources_of(TARGET))) == [
        "FunctionConfig is missing. Expect `ApplyReplacements`"
    ]


@pytest.mark.parametrize("image", BOTH)
@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("spec.new.field", {"field": "prod"}),
        ("spec.new.[a.b/c]", {"a.b/c": "prod"}),
        ("spec.new.[name=x].value", [{"name": "x", "value": "prod"}]),
        ("spec.new.0.value", [{"value": "prod"}]),
    ],
)
def test_missing_fields_are_created_when_asked_for(image: str, path: str, expected: object) -> None:
    text = replaced_text(image, "data.name", path, options="{create: true}")

    assert resources_of(text)[0].data["spec"]["new"] == expected
    assert changed_lines(text)[0].strip().startswith("new:")


@pytest.mark.parametrize("path", ["spec.new.1.x", "spec.new.*.x", "spec.new.deep.-", "spec.new.[a=b].list.2"])
def test_nothing_is_created_on_the_way_to_nowhere(path: str) -> None:
    assert replaced_text(LENIENT, "data.name", path, options="{create: true}") == TARGET


@pytest.mark.parametrize("image", BOTH)
def test_an_element_is_appended_only_right_behind_the_last(image: str) -> None:
    text = replaced_text(image, "data.name", "spec.template.spec.containers.2.name", options="{create: true}")

    assert resources_of(text)[0].data["spec"]["template"]["spec"]["containers"][2] == {"name": "prod"}


def test_a_created_field_has_the_type_of_its_source() -> None:
    text = replaced_text(STRICT, "data.quoted", "spec.new", options="{create: true}")

    assert changed_lines(text) == ['  new: "8080"']


def test_the_literal_source_value_is_used() -> None:
    config = config_of("""\
apiVersion: fn.kpt.dev/v1alpha1
kind: ApplyReplacements
replacements:
- sourceValue: "7"
  targets: [{select: {kind: Deployment}, fieldPaths: [spec.replicas]}]
""")

    assert changed_lines(text_after(STRICT, TARGET, config)) == ["  replicas: 7"]
