"""Clones of repositories that nobody registered, kept between requests that clone or upgrade by address.

Each address has one clone and one lock, so a remote that hangs holds up nobody but those who want just it. Only what a
request asks for is fetched, and the least recently used clones go when all together are over a limit. The remote is
asked for its refs each time: that keeps branches current and proves that the caller's credentials may read it.
Source: ``porch-api.md`` 3.3; ``variants.md`` R5. Blocking; runs in threads.
"""

import hashlib
import os
import re
import shutil
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from apiserver.engine.refusals import shown
from apiserver.engine.tree_changes import package_tree
from krm.package.contents import File
from storage.git.clone import Clone
from storage.git.commits import parse_commit
from storage.git.errors import GitError, ObjectMissing, RemoteUnavailable
from storage.git.objects import ObjectSource
from storage.git.packfile import PackLimits
from storage.git.remote import PATIENCE, Remote
from storage.git.trees import read_package

DEFAULT_LIMIT = 2 << 30
"""Bytes of all kept clones together."""
MAX_AT_ONCE = 64
"""Requests that read, or wait for, such remotes; each has a thread, also when its client has long gone."""
MAX_HELD = 50
"""Commits remembered of one remote, to tell it what we have."""
MAX_TAGS = 8
"""Tags of tags followed."""

_COMMIT_ID = re.compile(r"[0-9a-f]{40}")
_GOING = ".going"
"""Suffix of a clone that is being removed; what a kill leaves of it goes with the next removal."""


class PackageNotFound(GitError):
    """The remote has no such ref, or no package in the directory at it."""


@dataclass(frozen=True, slots=True)
class FetchedPackage:
    """A package as a remote has it, and the commit that its ref stands for."""

    contents: dict[str, File]
    commit: str


