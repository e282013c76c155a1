"""Who depends on whom, as far as the objects in memory say it: a view of the log that costs its writers nothing.

Only bodies that can hold owner references are decoded, and only dependents are remembered. Source: ADR 0018.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from storage.bodies import decode
from storage.interfaces import Event, EventType, ObjectKey

Json = dict[str, Any]

_MARK: Final = b'"ownerReferences":['
"""Quotes inside JSON strings are escaped, so nothing that a client writes as text looks like this."""


_NOWHERE: Final = "/"
"""No namespace has this name."""


@dataclass(frozen=True, slots=True)
class OwnerReference:
    """One entry of ``metadata.ownerReferences``, as far as deletion goes by it."""

    api_version: str
    kind: str
    name: str
    uid: str
    blocks: bool
    """Foreground deletion of the owner waits for the dependent."""


def owners_of(obj: Json) -> tuple[OwnerReference, ...]:
    """Return the owners that a decoded object names; what is no reference is left out."""
    return tuple(
        OwnerReference(
            api_version=str(one.get("apiVersion") or ""),
            kind=str(one.get("kind") or ""),
            name=str(one.get("name") or ""),
            uid=str(one["uid"]),
            blocks=one.get("blockOwnerDeletion") is True,
        )
        for one in obj["metadata"].get("ownerReferences") or ()
        if isinstance(one, dict) and one.get("uid")
    )


class OwnerIndex:
    """Dependents by the uid of their owner, and the owners of each dependent.

    It also remembers, as long as somebody depends on them, which owners were seen to go.
    """

    def __init__(self) -> None:
        self._owners: dict[ObjectKey, tuple[OwnerReference, ...]] = {}
        self._dependents: dict[str, dict[ObjectKey, None]] = {}
        self._blocking: dict[str, int] = {}
        self._departed: dict[str, str] = {}

    def apply(self, event: Event) -> tuple[OwnerReference, ...]:
        """Take in one change of any object; return the owners that it had before."""
        entry = event.entry
        before = self._owners.get(entry.key, ())
        if event.type is EventType.DELETED:
            self._forget(entry.key)
            if entry.uid in self._dependents:
                self._departed[entry.uid] = entry.namespace
            return before
        owners = owners_of(decode(entry)) if _MARK in entry.body else ()
        if owners != before:
            self._forget(entry.key)
            self._remember(entry.key, owners)
        return before

    def drop(self, resource: str) -> None:
        """Forget the dependents of a resource that is no longer served."""
        for key in [key for key in self._owners if key.resource == resource]:
            self._forget(key)

    def owners(self, key: ObjectKey) -> tuple[OwnerReference, ...]:
        """Return the owners of an object."""
        return self._owners.get(key, ())

    def has_dependents(self, uid: str) -> bool:
        """Tell whether anything depends on an object."""
        return uid in self._dependents

    def dependents(self, uid: str) -> Sequence[ObjectKey]:
        """Return what depends on an object, in the order in which it came to do so."""
        return tuple(self._dependents.get(uid, ()))

    def is_blocked(self, uid: str) -> bool:
        """Tell whether foreground deletion of an object has to wait for a dependent."""
        return uid in self._blocking

    def departed(self, uid: str, dependent: ObjectKey) -> bool:
        """Tell whether an object that could own ``dependent`` was seen to go while something depended on it."""
        return self._departed.get(uid, _NOWHERE) in ("", dependent.namespace)

    def keys(self) -> Sequence[ObjectKey]:
        """Return everything that has owners."""
        return tuple(self._owners)

    def _remember(self, key: ObjectKey, owners: tuple[OwnerReference, ...]) -> None:
        if not owners:
            return
        self._owners[key] = owners
        for owner in owners:
            self._dependents.setdefault(owner.uid, {})[key] = None
            if owner.blocks:
                self._blocking[owner.uid] = self._blocking.get(owner.uid, 0) + 1

    def _forget(self, key: ObjectKey) -> None:
        for owner in self._owners.pop(key, ()):
            if owner.blocks:
                self._unblock(owner.uid)
            others = self._dependents.get(owner.uid, {})
            others.pop(key, None)
            if not others:
                # The same owner may be named twice: then it is gone already.
                self._dependents.pop(owner.uid, None)
                self._departed.pop(owner.uid, None)

    def _unblock(self, uid: str) -> None:
        self._blocking[uid] -= 1
        if not self._blocking[uid]:
            del self._blocking[uid]
