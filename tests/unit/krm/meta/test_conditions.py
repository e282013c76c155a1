"""Conditions are set in place, and their transition time moves only with their status."""

from datetime import UTC, datetime
from typing import Any

from krm.meta.conditions import Condition, find_condition, set_condition, timestamp

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
LATER = datetime(2026, 1, 2, 13, tzinfo=UTC)


def test_a_new_condition_is_added_with_its_time() -> None:
    conditions: list[dict[str, Any]] = []

    assert set_condition(conditions, Condition(type="Ready", status="True", reason="Ready"), now=NOON)
    assert conditions == [
        {"type": "Ready", "status": "True", "reason": "Ready", "lastTransitionTime": "2026-01-02T12:00:00Z"}
    ]


def test_repeating_a_condition_changes_nothing() -> None:
    conditions: list[dict[str, Any]] = []
    set_condition(conditions, Condition(type="Ready", status="True"), now=NOON)

    assert not set_condition(conditions, Condition(type="Ready", status="True"), now=LATER)


def test_another_message_keeps_the_time_and_another_status_moves_it() -> None:
    conditions: list[dict[str, Any]] = []
    set_condition(conditions, Condition(type="Ready", status="True"), now=NOON)

    assert set_condition(conditions, Condition(type="Ready", status="True", message="m"), now=LATER)
    assert conditions[0]["lastTransitionTime"] == timestamp(NOON)
    assert set_condition(conditions, Condition(type="Ready", status="False"), now=LATER)
    assert conditions[0]["lastTransitionTime"] == timestamp(LATER)
    assert find_condition(conditions, "Ready") == conditions[0]
    assert find_condition(None, "Ready") is None
