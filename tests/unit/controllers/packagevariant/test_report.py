"""The status of a variant: what is told, what is kept of what was told before, and what is news."""

from datetime import UTC, datetime
from typing import Any

import pytest
from cluster_bodies import revision

from controllers.packagevariant.ensure import Target
from controllers.packagevariant.failures import Reason
from controllers.packagevariant.render_outcome import NOT_RENDERED
from controllers.packagevariant.report import Report
from krm.meta.conditions import find_condition
from krm.variants.conditions import MOST_CHARACTERS
from krm.variants.revisions import Revision

Json = dict[str, Any]
EARLY, LATE = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
FAILED: Json = {"error": "boom", "result": {"exitCode": 1}}
CHANGE: Json = {"draft": "deployments.bar.packagevariant-1", "trigger": "Initial"}


def condition(status: Json, type_: str) -> Json:
    found = find_condition(status.get("conditions"), type_)
    assert found is not None, type_
    return found


def draft(number: int = 1, task: str = "clone", **more: Any) -> Revision:
    body = revision("bar", f"packagevariant-{number}", repository="deployments", **more)
    body["spec"]["tasks"] = [{"type": task}]
    return Revision.of(body)


def ready(generation: int = 1, before: Json | None = None, now: datetime = EARLY) -> Report:
    report = Report(before or {}, generation, now)
    report.ready()
    return report


def test_a_ready_variant_says_so_for_its_generation() -> None:
    status = ready(3).status

    assert status["observedGeneration"] == 3
    assert condition(status, "Ready") == {
        "type": "Ready",
        "status": "True",
        "observedGeneration": 3,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "reason": "NoErrors",
        "message": "successfully ensured downstream package variant",
    }
    assert (condition(status, "Stalled")["status"], condition(status, "Stalled")["reason"]) == ("False", "Valid")


def test_the_same_told_later_is_the_same_status() -> None:
    first = ready().status

    again = ready(before=first, now=LATE)

    assert again.status == first
    assert again.news() is None


def test_a_time_moves_with_its_status_only() -> None:
    report = Report(ready().status, 2, LATE)
    report.failed(Reason.RENDER_FAILED, "no such function")

    assert condition(report.status, "Ready")["lastTransitionTime"] == "2026-01-02T00:00:00Z"
    assert condition(report.status, "Stalled")["lastTransitionTime"] == "2026-01-01T00:00:00Z"
    assert condition(report.status, "Stalled")["observedGeneration"] == 2


def test_a_stalled_variant_is_not_ready_either() -> None:
    report = Report({}, 1, EARLY)
    report.stalled("UpstreamNotFound", "could not find upstream package revision a/b@latest")

    assert condition(report.status, "Stalled")["status"] == "True"
    assert (condition(report.status, "Ready")["reason"], condition(report.status, "Ready")["message"]) == (
        "Error",
        "invalid packagevariant object",
    )
    assert report.news() == ("UpstreamNotFound", "could not find upstream package revision a/b@latest")


def test_a_failure_is_news_once_and_again_when_it_is_another_one() -> None:
    first = Report({}, 1, EARLY)
    first.failed("Error", "one")
    repeated = Report(first.status, 1, LATE)
    repeated.failed("Error", "one")
    other = Report(first.status, 1, LATE)
    other.failed("Error", "two")

    assert (first.news(), repeated.news(), other.news()) == (("Error", "one"), None, ("Error", "two"))


def test_a_long_error_is_cut() -> None:
    report = Report({}, 1, EARLY)
    report.failed("Error", "x" * 100_000)

    assert len(condition(report.status, "Ready")["message"]) <= MOST_CHARACTERS


def test_a_new_target_is_told_with_an_empty_render() -> None:
    report = ready()
    report.targets([Target(draft())], CHANGE)

    assert report.status["downstreamTargets"] == [
        {
            "name": "deployments.bar.packagevariant-1",
            "renderStatus": NOT_RENDERED,
            "lifecycle": "Draft",
            "operation": "clone",
        }
    ]
    assert report.status["pendingChange"] == CHANGE


