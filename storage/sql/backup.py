"""Copies of the SQLite log: taken while a server writes, and put back with revisions that no client has seen.

Blocking. Source: issue 6 part 6; SQLite's online backup.
"""

import contextlib
import os
import sqlite3
import uuid
from pathlib import Path
from typing import Final

from storage.interfaces import StoreUnavailable
from storage.sql import sqlite
from storage.sql.migrate import upgrade

RESERVED: Final = 1_000_000_000
"""Revisions left out when a copy is put back: those between it and the loss were given to clients, for other changes."""


def copy_database(source: Path, target: Path) -> None:
    """Copy the log at ``source`` as of one moment; it may be in use, and its writers do not wait.

    ``target`` is there when all of it is on the disk, and replaced if it was there before.

    Raises:
        StoreUnavailable: the source cannot be read, or the target not written; nothing is left of a half copy.
    """
    if not source.is_file():
        raise StoreUnavailable(f"there is no database {source}")
    draft = target.with_name(f"{target.name}.new")
    try:
        with sqlite.unavailable(f" {source}"):
            draft.touch(mode=0o600)
            with contextlib.closing(_read_only(source)) as read, contextlib.closing(sqlite3.connect(draft)) as written:
                read.backup(written)
                written.execute("PRAGMA journal_mode=DELETE")  # so that one file is all of it
            _keep(draft, target)
    finally:
        draft.unlink(missing_ok=True)


def put_back(copy: Path, target: Path) -> None:
    """Make a copy the log at ``target``, which no server may have open; what is there is replaced.

    Revisions go on well above those of the copy, and all watches begin anew (410): a client that knows a revision of after
    the copy can neither resume there nor mistake another state for the one it saw. The log begins another incarnation, by which a
    server knows that what it noted beside its clones does not hold. A copy of an older schema is migrated.

    Raises:
        StoreUnavailable: one of them cannot be used or is too new, or a server has the target open; the target is as it was.
    """
    draft = target.with_name(f"{target.name}.restored")
    try:
        with sqlite.locked(target):
            copy_database(copy, draft)
            upgrade(draft)
            with sqlite.unavailable(f" {copy}"), contextlib.closing(sqlite3.connect(draft)) as connection:
                head = "SELECT max(coalesce((SELECT max(rv) FROM k_log), 0), compact_rv) FROM k_meta"
                statement = f"UPDATE k_meta SET compact_rv = ({head}) + ?, incarnation = ?"  # noqa: S608 # no values
                connection.execute(statement, (RESERVED, uuid.uuid4().hex))
                connection.commit()
            for suffix in ("-wal", "-shm"):
                target.with_name(target.name + suffix).unlink(missing_ok=True)
            with sqlite.unavailable(f" {target}"):
                _keep(draft, target)
    finally:
        draft.unlink(missing_ok=True)


def _read_only(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=sqlite.BUSY_SECONDS)


def _keep(draft: Path, target: Path) -> None:
    """Give a finished file its name, on the disk."""
    _flush(draft)
    draft.replace(target)
    _flush(target.parent)


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
