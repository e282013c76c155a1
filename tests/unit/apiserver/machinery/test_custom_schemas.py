"""Schemas of custom resources: what holds for any of them, and what hostile ones cannot do."""

import copy
import json
from typing import Any

import pytest
from cost import metered
from hypothesis import given
from hypothesis import strategies as st

from apiserver.machinery.schema import CompiledSchema, SchemaError
from apiserver.machinery.schema_rule_path import rule_path
from apiserver.machinery.structural import structural_causes

Json = dict[str, Any]

PATH = "spec.validation.openAPIV3Schema"
NAMES = st.sampled_from(["a", "b", "c"])
SCALARS = st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-5, 5) | st.text(alphabet="ab/.", max_size=4)
VALUES = st.recursive(
    SCALARS,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(NAMES, below, max_size=3),
    max_leaves=12,
)
LEAVES = st.one_of(
    st.builds(
        lambda nullable, default: {"type": "string", "nullable": nullable} | ({"default": default} if default else {}),
        st.booleans(),
        st.sampled_from(["", "a", "b"]),
    ),
    st.builds(lambda low: {"type": "integer", "minimum": low}, st.integers(-3, 3)),
    st.sampled_from(
        [
            {"type": "number"},
            {"type": "boolean", "default": True},
            {"x-kubernetes-int-or-string": True},
            {"x-kubernetes-preserve-unknown-fields": True},
            {"type": "string", "enum": ["a", "b"]},
            {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
        ]
    ),
)


def _objects(below: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    fields = st.dictionaries(NAMES, below, min_size=1, max_size=3)
    return st.one_of(
        st.builds(lambda properties: {"type": "object", "properties": properties}, fields),
        st.builds(lambda values: {"type": "object", "additionalProperties": values}, below),
        st.builds(lambda items: {"type": "array", "items": items}, below),
        st.builds(
            lambda properties: {
                "type": "object",
                "properties": properties,
                "x-kubernetes-preserve-unknown-fields": True,
                "default": {},
            },
            fields,
        ),
    )


SCHEMAS = st.recursive(LEAVES, _objects, max_leaves=8)


def compiled(spec: Json) -> CompiledSchema:
    return CompiledSchema({"type": "object", "properties": {"spec": spec}}, custom=True)


def resource(spec: Any) -> Json:
    return {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "thing"}, "spec": spec}


@given(SCHEMAS, VALUES)
def test_pruning_and_defaulting_twice_is_doing_it_once(spec: Json, value: Any) -> None:
    schema, obj = compiled(spec), resource(copy.deepcopy(value))
    schema.prune(obj)
    schema.default(obj)
    once = copy.deepcopy(obj)

    assert schema.prune(obj) == []
    schema.default(obj)
    assert obj == once


@given(SCHEMAS, VALUES, VALUES)
def test_what_is_valid_stays_valid_and_what_did_not_change_is_not_held_against_an_update(
    spec: Json, value: Any, other: Any
) -> None:
    schema = compiled(spec)
    objects = [resource(copy.deepcopy(value)), resource(copy.deepcopy(other))]
    for obj in objects:
        schema.prune(obj)
        schema.default(obj)
    new, old = objects

    fresh = schema.validate(new)

    assert set(schema.validate(new, old)) <= set(fresh)
    if not fresh:
        assert schema.validate(new, new) == []


KEYWORDS = st.sampled_from(
    [
        "type",
        "properties",
        "items",
        "additionalProperties",
        "enum",
        "default",
        "pattern",
        "required",
        "anyOf",
        "allOf",
        "oneOf",
        "not",
        "nullable",
        "maxLength",
        "minimum",
        "format",
        "multipleOf",
        "x-kubernetes-list-type",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-map-type",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-validations",
    ]
)
PARTS = st.one_of(
    SCALARS,
    st.sampled_from(
        [
            "object",
            "array",
            "map",
            "set",
            "(",
            ["a"],
            [{"rule": "self == 1"}],
            [{"rule": "self.a == oldSelf.a", "fieldPath": ".a"}],
            {"a": {"type": "string"}},
            {"type": "string"},
            [{"required": ["a"]}],
            {},
        ]
    ),
)


def _places(schema: Any) -> list[Json]:
    found = [schema] if isinstance(schema, dict) else []
    below = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
    return [*found, *(place for child in below for place in _places(child))]


@given(SCHEMAS, st.lists(st.tuples(st.integers(0, 20), KEYWORDS, PARTS), max_size=4), VALUES)
def test_whatever_is_written_into_a_schema_is_refused_with_causes_or_works(
    spec: Json, changes: list[tuple[int, str, Any]], value: Any
) -> None:
    schema: Json = copy.deepcopy({"type": "object", "properties": {"spec": spec}})
    for place, keyword, part in changes:
        places = _places(schema)
        places[place % len(places)][keyword] = copy.deepcopy(part)

    if not structural_causes(schema, PATH):
        obj = resource(value)
        validator = CompiledSchema(schema, custom=True)
        validator.prune(obj)
        validator.default(obj)
        validator.validate(obj, resource({"a": 2}))


def test_a_schema_of_too_many_levels_is_refused_and_does_not_overflow_the_stack() -> None:
    schema: Json = {"type": "string"}
    for _ in range(5000):
        schema = {"type": "object", "properties": {"a": schema}}

    [cause] = structural_causes(schema, PATH)

    assert "nested deeper than" in cause.message
    with pytest.raises(SchemaError):
        CompiledSchema(schema, custom=True)


def test_a_hostile_definition_gets_a_bounded_answer() -> None:
    properties = {f"field{number}": {"type": "nonsense", "pattern": "("} for number in range(5000)}

    assert len(structural_causes({"type": "object", "properties": properties}, PATH)) <= 100


def test_a_pattern_that_explodes_elsewhere_takes_no_time() -> None:
    schema = compiled({"type": "string", "pattern": "^(a+)+$"})
    with metered() as cost:
        assert len(schema.validate(resource("a" * 50_000 + "!"))) == 1

    assert cost.seconds < 1


def test_rules_that_would_run_for_minutes_are_stopped() -> None:
    rule = {"rule": "self.all(x, self.all(y, self.all(z, x + y + z >= 0)))"}
    schema = compiled({"type": "array", "items": {"type": "integer"}, "x-kubernetes-validations": [rule]})
    with metered() as cost:
        causes = schema.validate(resource(list(range(300))))

    assert [cause.field for cause in causes] == ["spec"]
    assert "actual cost limit exceeded" in causes[0].message
    assert cost.seconds < 10


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        (".a", (".a",)),
        (".a.b", (".a", ".b")),
        ("['a']['b']", (".a", ".b")),
        (".m['x/y']", (".m", "[x/y]")),
        (".m.x", (".m", "[x]")),
        (".missing", None),
        (".a[0]", None),
        ("a", None),
        (".a.b.c", None),
    ],
)
def test_a_rule_s_field_path_leads_along_declared_fields(text: str, pieces: tuple[str, ...] | None) -> None:
    schema = {
        "properties": {
            "a": {"properties": {"b": {"type": "string"}}},
            "m": {"additionalProperties": {"type": "string"}},
        }
    }

    assert rule_path(schema, text) == pieces