def test_a_target_keeps_how_it_was_rendered_until_it_is_rendered_again() -> None:
    first = ready()
    first.targets([Target(draft(), render_status=FAILED)], None)
    kept = ready(before=first.status)
    kept.targets([Target(draft())], None)
    again = ready(before=kept.status)
    again.targets([Target(draft(), render_status=NOT_RENDERED)], None)
    another = ready(before=first.status)
    another.targets([Target(draft(2))], None)

    rendered = [one.status["downstreamTargets"][0]["renderStatus"] for one in (first, kept, again, another)]
    assert rendered == [FAILED, FAILED, NOT_RENDERED, NOT_RENDERED]


def test_why_there_is_a_draft_is_told_until_it_is_published() -> None:
    first = ready()
    first.targets([Target(draft())], CHANGE)
    later = ready(before=first.status)
    later.targets([Target(draft())], None)
    published = ready(before=later.status)
    published.targets([Target(draft(lifecycle="Published"))], None)

    assert later.status["pendingChange"] == CHANGE
    assert "pendingChange" not in published.status


@pytest.mark.parametrize(
    ("task", "adopted", "before", "expected"),
    [
        ("clone", False, "", "clone"),
        ("edit", False, "clone", "edit"),
        ("upgrade", False, "clone", "upgrade"),
        ("init", True, "", "adopted"),
        ("clone", True, "", "adopted"),
        ("clone", False, "adopted", "adopted"),
        ("upgrade", False, "adopted", "adopted"),
        ("upgrade", True, "clone", "adopted"),
        ("init", False, "", "adopted"),
    ],
    ids=[
        "made by a clone",
        "made by an edit",
        "upgraded in place",
        "taken over now",
        "a clone of somebody else's",
        "taken over before",
        "an upgrade that was taken over before",
        "an upgrade that is taken over now",
        "taken over, and its status lost",
    ],
)
def test_how_a_target_came_to_be(task: str, adopted: bool, before: str, expected: str) -> None:
    known = {"downstreamTargets": [{"name": "deployments.bar.packagevariant-1", "operation": before}]}
    report = ready(before=known if before else {})
    report.targets([Target(draft(task=task), adopted=adopted)], None)

    assert report.status["downstreamTargets"][0]["operation"] == expected


def test_what_was_taken_over_and_is_upgraded_in_place_is_an_upgrade_from_then_on() -> None:
    adopted = ready()
    adopted.targets([Target(draft(task="init"), adopted=True)], None)
    upgraded = ready(before=adopted.status)
    upgraded.targets([Target(draft(task="upgrade"), upgraded=True)], None)
    later = ready(before=upgraded.status)
    later.targets([Target(draft(task="upgrade"))], None)

    told = [one.status["downstreamTargets"][0]["operation"] for one in (adopted, upgraded, later)]
    assert told == ["adopted", "upgrade", "upgrade"]


def test_a_paused_variant_keeps_what_was_last_worked_on() -> None:
    report = Report(ready().status, 2, LATE)
    report.paused()

    assert report.status["observedGeneration"] == 1
    assert condition(report.status, "Ready")["observedGeneration"] == 1
    assert (condition(report.status, "Paused")["status"], condition(report.status, "Paused")["reason"]) == (
        "True",
        "PausedByUser",
    )
    assert report.news() is None


def test_a_variant_that_is_resumed_says_so_and_one_that_never_paused_says_nothing() -> None:
    paused = Report({}, 1, EARLY)
    paused.paused()

    assert condition(ready(before=paused.status).status, "Paused")["status"] == "False"
    assert find_condition(ready().status["conditions"], "Paused") is None


def test_drift_is_told_while_there_is_any() -> None:
    drifted = ready()
    drifted.drift({"upstreamBehind": 1}, ("UpstreamBehind", "one newer"))
    over = ready(before=drifted.status)
    over.drift(None, None)
    never = ready()
    never.drift(None, None)

    assert condition(drifted.status, "Drifted")["reason"] == "UpstreamBehind"
    assert drifted.status["drift"] == {"upstreamBehind": 1}
    assert condition(over.status, "Drifted")["status"] == "False"
    assert "drift" not in over.status
    assert find_condition(never.status["conditions"], "Drifted") is None


def test_what_is_told_does_not_change_what_was_told() -> None:
    before = ready().status
    told = condition(before, "Ready")["reason"]
    Report(before, 1, LATE).failed("Error", "one")

    assert condition(before, "Ready")["reason"] == told
