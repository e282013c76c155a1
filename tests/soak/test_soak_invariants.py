"""The kill test can fail: what a server could do wrong is seen by the ledgers, the invariants and the watcher."""

from dataclasses import replace
from typing import Any

import pytest
from endurance import Options, Report, Sample
from resuming_watcher import Watcher
from soak_invariants import Seen, check_latest, check_numbers, check_owed, state_of
from soak_ledger import MARK, PAIR, Owed, State

DRAFT = State("Draft", saved=1)


def seen(
    workspace: str = "v1",
    lifecycle: str = "Draft",
    revision: int = 0,
    *,
    latest: bool = False,
    files: dict[str, str] | None = None,
) -> Seen:
    labels = {"kpt.dev/latest-revision": "true"} if latest else {}
    package = "app"
    spec = {"repository": "r", "packageName": package, "workspaceName": workspace, "lifecycle": lifecycle}
    body = {"metadata": {"name": f"r.{package}.{workspace}", "labels": labels}, "spec": {**spec, "revision": revision}}
    return Seen(body, files or DRAFT.files)


def owed(*possible: State) -> Owed:
    return Owed("r", "app", "v1", possible=set(possible))


def test_an_acknowledged_write_leaves_one_state_an_unanswered_one_two_and_a_refused_one_the_one_before() -> None:
    one = owed(State())
    one.sent(DRAFT)
    assert one.possible == {State(), DRAFT}
    one.acknowledged(DRAFT)
    assert one.state == DRAFT
    after = State("Proposed", saved=1)
    one.sent(after)
    one.refused(after, DRAFT)
    assert one.state == DRAFT


@pytest.mark.parametrize("found", [{}, {"r.app.v1": seen(lifecycle="Proposed")}], ids=["gone", "another lifecycle"])
def test_a_state_that_nobody_is_owed_is_seen(found: dict[str, Seen]) -> None:
    with pytest.raises(AssertionError, match="owed was one of"):
        check_owed(found, [owed(DRAFT)])


def test_half_a_save_and_a_torn_file_are_seen() -> None:
    whole = DRAFT.files[PAIR[0]]
    halves = seen(files={PAIR[0]: whole, PAIR[1]: State(saved=2).files[PAIR[1]]})
    torn = seen(files=dict.fromkeys(PAIR, whole.replace('again: "1"', 'again: "2"')))

    assert state_of(seen()) == DRAFT
    with pytest.raises(AssertionError, match="by halves"):
        state_of(halves)
    with pytest.raises(AssertionError, match="torn"):
        state_of(torn)


def test_a_lost_mark_is_seen() -> None:
    marked = seen()
    marked.body["metadata"]["labels"][MARK] = "m1"

    assert state_of(marked) == State("Draft", saved=1, mark="m1")
    with pytest.raises(AssertionError):
        check_owed({"r.app.v1": seen()}, [owed(state_of(marked))])


def test_gaps_and_doubles_among_revision_numbers_are_seen_and_deleted_ones_are_no_gaps() -> None:
    first, third = seen(lifecycle="Published", revision=1), seen(workspace="v3", lifecycle="Published", revision=3)
    deleted = Owed("r", "app", "v2", number=2)

    check_numbers({"a": first, "c": third}, [deleted])
    with pytest.raises(AssertionError, match="gaps"):
        check_numbers({"a": first, "c": third}, [])
    with pytest.raises(AssertionError, match="twice"):
        check_numbers({"a": first, "b": first}, [])


def test_a_latest_label_at_the_wrong_revision_is_seen() -> None:
    old = seen(lifecycle="Published", revision=1, latest=True)
    new = seen(workspace="v2", lifecycle="Published", revision=2)

    check_latest({"old": old})
    with pytest.raises(AssertionError, match="revision 1 of 2"):
        check_latest({"old": old, "new": new})


@pytest.mark.parametrize(
    ("events", "problem"),
    [
        ([("ADDED", "a", 5), ("MODIFIED", "a", 5)], "came after"),
        ([("ADDED", "a", 5), ("ADDED", "a", 6)], "it was there"),
        ([("MODIFIED", "a", 5)], "not there"),
        ([("ADDED", "a", 5), ("DELETED", "a", 6), ("DELETED", "a", 7)], "not there"),
    ],
    ids=["again", "added twice", "modified out of nothing", "deleted twice"],
)
def test_events_that_are_no_history_are_seen(events: list[tuple[str, str, int]], problem: str) -> None:
    watcher = Watcher(lambda: pytest.fail("nobody connects"))

    for kind, name, version in events:
        metadata: dict[str, Any] = {"name": name, "resourceVersion": str(version)}
        watcher._take({"type": kind, "object": {"metadata": metadata}}, 0.0)

    assert any(problem in violation for violation in watcher.violations), watcher.violations


@pytest.mark.parametrize(
    ("late", "grown"),
    [
        (Sample(0, 100, 50, 10), []),
        (Sample(0, 130, 50, 10), ["memory"]),
        (Sample(0, 100, 500, 10), ["open files"]),
        (Sample(0, 100, 50, 40), ["threads"]),
    ],
    ids=lambda value: ", ".join(value) or "nothing" if isinstance(value, list) else "",
)
def test_a_server_that_grows_is_seen(late: Sample, grown: list[str]) -> None:
    first, last = [Sample(at, 100, 50, 10) for at in range(70)], [replace(late, seconds=at) for at in range(70, 100)]

    assert Report(Options(100), samples=[*first, *last]).grown(0.1) == grown
