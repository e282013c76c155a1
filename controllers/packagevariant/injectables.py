"""The objects of the cluster that packages take configuration from, watched while a variant has a point for them.

One watch for each kind and namespace, begun when the first variant asks and ended five minutes after the last one left.
Secrets are never read. Source: ``variants.md`` 2.9.3, 2.14, 6.10; ``decisions.md`` 16; seed 000, "Configuration injection".
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

import structlog

from controllers.packagevariant.cached_values import Key
from controllers.packagevariant.watched_kind import Injectable, ObjectType, WatchedKind
from krm.client.client import KubeClient, NoAnswer
from krm.client.informer import Informer
from krm.client.resources import PACKAGE_REVISIONS, Resource
from krm.meta.errors import BadRequest, Forbidden, MethodNotAllowed, NotFound, StatusError
from krm.variants.mutation import Listing

log = structlog.get_logger()

SECRET: Final = ("v1", "Secret")
PACKAGES: Final = PACKAGE_REVISIONS.group
"""Objects of this group are packages: to list them all with their files would cost more than any injection is worth."""
RECHECKS: Final = 3
"""A server may serve a kind some seconds after it says so."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is watched, and how long is waited; times in seconds."""

    watches: int = 200
    """At the same time; each is a connection's stream and its objects' names."""
    first_list: float = 20.0
    """A variant waits so long for the objects of a kind that nobody watched before."""
    idle: float = 300.0
    retry: float = 60.0
    """Between two attempts to read a kind that could not be."""
    round: float = 5.0
    """Between two looks for what is idle or to be tried again."""


class NotListed(Exception):
    """The objects of a kind could not be read in time, and nothing says that they never can be: try again."""


class Askers(Protocol):
    """The variants by the names of the objects that they select."""

    def names(self, key: Key) -> Iterable[str]:
        """Return the names that a variant's selectors ask for."""
        ...

    def asking(self, namespace: str, name: str) -> Iterable[Key]:
        """Return the variants that ask for a name."""
        ...


