"""The local copy of one remote repository: its objects, its refs as last seen, and how both change.

Source: decisions.md 7 and 8; libraries.md 3. Blocking; callers run it in threads.
"""

import heapq
import shutil
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import structlog

from storage.git import local
from storage.git.commits import CommitInfo, parse_commit
from storage.git.errors import LimitExceeded, ObjectMissing, PushRejected, RefMoved, RemoteUnavailable
from storage.git.objects import GitObject
from storage.git.objectstore import ObjectStore, disk_errors
from storage.git.packfile import PackLimits
from storage.git.refs import DRAFTS, HEADS, PROPOSED
from storage.git.refstore import RefStore, create_bare, is_bare
from storage.git.remote import Remote
from storage.git.sending import MaySend, always
from storage.git.transport import MAX_HAVES, RefUpdate, Transport

__all__ = ["Clone", "RefUpdate"]

log = structlog.get_logger(__name__)

MAX_ANCESTRY = 200_000
"""Commits looked at before giving up on a question about ancestry."""

CLOCK_SKEW = 7 * 24 * 3600
"""Seconds by which a commit may be dated before its parents and still be found."""


class Clone:
    """A bare repository that mirrors a remote; safe from many threads of one process."""

    def __init__(self, path: Path, *, git: str | None, limits: PackLimits) -> None:
        with disk_errors():
            self._path = path
            self._store = ObjectStore(path / "objects", git=git, limits=limits)
            self._refs = RefStore(path)
        self._transport = Transport(git)
        self._lock = threading.RLock()
        self._ahead: Sequence[str] = ()
        """Tips whose objects are here although no ref says so yet."""

    @classmethod
    def open(cls, path: Path, *, git: str | None = shutil.which("git"), limits: PackLimits | None = None) -> "Clone":
        """Open the clone at ``path``; create it if it is missing, start over if it is broken.

        Raises:
            DiskFull: there is no room to create it.
        """
        path = path.absolute()
        with disk_errors():
            if path.exists() and not is_bare(path):
                log.warning("broken clone removed", clone=path.name)
                shutil.rmtree(path)
            create_bare(path)
        return cls(path, git=git, limits=limits or PackLimits())

    @property
    def path(self) -> Path:
        """Where the clone lies."""
        return self._path

    @property
    def refs(self) -> Mapping[str, str]:
        """Branches and tags of the remote as last seen: full name → hex id. A view that never changes afterwards."""
        return self._refs.refs

    def list_remote(self, remote: Remote) -> dict[str, str]:
        """Ask the remote for its branches and tags; empty for an empty repository. Changes nothing here.

        Raises:
            GitError: of the type that says why the remote cannot be listed.
        """
        if not self._transport.serves(remote):
            return local.list_refs(remote)
        return self._transport.list_refs(remote)

    def fetch(self, remote: Remote, target: Mapping[str, str], *, complete: bool = False) -> None:
        """Get the objects of the refs in ``target`` that are not here, then remember ``target`` as the refs.

        ``complete`` asks for everything again, for a clone that turned out to miss objects.

        Raises:
            GitError: of the type that says why; refs and objects are as they were.
        """
        with self._lock:
            self._fetch_objects(remote, target, complete=complete)
            with disk_errors():
                self._refs.replace(target)
            self._ahead = ()

    def fetch_ahead(self, remote: Remote, target: Mapping[str, str], *, complete: bool = False) -> None:
        """Get objects as :meth:`fetch` does, and leave the refs; a later fetch does not get them again.

        Nobody waits for it: pushes and reads go on meanwhile.

        Raises:
            GitError: as :meth:`fetch` does.
        """
        self._fetch_objects(remote, target, complete=complete)
        branches = [oid for ref, oid in sorted(target.items()) if ref.startswith(HEADS)]
        self._ahead = branches or list(target.values())

    def _fetch_objects(self, remote: Remote, target: Mapping[str, str], *, complete: bool) -> None:
        wants = sorted(
            set(target.values()) if complete else {oid for oid in set(target.values()) if not self._store.has(oid)}
        )
        if wants and self._transport.serves(remote):
            haves = [] if complete else self._haves()
            self._store.receive(lambda sink: self._transport.fetch(remote, wants, haves, sink))
        elif wants:
            local.fetch(remote, self._store)
        missing = next((oid for oid in wants if not self._store.has(oid)), None)
        if missing is not None:
            raise ObjectMissing(missing)

    def push(
        self,
        remote: Remote,
        updates: Sequence[RefUpdate],
        objects: Sequence[GitObject],
        may_send: MaySend = always,
    ) -> None:
        """Change refs of the remote, all or none, each only from its expected value, sending just ``objects``.

        ``may_send`` has the last word: it is asked, in this thread or another one, when nothing is left to do but to send.
        On success ``refs`` shows the new values; the objects are not stored here, see :meth:`add_objects`.

        Raises:
            RefMoved: an expectation is wrong; carries the actual values.
            PushRejected: the remote refuses for its own reasons.
            PushWithdrawn: ``may_send`` said no; the remote is as it was.
            RemoteUnavailable: it cannot be reached; ``outcome_unknown`` if the push may have happened.
            GitError: of the type that says why else.
        """
        said = ""
        if self._transport.serves(remote):
            refused, said = self._transport.push(remote, updates, objects, may_send)
        else:
            refused = local.push(remote, updates, objects, may_send)
        if refused:
            self._check_refusal(remote, updates, PushRejected(refused, said))
        with self._lock, suppress(OSError):
            # Losing this is harmless: the next listing of the remote shows the same.
            self._refs.change({update.ref: update.new for update in updates})

    def add_objects(self, objects: Sequence[GitObject]) -> None:
        """Store objects in the clone.

        Raises:
            DiskFull: there is no room; nothing refers to what was written.
        """
        self._store.add(objects)

    def read(self, oid: str) -> GitObject:
        """Return an object.

        Raises:
            ObjectMissing: it is not in the clone.
            LimitExceeded: it is larger than allowed.
        """
        return self._store.read(oid)

    def has(self, oid: str) -> bool:
        """Tell whether an object is in the clone."""
        return self._store.has(oid)

    def commit(self, oid: str) -> CommitInfo:
        """Return a commit, parsed.

        Raises:
            ObjectMissing: it is not in the clone.
            CorruptObject: it is not a commit.
        """
        return parse_commit(self._store.read(oid).data)

    def is_ancestor(self, ancestor: str, descendant: str) -> bool:
        """Tell whether ``ancestor`` can be reached from ``descendant``, or is it; newest commits are followed first.

        Raises:
            ObjectMissing: one of them, or a commit between them, is not in the clone.
            LimitExceeded: the answer is not found within :data:`MAX_ANCESTRY` commits.
        """
        oldest = self.commit(ancestor).committer_time - CLOCK_SKEW
        queue = [(-self.commit(descendant).committer_time, descendant)]
        seen = {descendant}
        while queue:
            _, oid = heapq.heappop(queue)
            if oid == ancestor:
                return True
            for parent in self.commit(oid).parents:
                if parent in seen:
                    continue
                seen.add(parent)
                time = self.commit(parent).committer_time
                if time >= oldest or parent == ancestor:
                    heapq.heappush(queue, (-time, parent))
            if len(seen) > MAX_ANCESTRY:
                raise LimitExceeded(f"more than {MAX_ANCESTRY} commits lie between two commits")
        return False

    @property
    def scattered(self) -> bool:
        """Whether :meth:`consolidate` has something to do."""
        return self._store.scattered

    def consolidate(self, *, force: bool = False) -> None:
        """Bound the number of loose objects and packs; for a background thread.

        Raises:
            DiskFull: there is no room for the consolidated pack; everything is as it was.
        """
        self._store.consolidate(force=force)

    def _haves(self) -> list[str]:
        """Name tips we hold: published branches first, since nearly everything hangs on them, then drafts."""
        refs = self._refs.refs
        heads = sorted((ref.startswith((DRAFTS, PROPOSED)), ref) for ref in refs if ref.startswith(HEADS))
        tips = dict.fromkeys([*(refs[ref] for _, ref in heads), *self._ahead])
        if not tips:
            tips = dict.fromkeys(refs.values())
        return [oid for oid in list(tips)[:MAX_HAVES] if self._store.has(oid)]

    def _check_refusal(self, remote: Remote, updates: Sequence[RefUpdate], rejected: PushRejected) -> None:
        """Find out what a refused push did, from the refs and not from words.

        A remote that cleans up while it takes a push may report a failure and have moved every ref all the same; then
        there is nothing to raise.
        """
        try:
            now = self.list_remote(remote)
        except RemoteUnavailable as error:
            raise rejected from error
        if all(now.get(update.ref) == update.new for update in updates):
            return
        moved = {update.ref: now.get(update.ref) for update in updates if now.get(update.ref) != update.old}
        raise RefMoved(moved) if moved else rejected
