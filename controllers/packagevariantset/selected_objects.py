"""The objects that targets select, of whatever kind: watched while a set selects some of the kind.

One watch of metadata for each kind and namespace, begun when the first set asks and ended five minutes after the last one
left. Secrets are not selected. Source: ``variants.md`` 3.2, 3.7, 6.10; ``decisions.md`` 16.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import structlog

from controllers.packagevariantset.cached_values import Key, Selectable
from krm.client.client import KubeClient, NoAnswer
from krm.client.informer import Informer
from krm.client.resources import Resource
from krm.meta.errors import BadRequest, Forbidden, MethodNotAllowed, NotFound, StatusError
from krm.variants.sets.targets import Kind, SelectedObject

log = structlog.get_logger()

Json = dict[str, Any]
Place = tuple[str, Kind]
"""Namespace and kind."""
Changed = Callable[[str, Kind, Selectable | None, Selectable | None], None]
"""Is told of the namespace that is watched, the kind, and an object before and after."""

SECRET: Final = ("v1", "Secret")
RECHECKS: Final = 3
"""A server may serve a kind some seconds after it says so, or no longer does."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is watched, and how long is waited; times in seconds."""

    watches: int = 200
    """At the same time; each is a connection's stream and its objects' metadata."""
    first_list: float = 20.0
    """A set waits so long for the objects of a kind that nobody watched before."""
    idle: float = 300.0
    retry: float = 60.0
    """Between two attempts to read a kind that could not be."""
    round: float = 5.0
    """Between two looks for what is idle or to be tried again."""


class NotListed(Exception):
    """The objects of a kind could not be read in time, and nothing says that they never can be: try again."""


@dataclass(slots=True, eq=False)
class _Watched:
    """One kind in one namespace."""

    namespace: str
    kind: Kind
    readers: set[Key] = field(default_factory=set)
    served: bool = True
    refusal: str = ""
    """Why its objects cannot be read; empty where they can be, or the kind is not served."""
    checked_at: float = 0.0
    """Monotonic time, seconds, of the last attempt to find out whether it can be read."""
    informer: "Informer[Selectable] | None" = None
    task: asyncio.Task[None] | None = None
    opening: asyncio.Lock = field(default_factory=asyncio.Lock)
    idle_since: float = 0.0

    @property
    def readable(self) -> bool:
        """Whether nothing is known that keeps its objects from being read."""
        return self.served and not self.refusal

    def close(self) -> None:
        """Stop to watch."""
        if self.task is not None:
            self.task.cancel()
        self.task = self.informer = None

    def __str__(self) -> str:
        return ".".join(self.kind)