class Injectables:
    """Reads objects by kind for variants, and wakes a variant when one of those that it selects changes.

    ``resource_of`` finds the resource of a kind (None: not served). For one event loop; ``run`` has to run meanwhile.
    """

    def __init__(
        self,
        client: KubeClient,
        askers: Askers,
        wake: Callable[[Iterable[Key]], None],
        *,
        limits: Limits | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client, self._askers, self._wake = client, askers, wake
        self._limits, self._clock = limits or Limits(), clock
        self._kinds: dict[tuple[str, ObjectType], WatchedKind] = {}
        self._read: dict[Key, set[tuple[str, ObjectType]]] = defaultdict(set)
        self._recheck: dict[ObjectType, int] = {}
        """How often a kind whose definition came or went is still to be looked for at once."""
        self._awake = asyncio.Event()
        self._tasks: asyncio.Future[asyncio.TaskGroup] | None = None

    @property
    def watches(self) -> int:
        """How many kinds are watched, counted by namespace."""
        return sum(kind.open for kind in self._kinds.values())

    async def listings(self, key: Key, namespace: str, types: Iterable[ObjectType]) -> Mapping[ObjectType, Listing]:
        """Return what there is of each type, and wake the variant from now on when that changes for it.

        ``types`` replaces what the variant read before. Where there are objects but none that the variant selects, one
        without contents stands for all of them.

        Raises:
            NotListed: The first list did not come in time.
            StatusError, NoAnswer: The server cannot answer now.

        """
        wanted = set(types)
        self._subscribe(key, {(namespace, type_) for type_ in wanted})
        return {type_: await self._listing(key, self._kinds[namespace, type_]) for type_ in sorted(wanted)}

    def reading(self, key: Key) -> tuple[object, ...]:
        """Return what a variant was told of, as a value that differs when it would be told something else."""
        names = tuple(self._askers.names(key))
        return tuple(self._kinds[one].reading(names) for one in sorted(self._read.get(key, ())))

    def forget(self, key: Key) -> None:
        """End what a variant reads."""
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

    # --- who reads what -----------------------------------------------------------------------------

    def _subscribe(self, key: Key, wanted: set[tuple[str, ObjectType]]) -> None:
        before = self._read.pop(key, set())
        for one in before - wanted:
            kind = self._kinds[one]
            kind.readers.discard(key)
            kind.told.discard(key)
            kind.idle_since = self._clock()
        for one in wanted:
            self._kinds.setdefault(one, WatchedKind(*one)).readers.add(key)
        if wanted:
            self._read[key] = wanted

    async def _listing(self, key: Key, kind: WatchedKind) -> Listing:
        try:
            async with asyncio.timeout(self._limits.first_list):
                await self._opened(kind)
        except TimeoutError as error:
            raise NotListed(
                f"objects of {_named(kind)} could not be listed in {self._limits.first_list:g} s"
            ) from error
        if key in kind.readers:
            kind.told.add(key)
        names = tuple(self._askers.names(key))
        await self._complete(kind, names)
        return kind.listing(names)

    async def _complete(self, kind: WatchedKind, names: Iterable[str]) -> None:
        """Read the objects that nobody asked for when they were listed."""
        for name in names:
            known = kind.known(name)
            if known is None or known.text or kind.resource is None:
                continue
            try:
                body = await self._client.get(kind.resource, kind.namespace, name)
            except NotFound:  # its event is on the way
                continue
            kind.fetched[name] = Injectable.of(body, kind.type, asked=True)

    def _changed(self, kind: WatchedKind, old: Injectable | None, new: Injectable | None) -> None:
        one = new or old
        if not kind.changed(old, new) or one is None:
            return
        woken = kind.told.intersection(self._askers.asking(one.namespace, one.name))
        if kind.first_or_last(old, new):
            woken = set(kind.told)  # whose conditions say that there is nothing of the kind, or no longer do
        if woken:
            self._wake(woken)

    # --- what is watched ----------------------------------------------------------------------------

    async def _opened(self, kind: WatchedKind) -> None:
        tasks = await asyncio.shield(self._started())
        async with kind.opening:
            if not kind.open and not kind.refusal:
                await self._open(kind, tasks)
        if kind.informer is not None:
            await kind.informer.wait_synced()

    def _started(self) -> "asyncio.Future[asyncio.TaskGroup]":
        if self._tasks is None:
            self._tasks = asyncio.get_running_loop().create_future()
        return self._tasks

    async def _open(self, kind: WatchedKind, tasks: asyncio.TaskGroup) -> None:
        resource, kind.refusal = await self._resource(kind)
        kind.checked_at = self._clock()
        if resource is None:
            return
        kind.resource, namespace, type_ = resource, kind.namespace, kind.type
        kind.informer = Informer(self._client, resource, namespace, partial(self._kept, namespace, type_))
        kind.informer.subscribe(partial(self._changed, kind))
        kind.task = tasks.create_task(kind.informer.run(), name=f"injectables {_named(kind)} in {namespace}")
        log.info("objects are watched for injection", kind=_named(kind), namespace=namespace)

    def _kept(self, namespace: str, type_: ObjectType, body: dict[str, object]) -> Injectable:
        name = body["metadata"]["name"]  # type: ignore[index]  # every object has one
        return Injectable.of(body, type_, asked=any(True for _ in self._askers.asking(namespace, name)))

    async def _resource(self, kind: WatchedKind) -> tuple[Resource | None, str]:
        """Return the resource of a kind, or why its objects are not read."""
        if kind.type == SECRET:
            return None, "objects of kind Secret are never injected"
        if kind.type[0].partition("/")[0] == PACKAGES:
            return None, f"objects of {PACKAGES} are never injected"
        try:
            return await self._readable(kind)
        except (BadRequest, Forbidden, NotFound, MethodNotAllowed) as error:
            return None, error.message

    async def _readable(self, kind: WatchedKind) -> tuple[Resource | None, str]:
        resource = await self._client.resource_of(*kind.type, fresh=True)
        if resource is None:
            return None, f'no matches for kind "{kind.type[1]}" in version "{kind.type[0]}"'
        if not resource.namespaced:
            return None, f"{_named(kind)} is cluster-scoped: only objects in the namespace of the variant are injected"
        if not kind.open and self.watches >= self._limits.watches and not self._end_longest_idle():
            return None, f"{self._limits.watches} kinds are watched for injection already"
        # An informer would try for ever where it may not list, so one object is asked for first.
        async with aclosing(self._client.list(resource, kind.namespace, page=1)) as pages:
            await anext(pages, None)
        return resource, ""

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
        for place, kind in list(self._kinds.items()):
            if kind.readers or kind.opening.locked():
                continue
            if not kind.open or now - kind.idle_since >= self._limits.idle:
                self._end(place)

    def _end_longest_idle(self) -> bool:
        idle = [place for place, kind in self._kinds.items() if kind.open and not kind.readers]
        if not idle:
            return False
        self._end(min(idle, key=lambda place: self._kinds[place].idle_since))
        return True

    def _end(self, place: tuple[str, ObjectType]) -> None:
        kind = self._kinds.pop(place)
        if kind.open:
            log.info("objects are no longer watched for injection", kind=_named(kind), namespace=kind.namespace)
        kind.close()

    async def _check_again(self) -> None:
        due, self._recheck = self._recheck, {}
        for kind in list(self._kinds.values()):
            is_late = bool(kind.refusal) and self._clock() - kind.checked_at >= self._limits.retry
            if kind.type not in due and not is_late:
                continue
            await self._check(kind)
            if kind.refusal and due.get(kind.type, 0) > 1:
                self._recheck.setdefault(kind.type, due[kind.type] - 1)

    async def _check(self, kind: WatchedKind) -> None:
        """Find out whether a kind can be read now, and wake its readers if that is not as they were told."""
        async with kind.opening:
            kind.checked_at = self._clock()
            try:
                _, refusal = await self._resource(kind)
            except (StatusError, NoAnswer) as error:
                log.warning("a kind to inject is not known to be served", kind=_named(kind), error=str(error))
                return
            if refusal == kind.refusal:
                return
            kind.refusal = refusal
            if refusal:
                kind.close()
        self._wake(set(kind.told))


def _named(kind: WatchedKind) -> str:
    return ".".join(kind.type)
