"""The status of a set: what is counted, what is told once, and that repeating a pass changes nothing."""

from datetime import UTC, datetime
from typing import Any

import pytest

from controllers.packagevariantset.cached_values import Member
from controllers.packagevariantset.report import MOST_FAILURES, Report, Written
from krm.meta.conditions import find_condition
from krm.variants.conditions import MOST_CHARACTERS
from krm.variants.sets.plan import Failure

Json = dict[str, Any]
NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER = datetime(2026, 1, 2, tzinfo=UTC)


def member(name: str, *, ready: str = "", stalled: str = "", observed: int = 2) -> Member:
    conditions = [{"type": "Ready", "status": ready, "reason": "Test"}] if ready else []
    conditions += [{"type": "Stalled", "status": "True", "reason": "Test", "message": stalled}] if stalled else []
    return Member.of(
        {
            "metadata": {"namespace": "default", "name": name, "uid": name, "generation": 2},
            "spec": {"downstream": {"repo": name, "package": "foo"}},
            "status": {"observedGeneration": observed, "conditions": conditions},
        }
    )


def told(report: Report, type_: str) -> tuple[str, str, str]:
    found = find_condition(report.status["conditions"], type_) or {}
    return found.get("status", ""), found.get("reason", ""), found.get("message", "")


def test_targets_are_ready_stalled_failed_or_on_their_way() -> None:
    report = Report({}, 1, NOW)
    members = [
        member("a", ready="True"),
        member("b", ready="True", observed=1),
        member("c", ready="False", stalled="broken"),
        member("d"),
    ]
    report.targets(6, members, 1, Written(created=4))

    assert report.status["targets"] == {
        "total": 6,
        "ready": 1,
        "stalled": 1,
        "inFlight": 3,
        "failed": 1,
        "created": 4,
        "updated": 0,
        "deleted": 0,
    }
    assert told(report, "ReadyTargets") == ("False", "NotAllReady", "1 of 6 targets are ready")


def test_what_was_written_last_stays_told_while_nothing_is_written() -> None:
    before = Report({}, 1, NOW)
    before.targets(1, [member("a", ready="True")], 0, Written(created=1))
    before.ready()
    after = Report(before.status, 1, LATER)
    after.targets(1, [member("a", ready="True")], 0, Written())
    after.ready()

    assert after.status == before.status
    assert told(after, "ReadyTargets")[:2] == ("True", "AllReady")


def test_failures_come_before_stalled_variants_and_are_bounded() -> None:
    report = Report({}, 1, NOW)
    failures = [Failure("r", f"p-{number}", "render", "x" * 5000) for number in range(MOST_FAILURES - 1)]
    report.failures(failures, [member("b", stalled="two"), member("a", stalled="one"), member("c", ready="True")])

    listed = report.status["failures"]
    assert len(listed) == MOST_FAILURES
    assert listed[-1] == {"repo": "a", "package": "foo", "stage": "variant", "message": "one"}
    assert len(listed[0]["message"]) <= 512

    again = Report(report.status, 1, NOW)
    again.failures([], [])
    assert "failures" not in again.status


def test_what_stalls_a_set_is_news_once() -> None:
    first = Report({}, 3, NOW)
    first.stalled("ValidationError", "x" * 10_000)
    assert first.status["observedGeneration"] == 3
    assert told(first, "Ready") == ("False", *told(first, "Stalled")[1:])
    assert len(told(first, "Stalled")[2]) <= MOST_CHARACTERS
    assert first.news() is not None

    second = Report(first.status, 3, LATER)
    second.stalled("ValidationError", "x" * 10_000)
    assert second.news() is None
    assert second.status == first.status


def test_a_pause_keeps_what_was_told_and_its_end_is_told() -> None:
    worked = Report({}, 1, NOW)
    worked.ready()
    paused = Report(worked.status, 2, LATER)
    paused.paused()
    assert paused.status["observedGeneration"] == 1
    assert told(paused, "Ready") == told(worked, "Ready")
    assert told(paused, "Paused")[:2] == ("True", "PausedByUser")

    resumed = Report(paused.status, 2, LATER)
    resumed.unfinished("RolloutInProgress", "1 package variants wait")
    assert told(resumed, "Paused")[:2] == ("False", "Resumed")
    assert told(resumed, "Ready")[:2] == ("False", "RolloutInProgress")
    assert told(resumed, "Stalled")[:2] == ("False", "Valid")


@pytest.mark.parametrize("rollout", [None, {"phase": "Complete"}])
def test_a_rollout_is_told_while_there_is_one(rollout: Json | None) -> None:
    report = Report({"rollout": {"phase": "Waiting"}}, 1, NOW)
    report.rollout(rollout)

    assert report.status.get("rollout") == rollout
