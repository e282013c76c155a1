"""``porch migrate``: which schema a database is at, and taking it to another one before a server starts.

A server migrates its own database when it starts. This is for those who do it apart from that: a job before several replicas
are replaced, and the way back to an older version of Porch. Source: issue 9 parts 3 and 6.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from apiserver.database_snapshot import database_place
from apiserver.settings import Settings
from storage.interfaces import StoreUnavailable
from storage.sql import alembic_run
from storage.sql.migrate import current_revision, downgrade, upgrade
from storage.sql.schema import REVISION
from storage.sql.sqlite import locked


class CannotMigrate(Exception):
    """The schema that was asked for cannot be reached from the one that is there; nothing was changed."""


EXPECTED: Final = (CannotMigrate, StoreUnavailable, OSError)
"""Why a migration may fail, each with a message that says what to do."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a database is; ``steps`` are the migrations that this version has, oldest first, and what each does."""

    current: str | None
    steps: tuple[tuple[str, str], ...]

    @property
    def pending(self) -> tuple[tuple[str, str], ...]:
        """The migrations that are still to be made; none where the schema is newer than this version."""
        names = [name for name, _ in self.steps]
        if self.current is None:
            return self.steps
        return self.steps[names.index(self.current) + 1 :] if self.current in names else ()

    @property
    def foreign(self) -> bool:
        """Whether a newer version of Porch made the schema."""
        return self.current is not None and self.current not in dict(self.steps)


def standing(settings: Settings) -> Standing:
    """Look at a database and change nothing. Raises StoreUnavailable."""
    return Standing(current_revision(database_place(settings)), tuple(alembic_run.steps()))


def take_up(settings: Settings) -> Standing:
    """Migrate to this version's schema; a database that is there, or is newer and can be worked with, is left as it is.

    One transaction, so it is done or it is not; several at once wait for each other. Repeating it changes nothing.

    Raises:
        StoreUnavailable: the database cannot be used, is too new, or a server has its SQLite file open.
        OSError: the data directory cannot be made.
    """
    with _alone(settings):
        upgrade(database_place(settings))
    return standing(settings)


def take_down(settings: Settings, revision: str) -> Standing:
    """Undo migrations down to ``revision``, for a version of Porch that knows no more than that.

    What later schemas keep beside that is lost; the migrations say what that is. Repeating it changes nothing.

    Raises:
        CannotMigrate: this version does not know the way.
        StoreUnavailable: the database cannot be used, or a server has its SQLite file open.
    """
    now = standing(settings)
    names = [name for name, _ in now.steps]
    if now.current is None:
        raise CannotMigrate("there is no database, or an empty one; nothing is to be undone")
    if now.foreign:
        raise CannotMigrate(
            f"the database is at schema {now.current}, which this version does not know; undo it with the version that made it"
        )
    if revision not in names or names.index(revision) > names.index(now.current):
        lower = ", ".join(names[: names.index(now.current) + 1])
        raise CannotMigrate(f"{revision[:40]!r} is no schema below {now.current}; there are {lower}")
    with _alone(settings):
        downgrade(database_place(settings), revision)
    return standing(settings)


@contextmanager
def _alone(settings: Settings) -> Iterator[None]:
    """Keep servers from opening a SQLite file meanwhile; PostgreSQL has a lock of its own for migrations."""
    target = database_place(settings)
    if isinstance(target, Path):
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with locked(target):
            yield
    else:
        yield


def described(now: Standing) -> str:
    """Return in one sentence where a database is."""
    if now.current is None:
        return f"The database is empty; this version makes schema {REVISION}."
    if now.foreign:
        return f"The database is at schema {now.current}, made by a newer version; this version knows {REVISION}."
    left = len(now.pending)
    return f"The database is at schema {now.current}, " + (f"{left} behind {REVISION}." if left else "up to date.")
