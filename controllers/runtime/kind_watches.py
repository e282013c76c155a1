"""Watches of kinds that users name: begun when the first object asks for a kind, ended a while after the last one left.

One watch for each kind and namespace. A kind that cannot be read (not served, forbidden, one too many) is a refusal that is
told, and tried again as time goes by and when its definition comes or goes. Source: ``variants.md`` 2.14, 3.7, 6.10.
"""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Generic, TypeVar

import structlog

from controllers.runtime.served_kinds import ObjectType
from krm.client.client import KubeClient, NoAnswer
from krm.client.informer import Informer
from krm.client.resources import Resource
from krm.meta.errors import BadRequest, Forbidden, MethodNotAllowed, NotFound, StatusError

log = structlog.get_logger()

Key = tuple[str, str]
"""Namespace and name of an object that asks for kinds."""
Place = tuple[str, ObjectType]
"""Namespace and type of what is watched."""

READABLE_LABEL: Final = "config.porch.kpt.dev/aggregate-to-injectables"
"""Of ClusterRoles whose rules the controllers have, too."""
RECHECKS: Final = 3
"""A server may serve a kind some seconds after it says so, or no longer does."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is watched, and how long is waited; times in seconds."""

    watches: int = 200
    """At the same time; each is a connection's stream, and what is kept of its objects."""
    first_list: float = 20.0
    """Whoever asks waits so long for the objects of a kind that nobody watched before."""
    idle: float = 300.0
    retry: float = 60.0
    """Between two attempts to read a kind that could not be."""
    round: float = 5.0
    """Between two looks for what is idle or to be tried again."""


class NotListed(Exception):
    """The objects of a kind could not be read in time, and nothing says that they never can be: try again."""


@dataclass(slots=True, eq=False)
class WatchedKind:
    """The objects of one kind in one namespace."""

    namespace: str
    """Of those who ask, also where the kind is cluster-scoped."""
    type: ObjectType
    readers: set[Key] = field(default_factory=set)
    """Those who ask for the kind."""
    served: bool = True
    refusal: str = ""
    """Why its objects cannot be read; empty where they can be."""
    checked_at: float = 0.0
    """Monotonic time, seconds, of the last attempt to find out whether it can be read."""
    resource: Resource | None = None
    informer: "Informer[Any] | None" = None
    task: asyncio.Task[None] | None = None
    opening: asyncio.Lock = field(default_factory=asyncio.Lock)
    idle_since: float = 0.0
    """Monotonic time, seconds, at which the last reader left."""

    @property
    def open(self) -> bool:
        """Whether it is watched."""
        return self.informer is not None

    def left(self, key: Key) -> None:
        """Take that somebody no longer asks for it."""
        self.readers.discard(key)

    def close(self) -> None:
        """Stop to watch; what was kept is dropped."""
        if self.task is not None:
            self.task.cancel()
        self.task = self.informer = None

    def __str__(self) -> str:
        return ".".join(self.type)


W = TypeVar("W", bound=WatchedKind)


