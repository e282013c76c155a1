"""Keeps a cache of one resource's objects as the server has them: a list, then a watch, again and again.

Only what ``parse`` makes of an object is kept. The contract is client-go's shared informer, but for one thing: our own
writes are told to the cache by those who make them, and wake nobody. Source: ``architecture.md`` 3.7, ``variants.md`` 6.10.
"""

import asyncio
import random
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from typing import Any, Final, Generic, TypeVar

import structlog

from krm.client.cache import Cached, IndexOf, Key, ObjectCache
from krm.client.client import PAGE, KubeClient
from krm.client.errors import Garbled, NoAnswer, TooLong
from krm.client.resources import Resource
from krm.meta.errors import Expired, StatusError, TooManyRequests

Json = dict[str, Any]
T = TypeVar("T", bound=Cached)
Subscriber = Callable[[T | None, T | None], None]
"""Called with the old and the new state, in the order of events; must not block, and what it raises ends the informer."""

WATCH_SECONDS: Final = (150, 210)
"""A watch lasts as long; one whose server fell silent is noticed then. At random, so that many do not begin anew together."""
HEALTHY_SECONDS: Final = 5.0
"""What ends sooner counts as a failure, whatever it brought: a server that closes every watch at once is not asked often."""
FIRST_PAUSE_SECONDS: Final = 0.1
LONGEST_PAUSE_SECONDS: Final = 30.0
REFUSALS: Final = 3
"""Watches in a row that bring an error, or nothing that is understood, until the list is read again instead."""
EXPIRIES: Final = 2
"""Tries of a list whose state goes away between pages; then everything is read at once."""
SMALLER: Final = 8
"""By this a page is divided when it is more than is read."""

log = structlog.get_logger(__name__)


class Informer(Generic[T]):
    """One resource in one namespace (None: in all), as far as the selectors choose, parsed and indexed.

    Use from one event loop. Every method but :meth:`run` and :meth:`wait_synced` is immediate.
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
    ) -> None:
        self.resource = resource
        self.namespace = namespace
        self.error: Exception | None = None
        """Why the last list or watch failed; None while all is well."""
        self._client = client
        self._parse = parse
        self._labels, self._fields = label_selector, field_selector
        self._cache: ObjectCache[T] = ObjectCache(indexes or {})
        self._subscribers: list[Subscriber[T]] = []
        self._synced = asyncio.Event()
        self._version = ""
        """Where the next watch begins; empty where only a list can tell."""
        self._page = PAGE
        self._failures = 0
        self._refusals = 0

    @property
    def synced(self) -> bool:
        """Whether a whole list was read since the start; the cache stays, perhaps old, when the server goes away."""
        return self._synced.is_set()

    def __len__(self) -> int:
        return len(self._cache)

    async def wait_synced(self) -> None:
        """Wait until the first list was read; the caller sets the deadline."""
        await self._synced.wait()

    def get(self, namespace: str, name: str) -> T | None:
        """Return one object, None when there is none."""
        return self._cache.get((namespace, name))

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
        self._cache.wrote(self._parse(body))

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
        """Keep the cache true until cancelled. Failures of the server are logged, told by ``error``, and tried again.

        Never without a pause that grows while nothing lasts.
        """
        loop = asyncio.get_running_loop()
        while True:
            started = loop.time()
            try:
                await self._follow()
            except Expired as error:
                self._failed(error, anew=True)
            except TooManyRequests as error:
                self._failed(error, anew=False)
            except (StatusError, Garbled) as error:
                self._refusals += 1
                self._failed(error, anew=self._refusals >= REFUSALS)
            except NoAnswer as error:
                self._failed(error, anew=False)
            lasted = loop.time() - started
            self._failures = 0 if lasted >= HEALTHY_SECONDS else self._failures + 1
            await asyncio.sleep(self._pause())

    def _failed(self, error: Exception, *, anew: bool) -> None:
        self.error = error
        if anew:
            self._version, self._refusals = "", 0
        say = log.debug if isinstance(error, Expired) else log.warning
        say("watch failed", resource=self.resource.plural, namespace=self.namespace, error=str(error), listing=anew)

    def _pause(self) -> float:
        if not self._failures:
            return 0.0
        longest = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2.0 ** min(self._failures - 1, 20))
        return longest * random.uniform(0.5, 1.0)  # noqa: S311 - spreads load, keeps no secret

    async def _follow(self) -> None:
        """Read the list where that is needed, then one watch to its end."""
        if not self._version:
            self._version = await self._list()
            self.error = None
            self._synced.set()
        watch = self._client.watch(
            self.resource,
            self.namespace,
            self._version,
            label_selector=self._labels,
            field_selector=self._fields,
            seconds=random.randint(*WATCH_SECONDS),  # noqa: S311 - spreads load, keeps no secret
        )
        async with aclosing(watch):
            async for kind, body in watch:
                self._event(kind, body)
        self.error = None
        self._refusals = 0

    def _event(self, kind: str, body: Json) -> None:
        meta = body.get("metadata")
        version = str(meta.get("resourceVersion") or "") if isinstance(meta, dict) else ""
        if kind == "DELETED" and isinstance(meta, dict):
            self._take((str(meta.get("namespace") or ""), str(meta.get("name"))), None, version)
        elif kind in {"ADDED", "MODIFIED"}:
            self._arrived(body)
        if version:
            self._version, self._refusals = version, 0
        self.error = None

    async def _list(self) -> str:
        """Read the whole list into the cache and return its version; what it lacks is gone.

        Raises:
            Expired: The list's state went away between pages each time, and also all at once.

        """
        expired = 0
        while True:
            size = 0 if expired == EXPIRIES else self._page
            try:
                return await self._list_by(size)
            except Expired:
                expired += 1
                if expired > EXPIRIES:
                    raise
            except TooLong:
                if size == 1:
                    raise
                self._page = max(1, (size or PAGE) // SMALLER)
            log.debug("list begins anew", resource=self.resource.plural, namespace=self.namespace, page=self._page)

    async def _list_by(self, size: int) -> str:
        version, listed = "", set[Key]()
        pages = self._client.list(
            self.resource, self.namespace, label_selector=self._labels, field_selector=self._fields, page=size
        )
        async with aclosing(pages):
            async for page in pages:
                version = page.resource_version
                for body in page.items:
                    if key := self._arrived(body):
                        listed.add(key)
        for key in self._cache.keys():  # noqa: SIM118 - a copy: entries go meanwhile
            if key not in listed:
                self._take(key, None, version)
        return version

    def _arrived(self, body: Json) -> Key | None:
        """Take one object; one that cannot be parsed is left as it was known, or a single one would stop all."""
        try:
            value = self._parse(body)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            log.warning("object not understood", resource=self.resource.plural, error=repr(error))
            return None
        key = value.namespace, value.name
        self._take(key, value, value.resource_version)
        return key

    def _take(self, key: Key, value: T | None, version: str) -> None:
        if change := self._cache.arrived(key, value, version):
            self._tell(change.old, change.new)

    def _tell(self, old: T | None, new: T | None) -> None:
        for callback in self._subscribers:
            callback(old, new)
