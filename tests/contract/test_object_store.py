# ruff: noqa: F811 # fixtures are imported and then named as parameters
"""What every object store does, on SQLite and on a real PostgreSQL.

Left out: several stores on one database (``test_object_store_replicas``), death of the process
(``test_object_store_kill``), properties (``test_object_store_properties``).
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from itertools import chain

import pytest
from object_store_cases import (  # fixtures are found by name
    RESOURCE,
    NewDatabase,
    create,
    database,
    delete,
    index,
    key,
    new_database,  # noqa: F401
    open_store,
    sqlite_template,  # noqa: F401
    take,
    target,  # noqa: F401
    told,
    update,
)

from storage.bodies import decode
from storage.interfaces import (
    Entry,
    Event,
    EventType,
    FutureRevision,
    ListQuery,
    StaleWrite,
    StoreUnavailable,
)
from storage.sql.migrate import Target
from storage.watchcache import store as store_module
from storage.watchcache.store import WatchedStore


@pytest.fixture
async def store(target: Target) -> AsyncIterator[WatchedStore]:
    async with open_store(target) as opened:
        yield opened


class TestWriting:
    async def test_a_created_object_is_served_with_its_revision(self, store: WatchedStore) -> None:
        (entry,) = await store.write([create("a", colour="red")])

        assert store.get(key("a")) is entry
        assert decode(entry)["metadata"]["resourceVersion"] == str(entry.rv) == str(store.rv)
        assert (entry.create_rv, entry.fields, entry.labels) == (entry.rv, ("red",), {})

    async def test_revisions_rise_by_one_over_all_objects(self, store: WatchedStore) -> None:
        entries = await store.write([create("a"), create("b"), create("a", "other")])

        assert [entry.rv for entry in entries] == [1, 2, 3]

    async def test_an_update_keeps_the_revision_of_the_creation(self, store: WatchedStore) -> None:
        (first,) = await store.write([create("a")])
        (second,) = await store.write([update(first, colour="blue")])

        assert (second.rv, second.create_rv) == (2, 1)
        assert store.get(key("a")) is second

    async def test_a_stale_write_is_refused_and_changes_nothing(self, store: WatchedStore) -> None:
        (first,) = await store.write([create("a")])
        (second,) = await store.write([update(first, colour="blue")])

        with pytest.raises(StaleWrite) as caught:
            await store.write([create("b"), update(first, colour="green")])

        assert (caught.value.key, caught.value.current_rv) == (key("a"), second.rv)
        assert store.get(key("a")) is second
        assert store.get(key("b")) is None
        assert store.rv == 2

    @pytest.mark.parametrize("op", [update, delete])
    async def test_what_does_not_exist_is_neither_updated_nor_deleted(self, store: WatchedStore, op: type) -> None:
        (entry,) = await store.write([create("a")])
        await store.write([delete(entry)])

        with pytest.raises(StaleWrite) as caught:
            await store.write([op(entry)])

        assert caught.value.current_rv == 0

    async def test_what_exists_is_not_created(self, store: WatchedStore) -> None:
        (entry,) = await store.write([create("a")])

        with pytest.raises(StaleWrite) as caught:
            await store.write([create("a")])

        assert caught.value.current_rv == entry.rv

    async def test_an_object_is_created_again_after_its_deletion(self, store: WatchedStore) -> None:
        (first,) = await store.write([create("a")])
        (gone,) = await store.write([delete(first)])
        (again,) = await store.write([create("a")])

        assert (gone.rv, again.rv, again.create_rv) == (2, 3, 3)
        assert store.get(key("a")) is again

    async def test_one_write_may_change_an_object_twice(self, store: WatchedStore) -> None:
        (first,) = await store.write([create("a")])
        gone, again = await store.write([delete(first), create("a", colour="new")])

        assert (gone.rv, again.rv) == (2, 3)
        assert store.get(key("a")) is again

    async def test_of_many_writers_of_one_revision_exactly_one_wins(self, store: WatchedStore) -> None:
        (entry,) = await store.write([create("a")])
        writes = [store.write([update(entry, colour=str(number))]) for number in range(100)]
        results = await asyncio.gather(*writes, return_exceptions=True)

        winners = [result for result in results if not isinstance(result, BaseException)]
        losers = [result for result in results if isinstance(result, StaleWrite)]
        assert (len(winners), len(losers)) == (1, 99)
        assert store.get(key("a")) is winners[0][0]

    async def test_a_cancelled_caller_does_not_undo_its_write(self, store: WatchedStore) -> None:
        task = asyncio.create_task(store.write([create("a")]))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await store.write([create("b")])

        assert store.get(key("a")) is not None

    @pytest.mark.parametrize("name", ["", "a\0b"])
    async def test_a_key_that_no_database_holds_is_refused(self, store: WatchedStore, name: str) -> None:
        with pytest.raises(ValueError, match="malformed"):
            await store.write([create(name)])

    async def test_a_poisoned_write_does_not_take_others_with_it(self, store: WatchedStore) -> None:
        # A lone surrogate has no UTF-8, so no driver can send it.
        bad = replace(create("a"), actor="\ud800")
        results = await asyncio.gather(store.write([bad]), store.write([create("b")]), return_exceptions=True)

        assert isinstance(results[0], ValueError)
        assert store.get(key("b")) is not None

    async def test_a_stopped_store_refuses_writes(self, target: Target) -> None:
        async with open_store(target) as store:
            pass
        with pytest.raises(StoreUnavailable):
            await store.write([create("a")])


class TestListing:
    @pytest.fixture
    async def filled(self, store: WatchedStore) -> WatchedStore:
        names = [("b", "n2"), ("a", "n2"), ("c", "n1"), ("Z", "n1"), ("é", "n1")]
        await store.write([create(name, namespace, colour=name) for name, namespace in names])
        return store

    async def test_entries_come_in_bytewise_key_order(self, filled: WatchedStore) -> None:
        page = await filled.list(RESOURCE, ListQuery())

        assert [(entry.namespace, entry.name) for entry in page.entries] == [
            ("n1", "Z"),
            ("n1", "c"),
            ("n1", "é"),
            ("n2", "a"),
            ("n2", "b"),
        ]
        assert (page.rv, page.more) == (5, False)

    async def test_one_namespace_is_listed_alone(self, filled: WatchedStore) -> None:
        page = await filled.list(RESOURCE, ListQuery(namespace="n2"))
        nothing = await filled.list(RESOURCE, ListQuery(namespace="n3"))

        assert [entry.name for entry in page.entries] == ["a", "b"]
        assert nothing.entries == []

    @pytest.mark.parametrize("namespace", [None, "n1"])
    @pytest.mark.parametrize("source", ["memory", "ring", "log"])
    async def test_pages_join_up_to_the_whole_list(
        self, filled: WatchedStore, namespace: str | None, source: str
    ) -> None:
        whole = (await filled.list(RESOURCE, ListQuery(namespace))).entries
        at = None if source == "memory" else 5
        if source != "memory":
            await filled.write([create("later", "n1"), delete(whole[0])])
        if source == "log":
            filled._resources.of(RESOURCE).cache.ring.floor = filled.rv
        pages: list[list[str]] = []
        start: tuple[str, str] | None = None
        for _ in range(10):
            page = await filled.list(RESOURCE, ListQuery(namespace, limit=2, start_after=start, at=at))
            pages.append([entry.name for entry in page.entries])
            if not page.more:
                break
            start = page.entries[-1].namespace, page.entries[-1].name
            if source != "log":
                assert page.remaining == len(whole) - 2 * len(pages)

        assert list(chain.from_iterable(pages)) == [entry.name for entry in whole]
        assert all(len(names) == 2 for names in pages[:-1])

    @pytest.mark.parametrize("source", ["memory", "log"])
    async def test_a_selector_chooses_and_a_limit_counts_only_what_it_chose(
        self, filled: WatchedStore, source: str
    ) -> None:
        at = None
        if source == "log":
            await filled.write([create("later", "n1")])
            at, filled._resources.of(RESOURCE).cache.ring.floor = 5, filled.rv

        def matches(entry: Entry) -> bool:
            return entry.fields[0] in {"c", "b"}

        first = await filled.list(RESOURCE, ListQuery(matches=matches, limit=1, at=at))
        whole = await filled.list(RESOURCE, ListQuery(matches=matches, at=at))

        assert ([entry.name for entry in first.entries], first.more) == (["c"], True)
        assert [entry.name for entry in whole.entries] == ["c", "b"]

    async def test_a_list_at_a_revision_shows_the_objects_of_then(self, store: WatchedStore) -> None:
        (a,) = await store.write([create("a", colour="1")])
        (b,) = await store.write([create("b")])
        (a2,) = await store.write([update(a, colour="2")])
        await store.write([delete(b)])
        await store.write([create("b", colour="again")])
        expected = {1: [a], 2: [a, b], 3: [a2, b], 4: [a2]}

        for floor in (0, store.rv):  # undone in memory, then read from the log
            store._resources.of(RESOURCE).cache.ring.floor = floor
            for at, wanted in expected.items():
                page = await store.list(RESOURCE, ListQuery(at=at))
                assert [entry.body for entry in page.entries] == [entry.body for entry in wanted]
                assert page.rv == at

    async def test_a_future_revision_is_waited_for_and_then_refused(
        self, store: WatchedStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        waiting = asyncio.create_task(store.list(RESOURCE, ListQuery(not_older_than=1)))
        await asyncio.sleep(0.01)
        await store.write([create("a")])
        assert [entry.name for entry in (await waiting).entries] == ["a"]

        monkeypatch.setattr(store_module, "LONGEST_WAIT", 0.05)
        with pytest.raises(FutureRevision):
            await store.list(RESOURCE, ListQuery(at=99))
        with pytest.raises(FutureRevision):
            await store.get_fresh(key("a"), not_older_than=99)


class TestWatching:
    async def test_a_watch_from_now_begins_with_the_entries_of_now(self, store: WatchedStore) -> None:
        (a,) = await store.write([create("a")])
        entries, watch = store.watch(RESOURCE, namespace=None, after=None)
        (a2,) = await store.write([update(a, colour="x")])
        await store.write([delete(a2, colour="last")])
        events = await take(watch, 2)

        assert entries == [a]
        assert told(events) == [("MODIFIED", "a", 2), ("DELETED", "a", 3)]
        assert events[0].previous is a
        assert decode(events[1].entry)["colour"] == "last"
        assert decode(events[1].entry)["metadata"]["resourceVersion"] == "3"

    @pytest.mark.parametrize("source", ["ring", "log", "restart"])
    async def test_resuming_from_every_revision_tells_the_rest(
        self,
        target: Target,
        source: str,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr("storage.watchcache.history.PAGE", 2)
        async with open_store(target) as store:
            _, watch = store.watch(RESOURCE, namespace=None, after=0)
            (a,) = await store.write([create("a")])
            (b,) = await store.write([create("b", "other")])
            (a,) = await store.write([update(a, colour="x")])
            await store.write([delete(b)])
            await store.write([create("b", "other"), update(a)])
            everything = await take(watch, 6)
            if source != "restart":
                if source == "log":
                    store._resources.of(RESOURCE).cache.ring.floor = store.rv
                    store._resources.of(RESOURCE).cache.ring.first = 6
                    store._resources.of(RESOURCE).cache.ring._events.clear()
                await self._resume_everywhere(store, everything)
        if source == "restart":
            async with open_store(target) as store:
                await self._resume_everywhere(store, everything)

    async def _resume_everywhere(self, store: WatchedStore, everything: Sequence[Event]) -> None:
        assert [event.rv for event in everything] == [1, 2, 3, 4, 5, 6]
        for after in range(6):
            _, watch = store.watch(RESOURCE, namespace=None, after=after)
            events = await take(watch, 6 - after)
            assert told(events) == told(everything[after:])
            for event, original in zip(events, everything[after:], strict=True):
                assert event.entry.body == original.entry.body
                assert (event.previous and event.previous.body) == (original.previous and original.previous.body)
            watch.close()
        _, watch = store.watch(RESOURCE, namespace="other", after=1)
        assert told(await take(watch, 3)) == [("ADDED", "b", 2), ("DELETED", "b", 4), ("ADDED", "b", 5)]

    async def test_a_watch_of_one_namespace_hears_nothing_of_others_and_keeps_up(self, store: WatchedStore) -> None:
        _, watch = store.watch(RESOURCE, namespace="quiet", after=None)
        waiting = asyncio.create_task(take(watch, 1))
        await asyncio.sleep(0.01)
        for number in range(30):
            await store.write([create(f"n{number}", "busy")])

        assert watch.rv == store.rv == 30
        await store.write([create("a", "quiet")])
        assert told(await waiting) == [("ADDED", "a", 31)]

    async def test_a_wait_that_was_given_up_loses_no_event(self, store: WatchedStore) -> None:
        _, watch = store.watch(RESOURCE, namespace="quiet", after=None)
        iterator = aiter(watch)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(iterator), 0.02)
        await store.write([create("a", "busy"), create("a", "quiet")])

        assert told(await anext(iterator)) == [("ADDED", "a", 2)]

    async def test_a_slow_watcher_is_ended(self, store: WatchedStore, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("storage.watchcache.ring.KEEP_SECONDS", 0.0)
        _, watch = store.watch(RESOURCE, namespace=None, after=None)
        for number in range(200):
            await store.write([create(f"n{number}")])

        with pytest.raises(StopAsyncIteration):
            await anext(aiter(watch))

    async def test_closing_ends_a_waiting_reader_and_may_be_repeated(self, store: WatchedStore) -> None:
        _, watch = store.watch(RESOURCE, namespace=None, after=None)
        waiting = asyncio.create_task(take(watch, 1))
        await asyncio.sleep(0.01)
        watch.close()
        watch.close()

        assert await waiting == []
        assert not store._resources.of(RESOURCE).lot.watches

    async def test_stopping_ends_every_watch(self, target: Target) -> None:
        async with open_store(target) as store:
            _, watch = store.watch(RESOURCE, namespace=None, after=None)
            waiting = asyncio.create_task(take(watch, 1))
            await asyncio.sleep(0.01)

        assert await waiting == []

    async def test_a_watch_cannot_begin_in_the_future(self, store: WatchedStore) -> None:
        with pytest.raises(FutureRevision):
            store.watch(RESOURCE, namespace=None, after=1)

    async def test_observers_see_what_was_loaded_and_what_follows(self, target: Target) -> None:
        async with open_store(target) as store:
            await store.write([create("a")])
        early: list[Event] = []
        late: list[Event] = []
        store = WatchedStore(database(target))
        store.register(RESOURCE, index)
        store.observe(RESOURCE, early.append)
        await store.start()
        store.observe(RESOURCE, late.append)
        await store.write([create("b")])
        await store.stop()

        assert told(early) == told(late) == [("ADDED", "a", 1), ("ADDED", "b", 2)]


def test_event_types_are_those_of_the_wire() -> None:
    assert [str(one) for one in EventType] == ["ADDED", "MODIFIED", "DELETED"]


async def test_each_new_database_is_empty(new_database: NewDatabase) -> None:
    for _ in range(2):
        async with open_store(new_database()) as store:
            assert store.rv == 0
            await store.write([create("a")])
