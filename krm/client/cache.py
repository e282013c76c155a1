"""The last known state of objects, found by name or by indexes, in which our own writes stand before their events arrive.

Pure bookkeeping: what arrived goes in, the change that it makes comes out. Source: ``variants.md`` 6.10, and client-go's
thread-safe store.
"""

import time
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

OWN_SECONDS: Final = 60.0
"""So long an own write holds against older news. A server put back to an older state would otherwise never be believed."""

VERSION_DIGITS: Final = 20
"""Those of the largest 64-bit number; Python refuses to read numbers of some thousands."""

Key = tuple[str, str]
"""Namespace and name; no namespace is empty."""


class Cached(Protocol):
    """What is kept of an object; small, because there are many."""

    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def resource_version(self) -> str: ...


T = TypeVar("T", bound=Cached)
IndexOf = Callable[[T], Iterable[Hashable]]


@dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    """One object's step: without ``old`` it is new, without ``new`` it is gone."""

    old: T | None
    new: T | None


@dataclass(frozen=True, slots=True)
class _Own:
    """A write of ours whose event has not arrived: of this version; or a deletion of the object that had it."""

    version: str
    at: float


@dataclass(slots=True)
class _News(Generic[T]):
    """What arrived of an object: its state, or that it is gone since ``version``."""

    value: T | None
    version: str


class ObjectCache(Generic[T]):
    """States by namespace and name, and by the keys that each index function gives for a state.

    ``clock`` tells seconds.
    """

    def __init__(self, indexes: Mapping[str, IndexOf[T]], clock: Callable[[], float] = time.monotonic) -> None:
        self._values: dict[Key, T] = {}
        self._indexes = dict(indexes)
        self._indexed: dict[str, dict[Hashable, dict[Key, None]]] = {name: {} for name in indexes}
        self._own: dict[Key, _Own] = {}
        self._held: dict[Key, _News[T] | None] = {}
        self._clock = clock

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Key) -> T | None:
        """Return the state of one object."""
        return self._values.get(key)

    def keys(self) -> list[Key]:
        """Return the names of all objects, and of those that we deleted and whose end has not been told."""
        return list(self._values | self._own)

    def values(self) -> list[T]:
        """Return the states of all objects."""
        return list(self._values.values())

    def by_index(self, index: str, key: Hashable) -> list[T]:
        """Return the states for which the index function gives ``key``."""
        return [self._values[found] for found in self._indexed[index].get(key, ())]

    def arrived(self, key: Key, value: T | None, version: str) -> Change[T] | None:
        """Take the state that an event or a list tells, or (None) that the object is gone, at ``version``.

        Return the change, None when there is none to tell: it is known, an own write, older than one, or held back.
        """
        if key in self._held:
            self._held[key] = _News(value, version)
            return None
        if own := self._own.get(key):
            order = _order(version, own.version)
            if order < 0 and self._clock() - own.at < OWN_SECONDS:
                return None
            if order or value is None or key in self._values:
                del self._own[key]
            if not order:
                self._confirm(key, value)
                return None
        return self._change(key, value)

    def _confirm(self, key: Key, value: T | None) -> None:
        """Take the event of an own write, which tells nobody anything new."""
        if value is None:  # it does not fit the selector of this cache any more
            self._remove(key)

    def _change(self, key: Key, value: T | None) -> Change[T] | None:
        old = self._values.get(key)
        if value is None:
            self._remove(key)
            return Change(old, None) if old else None
        if old and old.resource_version == value.resource_version:
            return None
        self._put(key, value)
        return Change(old, value)

    def wrote(self, value: T) -> None:
        """Take the answer to a write of ours; its event will make no change, and older ones will not undo it."""
        key = (value.namespace, value.name)
        known = self._values.get(key)
        order = _order(value.resource_version, known.resource_version) if known else 1
        if order < 0:
            return  # the news of a later write was faster
        if order:  # else nothing was written, and no event will come
            self._own[key] = _Own(value.resource_version, self._clock())
        self._put(key, value)

    def forget(self, key: Key) -> None:
        """Take that we deleted the object; events of what it was before will not bring it back."""
        if known := self._values.get(key):
            self._own[key] = _Own(known.resource_version, self._clock())
            self._remove(key)

    def hold(self, key: Key) -> bool:
        """Hold news of the object back until :meth:`release`; False when they are held back already."""
        if key in self._held:
            return False
        self._held[key] = None
        return True

    def release(self, key: Key) -> Change[T] | None:
        """Take the newest of what was held back."""
        news = self._held.pop(key, None)
        return self.arrived(key, news.value, news.version) if news else None

    def _put(self, key: Key, value: T) -> None:
        self._remove(key)
        self._values[key] = value
        for name, index in self._indexes.items():
            for found in index(value):
                self._indexed[name].setdefault(found, {})[key] = None

    def _remove(self, key: Key) -> None:
        old = self._values.pop(key, None)
        if old is None:
            return
        for name, index in self._indexes.items():
            indexed = self._indexed[name]
            for found in index(old):
                if keys := indexed.get(found):
                    keys.pop(key, None)
                    if not keys:
                        del indexed[found]


def _order(one: str, other: str) -> int:
    """Compare two resourceVersions of one server: below, equal or above zero; strange ones come in the order of arrival.

    That they are decimal numbers that grow is promised since Kubernetes 1.35 (KEP-5504) and was so before.
    """
    if one == other:
        return 0
    if one.isdecimal() and other.isdecimal() and max(len(one), len(other)) <= VERSION_DIGITS:
        return int(one) - int(other)
    return 1
