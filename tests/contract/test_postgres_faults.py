"""What a database, its network or another server may do to a replica without telling it: nothing is lost, told twice, or waited for long."""

import asyncio
import traceback
from collections.abc import Sequence

import pytest
from embedded_postgres import ask, new_postgres, stopped
from object_store_cases import RESOURCE, SECRETS, create, key, open_store, take

from storage.interfaces import OutcomeUnknown, StoreUnavailable
from storage.outbox import GitObject, OutboxChange
from storage.sealing import SealBroken, Sealer
from storage.sql import postgres
from storage.sql.migrate import current_revision
from storage.sql.postgres import PostgresDatabase
from storage.watchcache.store import WatchedStore

SLOW = 90.0
END_SOME = """
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
WHERE datname = current_database() AND application_name = 'porch' AND random() < 0.5
"""
pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def url(postgres_server: str) -> str:
    return new_postgres(postgres_server)


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
async def test_replicas_agree_whatever_isolation_a_database_has_by_default(url: str, level: str) -> None:
    name = url.partition("?")[0].rpartition("/")[2]
    await ask(url, f"ALTER DATABASE {name} SET default_transaction_isolation = '{level}'")
    async with open_store(url) as one, open_store(url) as two:
        both = (one, two)
        written = await asyncio.gather(
            *[store.write([create(f"n{n}-{store is one}")]) for n in range(20) for store in both]
        )

        assert sorted(entry.rv for (entry,) in written) == list(range(1, 41))


@pytest.mark.parametrize(("default", "ours"), [("off", "on"), ("local", "local"), ("remote_apply", "remote_apply")])
async def test_an_acknowledged_commit_is_on_disk_whatever_a_database_has_by_default(
    url: str, default: str, ours: str
) -> None:
    name = url.partition("?")[0].rpartition("/")[2]
    await ask(url, f"ALTER DATABASE {name} SET synchronous_commit = '{default}'")
    async with open_store(url) as store:
        await store.write([create("a")])
        database = store.outbox
        assert isinstance(database, PostgresDatabase)
        async with database._transaction() as writer:
            assert await writer.fetchval("SHOW synchronous_commit") == ours


async def test_a_listener_whose_server_went_silent_is_replaced(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "PROVE_SECONDS", 0.2)
    monkeypatch.setattr(postgres, "CONNECT_SECONDS", 1.0)
    database = PostgresDatabase(url)
    heard = asyncio.Event()
    await database.open(heard.set)
    try:
        silent = database._listener
        heard.clear()
        with stopped(silent.get_server_pid()):
            async with asyncio.timeout(SLOW):
                await heard.wait()  # told to look for what was committed while nobody listened
            assert database._listener is not silent
    finally:
        await database.close()


async def test_a_write_does_not_wait_for_ever_behind_others_of_its_process(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "WRITE_TURN_SECONDS", 0.2)
    async with open_store(url) as store:
        database = store.outbox
        assert isinstance(database, PostgresDatabase)
        async with asyncio.timeout(SLOW), database._transaction():
            with pytest.raises(StoreUnavailable):
                await store.write([create("a")])
        (a,) = await store.write([create("a")])

        assert a.rv == 1


async def test_what_is_written_is_not_written_again_because_it_cannot_be_shown(url: str) -> None:
    async with (
        open_store(url, sealer=Sealer(b"a" * 32)) as one,
        open_store(url, sealer=Sealer(b"b" * 32)) as other_key,
    ):
        await one.write([create("secret", resource=SECRETS)])
        # The first goes alone, the others together, behind a row that this replica cannot read.
        writes = [other_key.write([create(name)]) for name in ("a", "b", "c")]
        outcomes = await asyncio.gather(*writes, return_exceptions=True)

        assert {type(outcome) for outcome in outcomes} == {OutcomeUnknown}
        assert await ask(url, "SELECT count(*) FROM k_log") == 4


async def written(store: WatchedStore, names: Sequence[str]) -> dict[str, list[str]]:
    """Create each object and its twin, with a parcel; return which were acknowledged, refused, or left unknown."""
    outcomes: dict[str, list[str]] = {"acknowledged": [], "refused": [], "unknown": []}
    for name in names:
        parcel = OutboxChange("ns/repo", name, [GitObject("blob", name.encode(), name)])
        try:
            await store.write([create(name), create(f"{name}-twin")], [parcel])
        except OutcomeUnknown:
            outcomes["unknown"].append(name)
        except StoreUnavailable:
            outcomes["refused"].append(name)
        else:
            outcomes["acknowledged"].append(name)
    return outcomes


