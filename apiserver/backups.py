"""``porch backup`` and ``porch restore``: everything of a data directory that cannot be made or fetched again.

Clones are not copied, they are fetched again. Source: issue 6 part 6.
"""

import os
import shutil
from pathlib import Path
from typing import Final

from apiserver.rebuild import read_again
from apiserver.settings import Settings
from storage.interfaces import StoreUnavailable
from storage.sql.backup import copy_database, put_back

DATABASE: Final = "porch.db"
FILES: Final = (
    "secret.key",
    "service-account.key",
    "ca.crt",
    "ca.key",
    "admin.crt",
    "admin.key",
    "kubeconfig",
    "bootstrap-token.json",
)
"""Beside the database: what opens its Secrets, and what clients trust and are trusted by."""


class BackupProblem(Exception):
    """A folder is no backup, or what it is about is kept elsewhere."""


EXPECTED: Final = (StoreUnavailable, BackupProblem, OSError)
"""Why a backup or a restore may fail, each with a message that says what to do."""


def back_up(settings: Settings, folder: Path) -> list[str]:
    """Copy what matters to ``folder``, readable by its owner only; return the names of the copies.

    The database goes first: whatever it refers to is older. Repeating it replaces the copies.

    Raises:
        BackupProblem: the database is PostgreSQL, which has a backup of its own.
        StoreUnavailable: the database cannot be read.
        OSError: the folder cannot be written.
    """
    _require_sqlite(settings)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    copy_database(settings.data / DATABASE, folder / DATABASE)
    return [DATABASE, *_copy(settings.data, folder)]


def restore(settings: Settings, folder: Path) -> list[str]:
    """Put the copies in ``folder`` in place; return their names. The next start reads all of Git again.

    Raises:
        BackupProblem: the folder holds no backup, or the database is PostgreSQL.
        StoreUnavailable: the server runs, or the copy cannot be read; nothing has changed.
        OSError: the data directory cannot be written.
    """
    _require_sqlite(settings)
    if not (folder / DATABASE).is_file():
        raise BackupProblem(f"{folder} holds no {DATABASE}; name a folder that porch backup wrote")
    settings.data.mkdir(mode=0o700, parents=True, exist_ok=True)
    put_back(folder / DATABASE, settings.data / DATABASE)
    restored = [DATABASE, *_copy(folder, settings.data)]
    read_again(settings)
    return restored


def _copy(source: Path, target: Path) -> list[str]:
    copied = []
    for name in FILES:
        if not (source / name).is_file():
            continue
        draft = target / f"{name}.new"
        draft.unlink(missing_ok=True)
        draft.touch(mode=0o600)
        with (source / name).open("rb") as read, draft.open("wb") as written:
            shutil.copyfileobj(read, written)
            written.flush()
            os.fsync(written.fileno())
        draft.replace(target / name)
        copied.append(name)
    return copied


def _require_sqlite(settings: Settings) -> None:
    if settings.database.startswith("postgres"):
        raise BackupProblem(
            "the database is PostgreSQL: back it up with pg_dump, see docs/how-to/back-up-and-restore.md"
        )
