"""Stored objects in another version: the same but for apiVersion, made once, bounded in number."""

import orjson

from apiserver.resources.custom import versions
from apiserver.resources.custom.versions import VersionView
from storage.bodies import encode_body, with_revision
from storage.interfaces import Entry, Event, EventType, ObjectKey

STORED, SHOWN = "example.com/v1", "example.com/v1beta1"


def entry(name: str = "one", rv: int = 7, api_version: str = STORED) -> Entry:
    obj = {
        "apiVersion": api_version,
        "kind": "Widget",
        "metadata": {"name": name},
        "spec": {"note": '"apiVersion":"x"'},
    }
    key = ObjectKey("widgets.example.com", "ns", name)
    return Entry(key, rv, rv, "u", with_revision(encode_body(obj), rv), {}, ())


def test_nothing_but_the_version_differs() -> None:
    stored = entry()

    shown = VersionView(STORED, SHOWN).entry(stored)

    assert orjson.loads(shown.body) == {**orjson.loads(stored.body), "apiVersion": SHOWN}
    assert (shown.key, shown.rv, shown.uid) == (stored.key, stored.rv, stored.uid)


def test_an_entry_of_the_past_may_say_a_third_version() -> None:
    shown = VersionView(STORED, SHOWN).entry(entry(api_version="example.com/v1alpha1"))

    assert orjson.loads(shown.body)["apiVersion"] == SHOWN


def test_the_same_entry_is_shown_by_the_same_object_and_a_newer_one_by_another() -> None:
    view, stored = VersionView(STORED, SHOWN), entry()

    first = view.entry(stored)

    assert view.entry(stored) is first
    assert view.entry(entry(rv=8)).rv == 8


def test_watchers_share_an_event_and_its_frames_and_another_event_of_that_revision_is_not_taken_for_it() -> None:
    view, stored = VersionView(STORED, SHOWN), entry()
    event = Event(7, EventType.MODIFIED, stored, entry(rv=6))
    left = Event(7, EventType.DELETED, stored, entry(rv=6))

    shown = view.event(event)

    assert view.event(event) is shown
    assert view.event(left).type is EventType.DELETED


def test_what_is_kept_is_bounded() -> None:
    view = VersionView(STORED, SHOWN)

    for number in range(versions.MAX_EVENTS + 10):
        stored = entry(f"w{number}", number + 1)
        view.event(Event(number + 1, EventType.ADDED, stored, None))

    assert len(view._events) == versions.MAX_EVENTS
    assert len(view._entries) <= versions.MAX_ENTRIES