async def test_answers_are_true_while_sessions_end_at_any_moment(url: str) -> None:
    async with open_store(url) as one, open_store(url) as two:
        events: dict[WatchedStore, list[int]] = {one: [], two: []}
        for store, seen in events.items():
            store.observe(RESOURCE, lambda event, seen=seen: seen.append(event.rv))  # type: ignore[misc] # bound now
        writing = [
            asyncio.create_task(
                written(store, [f"w{worker}-{number}" for number in range(worker * 30, worker * 30 + 30)])
            )
            for worker, store in enumerate((one, two, one, two))
        ]
        while not all(task.done() for task in writing):
            await ask(url, END_SOME)
            await asyncio.sleep(0.05)
        outcomes = await asyncio.gather(*writing)
        acknowledged, refused = (
            {name for one in outcomes for name in one[what]} for what in ("acknowledged", "refused")
        )
        there = set(await ask(url, "SELECT array_agg(name) FROM k_log") or [])
        parcels = set(await ask(url, "SELECT array_agg(DISTINCT revision) FROM k_outbox") or [])

        assert acknowledged <= parcels
        assert not refused & parcels
        assert there == parcels | {f"{name}-twin" for name in parcels}
        async with asyncio.timeout(SLOW):
            for store, seen in events.items():
                while await unavailable_now(store):
                    await asyncio.sleep(0.1)
                assert {entry.name for entry in store.snapshot(RESOURCE)} == there
                assert seen == list(range(1, len(there) + 1))


async def unavailable_now(store: WatchedStore) -> bool:
    try:
        await store.get_fresh(key("any"))
    except StoreUnavailable:
        return True
    return False


async def test_rows_before_one_that_cannot_be_read_are_shown_once(url: str) -> None:
    async with (
        open_store(url, sealer=Sealer(b"a" * 32)) as one,
        open_store(url, sealer=Sealer(b"b" * 32)) as other_key,
    ):
        _, watch = other_key.watch(RESOURCE, namespace=None, after=0)
        async with other_key._follower.lock:  # while it is held, nothing is applied
            await one.write([create("a")])
            await one.write([create("secret", resource=SECRETS)])
        for _ in range(3):
            with pytest.raises(SealBroken):
                await other_key.get_fresh(key("a"))
        watch.close()

        ring = other_key._resources.of(RESOURCE).cache.ring
        assert [event.rv for event in ring.since(0, 10)] == [1]
        assert other_key.rv == 1


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:hidden/x@127.0.0.1:1/porch",
        "postgresql://me:hidden#x@127.0.0.1:1/porch",
        "postgresql://me:hidden?x@127.0.0.1:1,2/porch",
        "postgresql://me:hidden?x@one,two/porch",
        "postgresql://me:hidden@[::1/porch",
        "postgresql://me:x@127.0.0.1:hidden/porch",
        "postgresql://me:hidden@127.0.0.1:99999/porch",
    ],
)
def test_a_url_that_cannot_be_read_is_not_told(url: str) -> None:
    with pytest.raises(StoreUnavailable, match="percent-encoded") as caught:
        current_revision(url)

    assert "hidden" not in "".join(traceback.format_exception(caught.value))


async def test_a_database_that_takes_a_right_away_is_away(url: str) -> None:
    async with open_store(url) as store:
        await store.write([create("a")])
        await ask(
            url,
            "CREATE FUNCTION refuse() RETURNS trigger AS 'BEGIN RAISE insufficient_privilege; END' LANGUAGE plpgsql",
        )
        await ask(url, "CREATE TRIGGER refuse BEFORE INSERT ON k_log EXECUTE FUNCTION refuse()")
        with pytest.raises(StoreUnavailable):
            await store.write([create("b")])
        await ask(url, "DROP TRIGGER refuse ON k_log")
        (b,) = await store.write([create("b")])

        assert b.rv == 2
        _, watch = store.watch(RESOURCE, namespace=None, after=0)
        assert [event.entry.key for event in await take(watch, 2)] == [key("a"), key("b")]
