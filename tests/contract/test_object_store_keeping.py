# ruff: noqa: F811 # fixtures are imported and then named as parameters
"""What every object store keeps over a restart, drops by compaction, and holds in its outbox."""

from collections.abc import AsyncIterator

import pytest
from object_store_cases import (  # fixtures are found by name
    RESOURCE,
    SECRETS,
    create,
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

from storage.interfaces import Compacted, ListQuery, StaleWrite
from storage.outbox import GitObject, OutboxChange
from storage.sealing import Sealer
from storage.sql.migrate import Target
from storage.watchcache.store import WatchedStore


@pytest.fixture
async def store(target: Target) -> AsyncIterator[WatchedStore]:
    async with open_store(target) as opened:
        yield opened


class TestKeeping:
    async def test_everything_is_there_after_a_restart(self, target: Target) -> None:
        async with open_store(target) as store:
            (a,) = await store.write([create("a", labels={"x": "y"}, colour="red")])
            (b,) = await store.write([create("b")])
            await store.write([delete(b)])
        async with open_store(target) as store:
            found = store.get(key("a"))

            assert found is not None
            assert (found.body, found.labels, found.fields, found.uid) == (a.body, {"x": "y"}, ("red",), a.uid)
            assert store.get(key("b")) is None
            assert store.rv == 3

    async def test_a_resource_registered_late_is_served_at_once(self, target: Target) -> None:
        late = "late.example.com"
        async with open_store(target) as store:
            store.register(late, index)
            a, b = await store.write([create("a", resource=late), create("b", resource=late)])
            await store.write([delete(b)])
        async with open_store(target) as store:
            with pytest.raises(ValueError, match="not registered"):
                store.get(a.key)
            store.register(late, index)

            assert [entry.body for entry in store.snapshot(late)] == [a.body]
            _, watch = store.watch(late, namespace=None, after=1)
            assert told(await take(watch, 2)) == [("ADDED", "b", 2), ("DELETED", "b", 3)]

    async def test_sealed_bodies_are_plain_in_memory_and_only_there(self, target: Target) -> None:
        sealer = Sealer(b"k" * 32)
        async with open_store(target, sealer=sealer) as store:
            (entry,) = await store.write([create("s", resource=SECRETS, data="swordfish")])
            rows = await store._database.changes(0, 10)
            assert b"swordfish" in entry.body
            assert b"swordfish" not in rows[0].body
        async with open_store(target, sealer=Sealer(b"n" * 32, [b"k" * 32])) as store:
            found = store.get(entry.key)

            assert found is not None
            assert found.body == entry.body

    async def test_a_sealed_resource_needs_a_key(self, store: WatchedStore) -> None:
        with pytest.raises(ValueError, match="no key"):
            store.register(SECRETS, index, sealed=True)


class TestCompacting:
    async def test_what_is_superseded_goes_and_what_is_in_force_stays(self, target: Target) -> None:
        async with open_store(target) as store:
            (a,) = await store.write([create("a")])
            (b,) = await store.write([create("b")])
            (a,) = await store.write([update(a, colour="x")])
            await store.write([delete(b)])
            (a4,) = await store.write([update(a, colour="y")])
            await store.compact(4)

            assert [row.rv for row in await store._database.changes(0, 100)] == [a.rv, a4.rv]
            with pytest.raises(Compacted):
                await store.list(RESOURCE, ListQuery(at=3))
            page = await store.list(RESOURCE, ListQuery(at=4))
            assert [entry.body for entry in page.entries] == [a.body]
        async with open_store(target) as store:
            with pytest.raises(Compacted):
                store.watch(RESOURCE, namespace=None, after=3)
            _, watch = store.watch(RESOURCE, namespace=None, after=4)
            (event,) = await take(watch, 1)

            assert event.previous is not None
            assert event.previous.body == a.body

    async def test_revisions_go_on_rising_when_the_newest_row_was_compacted(self, target: Target) -> None:
        async with open_store(target) as store:
            (a,) = await store.write([create("a")])
            await store.write([delete(a)])
            await store.compact(2)
        async with open_store(target) as store:
            assert store.rv == 2
            (again,) = await store.write([create("a")])

            assert again.rv == 3

    async def test_many_rows_are_dropped_in_batches(self, store: WatchedStore, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("storage.sql.sqlite.COMPACT_BATCH", 3)
        monkeypatch.setattr("storage.sql.postgres.COMPACT_BATCH", 3)
        (entry,) = await store.write([create("a")])
        for number in range(20):
            (entry,) = await store.write([update(entry, colour=str(number))])
        await store.compact(20)

        assert [row.rv for row in await store._database.changes(0, 100)] == [20, 21]

    async def test_the_future_cannot_be_compacted(self, store: WatchedStore) -> None:
        with pytest.raises(ValueError, match="newest revision"):
            await store.compact(1)


class TestOutbox:
    BLOB = GitObject("blob", b"\0\xff content", "a" * 40)
    TREE = GitObject("tree", b"", "b" * 40)

    async def test_objects_and_refs_are_kept_with_their_write(self, target: Target) -> None:
        change = OutboxChange("ns/repo", "rev", [self.BLOB, self.TREE, self.BLOB], {"refs/heads/x": "c" * 40})
        async with open_store(target) as store:
            await store.write([create("a")], [change])
        async with open_store(target) as store:
            (parcel,) = await store.outbox.parcels()

            assert (parcel.repository, parcel.revision) == ("ns/repo", "rev")
            (head,) = await store.outbox.heads("ns/repo")
            assert (head.revision, head.seen, head.version) == (parcel.revision, parcel.seen, parcel.version)
            assert head.objects == []
            assert await store.outbox.heads("ns/other") == []
            assert parcel.seen == {"refs/heads/x": "c" * 40}
            assert list(parcel.objects) == [self.BLOB, self.TREE]
            assert await store.outbox.parcel("ns/repo", "rev") == parcel
            assert await store.outbox.parcel("ns/repo", "other") is None
            assert await store.outbox.find_object("ns/repo", self.BLOB.oid) == self.BLOB
            assert await store.outbox.find_object("ns/other", self.BLOB.oid) is None
            assert await store.outbox.find_object("ns/repo", "") is None

    async def test_a_lost_write_leaves_the_outbox_alone(self, store: WatchedStore) -> None:
        await store.write([create("a")])
        with pytest.raises(StaleWrite):
            await store.write([create("a")], [OutboxChange("ns/repo", "rev", [self.BLOB])])

        assert await store.outbox.parcels() == []

    async def test_a_parcel_is_forgotten_only_as_it_was_pushed(self, store: WatchedStore) -> None:
        await store.write([], [OutboxChange("ns/repo", "rev", [self.BLOB], {"refs/heads/x": "1"})])
        (pushed,) = await store.outbox.parcels("ns/repo")
        await store.write([], [OutboxChange("ns/repo", "rev", [self.TREE])])
        await store.outbox.forget([pushed])
        (current,) = await store.outbox.parcels("ns/repo")

        assert current.version > pushed.version
        assert (current.seen, len(current.objects)) == (pushed.seen, 2)
        await store.outbox.forget([current])
        assert await store.outbox.parcels() == []

    async def test_a_dropped_parcel_starts_anew_with_a_higher_version(self, store: WatchedStore) -> None:
        await store.write([], [OutboxChange("ns/repo", "rev", [self.BLOB], {"refs/heads/x": "1"})])
        (old,) = await store.outbox.parcels()
        await store.write([], [OutboxChange("ns/repo", "rev", drop=True, seen={})])
        (new,) = await store.outbox.parcels()
        await store.outbox.forget([old])

        assert (new.seen, list(new.objects)) == ({}, [])
        assert await store.outbox.parcels() == [new]
        await store.write([], [OutboxChange("ns/repo", "rev", drop=True)])
        assert await store.outbox.parcels() == []

    async def test_parcels_of_one_repository_go_without_those_of_others(self, store: WatchedStore) -> None:
        await store.write([], [OutboxChange(f"ns/{name}", "rev", [self.BLOB]) for name in ("a", "b")])
        await store.write([], [OutboxChange("ns/a", name, drop=True) for name in ("", "rev")])

        assert [parcel.repository for parcel in await store.outbox.parcels()] == ["ns/b"]

    async def test_revisions_do_not_move_with_the_outbox_alone(self, store: WatchedStore) -> None:
        assert await store.write([], [OutboxChange("ns/repo", "rev", [self.BLOB])]) == []
        assert store.rv == 0
