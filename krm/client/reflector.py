"""Reads one resource's objects as the server has them, a list, then a watch, again and again, for everybody who keeps them.

The name is client-go's. Several caches of one process read from one reflector: one list, one watch, and each object read from
its JSON once. Source: ``architecture.md`` 3.7, ``variants.md`` 6.10.
"""

import asyncio
import random
from collections.abc import Callable, Iterable
from contextlib import aclosing
from typing import Any, Final, Protocol

import structlog

from krm.client.cache import Cached, Key
from krm.client.client import PAGE, KubeClient
from krm.client.errors import Garbled, NoAnswer, TooLong
from krm.client.resources import Resource
from krm.meta.errors import Expired, StatusError, TooManyRequests

Json = dict[str, Any]
Parse = Callable[[Json], Cached]
"""What is kept of an object, made of it; what is not understood raises KeyError, TypeError, ValueError or AttributeError."""

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


class Store(Protocol):
    """Keeps what a reflector reads."""

    @property
    def parse(self) -> Parse:
        """What makes of an object what is kept; stores with the same one get the same value."""
        ...

    def keys(self) -> Iterable[Key]:
        """Return the objects that are known, as a copy."""
        ...

    def take(self, key: Key, value: Any, version: str) -> None:
        """Take an object's state, or None when it is gone, at a version."""
        ...


class Reflector:
    """One resource in one namespace (None: in all), as far as the selectors choose. Use from one event loop."""

    def __init__(
        self,
        client: KubeClient,
        resource: Resource,
        namespace: str | None,
        *,
        label_selector: str = "",
        field_selector: str = "",
    ) -> None:
        self.resource = resource
        self.namespace = namespace
        self.error: Exception | None = None
        """Why the last list or watch failed; None while all is well."""
        self._client = client
        self._labels, self._fields = label_selector, field_selector
        self._stores: list[Store] = []
        self._synced = asyncio.Event()
        self._version = ""
        """Where the next watch begins; empty where only a list can tell."""
        self._page = PAGE
        self._failures = 0
        self._refusals = 0

    def feed(self, store: Store) -> None:
        """Have everything told to a store, too; before :meth:`run`, since nothing is told again."""
        self._stores.append(store)

    @property
    def synced(self) -> bool:
        """Whether a whole list was read since the start; stores stay, perhaps old, when the server goes away."""
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        """Wait until the first list was read; the caller sets the deadline."""
        await self._synced.wait()

    async def run(self) -> None:
        """Keep the stores true until cancelled. Failures of the server are logged, told by ``error``, and tried again.

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
                self.event(kind, body)
        self.error = None
        self._refusals = 0

    def event(self, kind: str, body: Json) -> None:
        """Take one event of a watch."""
        meta = body.get("metadata")
        version = str(meta.get("resourceVersion") or "") if isinstance(meta, dict) else ""
        if kind == "DELETED" and isinstance(meta, dict):
            self._gone((str(meta.get("namespace") or ""), str(meta.get("name"))), version)
        elif kind in {"ADDED", "MODIFIED"}:
            self._arrived(body)
        if version:
            self._version, self._refusals = version, 0
        self.error = None

    async def _list(self) -> str:
        """Read the whole list into the stores and return its version; what it lacks is gone.

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
        for store in self._stores:
            for key in store.keys():  # noqa: SIM118 - a store is no dict
                if key not in listed:
                    store.take(key, None, version)
        return version

    def _arrived(self, body: Json) -> Key | None:
        """Tell one object to the stores, and return its key if any of them understood it."""
        values = {parse: self._parsed(parse, body) for parse in {store.parse for store in self._stores}}
        key: Key | None = None
        for store in self._stores:
            if (value := values[store.parse]) is not None:
                key = value.namespace, value.name
                store.take(key, value, value.resource_version)
        return key

    def _parsed(self, parse: Parse, body: Json) -> Cached | None:
        """Return what is kept of an object; one that cannot be read is left as it was known, or it would stop all."""
        try:
            return parse(body)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            log.warning("object not understood", resource=self.resource.plural, error=repr(error))
            return None

    def _gone(self, key: Key, version: str) -> None:
        for store in self._stores:
            store.take(key, None, version)


class Reflectors:
    """One reflector for each kind, place and selectors: whoever asks for the same gets the same.

    Whoever made them runs them, after everybody has asked.
    """

    def __init__(self) -> None:
        self._made: dict[tuple[Resource, str | None, str, str], Reflector] = {}

    def of(
        self,
        client: KubeClient,
        resource: Resource,
        namespace: str | None,
        *,
        label_selector: str = "",
        field_selector: str = "",
    ) -> Reflector:
        """Return the reflector of a kind; the ``client`` of the first who asks is used for all."""
        wanted = resource, namespace, label_selector, field_selector
        if wanted not in self._made:
            self._made[wanted] = Reflector(
                client, resource, namespace, label_selector=label_selector, field_selector=field_selector
            )
        return self._made[wanted]

    async def run(self) -> None:
        """Keep what reads from them true until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for one in self._made.values():
                tasks.create_task(one.run(), name=f"reflector of {one.resource.plural}")