class SelectedObjects:
    """Lists objects by kind for sets; ``changed`` is told what happens to them, ``wake`` which sets can or cannot read a kind now.

    For one event loop; ``run`` has to run meanwhile.
    """

    def __init__(
        self,
        client: KubeClient,
        wake: Callable[[Iterable[Key]], None],
        changed: Changed,
        *,
        limits: Limits | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client, self._wake, self._changed = client, wake, changed
        self._limits, self._clock = limits or Limits(), clock
        self._kinds: dict[Place, _Watched] = {}
        self._read: dict[Key, set[Place]] = {}
        self._recheck: dict[Kind, int] = {}
        """How often a kind whose definition came or went is still to be looked for at once."""
        self._awake = asyncio.Event()
        self._tasks: asyncio.Future[asyncio.TaskGroup] | None = None

    @property
    def watches(self) -> int:
        """How many kinds are watched, counted by namespace."""
        return sum(one.informer is not None for one in self._kinds.values())

    async def open(self, key: Key, kinds: Iterable[Kind]) -> None:
        """Watch the kinds that a set selects from, in its namespace; they replace those of before.

        Raises:
            NotListed: a first list did not come in time.
            StatusError, NoAnswer: the server cannot answer now.
        """
        wanted = {(key[0], kind) for kind in kinds}
        self._subscribe(key, wanted)
        for place in sorted(wanted):
            watched = self._kinds[place]
            try:
                async with asyncio.timeout(self._limits.first_list):
                    await self._opened(watched)
            except TimeoutError as error:
                raise NotListed(f"objects of {watched} could not be listed in {self._limits.first_list:g} s") from error

    def listed(self, key: Key) -> dict[Kind, Sequence[SelectedObject] | str]:
        """Return what there is of each kind that a set reads, or why that is not known; a kind that is not served is missing."""
        found: dict[Kind, Sequence[SelectedObject] | str] = {}
        for place in self._read.get(key, ()):
            watched = self._kinds[place]
            if watched.refusal:
                found[watched.kind] = watched.refusal
            elif watched.informer is not None:
                found[watched.kind] = [one.metadata for one in watched.informer.values()]
        return found

    def forget(self, key: Key) -> None:
        """End what a set reads."""
        self._subscribe(key, set())

    def definitions_changed(self, kinds: Iterable[Kind]) -> None:
        """Look again whether these kinds can be read: their definitions came or went."""
        self._recheck |= dict.fromkeys(kinds, RECHECKS)
        self._awake.set()

    async def run(self) -> None:
        """Watch, end what is idle and try again what could not be read, until cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                self._started().set_result(tasks)
                while True:
                    await self._next_round()
                    self._end_idle()
                    await self._check_again()
        finally:
            self._tasks = None
            self._kinds.clear()
            self._read.clear()

    # --- who reads what -----------------------------------------------------------------------------

    def _subscribe(self, key: Key, wanted: set[Place]) -> None:
        before = self._read.pop(key, set())
        for place in before - wanted:
            watched = self._kinds[place]
            watched.readers.discard(key)
            watched.idle_since = self._clock()
        for place in wanted:
            self._kinds.setdefault(place, _Watched(*place)).readers.add(key)
        if wanted:
            self._read[key] = wanted

    # --- what is watched ----------------------------------------------------------------------------

    async def _opened(self, watched: _Watched) -> None:
        tasks = await asyncio.shield(self._started())
        async with watched.opening:
            if watched.informer is None and watched.readable:
                await self._open(watched, tasks)
        if watched.informer is not None:
            await watched.informer.wait_synced()

    def _started(self) -> "asyncio.Future[asyncio.TaskGroup]":
        if self._tasks is None:
            self._tasks = asyncio.get_running_loop().create_future()
        return self._tasks

    async def _open(self, watched: _Watched, tasks: asyncio.TaskGroup) -> None:
        resource = await self._found(watched)
        if resource is None:
            return
        namespace = watched.namespace if resource.namespaced else None
        parse = partial(Selectable.of, kind=watched.kind)
        informer = Informer(self._client.of_metadata(), resource, namespace, parse)
        informer.subscribe(partial(self._changed, watched.namespace, watched.kind))
        watched.informer = informer
        watched.task = tasks.create_task(informer.run(), name=f"objects {watched} in {watched.namespace}")
        log.info("objects are watched for sets", kind=str(watched), namespace=watched.namespace)

    async def _found(self, watched: _Watched) -> Resource | None:
        """Return the resource of a kind, and note why its objects are not read if they are not.

        Raises:
            StatusError, NoAnswer: it is not known now.
        """
        watched.checked_at = self._clock()
        if watched.kind == SECRET:
            watched.refusal = "objects of kind Secret are never selected"
            return None
        try:
            resource = await self._readable(watched)
        except (BadRequest, Forbidden, NotFound, MethodNotAllowed) as error:
            watched.served, watched.refusal = True, error.message
            return None
        watched.served, watched.refusal = resource is not None, ""
        if watched.informer is None and resource is not None and self.watches >= self._limits.watches:
            watched.refusal = f"{self._limits.watches} kinds are watched for sets already"
            return None
        return resource

    async def _readable(self, watched: _Watched) -> Resource | None:
        resource = await self._client.resource_of(*watched.kind, fresh=True)
        if resource is None:
            return None
        # An informer would try for ever where it may not list, so one object is asked for first.
        namespace = watched.namespace if resource.namespaced else None
        async with aclosing(self._client.of_metadata().list(resource, namespace, page=1)) as pages:
            await anext(pages, None)
        return resource

    # --- as time goes by ----------------------------------------------------------------------------

    async def _next_round(self) -> None:
        try:
            async with asyncio.timeout(self._limits.round):
                await self._awake.wait()
        except TimeoutError:
            return
        self._awake.clear()

    def _end_idle(self) -> None:
        now = self._clock()
        for place, watched in list(self._kinds.items()):
            if watched.readers or watched.opening.locked():
                continue
            if watched.informer is None or now - watched.idle_since >= self._limits.idle:
                del self._kinds[place]
                watched.close()

    async def _check_again(self) -> None:
        due, self._recheck = self._recheck, {}
        left: dict[Kind, int] = defaultdict(int)
        for watched in list(self._kinds.values()):
            is_late = not watched.readable and self._clock() - watched.checked_at >= self._limits.retry
            if watched.kind not in due and not is_late:
                continue
            await self._check(watched)
            if due.get(watched.kind, 0) > 1:
                left[watched.kind] = due[watched.kind] - 1
        for kind, times in left.items():
            self._recheck.setdefault(kind, times)

    async def _check(self, watched: _Watched) -> None:
        """Find out whether a kind can be read now, and wake its readers if that is not as it was."""
        async with watched.opening:
            before = watched.served, watched.refusal
            try:
                await self._found(watched)
            except (StatusError, NoAnswer) as error:
                log.warning("a kind to select from is not known to be served", kind=str(watched), error=str(error))
                return
            if before == (watched.served, watched.refusal):
                return
            if not watched.readable:
                watched.close()
        self._wake(set(watched.readers))
