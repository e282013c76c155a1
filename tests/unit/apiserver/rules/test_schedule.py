"""Which schedules are understood, and when they come due."""

from datetime import UTC, datetime, timedelta

import pytest

from apiserver.rules.schedule import ScheduleProblem, parse_schedule

NOW = datetime(2026, 11, 22, 0, 10, 30, tzinfo=UTC)
"""A Sunday."""


@pytest.mark.parametrize(
    ("schedule", "due"),
    [
        ("*/10 * * * *", "2026-11-22T00:20:00"),
        ("5/15 * * * ?", "2026-11-22T00:20:00"),
        ("10-12 * * * *", "2026-11-22T00:11:00"),
        ("0,30 9-17/4 * * *", "2026-11-22T09:00:00"),
        ("0 0 * * MON-fri", "2026-11-23T00:00:00"),
        ("0 0 1 jan *", "2027-01-01T00:00:00"),
        ("0 0 29 2 *", "2028-02-29T00:00:00"),
        ("0 12 13 * 5", "2026-11-27T12:00:00"),  # either day will do where both are named
        ("0 12 */2 * 1", "2026-11-23T12:00:00"),  # both where one begins with a star
        ("@yearly", "2027-01-01T00:00:00"),
        ("@weekly", "2026-11-29T00:00:00"),
        ("@midnight", "2026-11-23T00:00:00"),
        ("@hourly", "2026-11-22T01:00:00"),
        ("@every 1h30m", "2026-11-22T01:40:30"),
        ("@every 1.5h", "2026-11-22T01:40:30"),
        ("@every 10ms", "2026-11-22T00:10:31"),
        ("TZ=Asia/Tokyo 0 9 * * *", "2026-11-23T00:00:00"),
        ("CRON_TZ=America/New_York @daily", "2026-11-22T05:00:00"),
    ],
)
def test_a_schedule_comes_due(schedule: str, due: str) -> None:
    assert parse_schedule(schedule).next_after(NOW) == datetime.fromisoformat(due).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("schedule", "problem"),
    [
        ("", "0 fields"),
        ("* * * *", "4 fields"),
        ("0 * * * * *", "6 fields"),
        ("60 * * * *", "minute from 0 to 59"),
        ("* 24 * * *", "hour from 0 to 23"),
        ("* * 0 * *", "day of month from 1 to 31"),
        ("* * * 13 *", "month from 1 to 12"),
        ("* * * * 7", "day of week from 0 to 6"),
        ("* * * foo *", "'foo' is not a month"),
        ("* * L * *", "day of month"),
        ("* * * * 5#2", "day of week"),
        ("*/0 * * * *", "zero"),
        ("30-10 * * * *", "ends before it begins"),
        ("*-5 * * * *", "minute"),
        ("1,,2 * * * *", "minute"),
        ("0 0 30 2 *", "never comes due"),
        ("@reboot", "@every <duration>"),
        ("@every", "@every <duration>"),
        ("@every 5", "duration"),
        ("@every -5m", "duration"),
        ("@every 5m x", "duration"),
        ("@every 9999999h", "3660 days"),
        ("TZ=Moon/Base * * * * *", "time zone"),
        ("TZ=../../etc/passwd * * * * *", "time zone"),
        ("* " * 200, "256 characters"),
    ],
)
def test_what_is_no_schedule_is_named(schedule: str, problem: str) -> None:
    with pytest.raises(ScheduleProblem, match=problem):
        parse_schedule(schedule)


def test_a_time_zone_keeps_its_clock_when_that_changes() -> None:
    """Nine o'clock in Berlin is an hour earlier in UTC in summer."""
    schedule = parse_schedule("TZ=Europe/Berlin 0 9 * * *")

    before = schedule.next_after(datetime(2026, 3, 28, 0, tzinfo=UTC))
    after = schedule.next_after(before + timedelta(seconds=1))

    assert (before.hour, after.hour) == (8, 7)
