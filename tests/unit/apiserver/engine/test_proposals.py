"""How long proposals wait, as the events of package revisions and the objects themselves tell."""

from typing import Any

import pytest

from apiserver.engine.package_index import revision_fields
from apiserver.engine.proposals import Proposals, proposed_at
from storage.bodies import encode_body
from storage.interfaces import Entry, Event, EventType, ObjectKey

RESOURCE = "packagerevisions.porch.kpt.dev"
CREATED = 1767225600.0
"""2026-01-01T00:00:00Z"""


class Clock:
    def __init__(self) -> None:
        self.now = CREATED + 10_000

    def __call__(self) -> float:
        return self.now


def manager(time: Any, *, subresource: str = "", **spec: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {"f:spec": {f"f:{name}": {} for name in spec or ("lifecycle",)}}
    return {"manager": "m", "operation": "Update", "time": time, "fieldsV1": fields, "subresource": subresource}


def body(name: str, lifecycle: str, *managers: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "porch.kpt.dev/v1alpha1",
        "kind": "PackageRevision",
        "metadata": {"name": name, "creationTimestamp": "2026-01-01T00:00:00Z", "managedFields": [*managers]},
        "spec": {"lifecycle": lifecycle},
        "status": {},
    }


def entry(name: str, lifecycle: str, *managers: dict[str, Any]) -> Entry:
    stored = body(name, lifecycle, *managers)
    return Entry(ObjectKey(RESOURCE, "ns", name), 1, 1, "uid", encode_body(stored), *revision_fields(stored))


def loaded(one: Entry) -> Event:
    return Event(1, EventType.ADDED, one, None)


def changed(one: Entry, before: str) -> Event:
    return Event(2, EventType.MODIFIED, one, entry(one.name, before))


def test_a_proposal_waits_from_the_event_that_made_it_until_it_is_none() -> None:
    clock, waits = Clock(), list[float]()
    proposals = Proposals(waits.append, clock)
    one = entry("one", "Proposed", manager("2026-01-01T00:00:01Z"))
    proposals.observe(loaded(entry("one", "Draft")))
    proposals.observe(changed(one, "Draft"))
    clock.now += 7

    assert proposals.wait(one.key) == proposals.longest_wait() == 7
    proposals.observe(changed(one, "Proposed"))
    assert proposals.wait(one.key) == 7, "a label says nothing about the proposal"
    for ended in (changed(entry("one", "Draft"), "Proposed"), Event(3, EventType.DELETED, one, one)):
        proposals.observe(ended)
        assert proposals.wait(one.key) == proposals.longest_wait() == 0
        proposals.observe(changed(one, "Draft"))


def test_only_an_approval_that_succeeds_is_told_with_the_wait_before_it() -> None:
    clock, waits = Clock(), list[float]()
    proposals = Proposals(waits.append, clock)
    one = entry("one", "Proposed")
    proposals.observe(changed(one, "Draft"))
    clock.now += 60

    with pytest.raises(TimeoutError), proposals.approval(one.key):
        raise TimeoutError
    with proposals.approval(one.key):
        clock.now += 5
        proposals.observe(changed(entry("one", "Published"), "Proposed"))

    assert waits == [60]


def test_what_was_there_before_the_server_waits_since_the_object_says() -> None:
    clock = Clock()
    proposals = Proposals(lambda _: None, clock)
    old = entry("old", "Proposed", manager("2026-01-01T01:00:00Z"), manager("2026-01-01T00:30:00Z", labels=1))
    older = entry("older", "Proposed", manager("2026-01-01T00:10:00Z"))
    silent = entry("silent", "Proposed")
    for one in (old, older, silent, entry("draft", "Draft", manager("2026-01-01T00:00:05Z"))):
        proposals.observe(loaded(one))

    assert proposals.wait(old.key) == 10_000 - 3600
    assert proposals.longest_wait() == proposals.wait(older.key) == 10_000 - 600
    assert proposals.wait(silent.key) == 0
    proposals.observe(changed(entry("older", "Published"), "Proposed"))
    assert proposals.longest_wait() == 10_000 - 3600


def test_a_clock_that_was_put_back_makes_no_negative_wait() -> None:
    clock = Clock()
    proposals = Proposals(lambda _: None, clock)
    proposals.observe(changed(entry("one", "Proposed"), "Draft"))

    clock.now -= 3600

    assert proposals.longest_wait() == proposals.wait(entry("one", "Proposed").key) == 0


@pytest.mark.parametrize(
    ("managers", "seconds"),
    [
        ([manager("2026-01-01T00:00:30Z")], 30),
        ([manager("2026-01-01T01:00:30+01:00")], 30),
        ([manager("2026-01-01T00:00:30")], 30),
        ([manager("2026-01-01T00:00:40Z", subresource="approval"), manager("2026-01-01T00:00:30Z")], 30),
        ([manager("1970-01-01T00:00:00Z")], 0),
        ([manager("yesterday"), manager("2026-01-01T00:00:30Z")], 30),
        ([manager("yesterday")], None),
        ([manager(None)], None),
        ([manager("2026-01-01T00:00:30Z", labels=1)], None),
        ([{"manager": "m", "operation": "Update"}], None),
        ([], None),
    ],
)
def test_clients_that_write_managed_fields_make_no_wait_longer_than_the_object_is_old(
    managers: list[dict[str, Any]], seconds: float | None
) -> None:
    found = proposed_at(body("one", "Proposed", *managers))

    assert found == (None if seconds is None else CREATED + seconds)
