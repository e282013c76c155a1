"""``porch rebuild``: does the database say what Git says, and have the server read all of Git again.

The check works on a copy of the database and on clones of its own, so it may be made while the server runs.
Source: issue 6 part 6.
"""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from apiserver.database_snapshot import snapshot_of
from apiserver.engine.git_check import GitCheck, Mismatch
from apiserver.engine.package_index import RESOURCE, PackageIndex, revision_fields
from apiserver.engine.remote_access import RemoteAccess
from apiserver.engine.repositories import RESOURCE as REPOSITORIES
from apiserver.engine.sync_mark import remove_mark
from apiserver.packages import remote_access_options
from apiserver.settings import Settings
from storage.bodies import decode
from storage.git.errors import GitError
from storage.interfaces import Entry, ObjectStore
from storage.sql.sqlite import locked

SETTLE_SECONDS: Final = 3.0
"""A running server and its remotes are seen at two moments; what differs is looked at again after this, and must stay so."""
THREADS: Final = 4

Say = Callable[[str], None]


@dataclass(slots=True)
class Report:
    """What the check found. ``unread`` are repositories that could not be compared."""

    mismatches: list[Mismatch] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)


async def check(settings: Settings, say: Say) -> Report:
    """Compare every registered repository with its remote, and say of each how it stands.

    Raises:
        StoreUnavailable: the database cannot be read.
    """
    first = await _compared(settings, None)
    suspects = {mismatch.repository for mismatch in first.mismatches}
    if suspects:
        await asyncio.sleep(SETTLE_SECONDS)
        again = await _compared(settings, suspects)
        known = {(mismatch.repository, mismatch.revision) for mismatch in first.mismatches}
        first.mismatches = [one for one in again.mismatches if (one.repository, one.revision) in known]
        first.lines.update(again.lines)
        first.unread = sorted({*first.unread, *again.unread})
    for _, line in sorted(first.lines.items()):
        say(line)
    for mismatch in first.mismatches:
        say(f"{mismatch.repository}: {mismatch.revision} {mismatch.problem}")
    return Report(first.mismatches, first.unread)


@dataclass(slots=True)
class _Round:
    mismatches: list[Mismatch] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    lines: dict[str, str] = field(default_factory=dict)


async def _compared(settings: Settings, only: set[str] | None) -> _Round:
    result = _Round()
    with tempfile.TemporaryDirectory(prefix="porch-check-") as name, ThreadPoolExecutor(THREADS) as pool:
        folder = Path(name)
        async with _snapshot(settings, folder) as (store, index):
            access = RemoteAccess(store, remote_access_options(settings))
            checker = GitCheck(store, index, access, folder / "clones", pool)
            for entry in store.snapshot(REPOSITORIES):
                if only is None or f"{entry.namespace}/{entry.name}" in only:
                    await _compare(checker, entry, result)
                    await asyncio.to_thread(shutil.rmtree, folder / "clones", ignore_errors=True)
    return result


async def _compare(checker: GitCheck, entry: Entry, result: _Round) -> None:
    key, body = f"{entry.namespace}/{entry.name}", decode(entry)
    if body["metadata"].get("deletionTimestamp") or body["spec"].get("type") != "git":
        return
    try:
        checked = await checker.check(body)
    except GitError as error:
        result.unread.append(key)
        result.lines[key] = f"{key}: cannot be compared: {error}"
        return
    waiting = f", {checked.unpushed} of them not pushed yet" if checked.unpushed else ""
    outcome = f"{len(checked.mismatches)} differ" if checked.mismatches else "all as in Git"
    result.lines[key] = f"{key}: {checked.revisions} revisions{waiting}: {outcome}"
    result.mismatches += checked.mismatches


@asynccontextmanager
async def _snapshot(settings: Settings, folder: Path) -> AsyncIterator[tuple[ObjectStore, PackageIndex]]:
    """Open what the database holds now, with what comparing needs. Raises StoreUnavailable."""
    store, index = await snapshot_of(settings, folder), PackageIndex()
    store.register(RESOURCE, revision_fields)
    store.register(REPOSITORIES, lambda _body: ({}, ()))
    store.register("secrets", lambda _body: ({}, ()), sealed=True)
    store.observe(RESOURCE, index.observe)
    await store.start()
    try:
        yield store, index
    finally:
        await store.stop()


def read_again(settings: Settings) -> int:
    """Have the next start of the server read everything of every repository; return of how many.

    Raises:
        StoreUnavailable: the server runs.
    """
    if not settings.database.startswith("postgres"):
        with locked(settings.data / "porch.db"):
            return _forget_marks(settings.data / "clones")
    return _forget_marks(settings.data / "clones")


def _forget_marks(folder: Path) -> int:
    clones = sorted(folder.glob("*.git"))
    for clone in clones:
        remove_mark(clone)
    return len(clones)
