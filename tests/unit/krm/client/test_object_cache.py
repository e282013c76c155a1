"""The cache of an informer: changes are told once, own writes not at all, and older news undoes nothing."""

from collections.abc import Iterable
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from krm.client.cache import OWN_SECONDS, Change, Key, ObjectCache


@dataclass(frozen=True)
class Thing:
    namespace: str
    name: str
    resource_version: str
    color: str = ""


KEY: Key = ("ns", "a")


def thing(version: int | str, color: str = "") -> Thing:
    return Thing("ns", "a", str(version), color)


def colors(one: Thing) -> Iterable[str]:
    return [one.color] if one.color else []


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def cache(clock: Clock) -> ObjectCache[Thing]:
    return ObjectCache({"color": colors}, clock)


def arrive(cache: ObjectCache[Thing], one: Thing) -> Change[Thing] | None:
    return cache.arrived((one.namespace, one.name), one, one.resource_version)


def vanish(cache: ObjectCache[Thing], version: int) -> Change[Thing] | None:
    return cache.arrived(KEY, None, str(version))


def test_each_state_is_a_change_once(cache: ObjectCache[Thing]) -> None:
    assert arrive(cache, thing(1)) == Change(None, thing(1))
    assert arrive(cache, thing(1)) is None
    assert arrive(cache, thing(2)) == Change(thing(1), thing(2))
    assert vanish(cache, 3) == Change(thing(2), None)
    assert vanish(cache, 3) is None
    assert len(cache) == 0


def test_indexes_follow_the_states(cache: ObjectCache[Thing]) -> None:
    other = Thing("ns", "b", "9", "red")
    arrive(cache, thing(1, "red"))
    arrive(cache, other)
    assert cache.by_index("color", "red") == [thing(1, "red"), other]
    arrive(cache, thing(2, "blue"))
    assert cache.by_index("color", "red") == [other]
    assert cache.by_index("color", "blue") == [thing(2, "blue")]
    cache.forget(KEY)

    assert cache.by_index("color", "blue") == []
    assert cache._indexed == {"color": {"red": {("ns", "b"): None}}}


def test_an_own_write_is_there_at_once_and_its_event_is_no_change(cache: ObjectCache[Thing]) -> None:
    arrive(cache, thing(1))
    cache.wrote(thing(5, "red"))

    assert cache.get(KEY) == thing(5, "red")
    assert cache.by_index("color", "red") == [thing(5, "red")]
    assert arrive(cache, thing(3)) is None
    assert arrive(cache, thing(5, "red")) is None
    assert cache.get(KEY) == thing(5, "red")
    assert arrive(cache, thing(6)) == Change(thing(5, "red"), thing(6))


def test_what_another_writer_did_after_us_is_a_change_also_when_our_event_never_comes(
    cache: ObjectCache[Thing],
) -> None:
    cache.wrote(thing(5))

    assert arrive(cache, thing(7)) == Change(thing(5), thing(7))
    assert vanish(cache, 8) == Change(thing(7), None)


def test_an_answer_that_is_slower_than_later_news_is_not_taken(cache: ObjectCache[Thing]) -> None:
    arrive(cache, thing(7))
    cache.wrote(thing(5))

    assert cache.get(KEY) == thing(7)
    assert arrive(cache, thing(8)) == Change(thing(7), thing(8))


def test_a_write_that_wrote_nothing_leaves_nothing_behind(cache: ObjectCache[Thing]) -> None:
    arrive(cache, thing(5))
    cache.wrote(thing(5))

    assert cache._own == {}


def test_an_own_deletion_is_not_undone_by_older_news(cache: ObjectCache[Thing]) -> None:
    arrive(cache, thing(5))
    cache.forget(KEY)

    assert cache.get(KEY) is None
    assert arrive(cache, thing(4)) is None
    assert arrive(cache, thing(5)) is None
    assert cache.get(KEY) is None
    assert vanish(cache, 6) is None
    assert arrive(cache, thing(9)) == Change(None, thing(9))
    assert cache._own == {}


def test_an_own_deletion_is_forgotten_when_a_list_lacks_the_object(cache: ObjectCache[Thing]) -> None:
    arrive(cache, thing(5))
    cache.forget(KEY)
    assert cache.keys() == [KEY]
    assert vanish(cache, 8) is None

    assert cache.keys() == []


def test_an_object_that_only_waits_for_its_finalizers_comes_back(cache: ObjectCache[Thing]) -> None:
    arrive(cache, thing(5))
    cache.forget(KEY)

    assert arrive(cache, thing(6, "deleting")) == Change(None, thing(6, "deleting"))


def test_the_end_of_the_one_before_is_not_the_end_of_the_one_we_made_after_it(cache: ObjectCache[Thing]) -> None:
    arrive(cache, thing(3))
    cache.wrote(thing(9))  # made anew under the same name, while the events of the old one are still to come

    assert vanish(cache, 6) is None
    assert cache.get(KEY) == thing(9)


