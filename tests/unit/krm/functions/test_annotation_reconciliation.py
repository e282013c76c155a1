"""Old and new names of the annotations that say where an item is from: every way a function may treat them."""

from typing import Any

import pytest

from krm.functions.external.annotation_reconciliation import (
    ID,
    INDEX,
    MIGRATION_ID,
    PATH,
    AnnotationMismatch,
    Pair,
    reconcile,
    record,
)


def _item(**annotations: str) -> dict[str, Any]:
    return {"kind": "X", "metadata": {"name": "x", "annotations": annotations}}


def _annotations(item: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = item["metadata"].get("annotations", {})
    return found


def _both(pair: Pair, value: str) -> dict[str, str]:
    return {pair.legacy: value, pair.internal: value}


@pytest.mark.parametrize("pair", [PATH, INDEX, ID], ids=lambda pair: pair.title)
def test_missing_name_is_filled_before_the_call_and_dropped_after_it(pair: Pair) -> None:
    for name, other in ((pair.legacy, pair.internal), (pair.internal, pair.legacy)):
        item = _item(**{name: "1"})

        recorded = record([item])
        during = dict(_annotations(item))
        reconcile([item], recorded)

        assert during[other] == "1"
        assert during[MIGRATION_ID] == "0"
        assert _annotations(item) == {name: "1"}


@pytest.mark.parametrize("pair", [PATH, INDEX, ID], ids=lambda pair: pair.title)
def test_names_that_disagree_before_the_call_are_an_error(pair: Pair) -> None:
    with pytest.raises(AnnotationMismatch) as error:
        record([_item(**{pair.legacy: "1", pair.internal: "2"})])

    wanted = f"resource input to function has mismatched legacy and internal {pair.title} annotations"
    assert str(error.value) == wanted


def test_items_of_both_families_are_an_error() -> None:
    with pytest.raises(AnnotationMismatch, match="the annotation formatting in the input resources is not consistent"):
        record([_item(**{PATH.legacy: "a"}), _item(**{PATH.internal: "a"})])


def test_items_without_any_go_with_either_family() -> None:
    items = [_item(), _item(**{PATH.legacy: "a"})]

    reconcile(items, record(items))

    assert items == [{"kind": "X", "metadata": {"name": "x"}}, _item(**{PATH.legacy: "a"})]


@pytest.mark.parametrize("pair", [PATH, INDEX], ids=lambda pair: pair.title)
@pytest.mark.parametrize("changed", ["legacy", "internal", "both"])
def test_name_that_was_not_changed_follows_the_one_that_was(pair: Pair, changed: str) -> None:
    item = _item(**_both(pair, "1"))
    recorded = record([item])
    if changed in ("legacy", "both"):
        _annotations(item)[pair.legacy] = "2"
    if changed in ("internal", "both"):
        _annotations(item)[pair.internal] = "2"

    reconcile([item], recorded)

    assert _annotations(item) == _both(pair, "2")


@pytest.mark.parametrize("pair", [PATH, INDEX], ids=lambda pair: pair.title)
def test_names_changed_to_different_values_are_an_error(pair: Pair) -> None:
    item = _item(**_both(pair, "1"))
    recorded = record([item])
    _annotations(item).update({pair.legacy: "2", pair.internal: "3"})

    with pytest.raises(AnnotationMismatch, match=f"mismatched legacy and internal {pair.title} annotations"):
        reconcile([item], recorded)


def test_partner_that_a_function_removed_comes_back() -> None:
    item = _item(**_both(PATH, "a.yaml"))
    recorded = record([item])
    del _annotations(item)[PATH.legacy]
    _annotations(item)[PATH.internal] = "b.yaml"

    reconcile([item], recorded)

    assert _annotations(item) == _both(PATH, "b.yaml")


def test_generated_item_gets_both_names() -> None:
    recorded = record([_item(**_both(PATH, "a.yaml"))])
    generated = _item(**{PATH.legacy: "new.yaml"})

    reconcile([generated], recorded)

    assert _annotations(generated) == _both(PATH, "new.yaml")


def test_numbers_that_functions_write_for_text_are_no_change() -> None:
    item = _item(**_both(INDEX, "0"))
    recorded = record([item])
    item["metadata"]["annotations"][INDEX.legacy] = 0

    reconcile([item], recorded)

    assert str(_annotations(item)[INDEX.legacy]) == _annotations(item)[INDEX.internal] == "0"


def test_item_without_metadata_is_left_without() -> None:
    item: dict[str, Any] = {"kind": "Kustomization"}

    reconcile([item], record([item]))

    assert item == {"kind": "Kustomization"}
