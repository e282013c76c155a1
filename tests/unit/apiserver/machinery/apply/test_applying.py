"""Server-side apply as functions of objects: who owns what, what conflicts, what goes; checked for any objects."""

import contextlib
import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.machinery.apply.apply import Applied, ApplyConflict, apply
from apiserver.machinery.apply.compare import compare
from apiserver.machinery.apply.configuration import problems_of
from apiserver.machinery.apply.field_set import Fields, leaves, path_text
from apiserver.machinery.apply.fields_of import fields_of
from apiserver.machinery.apply.managers import APPLY, UPDATE, Manager, Managers
from apiserver.machinery.apply.merge import merge
from apiserver.machinery.apply.typed import compile_type
from apiserver.machinery.apply.update import updated

Json = dict[str, Any]

TEXT = {"type": "string"}
KEYED = {"type": "object", "properties": {"name": TEXT, "size": {"type": "integer"}, "port": {"type": "integer"}}}
SPEC = {
    "type": "object",
    "properties": {
        "color": TEXT,
        "labels": {"type": "object", "additionalProperties": TEXT},
        "whole": {"type": "object", "additionalProperties": TEXT, "x-kubernetes-map-type": "atomic"},
        "list": {"type": "array", "items": TEXT},
        "tags": {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
        "books": {
            "type": "array",
            "items": KEYED,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        },
        "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}
TYPE = compile_type({"type": "object", "properties": {"spec": SPEC}})

KEYLESS = (
    '.spec.books: element 0: associative list with keys has an element that omits key field "name" '
    "(and doesn't have default value)"
)

NAMES = st.sampled_from(["a", "b", "c"])
TEXTS = st.sampled_from(["1", "2"])
BOOKS = st.lists(
    st.fixed_dictionaries({"name": NAMES}, optional={"size": st.integers(1, 2)}),
    max_size=3,
    unique_by=lambda book: book["name"],
)
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "color": TEXTS,
        "labels": st.dictionaries(NAMES, TEXTS, min_size=1, max_size=3),
        "whole": st.dictionaries(NAMES, TEXTS, min_size=1, max_size=2),
        "list": st.lists(TEXTS, min_size=1, max_size=2),
        "tags": st.lists(NAMES, min_size=1, max_size=3, unique=True),
        "books": BOOKS.filter(bool),
        "open": st.dictionaries(NAMES, TEXTS | st.dictionaries(NAMES, TEXTS, min_size=1), min_size=1, max_size=2),
    },
)
OBJECTS = st.builds(lambda spec: {"spec": spec} if spec else {}, SPECS)


def applier(name: str = "m", time: str = "now") -> Manager:
    return Manager(name, APPLY, "v1", time=time)


def applied(live: Json, config: Json, managers: Managers, who: Manager | None = None, *, force: bool = True) -> Applied:
    return apply(live, config, managers, who or applier(), TYPE, force=force, allowed={})


def spec(**fields: Any) -> Json:
    return {"spec": fields}


def fields(managers: Managers, name: str) -> Fields:
    return next((one.fields for one in managers.values() if one.name == name), {})


@given(OBJECTS, OBJECTS)
def test_merging_again_changes_nothing(live: Json, config: Json) -> None:
    before = copy.deepcopy((live, config))
    merged = merge(live, config, TYPE)

    assert merge(merged, config, TYPE) == merged
    assert (live, config) == before, "arguments stay as they are"


@given(OBJECTS, OBJECTS)
def test_everything_that_is_applied_is_there(live: Json, config: Json) -> None:
    found = compare(config, merge(live, config, TYPE), TYPE)

    assert not found.modified
    assert not found.removed


@given(OBJECTS, OBJECTS)
def test_an_apply_that_is_repeated_changes_neither_object_nor_managers(live: Json, config: Json) -> None:
    first = applied(live, config, {})
    again = applied(first.obj, config, first.managers, applier(time="later"), force=False)

    assert again == first


@given(OBJECTS, OBJECTS)
def test_who_owns_everything_prunes_exactly_what_they_drop(before: Json, after: Json) -> None:
    first = applied({}, before, {})
    then = applied(first.obj, after, first.managers)

    assert _plain(then.obj) == _plain(after)


def _plain(value: Any) -> Any:
    """Drop what is empty, and the order of lists whose items are told apart."""
    if isinstance(value, dict):
        kept = {name: _plain(below) for name, below in value.items()}
        for name in ("tags", "books"):
            if isinstance(kept.get(name), list):
                kept[name] = sorted(kept[name], key=str)
        return {name: below for name, below in kept.items() if below not in (None, {}, [])}
    return [_plain(item) for item in value] if isinstance(value, list) else value


@given(OBJECTS, OBJECTS)
def test_what_others_own_outlives_a_manager(ours: Json, theirs: Json) -> None:
    first = applied({}, theirs, {}, applier("other"))
    second = applied(first.obj, ours, first.managers)
    then = applied(second.obj, {}, second.managers)
    gone = set(leaves(compare(second.obj, then.obj, TYPE).removed))

    assert not gone & set(leaves(fields(second.managers, "other")))
    assert not fields(then.managers, "m")


@given(OBJECTS, OBJECTS)
def test_every_change_of_an_update_is_its_authors(old: Json, new: Json) -> None:
    changes = compare(old, new, TYPE)
    before = updated({}, old, {}, Manager("first", UPDATE, "v1"), TYPE)
    after = updated(old, new, before, Manager("second", UPDATE, "v1"), TYPE)

    assert fields(after, "second") == changes.taken
    for path in leaves(changes.removed):
        assert path not in set(leaves(fields(after, "first")))


@given(OBJECTS, OBJECTS)
def test_without_force_nothing_of_others_changes(live: Json, config: Json) -> None:
    owned = updated({}, live, {}, Manager("other", UPDATE, "v1"), TYPE)
    changed = set(leaves(compare(live, merge(live, config, TYPE), TYPE).modified))
    refused = contextlib.nullcontext() if not changed else pytest.raises(ApplyConflict)
    with refused as error:
        applied(live, config, owned, force=False)

    assert error is None or {conflict.path for conflict in error.value.conflicts} <= changed


def test_what_an_object_has_is_owned_as_kubernetes_owns_it() -> None:
    obj = spec(
        color="red",
        labels={"a": "1"},
        whole={"x": "1"},
        list=["1"],
        tags=["t"],
        books=[{"name": "n", "size": 1}],
        open={"any": {"deep": [1]}, "none": None},
    )

    assert fields_of(obj, TYPE) == {
        "f:spec": {
            "f:color": {},
            "f:labels": {"f:a": {}},
            "f:whole": {},
            "f:list": {},
            "f:tags": {'v:"t"': {}},
            "f:books": {'k:{"name":"n"}': {".": {}, "f:name": {}, "f:size": {}}},
            "f:open": {"f:any": {".": {}, "f:deep": {}}, "f:none": {}},
        }
    }


def test_who_applies_an_empty_list_owns_nothing() -> None:
    assert fields_of(spec(tags=[]), TYPE) == {}
    assert fields_of(spec(), TYPE) == {"f:spec": {}}


def test_what_is_new_as_a_whole_is_added_with_its_path() -> None:
    found = compare({"spec": {}}, spec(labels={"a": "1"}, tags=["t"]), TYPE)

    assert found.added == {"f:spec": {"f:labels": {".": {}, "f:a": {}}, "f:tags": {".": {}, 'v:"t"': {}}}}
    assert not found.removed
    assert not found.modified


def test_null_and_nothing_are_as_empty_as_each_other() -> None:
    assert compare(spec(labels=None), spec(labels={"a": "1"}), TYPE).added == {"f:spec": {"f:labels": {"f:a": {}}}}
    assert compare(spec(labels=None), spec(labels={}), TYPE).modified == {"f:spec": {"f:labels": {}}}
    assert compare(spec(open={"x": {"y": "1"}}), spec(open={"x": "1"}), TYPE).removed == {
        "f:spec": {"f:open": {"f:x": {"f:y": {}}}}
    }


def test_items_of_a_list_map_merge_in_the_order_of_the_configuration() -> None:
    live = spec(books=[{"name": "x"}, {"name": "a", "size": 1}, {"name": "b"}])
    merged = merge(live, spec(books=[{"name": "b"}, {"name": "new"}, {"name": "a", "port": 2}]), TYPE)

    assert merged["spec"]["books"] == [
        {"name": "x"},
        {"name": "b"},
        {"name": "new"},
        {"name": "a", "size": 1, "port": 2},
    ]


def test_a_conflict_names_who_and_where_and_force_moves_the_field() -> None:
    first = applied({}, spec(books=[{"name": "x", "size": 1}]), {}, applier("first"))
    wanted = spec(books=[{"name": "x", "size": 2}])
    with pytest.raises(ApplyConflict) as refused:
        applied(first.obj, wanted, first.managers, applier("second"), force=False)
    forced = applied(first.obj, wanted, first.managers, applier("second"))

    (conflict,) = refused.value.conflicts
    assert (conflict.manager.name, path_text(conflict.path)) == ("first", '.spec.books[name="x"].size')
    assert fields(forced.managers, "first") == {"f:spec": {"f:books": {'k:{"name":"x"}': {".": {}, "f:name": {}}}}}


def test_the_same_value_is_shared_and_leaves_times_alone() -> None:
    first = applied({}, spec(color="red"), {}, applier("first", "then"))
    second = applied(first.obj, spec(color="red"), first.managers, applier("second", "now"), force=False)

    assert {one.name: one.time for one in second.managers.values()} == {"first": "then", "second": ""}


def test_fields_that_may_be_taken_do_not_conflict() -> None:
    owned = updated({}, spec(color="red"), {}, Manager("kubectl-client-side-apply", UPDATE, "v1"), TYPE)
    done = apply(
        spec(color="red"),
        spec(color="blue"),
        owned,
        applier("kubectl"),
        TYPE,
        force=False,
        allowed={"f:spec": {"f:color": {}}},
    )

    assert done.obj == spec(color="blue")


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        (spec(colour="red"), ".spec.colour: field not declared in schema"),
        (spec(tags=["a", "a"]), '.spec.tags: duplicate entries for key [="a"]'),
        (spec(books=[{"name": "a"}, {"name": "a"}]), '.spec.books: duplicate entries for key [name="a"]'),
        (spec(books=[{"size": 1}]), KEYLESS),
        (spec(books={}), ".spec.books: expected list, got dict"),
        ({"spec": []}, ".spec: expected map, got list"),
    ],
)
def test_a_configuration_that_does_not_fit_is_told_why(config: Json, problem: str) -> None:
    assert problems_of(config, TYPE) == [problem]


@given(OBJECTS)
def test_what_fits_has_no_problems(config: Json) -> None:
    assert problems_of(config, TYPE) == []