def test_what_the_schema_does_not_describe_is_not_seen_by_rules() -> None:
    rules = [{"rule": "self.size() == 1"}]
    schema = compiled(
        {
            "type": "object",
            "properties": {
                "m": {"type": "object", "additionalProperties": {"type": "string"}, "x-kubernetes-validations": rules}
            },
            "x-kubernetes-preserve-unknown-fields": True,
            "x-kubernetes-validations": [{"rule": "self == self && !has(self.m.missing)"}],
        }
    )

    assert schema.validate(resource({"m": {"a": "b"}, "unknown": 1})) == []


def test_values_of_rules_are_typed_by_their_schema() -> None:
    rules = [
        {"rule": "self.ratio * 2.0 == 2.0"},
        {"rule": "self.when.getFullYear() == 2026"},
        {"rule": "self.day < self.when"},
        {"rule": "self.wait > duration('1m')"},
        {"rule": "self.data == b'abc'"},
        {"rule": "self.a__dash__b == 'x' && self.__if__ == 'y'"},
        {"rule": "type(self.port) == int"},
    ]
    text = {"type": "string"}
    schema = compiled(
        {
            "type": "object",
            "properties": {
                "ratio": {"type": "number"},
                "when": {**text, "format": "date-time"},
                "day": {**text, "format": "date"},
                "wait": {**text, "format": "duration"},
                "data": {**text, "format": "byte"},
                "a-b": text,
                "if": text,
                "port": {"x-kubernetes-int-or-string": True},
            },
            "x-kubernetes-validations": rules,
        }
    )
    spec = {
        "ratio": 1,
        "when": "2026-01-02T00:00:00Z",
        "day": "2026-01-01",
        "wait": "2m",
        "data": "YWJj",
        "a-b": "x",
        "if": "y",
        "port": 80,
    }

    assert schema.validate(resource(spec)) == []


def test_a_valid_object_of_five_kilobytes_is_judged_without_being_changed() -> None:
    item = {"type": "object", "properties": {"name": {"type": "string", "pattern": "^[a-z0-9-]+$"}}}
    schema = compiled({"type": "array", "items": item})
    obj = resource([{"name": f"item-{number}"} for number in range(250)])
    before = json.dumps(obj)

    assert schema.validate(obj) == []
    assert json.dumps(obj) == before
