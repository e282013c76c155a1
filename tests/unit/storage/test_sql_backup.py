"""Copies of the SQLite log: whole, private, and put back where no server can see half of it."""

import asyncio
import sqlite3
from pathlib import Path

import pytest

from storage.bodies import encode_body
from storage.interfaces import Mutation, ObjectKey, Op, StoreUnavailable
from storage.sql.backup import RESERVED, copy_database, put_back
from storage.sql.log import LogDatabase, Transaction
from storage.sql.migrate import upgrade
from storage.sql.sqlite import sqlite_database

BODY = {"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "x"}}


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "porch.db"
    upgrade(path)
    return path


async def write(log: LogDatabase, name: str) -> None:
    mutation = Mutation(ObjectKey("things", "ns", name), Op.CREATE, 0, "uid", encode_body(BODY))
    await log.commit([Transaction([mutation])])


async def test_a_copy_of_a_log_that_is_being_written_has_all_that_was_committed_before(
    database: Path, tmp_path: Path
) -> None:
    log = sqlite_database(database)
    await log.open(lambda: None)
    written = 0

    async def keep_writing() -> None:
        nonlocal written
        while True:
            await write(log, f"thing-{written}")
            written += 1

    writing = asyncio.create_task(keep_writing())
    try:
        for number in range(5):
            await asyncio.sleep(0.05)
            before = written
            copy = tmp_path / f"copy-{number}.db"
            await asyncio.to_thread(copy_database, database, copy)
            assert _integrity(copy) == "ok"
            assert before <= _rows(copy) <= written + 1
    finally:
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
        await log.close()
    assert written > 5, "the writer was not held up"


def _integrity(path: Path) -> object:
    connection = sqlite3.connect(path)
    try:
        return connection.execute("PRAGMA integrity_check").fetchone()[0]
    finally:
        connection.close()


def _rows(path: Path) -> int:
    connection = sqlite3.connect(path)
    try:
        return int(connection.execute("SELECT count(*) FROM k_log").fetchone()[0])
    finally:
        connection.close()


async def test_a_log_that_is_put_back_goes_on_above_every_revision_that_was_given_out(
    database: Path, tmp_path: Path
) -> None:
    log, copy = sqlite_database(database), tmp_path / "copy.db"
    await log.open(lambda: None)
    await write(log, "kept")
    copy_database(database, copy)
    await write(log, "lost")
    lost = (await log.marks()).head
    await log.close()

    put_back(copy, database)

    log = sqlite_database(database)
    await log.open(lambda: None)
    marks = await log.marks()
    assert marks.head == marks.compacted == lost - 1 + RESERVED
    assert [row.key.name for row in await log.changes(0, 10)] == ["kept"]
    await write(log, "new")
    assert (await log.marks()).head == marks.head + 1
    await log.close()


async def test_nothing_is_put_in_the_place_of_a_log_that_a_server_has_open(database: Path, tmp_path: Path) -> None:
    log, copy = sqlite_database(database), tmp_path / "copy.db"
    copy_database(database, copy)
    await log.open(lambda: None)
    await write(log, "kept")

    with pytest.raises(StoreUnavailable, match="in use by another process"):
        put_back(copy, database)

    assert (await log.marks()).head == 1
    await log.close()


def test_what_is_no_log_is_not_put_back(database: Path, tmp_path: Path) -> None:
    before = database.read_bytes()
    broken = tmp_path / "broken.db"
    broken.write_bytes(b"this is no database, however long it may be" * 100)

    for copy in (broken, tmp_path / "missing.db"):
        with pytest.raises(StoreUnavailable):
            put_back(copy, database)

    assert database.read_bytes() == before
    assert sorted(path.name for path in tmp_path.glob("*.restored*")) == []


def test_a_copy_that_cannot_be_finished_leaves_nothing_behind(database: Path, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    target.mkdir()  # a directory cannot be replaced by a file

    with pytest.raises(StoreUnavailable):
        copy_database(database, target)

    assert [path.name for path in tmp_path.iterdir() if "new" in path.name] == []
