"""The structural schema engine: pruning, defaults, wrong types, broken rules."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from apiserver.machinery.schema import CompiledSchema, SchemaError, object_meta_schema, structural_schema
from krm.meta.errors import Cause
from krm.meta.objects import WireModel

Json = dict[str, Any]


class Task(WireModel):
    """A step.

    Source: nowhere.
    """

    type: str = Field(json_schema_extra={"enum": ["init", "clone"]})
    when: str | None = Field(default=None, json_schema_extra={"format": "date-time"})


class Spec(WireModel):
    """What is wanted."""

    package_name: str = Field(default="", description="Path of the package.")
    revision: int = Field(default=0, ge=-1)
    branch: str | None = Field(default=None, min_length=1, json_schema_extra={"x-default": "main"})
    tasks: list[Task] | None = Field(
        default=None, json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}
    )
    files: dict[str, str] | None = None
    blobs: dict[str, str] | None = None
    free: dict[str, Any] | None = None


class Thing(WireModel):
    """A thing."""

    spec: Spec | None = None


SCHEMA = structural_schema(Thing)
THING = CompiledSchema(SCHEMA)


def thing(**spec: Any) -> Json:
    return {"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": spec}


def test_unknown_fields_are_removed_and_named_with_their_paths() -> None:
    obj = thing(packageName="p", colour="red", tasks=[{"type": "init", "speed": 1}])
    obj["metadata"]["nickname"] = "b"

    paths = THING.prune(obj)

    assert sorted(paths) == ["metadata.nickname", "spec.colour", "spec.tasks[0].speed"]
    assert obj == {**thing(packageName="p", tasks=[{"type": "init"}]), "metadata": {"name": "a"}}


def test_maps_and_free_objects_keep_every_key() -> None:
    obj = thing(files={"a/b.yaml": "x"}, free={"anything": {"goes": [1]}})
    obj["metadata"]["labels"] = {"example.com/x": "y"}

    assert THING.prune(obj) == []


def test_defaults_fill_in_only_what_the_schema_states() -> None:
    obj = thing(packageName="p")

    THING.default(obj)

    assert obj["spec"] == {"packageName": "p", "branch": "main"}


def test_defaults_are_not_filled_in_under_an_absent_parent() -> None:
    obj: Json = {"metadata": {"name": "a"}}

    THING.default(obj)

    assert obj == {"metadata": {"name": "a"}}


def test_null_stands_for_absent_and_gives_way_to_the_default() -> None:
    obj = thing(branch=None, files={"a": None}, tasks=None)

    assert THING.type_errors(obj) == []
    THING.default(obj)

    assert obj["spec"] == {"branch": "main", "files": {}}


def test_a_default_is_copied_for_each_object() -> None:
    schema = {"type": "object", "properties": {"list": {"type": "array", "items": {"type": "string"}, "default": []}}}
    compiled = CompiledSchema(schema)
    one: Json = {}
    other: Json = {}

    compiled.default(one)
    one["list"].append("x")
    compiled.default(other)

    assert other == {"list": []}


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        pytest.param({"packageName": 1}, "spec.packageName: expected string, got integer", id="number-for-text"),
        pytest.param({"revision": "1"}, "spec.revision: expected integer, got string", id="text-for-number"),
        pytest.param({"revision": True}, "spec.revision: expected integer, got boolean", id="bool-is-no-integer"),
        pytest.param({"revision": 1.5}, "spec.revision: expected integer, got number", id="fraction"),
        pytest.param({"revision": 2**63}, "spec.revision: number is out of range", id="beyond-64-bits"),
        pytest.param({"tasks": {}}, "spec.tasks: expected array, got object", id="object-for-list"),
        pytest.param({"tasks": [None]}, "spec.tasks[0]: expected object, got null", id="null-in-a-list"),
        pytest.param({"files": {"a.yaml": 1}}, "spec.files[a.yaml]: expected string, got integer", id="map-value"),
        pytest.param(
            {"tasks": [{"type": "init", "when": "yesterday"}]},
            "spec.tasks[0].when: not a time in RFC 3339 form",
            id="time",
        ),
        pytest.param(
            {"tasks": [{"type": "init", "when": "2026-02-30T00:00:00Z"}]},
            "spec.tasks[0].when: not a time in RFC 3339 form",
            id="no-such-day",
        ),
    ],
)
def test_wrong_json_types_are_named(spec: Json, error: str) -> None:
    assert THING.type_errors(thing(**spec)) == [error]


def test_a_number_that_json_cannot_say_is_a_wrong_type() -> None:
    compiled = CompiledSchema({"properties": {"ratio": {"type": "number"}}})

    assert compiled.type_errors({"ratio": float("nan")}) == ["ratio: number is not finite"]
    assert compiled.type_errors({"ratio": 1}) == []


def test_base64_is_checked_as_a_type() -> None:
    compiled = CompiledSchema({"properties": {"data": {"type": "string", "format": "byte"}}})

    assert compiled.type_errors({"data": "a"}) == ["data: illegal base64 data"]
    assert compiled.type_errors({"data": "YQ=="}) == []


@pytest.mark.parametrize(
    ("spec", "cause"),
    [
        pytest.param(
            {"revision": -2},
            Cause(
                "FieldValueInvalid",
                "Invalid value: -2: spec.revision in body should be greater than or equal to -1",
                "spec.revision",
            ),
            id="minimum",
        ),
        pytest.param(
            {"branch": ""},
            Cause(
                "FieldValueInvalid",
                'Invalid value: "": spec.branch in body should be at least 1 chars long',
                "spec.branch",
            ),
            id="min-length",
        ),
        pytest.param(
            {"tasks": [{"type": "fly"}]},
            Cause(
                "FieldValueNotSupported",
                'Unsupported value: "fly": supported values: "init", "clone"',
                "spec.tasks[0].type",
            ),
            id="enum",
        ),
        pytest.param(
            {"tasks": [{}]}, Cause("FieldValueRequired", "Required value", "spec.tasks[0].type"), id="required"
        ),
        pytest.param(
            {"tasks": [{"type": "init"}, {"type": "init"}]},
            Cause("FieldValueDuplicate", 'Duplicate value: {"type":"init"}', "spec.tasks[1]"),
            id="list-map-key",
        ),
    ],
)
def test_broken_rules_become_causes(spec: Json, cause: Cause) -> None:
    assert THING.validate(thing(**spec)) == [cause]


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        pytest.param({"type": "string", "pattern": "^a+$"}, "aa", "b", id="pattern"),
        pytest.param({"type": "string", "maxLength": 2}, "ab", "abc", id="max-length"),
        pytest.param({"type": "integer", "maximum": 3, "exclusiveMaximum": True}, 2, 3, id="exclusive-maximum"),
        pytest.param({"type": "integer", "multipleOf": 5}, 10, 11, id="multiple-of"),
        pytest.param({"type": "array", "maxItems": 1, "items": {"type": "string"}}, ["a"], ["a", "b"], id="max-items"),
        pytest.param({"type": "array", "x-kubernetes-list-type": "set"}, ["a", "b"], ["a", "a"], id="set"),
        pytest.param({"type": "array", "uniqueItems": True}, [1, 2], [1, 1], id="unique"),
        pytest.param(
            {"type": "object", "minProperties": 1, "additionalProperties": {"type": "string"}},
            {"a": "b"},
            {},
            id="min-properties",
        ),
        pytest.param({"anyOf": [{"minimum": 5}, {"enum": [1]}]}, 1, 2, id="any-of"),
        pytest.param({"oneOf": [{"minimum": 5}, {"maximum": 10}]}, 1, 7, id="one-of"),
        pytest.param({"allOf": [{"minimum": 5}]}, 5, 4, id="all-of"),
        pytest.param({"not": {"enum": ["x"]}}, "y", "x", id="not"),
    ],
)
def test_each_rule_accepts_and_refuses(schema: Json, good: Any, bad: Any) -> None:
    compiled = CompiledSchema({"properties": {"field": schema}})

    assert compiled.validate({"field": good}) == []
    assert [cause.field for cause in compiled.validate({"field": bad})] in (
        ["field"],
        ["field[1]"],
        ["<nil>"],
        ["field", "<nil>"],
        ["<nil>", "field"],
    )


def test_the_number_of_reported_problems_is_bounded() -> None:
    obj = thing(tasks=[{"type": 1, "x": 1} for _ in range(500)])

    assert len(THING.type_errors(obj)) == 100
    assert len(THING.prune(obj)) == 100
    assert all("x" not in task for task in obj["spec"]["tasks"])


def test_descriptions_say_nothing_of_where_a_type_comes_from() -> None:
    tasks = SCHEMA["properties"]["spec"]["properties"]["tasks"]

    assert tasks["items"]["description"] == "A step."
    assert SCHEMA["properties"]["spec"]["properties"]["packageName"]["description"] == "Path of the package."


def test_a_schema_made_from_a_model_is_structural() -> None:
    def check(schema: Json) -> None:
        assert "$ref" not in schema
        assert "title" not in schema
        assert "type" in schema or schema.get("x-kubernetes-preserve-unknown-fields")
        for child in schema.get("properties", {}).values():
            check(child)
        for key in ("items", "additionalProperties"):
            if isinstance(schema.get(key), dict):
                check(schema[key])

    check(SCHEMA)
    check(object_meta_schema())


def test_a_schema_nested_without_end_is_refused() -> None:
    schema: Json = {"type": "string"}
    for _ in range(100):
        schema = {"type": "array", "items": schema}

    with pytest.raises(SchemaError):
        CompiledSchema({"properties": {"deep": schema}})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.sampled_from(["spec", "type", "tasks", "x"]), below),
    max_leaves=12,
)


@given(json_values)
def test_whatever_comes_pruning_is_idempotent_and_nothing_raises(value: Any) -> None:
    obj = {"metadata": {}, "spec": value}
    if THING.type_errors(obj):
        return

    THING.prune(obj)
    THING.default(obj)
    once = copy.deepcopy(obj)

    assert THING.prune(obj) == []
    THING.default(obj)
    THING.validate(obj)
    assert obj == once
