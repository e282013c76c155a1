"""Managers of an object: what clients may send, what is stored, what becomes of too many."""

import dataclasses
from typing import Any

import pytest

from apiserver.machinery.apply.managers import (
    ANCIENT,
    APPLY,
    MAX_ENTRIES,
    UPDATE,
    Manager,
    ManagersError,
    capped,
    entries_of,
    given_managers,
    is_reset,
    same_but_times,
    stored_managers,
)
from apiserver.machinery.apply.ownership import LAST_APPLIED, MAX_MANAGED, Ownership
from apiserver.machinery.apply.scale import object_entries, scale_entries
from apiserver.machinery.definition import Definition
from apiserver.machinery.rest import WriteOptions
from krm.meta.errors import Conflict, RequestEntityTooLarge

Json = dict[str, Any]
FIELDS: Json = {"f:data": {"f:k": {}}}


def entry(**changes: Any) -> Json:
    fixed = {"manager": "m", "operation": "Apply", "apiVersion": "v1", "time": "2026-01-01T00:00:00Z"}
    return {**fixed, "fieldsType": "FieldsV1", "fieldsV1": FIELDS, **changes}


def managed(*managers: Manager) -> dict[Any, Manager]:
    return {manager.identity: manager for manager in managers}


def definition(**spec: Json) -> Definition:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": spec}}}
    return Definition("g.io", "v1", "Kind", "kinds", "kind", schema, custom=True)


def test_entries_survive_being_read_and_written() -> None:
    entries = [entry(), entry(manager="u", operation="Update", subresource="status")]

    assert entries_of(stored_managers(entries)) == entries
    assert entries_of(given_managers(entries)) == entries


def test_appliers_come_first_then_the_oldest() -> None:
    entries = [
        entry(manager="z", operation="Update", time="2026-01-01T00:00:00Z"),
        entry(manager="b", time="2026-01-02T00:00:00Z"),
        entry(manager="a", time="2026-01-02T00:00:00Z"),
        entry(manager="c", time="2026-01-01T00:00:00Z"),
    ]

    assert [one["manager"] for one in entries_of(stored_managers(entries))] == ["c", "a", "b", "z"]


def test_an_applier_is_the_same_in_every_version_an_updater_is_not() -> None:
    assert Manager("m", APPLY, "v1").identity == Manager("m", APPLY, "v2").identity
    assert Manager("m", UPDATE, "v1").identity != Manager("m", UPDATE, "v2").identity
    assert Manager("m", APPLY, "v1").identity != Manager("m", APPLY, "v1", "status").identity


def test_who_manages_nothing_is_not_listed() -> None:
    assert entries_of(managed(Manager("m", APPLY, "v1"))) == []


def test_times_alone_make_no_difference() -> None:
    assert same_but_times([entry()], [entry(time="2027-01-01T00:00:00Z")])
    assert not same_but_times([entry()], [entry(fieldsV1={"f:other": {}})])
    assert not same_but_times([entry()], [])


@pytest.mark.parametrize(
    "given",
    [
        {},
        [1],
        [entry(operation="Create")],
        [entry(fieldsType="FieldsV2")],
        [entry(apiVersion="")],
        [entry(manager=1)],
        [entry(fieldsV1={"x": {}})],
        [entry(fieldsV1=[1])],
        [entry()] * (MAX_ENTRIES + 1),
    ],
)
def test_entries_of_another_form_are_refused(given: Any) -> None:
    with pytest.raises(ManagersError):
        given_managers(given)


def test_an_empty_list_and_an_empty_entry_reset() -> None:
    assert is_reset([])
    assert is_reset([{}])
    assert not is_reset([entry()])
    assert not is_reset(None)


def test_the_oldest_updaters_beyond_ten_are_put_together_by_version() -> None:
    updaters = [
        Manager(f"m{n:02}", UPDATE, "v1" if n % 2 else "v2", "", f"2026-01-01T00:00:{n:02}Z", {f"f:f{n}": {}})
        for n in range(14)
    ]
    found = capped(managed(*updaters, Manager("a", APPLY, "v1", fields=FIELDS)))

    ancient = {one.api_version: one for one in found.values() if one.name == ANCIENT}
    assert len(found) == 11, "ten updaters and the applier"
    assert ancient["v2"].fields == {"f:f0": {}, "f:f2": {}, "f:f4": {}}
    assert ancient["v2"].time == "2026-01-01T00:00:04Z", "that of the youngest in it"
    assert ancient["v1"].fields == {"f:f1": {}, "f:f3": {}, "f:f5": {}}