@dataclass(slots=True)
class _Place:
    """The clone of one address while somebody uses or waits for it."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    users: int = 0


class UpstreamClones:
    """The clones below one folder; safe from many threads of one process. ``limit`` is in bytes."""

    def __init__(self, folder: Path, limit: int = DEFAULT_LIMIT) -> None:
        self._folder = folder
        self._limit = limit
        self._guard = threading.Lock()
        self._places: dict[str, _Place] = {}

    def package(self, remote: Remote, directory: str, ref: str) -> FetchedPackage:
        """Read the package in ``directory`` at ``ref``: a tag, a branch or a full commit id.

        Raises:
            PackageNotFound: there is no such ref, or no such directory at it.
            RemoteUnavailable: the remote cannot be read now.
            GitError: it cannot be read at all; the type says why.
        """
        with self._turn(remote) as folder:
            try:
                return self._read(remote, folder, directory, ref)
            except ObjectMissing:
                # A clone that lost objects is worth nothing: begun anew, it has them, or the remote has not.
                shutil.rmtree(folder, ignore_errors=True)
                return self._read(remote, folder, directory, ref)

    def _read(self, remote: Remote, folder: Path, directory: str, ref: str) -> FetchedPackage:
        clone = Clone.open(folder, limits=PackLimits(pack=min(self._limit, PackLimits().pack)))
        oid = self._fetch(clone, remote, directory, ref)
        commit = peel(clone, oid)
        tree = package_tree(clone, commit, directory) if directory else parse_commit(clone.read(commit).data).tree
        contents = read_package(clone, tree) if tree else {}
        if not contents:
            where = f"{shown(directory)}@{shown(ref)}"
            raise PackageNotFound(f"cannot find package {where}:: cannot find package {where}")
        return FetchedPackage(contents, commit)

    def _fetch(self, clone: Clone, remote: Remote, directory: str, ref: str) -> str:
        """Have the object that the ref stands for in the clone, and return its id."""
        refs = clone.list_remote(remote)
        oid = find_commit(refs, directory, ref)
        advertised = oid is not None
        if oid is None:
            oid = ref if _COMMIT_ID.fullmatch(ref) else None
        if oid is None:
            tried = " ".join(shown(name) for name in candidate_names(directory, ref))
            raise PackageNotFound(
                f"cannot find package {shown(directory)}@{shown(ref)}:: cannot find git reference (tried [{tried}])"
            )
        if not clone.has(oid):
            self._get(clone, remote, oid, advertised=advertised)
            if clone.scattered:
                clone.consolidate()
            self._make_room()
        return oid

    def _get(self, clone: Clone, remote: Remote, oid: str, *, advertised: bool) -> None:
        try:
            # Under a name of its own, as branches move; the last few are what the next fetch need not bring again.
            held = {name: held for name, held in list(clone.refs.items())[-MAX_HELD:] if clone.has(held)}
            clone.fetch(remote, {**held, f"refs/porch/{oid}": oid})
        except GitError as error:
            if advertised:
                raise
            if isinstance(error, RemoteUnavailable):
                # Some remotes break off the conversation about what they do not hand out; does it still listen?
                clone.list_remote(remote)
            raise PackageNotFound(
                f"no branch or tag is at commit {oid}, and the remote does not hand it out by its id ({error}); "
                "name a branch or tag, or allow it there (git config uploadpack.allowReachableSHA1InWant true)"
            ) from error

    # --- places and room -------------------------------------------------------------------

    @contextmanager
    def _turn(self, remote: Remote) -> Iterator[Path]:
        """Have the clone of one address alone for a while."""
        name = f"{hashlib.sha256(remote.url.encode()).hexdigest()[:24]}.git"
        with self._guard:
            if sum(place.users for place in self._places.values()) >= MAX_AT_ONCE:
                raise RemoteUnavailable(remote.address, "too many packages are being fetched from elsewhere")
            place = self._places.setdefault(name, _Place())
            place.users += 1
        try:
            if not place.lock.acquire(timeout=remote.timeout * PATIENCE):
                raise RemoteUnavailable(remote.address, "it is being read by others, who take too long")
            try:
                folder = self._folder / name
                yield folder
                with suppress(OSError):
                    os.utime(folder)
            finally:
                place.lock.release()
        finally:
            with self._guard:
                place.users -= 1
                if not place.users:
                    del self._places[name]

    def _make_room(self) -> None:
        """Remove clones that nobody uses, the least recently used first, until the rest is within the limit."""
        sizes = {path: _size(path) for path in self._folder.iterdir()}
        total = sum(sizes.values())
        for path in sorted(sizes, key=_last_used):
            if path.name.endswith(_GOING):
                total -= sizes[path]
                shutil.rmtree(path, ignore_errors=True)
            elif total > self._limit and (going := self._put_aside(path)):
                total -= sizes[path]
                shutil.rmtree(going, ignore_errors=True)

    def _put_aside(self, path: Path) -> Path | None:
        """Take a clone out of the way of new users; None when somebody uses it."""
        going = path.with_name(path.name + _GOING)
        with self._guard:
            if path.name in self._places:
                return None
            try:
                path.rename(going)
            except OSError:
                return None
        return going


def candidate_names(directory: str, ref: str) -> list[str]:
    """Return the names that ``ref`` may stand for, in the order in which they are tried (3.3)."""
    return [f"{directory}/{ref}", ref] if directory else [ref]


def find_commit(refs: Mapping[str, str], directory: str, ref: str) -> str | None:
    """Resolve a ref as upstream does: ``directory/ref`` before ``ref``, tags before branches (3.3)."""
    for short in candidate_names(directory, ref):
        for prefix in ("refs/tags/", "refs/heads/", ""):
            if found := refs.get(prefix + short):
                return found
    return None


def peel(source: ObjectSource, oid: str) -> str:
    """Follow annotated tags to the commit they name.

    Raises:
        GitError: they lead to something else.
    """
    current = oid
    for _ in range(MAX_TAGS):
        found = source.read(current)
        if found.kind == "commit":
            return current
        head = found.data.split(b"\n", 1)[0]
        if found.kind != "tag" or not head.startswith(b"object "):
            break
        current = head[7:47].decode("ascii", "replace")
    raise GitError(f"{oid} is not a commit")


def _size(folder: Path) -> int:
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.lstat(os.path.join(path, name)).st_size  # noqa: PTH118  (a Path for each file is slow)
    return total


def _last_used(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
