"""Remotes in a directory of this machine where no git binary exists: packs are copied, pushes go through dulwich."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, cast

from dulwich.client import LocalGitClient
from dulwich.errors import NotGitRepository
from dulwich.objects import ZERO_SHA
from dulwich.pack import UnpackedObject
from dulwich.repo import Repo

from storage.git.errors import NotARepository, RefMoved
from storage.git.objects import GitObject, git_object
from storage.git.objectstore import ObjectStore
from storage.git.packfile import KINDS
from storage.git.packwriter import records
from storage.git.remote import Remote
from storage.git.sending import MaySend, always, require
from storage.git.transport import RefUpdate

_CHUNK = 1 << 20


def list_refs(remote: Remote) -> dict[str, str]:
    """Return the branches and tags of the repository.

    Raises:
        NotARepository: there is none.
    """
    with _repository(remote) as repository:
        refs = repository.get_refs()
    return {
        name.decode(): oid.decode() for name, oid in refs.items() if name.startswith((b"refs/heads/", b"refs/tags/"))
    }


def fetch(remote: Remote, store: ObjectStore) -> None:
    """Copy everything the repository has and we lack; packs are checked like received ones.

    Raises:
        NotARepository: there is no repository.
        GitError: a pack is broken or over a limit.
    """
    with _repository(remote) as repository:
        # Loose objects first: a repack in between moves them to packs, never back.
        for oid in list(repository.object_store._iter_loose_objects()):  # noqa: SLF001 -- no public name lists them
            if not store.has(oid.decode()):
                number, data = repository.object_store.get_raw(oid)
                store.add([git_object(KINDS[number], data)])
        for pack in repository.object_store.packs:
            path = Path(pack.data.path)
            if not all(store.has(bytes(raw).hex()) for raw, _, _ in pack.index.iterentries()):
                store.receive(lambda sink, path=path: _copy(path, sink))  # type: ignore[misc] # bound at once


def push(
    remote: Remote, updates: Sequence[RefUpdate], objects: Sequence[GitObject], may_send: MaySend = always
) -> dict[str, str]:
    """Write the objects and change the refs; returns what each refused ref was told.

    Raises:
        NotARepository: there is no repository.
        RefMoved: an expectation is wrong; nothing was written.
        PushWithdrawn: ``may_send`` said no; the refs are as they were.
    """
    with _repository(remote):
        pass

    def commands(refs: dict[Any, Any]) -> dict[Any, Any]:
        actual = {update.ref: refs.get(update.ref.encode()) for update in updates}
        moved = {
            update.ref: value.decode() if (value := actual[update.ref]) else None
            for update in updates
            if actual[update.ref] != (update.old.encode() if update.old else None)
        }
        if moved:
            raise RefMoved(moved)
        require(remote.address, may_send)  # a push without objects is not asked below
        return {update.ref.encode(): update.new.encode() if update.new else ZERO_SHA for update in updates}

    def pack(_have: Any, _want: Any, **_options: Any) -> tuple[int, Iterator[UnpackedObject]]:
        return len(objects), _last_asked(remote, objects, may_send)

    # Cast: dulwich types ids as NewTypes of bytes.
    result = LocalGitClient().send_pack(remote.path, commands, cast(Any, pack), atomic=True)
    statuses = result.ref_status or {}
    return {ref.decode(): why for ref, why in statuses.items() if why is not None}


def _last_asked(remote: Remote, objects: Sequence[GitObject], may_send: MaySend) -> Iterator[UnpackedObject]:
    """Give out what is to be written, and ask when that is done: what is left then is to change the refs."""
    yield from records(objects)
    require(remote.address, may_send)


@contextmanager
def _repository(remote: Remote) -> Iterator[Repo]:
    try:
        opened = Repo(remote.path)
    except NotGitRepository as error:
        raise NotARepository(f"{remote.address}: there is no Git repository") from error
    with closing(opened):
        yield opened


def _copy(path: Path, sink: Any) -> None:
    with path.open("rb") as file:
        while data := file.read(_CHUNK):
            sink(data)
