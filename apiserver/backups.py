"""``porch backup`` and ``porch restore``: everything of a data directory that cannot be made or fetched again.

Clones are not copied, they are fetched again. A PostgreSQL database is copied and put back by its own means (``pg_dump``, continuous
archiving); these commands then do what is to be done beside that. Source: issue 6 part 6; issue 9 part 6; ADR 0027.
"""

import asyncio
import os
import shutil
from pathlib import Path
from typing import Final

from apiserver.settings import Settings
from storage.interfaces import StoreUnavailable
from storage.sql.backup import RESERVED, copy_database, put_back
from storage.sql.postgres_put_back import begin_anew

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
    """A folder is no backup, or none was named."""


EXPECTED: Final = (StoreUnavailable, BackupProblem, OSError)
"""Why a backup or a restore may fail, each with a message that says what to do."""


def back_up(settings: Settings, folder: Path) -> list[str]:
    """Copy what matters to ``folder``, readable by its owner only; return the names of the copies.

    The database goes first, unless it is PostgreSQL: whatever it refers to is older. Repeating it replaces the copies.

    Raises:
        StoreUnavailable: the database cannot be read.
        OSError: the folder cannot be written.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if on_postgres(settings):
        return _copy(settings.data, folder)
    copy_database(settings.data / DATABASE, folder / DATABASE)
    return [DATABASE, *_copy(settings.data, folder)]


def restore(settings: Settings, folder: Path | None) -> list[str]:
    """Put the copies in ``folder`` in place; return their names. The next start reads all of Git again.

    A PostgreSQL database was put back before this; ``folder`` None leaves the keys as they are.

    Raises:
        BackupProblem: the folder holds no backup, or none was named.
        StoreUnavailable: a server runs, or the copy or the database cannot be used; nothing has changed.
        OSError: the data directory cannot be written.
    """
    if on_postgres(settings):
        if folder is not None and not any((folder / name).is_file() for name in FILES):
            raise BackupProblem(f"{folder} holds no keys; name a folder that porch backup wrote")
        asyncio.run(begin_anew(settings.database, RESERVED))
        if folder is None:  # in a cluster there is no data directory beside it
            return []
        settings.data.mkdir(mode=0o700, parents=True, exist_ok=True)
        return _copy(folder, settings.data)
    if folder is None or not (folder / DATABASE).is_file():
        raise BackupProblem(f"{folder or 'no folder'} holds no {DATABASE}; name a folder that porch backup wrote")
    settings.data.mkdir(mode=0o700, parents=True, exist_ok=True)
    put_back(folder / DATABASE, settings.data / DATABASE)
    return [DATABASE, *_copy(folder, settings.data)]


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


def on_postgres(settings: Settings) -> bool:
    """Tell whether the database is PostgreSQL's to copy and to put back."""
    return settings.database.startswith("postgres")
