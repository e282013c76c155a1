"""How long the event ring remembers."""

import pytest

from storage.interfaces import Entry, Event, EventType, ObjectKey
from storage.watchcache import ring as ring_module
from storage.watchcache.ring import EventRing


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def event(rv: int, previous_bytes: int = 0) -> Event:
    key = ObjectKey("widgets", "ns", "a")
    previous = Entry(key, rv - 1, 1, "", b"x" * previous_bytes, {}, ()) if previous_bytes else None
    return Event(rv, EventType.MODIFIED, Entry(key, rv, 1, "", b"", {}, ()), previous)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ring(clock: Clock) -> EventRing:
    return EventRing(10, clock)


def test_events_of_the_last_75_seconds_are_kept_however_many(ring: EventRing, clock: Clock) -> None:
    for rv in range(11, 5011):
        ring.append(event(rv))
        clock.now += 0.01
    ring.trim()

    assert (ring.floor, ring.end - ring.first) == (10, 5000)


def test_older_events_are_dropped_but_for_a_hundred(ring: EventRing, clock: Clock) -> None:
    for rv in range(11, 511):
        ring.append(event(rv))
    clock.now = 76
    ring.trim()

    assert (ring.floor, ring.first, ring.end) == (410, 400, 500)


def test_the_number_of_events_is_bounded(ring: EventRing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ring_module, "KEEP_MOST", 1000)
    for rv in range(11, 3011):
        ring.append(event(rv))
    ring.trim()

    assert ring.end - ring.first == 1000


def test_superseded_bodies_are_bounded(ring: EventRing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ring_module, "KEEP_BYTES", 20_000)
    for rv in range(11, 511):
        ring.append(event(rv, previous_bytes=100))
    ring.trim()

    assert ring.end - ring.first == 200
    assert ring.floor == 310


def test_a_position_is_found_by_revision_even_between_two(ring: EventRing) -> None:
    for rv in (12, 15, 20):
        ring.append(event(rv))

    assert [ring.number_after(rv) for rv in (10, 12, 14, 15, 19, 20, 99)] == [0, 1, 1, 2, 2, 3, 3]
    assert [one.rv for one in ring.since(1, 10)] == [15, 20]
    assert [one.rv for one in ring.since(0, 2)] == [12, 15]


@pytest.mark.parametrize(
    ("above", "expected"), [(10, [20, 15, 12]), (12, [20, 15]), (19, [20]), (20, [])], ids=["all", "two", "one", "none"]
)
def test_events_are_undone_newest_first(ring: EventRing, above: int, expected: list[int]) -> None:
    for rv in (12, 15, 20):
        ring.append(event(rv))

    assert [one.rv for one in ring.newest_first(above)] == expected