class KindWatches(ABC, Generic[W]):
    """The kinds that are watched; ``wake`` has those looked at who can or cannot read a kind now.

    For one event loop; ``run`` has to run meanwhile.
    """

    purpose: ClassVar[str]
    """What the objects are read for, in messages."""
    metadata_only: ClassVar[bool] = False
    """Whether only the metadata of objects is read."""
    only_namespaced: ClassVar[str] = ""
    """Which objects are read where those of the cluster as a whole are not; empty where they are, too."""

    def __init__(
        self,
        client: KubeClient,
        wake: Callable[[Iterable[Key]], None],
        *,
        limits: Limits | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client, self._wake = client, wake
        self._limits, self._clock = limits or Limits(), clock
        self._kinds: dict[Place, W] = {}
        self._read: dict[Key, set[Place]] = {}
        self._recheck: dict[ObjectType, int] = {}
        """How often a kind whose definition came or went is still to be looked for at once."""
        self._awake = asyncio.Event()
        self._tasks: asyncio.Future[asyncio.TaskGroup] | None = None

    # --- what differs -------------------------------------------------------------------------------

    @abstractmethod
    def _made(self, namespace: str, type_: ObjectType) -> W:
        """Return a kind that nobody asked for before."""

    @abstractmethod
    def _never(self, type_: ObjectType) -> str:
        """Return why objects of a type are never read, empty where they may be."""

    @abstractmethod
    def _informer(self, watched: W, client: KubeClient, resource: Resource) -> "Informer[Any]":
        """Return what keeps the objects of a kind, subscribed to."""

    def _concerned(self, watched: W) -> set[Key]:
        """Return who has to hear that a kind can be read now, or cannot any more."""
        return set(watched.readers)

    # --- who reads what -----------------------------------------------------------------------------

    @property
    def watches(self) -> int:
        """How many kinds are watched, counted by namespace."""
        return sum(one.open for one in self._kinds.values())

    def forget(self, key: Key) -> None:
        """End what somebody reads."""
        self._subscribe(key, set())

    def definitions_changed(self, types: Iterable[ObjectType]) -> None:
        """Look again whether these kinds can be read: their definitions came or went."""
        self._recheck |= dict.fromkeys(types, RECHECKS)
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

    def _subscribe(self, key: Key, wanted: set[Place]) -> None:
        """Note what somebody asks for from now on, in place of what it asked for before."""
        before = self._read.pop(key, set())
        for place in before - wanted:
            watched = self._kinds[place]
            watched.left(key)
            watched.idle_since = self._clock()
        for place in wanted:
            if place not in self._kinds:
                self._kinds[place] = self._made(*place)
            self._kinds[place].readers.add(key)
        if wanted:
            self._read[key] = wanted

    # --- what is watched ----------------------------------------------------------------------------

    async def _opened(self, watched: W) -> None:
        """Watch a kind if it can be read, and wait for its objects.

        Raises:
            NotListed: The first list did not come in time.
            StatusError, NoAnswer: The server cannot answer now.
        """
        try:
            async with asyncio.timeout(self._limits.first_list):
                tasks = await asyncio.shield(self._started())
                async with watched.opening:
                    if not watched.open and not watched.refusal:
                        await self._open(watched, tasks)
                if watched.informer is not None:
                    await watched.informer.wait_synced()
        except TimeoutError as error:
            raise NotListed(f"objects of {watched} could not be listed in {self._limits.first_list:g} s") from error

    def _started(self) -> "asyncio.Future[asyncio.TaskGroup]":
        if self._tasks is None:
            self._tasks = asyncio.get_running_loop().create_future()
        return self._tasks

    async def _open(self, watched: W, tasks: asyncio.TaskGroup) -> None:
        watched.resource = await self._found(watched)
        if watched.resource is None:
            return
        watched.informer = self._informer(watched, self._reader(), watched.resource)
        name = f"objects {watched} in {watched.namespace} for {self.purpose}"
        watched.task = tasks.create_task(watched.informer.run(), name=name)
        log.info("objects are watched", kind=str(watched), namespace=watched.namespace, purpose=self.purpose)

    def _reader(self) -> KubeClient:
        return self._client.of_metadata() if self.metadata_only else self._client

    async def _found(self, watched: W) -> Resource | None:
        """Return the resource of a kind that can be read, and note why it cannot be.

        Raises:
            StatusError, NoAnswer: It is not known now.
        """
        watched.checked_at = self._clock()
        if never := self._never(watched.type):
            watched.refusal = never
            return None
        try:
            resource = await self._client.resource_of(*watched.type, fresh=True)
            refusal = await self._refusal(watched, resource)
        except Forbidden as error:
            watched.served = True
            watched.refusal = f"{error.message}; a ClusterRole with the label {READABLE_LABEL} gives that right"
            return None
        except (BadRequest, NotFound, MethodNotAllowed) as error:
            watched.served, watched.refusal = True, error.message
            return None
        watched.served, watched.refusal = resource is not None, refusal
        return None if refusal else resource

    async def _refusal(self, watched: W, resource: Resource | None) -> str:
        """Return why objects cannot be read, empty where they can be; some errors say so, too."""
        if resource is None:
            return f'no matches for kind "{watched.type[1]}" in version "{watched.type[0]}"'
        if self.only_namespaced and not resource.namespaced:
            return f"{watched} is cluster-scoped: {self.only_namespaced}"
        if not watched.open and self.watches >= self._limits.watches and not self._end_longest_idle():
            return f"{self._limits.watches} kinds are watched for {self.purpose} already"
        # An informer would try for ever where it may not list, so one object is asked for first.
        namespace = watched.namespace if resource.namespaced else None
        async with aclosing(self._reader().list(resource, namespace, page=1)) as pages:
            await anext(pages, None)
        return ""

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
            if not watched.open or now - watched.idle_since >= self._limits.idle:
                self._end(place)

    def _end_longest_idle(self) -> bool:
        idle = [place for place, watched in self._kinds.items() if watched.open and not watched.readers]
        if not idle:
            return False
        self._end(min(idle, key=lambda place: self._kinds[place].idle_since))
        return True

    def _end(self, place: Place) -> None:
        watched = self._kinds.pop(place)
        if watched.open:
            log.info("objects are no longer watched", kind=str(watched), namespace=place[0], purpose=self.purpose)
        watched.close()

    async def _check_again(self) -> None:
        due, self._recheck = self._recheck, {}
        for watched in list(self._kinds.values()):
            is_late = bool(watched.refusal) and self._clock() - watched.checked_at >= self._limits.retry
            if watched.type not in due and not is_late:
                continue
            await self._check(watched)
            if due.get(watched.type, 0) > 1:
                self._recheck.setdefault(watched.type, due[watched.type] - 1)

    async def _check(self, watched: W) -> None:
        """Find out whether a kind can be read now, and wake who reads it if that is not as they were told."""
        async with watched.opening:
            before = watched.refusal
            try:
                await self._found(watched)
            except (StatusError, NoAnswer) as error:
                log.warning("a kind is not known to be served", kind=str(watched), error=str(error))
                return
            if watched.refusal == before:
                return
            if watched.refusal:
                watched.close()
        self._wake(self._concerned(watched))
