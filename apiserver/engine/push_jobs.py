"""What leaves in a push: jobs that move refs, planned one after the other on one view of refs and objects.

Source: ``decisions.md`` 8. Nothing here talks to a remote.
"""

from collections.abc import Sequence
from typing import Protocol

from apiserver.engine.registered import RegisteredRepository
from storage.git.clone import RefUpdate
from storage.git.objects import GitObject


class RefView:
    """The refs and objects that one push is planned on; a working copy, thrown away on failure."""

    def __init__(self, repository: RegisteredRepository) -> None:
        self.repository = repository
        self.known = repository.clone.refs
        self._wanted: dict[str, str | None] = {}
        self._new: dict[str, GitObject] = {}

    def get(self, ref: str) -> str | None:
        """Return where a ref will be after what is planned so far."""
        return self._wanted[ref] if ref in self._wanted else self.known.get(ref)

    def read(self, oid: str) -> GitObject:
        """Read an object, planned ones included (makes the view an ``ObjectSource``)."""
        planned = self._new.get(oid)
        return planned if planned is not None else self.repository.objects.read(oid)

    def add(self, refs: dict[str, str | None], objects: Sequence[GitObject]) -> None:
        """Plan ref moves together with the objects they need."""
        self._wanted.update(refs)
        self._new.update((obj.oid, obj) for obj in objects)

    def updates(self) -> list[RefUpdate]:
        """Return the commands of the push; a ref that ends where it began needs none."""
        return [
            RefUpdate(ref, self.known.get(ref), new) for ref, new in self._wanted.items() if self.known.get(ref) != new
        ]

    def objects(self) -> list[GitObject]:
        """Return the objects that the push carries."""
        return list(self._new.values())


class PushJob(Protocol):
    """Something that moves refs. ``plan`` runs in a Git thread, ``settle`` in the event loop after the push."""

    name: str
    package: str
    """Jobs of one package are recorded one after the other."""

    def plan(self, view: RefView) -> None:
        """Add the job's refs and objects to the view; raise a StatusError to leave the batch alone."""
        ...

    async def settle(self) -> None:
        """Record the success; the remote has it."""
        ...
