"""Git objects as values, where they are read from, and those not yet pushed that lie over a clone."""

import hashlib
import threading
from collections.abc import Callable, Iterable
from typing import Protocol

from storage.git.errors import ObjectMissing
from storage.outbox import GitKind as Kind
from storage.outbox import GitObject

__all__ = ["GitObject", "Kind", "ObjectSource", "Overlay", "blob", "git_object"]


class ObjectSource(Protocol):
    """Something objects are read from by id."""

    def read(self, oid: str) -> GitObject:
        """Return the object.

        Raises:
            ObjectMissing: it is not there.
        """
        ...


def git_object(kind: Kind, data: bytes) -> GitObject:
    """Make an object and compute its id."""
    digest = hashlib.sha1(b"%s %d\x00" % (kind.encode(), len(data)), usedforsecurity=False)
    digest.update(data)
    return GitObject(kind, data, digest.hexdigest())


def blob(data: bytes) -> GitObject:
    """Make a blob."""
    return git_object("blob", data)


class Overlay:
    """Objects not yet pushed, over a clone: read order is pending, clone, then ``fallback``.

    ``fallback`` finds objects that another replica holds in the outbox; it returns None when it has none.
    """

    def __init__(self, clone: ObjectSource, fallback: Callable[[str], GitObject | None] | None = None) -> None:
        self._clone = clone
        self._fallback = fallback
        self._pending: dict[str, tuple[GitObject, int]] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._pending)

    def add(self, objects: Iterable[GitObject]) -> None:
        """Keep objects in memory; an object added twice must be discarded twice."""
        with self._lock:
            for item in objects:
                _, count = self._pending.get(item.oid, (item, 0))
                self._pending[item.oid] = (item, count + 1)

    def discard(self, oids: Iterable[str]) -> None:
        """Forget one addition of each id; ids that are not pending are ignored."""
        with self._lock:
            for oid in oids:
                held = self._pending.pop(oid, None)
                if held is not None and held[1] > 1:
                    self._pending[oid] = (held[0], held[1] - 1)

    def read(self, oid: str) -> GitObject:
        """Return the object; pending ones first.

        Raises:
            ObjectMissing: neither pending, nor in the clone, nor known to the fallback.
        """
        held = self._pending.get(oid)
        if held is not None:
            return held[0]
        try:
            return self._clone.read(oid)
        except ObjectMissing:
            found = self._fallback(oid) if self._fallback else None
            if found is None:
                raise
            return found
