"""Keeps a cache of one resource's objects as the server has them, and tells what changes.

Only what ``parse`` makes of an object is kept. The contract is client-go's shared informer, but for one thing: our own
writes are told to the cache by those who make them, and wake nobody who reads the same cache. Caches that share a reflector
are told of each other's writes by its watch. Source: ``architecture.md`` 3.7, ``variants.md`` 6.10.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from krm.client.cache import Cached, IndexOf, Key, ObjectCache
from krm.client.client import KubeClient
from krm.client.reflector import Reflectors
from krm.client.resources import Resource

Json = dict[str, Any]
T = TypeVar("T", bound=Cached)
Subscriber = Callable[[T | None, T | None], None]
"""Called with the old and the new state, in the order of events; must not block, and what it raises ends the informer."""


class Informer(Generic[T]):
    """One resource in one namespace (None: in all), as far as the selectors choose, parsed and indexed.

    ``reflectors`` are those of the process, which somebody else runs; without them the informer has one of its own. Use from
    one event loop. Every method but :meth:`run` and :meth:`wait_synced` is immediate.
    """

    def __init__(
        self,
        client: KubeClient,
        resource: Resource,
        namespace: str | None,
        parse: Callable[[Json], T],
        *,
        label_selector: str = "",
        field_selector: str = "",
        indexes: Mapping[str, IndexOf[T]] | None = None,
        reflectors: Reflectors | None = None,
    ) -> None:
        self.resource = resource
        self.namespace = namespace
        self.parse = parse
        self._cache: ObjectCache[T] = ObjectCache(indexes or {})
        self._subscribers: list[Subscriber[T]] = []
        self._reflector = (reflectors or Reflectors()).of(
            client, resource, namespace, label_selector=label_selector, field_selector=field_selector
        )
        self._reflector.feed(self)

    @property
    def error(self) -> Exception | None:
        """Why the last list or watch failed; None while all is well."""
        return self._reflector.error

    @property
    def synced(self) -> bool:
        """Whether a whole list was read since the start; the cache stays, perhaps old, when the server goes away."""
        return self._reflector.synced

    def __len__(self) -> int:
        return len(self._cache)

    async def wait_synced(self) -> None:
        """Wait until the first list was read; the caller sets the deadline."""
        await self._reflector.wait_synced()

    def get(self, namespace: str, name: str) -> T | None:
        """Return one object, None when there is none."""
        return self._cache.get((namespace, name))

    def keys(self) -> Iterable[Key]:
        """Return the names of all objects, and of those that we deleted and whose end has not been told."""
        return self._cache.keys()

    def values(self) -> Iterable[T]:
        """Return all objects."""
        return self._cache.values()

    def by_index(self, index: str, key: Hashable) -> list[T]:
        """Return the objects that an index has under ``key``."""
        return self._cache.by_index(index, key)

    def subscribe(self, callback: Subscriber[T]) -> None:
        """Have every change from now on told: (None, new), (old, new) or (old, None)."""
        self._subscribers.append(callback)

    def wrote(self, body: Json) -> None:
        """Take the answer to a write of ours into the cache at once; its event then tells nobody.

        A write whose event may come before its answer needs :meth:`writing`, too.
        """
        self._cache.wrote(self.parse(body))

    def forget(self, namespace: str, name: str) -> None:
        """Take an object out of the cache that we deleted."""
        self._cache.forget((namespace, name))

    @contextmanager
    def writing(self, namespace: str, name: str) -> Iterator[None]:
        """Hold news of one object back while we write it: its event may be faster than the answer.

        What is no news after :meth:`wrote` or :meth:`forget` inside is dropped at the end, the rest is told then.
        """
        holds = self._cache.hold((namespace, name))
        try:
            yield
        finally:
            if holds and (change := self._cache.release((namespace, name))):
                self._tell(change.old, change.new)

    async def run(self) -> None:
        """Keep the cache true until cancelled, where the reflector is its own; see there."""
        await self._reflector.run()

    def take(self, key: Key, value: T | None, version: str) -> None:
        """Take what the reflector tells of one object."""
        if change := self._cache.arrived(key, value, version):
            self._tell(change.old, change.new)

    def _tell(self, old: T | None, new: T | None) -> None:
        for callback in self._subscribers:
            callback(old, new)
