"""Which change of tasks is an upgrade in place, and how a request's other changes come on top of it."""

from typing import Any

import pytest

from apiserver.rules.carried_changes import carried
from apiserver.rules.task_changes import appended_upgrade

NAME = "repo.app.v1"
CLONE = {"type": "clone", "clone": {"upstreamRef": {"upstreamRef": {"name": "up.blue.v1"}}}}
UPGRADE = {
    "type": "upgrade",
    "upgrade": {
        "oldUpstreamRef": {"name": "up.blue.v1"},
        "newUpstreamRef": {"name": "up.blue.v2"},
        "localPackageRevisionRef": {"name": NAME},
    },
}
OTHER = {"type": "upgrade", "upgrade": {"localPackageRevisionRef": {"name": "repo.app.v2"}}}


def found(stored: list[Any] | None, wanted: list[Any] | None) -> Any:
    before: dict[str, Any] = {"metadata": {"name": NAME}, "spec": {"tasks": stored} if stored is not None else {}}
    return appended_upgrade(before, {"spec": {"tasks": wanted}} if wanted is not None else {})


@pytest.mark.parametrize("stored", [[], [CLONE], [UPGRADE]], ids=["none", "clone", "upgrade"])
def test_one_upgrade_of_the_draft_itself_after_the_stored_tasks_is_one(stored: list[Any]) -> None:
    upgrade = found(stored, [*stored, UPGRADE])

    assert (upgrade.task, upgrade.place, upgrade.block) == (UPGRADE, len(stored), UPGRADE["upgrade"])


def test_empty_values_that_a_typed_client_adds_make_no_difference() -> None:
    source: dict[str, Any] = {"type": "", "git": {"repo": "r", "secretRef": {"name": ""}}, "oci": None}
    stored = {"type": "clone", "clone": {"upstreamRef": {"git": {"repo": "r"}}}}

    assert found([stored], [{"type": "clone", "clone": {"upstreamRef": source}}, UPGRADE]) is not None


@pytest.mark.parametrize(
    "wanted",
    [
        None,
        [],
        [CLONE],
        [UPGRADE],
        [UPGRADE, CLONE],
        [CLONE, OTHER],
        [CLONE, CLONE],
        [CLONE, UPGRADE, UPGRADE],
        [{"type": "clone", "clone": {}}, UPGRADE],
        [CLONE, {"type": "upgrade"}],
        [CLONE, {"type": "upgrade", "upgrade": None}],
        [CLONE, {"type": "render", "upgrade": UPGRADE["upgrade"]}],
        [CLONE, {"type": "upgrade", "upgrade": {"localPackageRevisionRef": None}}],
    ],
)
def test_every_other_change_is_none(wanted: list[Any] | None) -> None:
    assert found([CLONE], wanted) is None


@pytest.mark.parametrize(
    ("present", "before", "after", "result"),
    [
        ({"a": 1}, {"a": 1}, {"a": 1}, {"a": 1}),
        ({"a": 1, "new": 2}, {"a": 1}, {"a": 1}, {"a": 1, "new": 2}),
        ({"a": 1, "new": 2}, {"a": 1}, {"a": 3}, {"a": 3, "new": 2}),
        ({"a": 1, "new": 2}, {"a": 1}, {}, {"new": 2}),
        ({"new": 2}, {}, {"b": 1}, {"new": 2, "b": 1}),
        ({"a": 5}, {"a": 1}, {"a": 1}, {"a": 5}),
        ({}, {"a": 1}, {"a": 1}, {}),
    ],
)
def test_only_what_a_client_changed_is_carried_over(present: Any, before: Any, after: Any, result: Any) -> None:
    assert carried(present, before, after) == result
    assert list(carried(present, before, after)) == list(result)
