"""Comparing what the log says of a repository's revisions with what its Git remote says, without changing either.

Uses a clone of its own, so a running server and its clone are not touched. Source: issue 6 part 6.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import orjson

from apiserver.engine.discovered import compare, settle_latest
from apiserver.engine.package_index import PackageIndex
from apiserver.engine.registered import RegisteredRepository, read_settings
from apiserver.engine.remote_access import RemoteAccess
from apiserver.engine.revision_body import self_commit
from apiserver.engine.sync import object_name
from storage.bodies import decode
from storage.git.discovery import Discovery, discover
from storage.git.remote import Remote
from storage.interfaces import ObjectStore

Json = dict[str, Any]

MAX_SHOWN: Final = 120
"""Characters of a value that a sentence shows."""
MAX_FIELDS: Final = 5
"""Fields of one revision that are named."""


@dataclass(frozen=True, slots=True, order=True)
class Mismatch:
    """One thing that log and Git do not agree on."""

    repository: str
    """``namespace/name``."""
    revision: str
    problem: str


@dataclass(frozen=True, slots=True)
class Checked:
    """How one repository compares; ``unpushed`` are revisions that Git is still to be told of, which is no mismatch."""

    revisions: int
    unpushed: int
    mismatches: list[Mismatch]


class GitCheck:
    """Compares repositories; ``folder`` is for clones and empty."""

    def __init__(
        self, store: ObjectStore, index: PackageIndex, access: RemoteAccess, folder: Path, pool: ThreadPoolExecutor
    ) -> None:
        self._store = store
        self._index = index
        self._access = access
        self._folder = folder
        self._pool = pool

    async def check(self, body: Json) -> Checked:
        """Compare the revisions of one Repository object.

        Raises:
            GitError: the remote cannot be read.
        """
        settings = read_settings(body)
        folder = self._folder / f"{settings.uid}.git"
        repository = RegisteredRepository(settings, folder, self._store, self._pool, self._access)
        await repository.open()
        discovery = await repository.converse(read_everything, repository, await repository.remote())
        pending = {parcel.revision for parcel in await self._store.outbox.heads(settings.key)}
        mismatches = await repository.run(self._mismatches, repository, discovery, pending)
        return Checked(self._index.count(settings.namespace, settings.name), len(pending), sorted(mismatches))

    def _mismatches(self, repository: RegisteredRepository, discovery: Discovery, pending: set[str]) -> list[Mismatch]:
        settings = repository.settings
        existing = {entry.name: entry for entry in self._index.revisions(settings.namespace, settings.name)}
        difference = compare(settings, discovery.revisions, existing, pending, thorough=True)
        found = {object_name(settings, revision): revision.ref for revision in discovery.revisions}
        difference.gone = [entry for name, entry in existing.items() if name not in found and name not in pending]
        settle_latest(difference, existing)
        problems: dict[str, str] = {entry.name: "is in the database and not in Git" for entry in difference.gone}
        for name, body in difference.written.items():
            entry = existing.get(name)
            if entry is None:
                problems[name] = f"is in Git ({found[name]} at {self_commit(body)}) and not in the database"
            elif told := list(differing(decode(entry), body))[:MAX_FIELDS]:
                problems[name] = "; ".join(f"{path}: the database has {was}, Git has {now}" for path, was, now in told)
        return [Mismatch(settings.key, name, problem) for name, problem in problems.items()]


def read_everything(repository: RegisteredRepository, remote: Remote) -> Discovery:
    """Fetch everything of a remote, and say what it holds. Blocking. Raises GitError: the remote cannot be read."""
    settings, refs = repository.settings, repository.clone.list_remote(remote)
    repository.clone.fetch(remote, refs)
    return discover(repository.objects, refs, directory=settings.directory, branch=settings.branch)


def differing(old: Any, new: Any, path: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield (path, value here, value there) of the fields in which two objects differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            yield from differing(old.get(key), new.get(key), f"{path}.{key}" if path else key)
    elif old != new:
        yield path, _shown(old), _shown(new)


def _shown(value: Any) -> str:
    text = "nothing" if value is None else orjson.dumps(value).decode()
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"