def test_what_became_one_whole_is_owned_as_one() -> None:
    granular = {"map": {"type": "object", "additionalProperties": {"type": "string"}}}
    atomic = {"map": {**granular["map"], "x-kubernetes-map-type": "atomic"}}
    first = WriteOptions(field_manager="first", operation=APPLY)
    second = WriteOptions(field_manager="second", operation=APPLY, force=True)
    config = {"apiVersion": "g.io/v1", "kind": "Kind", "metadata": {"name": "a"}, "spec": {"map": {"a": "1"}}}
    live = Ownership(definition(**granular)).apply({}, config, first)
    moved = Ownership(definition(**atomic)).apply(live, {**config, "spec": {"map": {"b": "2"}}}, second)

    assert moved["spec"] == {"map": {"b": "2"}}
    assert [one["manager"] for one in moved["metadata"]["managedFields"]] == ["second"]


def test_versions_of_a_kind_share_appliers_and_keep_updaters_apart() -> None:
    first = definition(map={"type": "object", "additionalProperties": {"type": "string"}})
    second = dataclasses.replace(first, version="v2")
    config = {"apiVersion": "g.io/v1", "kind": "Kind", "metadata": {"name": "a"}, "spec": {"map": {"a": "1"}}}
    applying = WriteOptions(field_manager="m", operation=APPLY)
    obj = Ownership(first).apply({}, config, applying)
    for kind, key in ((first, "b"), (second, "c")):
        changed = {**obj, "spec": {"map": {**obj["spec"]["map"], key: "1"}}, "metadata": dict(obj["metadata"])}
        assert Ownership(kind).changed(obj, changed, WriteOptions(field_manager="u"))
        obj = changed
    again = Ownership(second).apply(obj, {**config, "apiVersion": "g.io/v2"}, applying)

    entries = again["metadata"]["managedFields"]
    assert [(one["manager"], one["apiVersion"]) for one in entries] == [
        ("m", "g.io/v2"),
        ("u", "g.io/v1"),
        ("u", "g.io/v2"),
    ]


def test_managers_without_end_are_refused() -> None:
    ownership = Ownership(definition(map={"type": "object", "additionalProperties": {"type": "string"}}))
    values = {f"{'k' * 200}{number}": "" for number in range(500)}
    config = {"apiVersion": "g.io/v1", "kind": "Kind", "metadata": {"name": "a"}, "spec": {"map": values}}
    obj: Json = {}
    with pytest.raises(RequestEntityTooLarge):  # noqa: PT012  (which of them is one too many is no promise)
        for number in range(20):
            obj = ownership.apply(obj, config, WriteOptions(field_manager=f"m{number}", operation=APPLY))

    assert 5 < len(obj["metadata"]["managedFields"]) < MAX_MANAGED // (500 * 200)


@pytest.mark.parametrize(
    "text", ['{"spec":' * 900 + "1" + "}" * 900, "{", "[]", '{"spec":{"unknown":1}}', '{"spec":1}']
)
def test_a_last_applied_annotation_that_makes_no_sense_says_nothing(text: str) -> None:
    ownership = Ownership(definition(open={"type": "object", "x-kubernetes-preserve-unknown-fields": True}))
    envelope = {"apiVersion": "g.io/v1", "kind": "Kind"}
    deep = text.replace('{"spec":', '{"spec":{"open":', 1) + "}" if text.count("spec") > 1 else text
    annotated = {"name": "a", "annotations": {LAST_APPLIED: deep}}
    live: Json = {**envelope, "metadata": annotated, "spec": {"open": {"a": "1"}}}
    ownership.created(live, WriteOptions(field_manager="x"))
    config = {**envelope, "metadata": {"name": "a"}, "spec": {"open": {"a": "2"}}}

    with pytest.raises(Conflict, match=r'conflict with "x" using g\.io/v1: \.spec\.open\.a'):
        ownership.apply(live, config, WriteOptions(field_manager="kubectl", operation=APPLY))


def test_a_scale_shows_who_manages_the_number_and_gives_it_back() -> None:
    path = ("spec", "deep", "n")
    both: Json = {"f:spec": {"f:deep": {"f:n": {}}, "f:other": {}}}
    entries = [entry(fieldsV1=both), entry(manager="x", operation="Update")]
    shown = scale_entries(entries, path)
    taken = [
        entry(manager="s", subresource="scale", apiVersion="autoscaling/v1", fieldsV1={"f:spec": {"f:replicas": {}}})
    ]

    assert [(one["manager"], one["fieldsV1"]) for one in shown] == [("m", {"f:spec": {"f:replicas": {}}})]
    assert object_entries(entries, shown, path, "v1") == entries
    after = object_entries(entries, taken, path, "g.io/v1")
    assert [(one["manager"], one["fieldsV1"]) for one in after] == [
        ("m", {"f:spec": {"f:other": {}}}),
        ("x", FIELDS),
        ("s", {"f:spec": {"f:deep": {"f:n": {}}}}),
    ]
