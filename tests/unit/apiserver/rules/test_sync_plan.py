"""What is done with a repository, and when the next thing is."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from apiserver.rules.sync_plan import Rhythm, SyncWishes, Work, due, next_full, pause, read_wishes

NOW = datetime(2026, 11, 22, 0, 10, tzinfo=UTC)
RHYTHM = Rhythm(timedelta(minutes=1), timedelta(hours=1))
MINUTE = timedelta(minutes=1)


def wishes(
    sync: dict[str, str] | None = None, annotations: dict[str, str] | None = None, observed: str = ""
) -> SyncWishes:
    body: dict[str, Any] = {"metadata": {"annotations": annotations}, "spec": {"sync": sync}}
    if observed:
        body["status"] = {"observedRunOnceAt": observed}
    return read_wishes(body)


@pytest.mark.parametrize(
    ("wanted", "last", "work"),
    [
        pytest.param(wishes(), None, Work.FULL, id="never read"),
        pytest.param(wishes(), NOW - MINUTE, Work.CHANGES, id="read a minute ago"),
        pytest.param(wishes(), NOW - 60 * MINUTE, Work.FULL, id="read an hour ago"),
        pytest.param(wishes({"schedule": "*/15 * * * *"}), NOW - MINUTE, Work.HEALTH, id="not yet scheduled"),
        pytest.param(wishes({"schedule": "*/5 * * * *"}), NOW - MINUTE, Work.FULL, id="scheduled"),
        pytest.param(wishes({"schedule": "0 0 1 1 *"}), NOW - 70 * MINUTE, Work.HEALTH, id="scheduled far away"),
        pytest.param(wishes({"schedule": "nonsense"}), NOW - MINUTE, Work.CHANGES, id="a schedule nobody understands"),
        pytest.param(wishes({"runOnceAt": "2026-11-22T00:10:00Z"}), NOW - MINUTE, Work.EVERYTHING, id="once, now"),
        pytest.param(wishes({"runOnceAt": "2020-01-01T00:00:00Z"}), NOW - MINUTE, Work.EVERYTHING, id="once, long ago"),
        pytest.param(wishes({"runOnceAt": "2026-11-22T01:09:59+01:00"}), None, Work.EVERYTHING, id="once, elsewhere"),
        pytest.param(wishes({"runOnceAt": "2026-11-22T00:10:01Z"}), NOW - MINUTE, Work.CHANGES, id="once, later"),
        pytest.param(
            wishes({"runOnceAt": "2020-01-01T00:00:00Z"}, observed="2020-01-01T00:00:00Z"),
            NOW - MINUTE,
            Work.CHANGES,
            id="once, done",
        ),
        pytest.param(wishes({"runOnceAt": "soon"}), NOW - MINUTE, Work.CHANGES, id="once, nobody knows when"),
        pytest.param(wishes(annotations={"porch.kpt.dev/sync": "now"}), NOW - MINUTE, Work.EVERYTHING, id="asked for"),
    ],
)
def test_what_is_due(wanted: SyncWishes, last: datetime | None, work: Work) -> None:
    assert due(wanted, RHYTHM, last, NOW) is work


@pytest.mark.parametrize(
    ("wanted", "seconds"),
    [
        pytest.param(wishes(), 60, id="the next look"),
        pytest.param(wishes({"schedule": "@every 20s"}), 20, id="the schedule"),
        pytest.param(wishes({"schedule": "0 0 1 1 *"}), 60, id="the health is looked at in between"),
        pytest.param(wishes({"runOnceAt": "2026-11-22T00:10:07Z"}), 7, id="a time that is named"),
        pytest.param(wishes({"runOnceAt": "2026-11-22T00:09:00Z"}), 1, id="a time that passed meanwhile"),
    ],
)
def test_how_long_nothing_is_due(wanted: SyncWishes, seconds: int) -> None:
    assert pause(wanted, RHYTHM, NOW, NOW) == timedelta(seconds=seconds)


def test_a_schedule_without_a_next_time_is_followed_by_the_usual_interval() -> None:
    assert next_full(wishes({"schedule": "0 0 30 2 *"}), RHYTHM, NOW) == NOW + timedelta(hours=1)


def test_a_read_of_everything_fulfils_what_was_due_when_it_began() -> None:
    asked = SyncWishes(None, "2026-11-22T00:10:01Z", "now")

    assert asked.fulfilled(NOW) == SyncWishes(None, "", "now")
    assert asked.fulfilled(NOW + MINUTE) == SyncWishes(None, "2026-11-22T00:10:01Z", "now")
