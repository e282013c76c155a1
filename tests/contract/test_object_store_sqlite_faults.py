# ruff: noqa: F811 # fixtures are imported and then named as parameters
"""SQLite's own troubles: somebody else locks the file, the disk is full, a second server starts on it."""

import sqlite3
from pathlib import Path

import pytest
from object_store_cases import (
    create,
    database,
    key,
    new_sqlite,
    open_store,
    sqlite_template,  # noqa: F401 # fixtures are found by name
    update,
)

from storage.interfaces import StoreUnavailable
from storage.sql import sqlite


@pytest.fixture
def path(sqlite_template: Path, tmp_path: Path) -> Path:
    return new_sqlite(sqlite_template, tmp_path)


async def test_a_locked_database_is_said_to_be_unavailable_and_works_again_later(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.1)
    async with open_store(path) as store:
        (entry,) = await store.write([create("a")])
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable):
            await store.write([update(entry, colour="x")])
        assert store.get(key("a")) is entry
        other.execute("ROLLBACK")
        other.close()

        assert len(await store.write([update(entry, colour="x")])) == 1


async def test_a_full_disk_refuses_the_write_and_changes_nothing(path: Path) -> None:
    async with open_store(path) as store:
        (entry,) = await store.write([create("a")])
        # SQLite reports its page limit as it reports a full disk: SQLITE_FULL.
        pages = await store._database._writer.run(lambda c: c.execute("PRAGMA page_count").fetchone()[0])  # type: ignore[attr-defined]
        await store._database._writer.run(lambda c: c.execute(f"PRAGMA max_page_count={pages}").fetchall())  # type: ignore[attr-defined]
        with pytest.raises(StoreUnavailable):
            await store.write([update(entry, blob="x" * 100_000)])

        assert (store.get(key("a")), store.rv) == (entry, 1)
    async with open_store(path) as store:
        found = store.get(key("a"))
        assert found is not None
        assert found.body == entry.body


async def test_a_second_server_on_the_same_file_is_refused(path: Path) -> None:
    async with open_store(path):
        with pytest.raises(StoreUnavailable, match="another process"):
            await database(path).open(lambda: None)
    async with open_store(path) as store:
        assert len(await store.write([create("a")])) == 1


async def test_a_file_that_was_never_migrated_is_refused(tmp_path: Path) -> None:
    log = database(tmp_path / "new.db")
    with pytest.raises(StoreUnavailable):
        await log.open(lambda: None)
    await log.close()
