"""Names of custom resources: who gets them, and what is said to who does not."""

from typing import Any

import pytest

from apiserver.resources.custom.names import Given, accept_names, taken_by_others

Json = dict[str, Any]
FIRST = {"plural": "widgets", "singular": "widget", "shortNames": ["wd"], "kind": "Widget", "listKind": "WidgetList"}


def crd(name: str = "gadgets", group: str = "example.com", status: Json | None = None, **names: Any) -> Json:
    wanted = {"plural": name, "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList", **names}
    return {"metadata": {"name": f"{name}.{group}"}, "spec": {"group": group, "names": wanted}, "status": status or {}}


def taken(definition: Json) -> Any:
    return taken_by_others(definition, {"widgets.example.com": Given("example.com", FIRST)})


def test_names_that_nobody_has_are_accepted_whole() -> None:
    definition = crd(shortNames=["gd"], categories=["all"])

    names, condition = accept_names(definition, taken(definition))

    assert names == definition["spec"]["names"]
    assert (condition.status, condition.reason) == ("True", "NoConflicts")


@pytest.mark.parametrize(
    ("names", "reason", "message"),
    [
        ({"plural": "widgets"}, "PluralConflict", '"widgets" is already in use'),
        ({"singular": "wd"}, "SingularConflict", '"wd" is already in use'),
        ({"shortNames": ["gd", "wd"]}, "ShortNamesConflict", '"wd" is already in use'),
        (
            {"shortNames": ["wd", "widget"]},
            "ShortNamesConflict",
            '["wd" is already in use, "widget" is already in use]',
        ),
        ({"kind": "Widget"}, "KindConflict", '"Widget" is already in use'),
        ({"listKind": "Widget"}, "ListKindConflict", '"Widget" is already in use'),
    ],
)
def test_a_name_of_another_definition_of_the_group_is_refused(names: Json, reason: str, message: str) -> None:
    definition = crd(**names)
    others = taken_by_others(definition, {"first.example.com": Given("example.com", FIRST)})

    accepted, condition = accept_names(definition, others)

    assert (condition.status, condition.reason, condition.message) == ("False", reason, message)
    assert all(accepted.get(key) != value for key, value in names.items() if key != "plural" or value == "widgets")


def test_another_group_may_use_the_same_names() -> None:
    definition = crd("widgets", "other.example", singular="widget", kind="Widget", listKind="WidgetList")

    _, condition = accept_names(definition, taken(definition))

    assert condition.status == "True"


def test_a_definition_does_not_conflict_with_itself_and_keeps_a_name_while_a_new_one_is_refused() -> None:
    definition = crd(status={"acceptedNames": {"plural": "gadgets", "kind": "Gadget", "shortNames": ["gd"]}})
    definition["spec"]["names"]["kind"] = "Widget"
    given = {"gadgets.example.com": Given.of(definition), "widgets.example.com": Given("example.com", FIRST)}

    names, condition = accept_names(definition, taken_by_others(definition, given))

    assert condition.reason == "KindConflict"
    assert names["kind"] == "Gadget"