def test_an_own_write_by_which_an_object_leaves_the_selection_takes_it_out_silently(cache: ObjectCache[Thing]) -> None:
    arrive(cache, thing(3))
    cache.wrote(thing(5))

    assert vanish(cache, 5) is None
    assert cache.get(KEY) is None


def test_a_server_that_was_put_back_is_believed_after_a_minute(cache: ObjectCache[Thing], clock: Clock) -> None:
    cache.wrote(thing(500))
    clock.now = OWN_SECONDS + 1

    assert arrive(cache, thing(3)) == Change(thing(500), thing(3))


@pytest.mark.parametrize(("first", "second"), [("x2", "x1"), ("", "7"), ("8" * 9000, "7" * 9000)])
def test_versions_that_are_no_numbers_count_in_the_order_of_their_arrival(
    cache: ObjectCache[Thing], first: str, second: str
) -> None:
    cache.wrote(thing(first))

    assert arrive(cache, thing(first)) is None
    assert arrive(cache, thing(second)) == Change(thing(first), thing(second))


class TestHolding:
    """While we write, our own event may be faster than the answer."""

    def test_an_event_before_its_answer_is_no_change(self, cache: ObjectCache[Thing]) -> None:
        arrive(cache, thing(1))
        assert cache.hold(KEY)
        assert arrive(cache, thing(2)) is None
        cache.wrote(thing(2))

        assert cache.release(KEY) is None
        assert cache.get(KEY) == thing(2)

    def test_another_writers_event_is_told_at_the_end(self, cache: ObjectCache[Thing]) -> None:
        arrive(cache, thing(1))
        cache.hold(KEY)
        arrive(cache, thing(2))
        arrive(cache, thing(3))
        assert cache.get(KEY) == thing(1)

        assert cache.release(KEY) == Change(thing(1), thing(3))

    def test_an_end_that_came_meanwhile_is_told_at_the_end(self, cache: ObjectCache[Thing]) -> None:
        arrive(cache, thing(1))
        cache.hold(KEY)
        vanish(cache, 2)

        assert cache.release(KEY) == Change(thing(1), None)

    def test_nothing_held_is_nothing_told_and_holds_do_not_nest(self, cache: ObjectCache[Thing]) -> None:
        assert cache.hold(KEY)
        assert not cache.hold(KEY)
        assert cache.release(KEY) is None
        assert arrive(cache, thing(1)) == Change(None, thing(1))


STEPS = st.lists(
    st.sampled_from(["foreign", "own", "own-event-first", "foreign-delete", "own-delete", "deliver", "deliver"]),
    max_size=40,
)


@given(steps=STEPS)
def test_whatever_comes_first_the_cache_ends_where_the_server_is_and_tells_all_that_others_did(
    steps: list[str],
) -> None:
    """Events arrive late but in order; own writes are answered before or after their events."""
    server = _Server(ObjectCache({"color": colors}))
    for step in steps:
        server.do(step)
    while server.pending:
        server.deliver()

    assert server.cache.get(KEY) == server.state
    assert server.cache._own == {}
    told_of = {change.new.resource_version for change in server.told if change.new}
    assert not told_of & server.own_versions
    assert server.foreign_survivor is None or server.foreign_survivor in told_of


class _Server:
    """One object, its writers, and the events that are under way to the cache."""

    def __init__(self, cache: ObjectCache[Thing]) -> None:
        self.cache = cache
        self.state: Thing | None = None
        self.version = 0
        self.pending: list[tuple[Thing | None, str]] = []
        self.told: list[Change[Thing]] = []
        self.own_versions: set[str] = set()

    @property
    def foreign_survivor(self) -> str | None:
        version = self.state.resource_version if self.state else None
        return None if version in self.own_versions else version

    def do(self, step: str) -> None:
        match step:
            case "foreign":
                self._write(thing(self.version + 1))
            case "foreign-delete" if self.state:
                self._write(None)
            case "own" | "own-event-first":
                self._own_write(event_first=step != "own")
            case "own-delete" if self.state and self.cache.get(KEY) == self.state:
                self._write(None)
                self.cache.forget(KEY)
            case "deliver" if self.pending:
                self.deliver()

    def _own_write(self, *, event_first: bool) -> None:
        self.cache.hold(KEY)
        made = thing(self.version + 1, "own")
        self.own_versions.add(made.resource_version)
        self._write(made)
        while event_first and self.pending:
            self.deliver()
        self.cache.wrote(made)
        self._tell(self.cache.release(KEY))

    def _write(self, state: Thing | None) -> None:
        self.version += 1
        self.state = state
        self.pending.append((state, str(self.version)))

    def deliver(self) -> None:
        value, version = self.pending.pop(0)
        self._tell(self.cache.arrived(KEY, value, version))

    def _tell(self, change: Change[Thing] | None) -> None:
        if change:
            self.told.append(change)
