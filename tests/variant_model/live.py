"""The whole controller over the model: its informers, queue, workers and memory, in virtual time.

Requests take a while and may fail, watches are late, break and expire; the process may die at any request. What happens when
follows from one seed.
"""

import asyncio
import random
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from controllers.packagevariant.controller import Options, PackageVariantController
from controllers.runtime.metrics import ControllerMetrics
from krm.client.client import Page
from krm.client.errors import Unanswered
from krm.client.resources import Resource
from krm.meta.errors import Expired
from variant_model.client import Crash, Fault, Faults, ModelClient
from variant_model.invariants import check_always, check_end
from variant_model.people import People, Step
from variant_model.porch import PorchModel, copied
from variant_model.virtual_time import VirtualTimeLoop
from variant_model.world import Notes

Json = dict[str, Any]
CONFIG_MAP = Resource("", "v1", "configmaps", "ConfigMap")
REST = 3000.0
"""Virtual seconds after which everything has to be done: several of the longest pauses between two tries."""


class LiveClient(ModelClient):
    """The requests and watches of one controller process."""

    def __init__(self, porch: PorchModel, faults: Faults, after: Callable[[], None], luck: "Luck") -> None:
        super().__init__(porch, faults, after)
        self._luck = luck

    async def get(self, resource: Resource, namespace: str | None, name: str) -> Json:
        await self._luck.wait()
        return await self._slowly(await super().get(resource, namespace, name))

    async def create(
        self, resource: Resource, namespace: str | None, body: Json, *, subresource: str = "", name: str = ""
    ) -> Json:
        await self._luck.wait()
        return await self._slowly(await super().create(resource, namespace, body, subresource=subresource, name=name))

    async def update(self, resource: Resource, body: Json, *, subresource: str = "") -> Json:
        await self._luck.wait()
        return await self._slowly(await super().update(resource, body, subresource=subresource))

    async def delete(
        self, resource: Resource, namespace: str | None, name: str, *, uid: str = "", resource_version: str = ""
    ) -> None:
        await self._luck.wait()
        await super().delete(resource, namespace, name, uid=uid, resource_version=resource_version)
        await self._luck.wait()

    async def _slowly(self, answer: Json) -> Json:
        await self._luck.wait()
        return answer

    def _fault(self, verb: str) -> Fault | None:
        return super()._fault(verb) or self._luck.fault(verb)

    async def list(self, resource: Resource, namespace: str | None, **_: Any) -> AsyncGenerator[Page]:
        """Read everything at once."""
        await self._luck.wait()
        if self._luck.breaks():
            raise Unanswered("the list broke off")
        yield Page([copied(body) for body in self._porch.all(resource.plural)], str(self._porch.newest))

    async def watch(
        self, resource: Resource, namespace: str | None, resource_version: str, *, seconds: int = 180, **_: Any
    ) -> AsyncGenerator[tuple[str, Json]]:
        """Tell what happened after a version, late; break off, or ask for a new list, now and then."""
        loop, seen = asyncio.get_running_loop(), int(resource_version)
        end = loop.time() + seconds
        while loop.time() < end:
            news = [e for e in self._porch.events if e.plural == resource.plural and _version(e.body) > seen]
            if not news:
                await self._luck.told(end - loop.time())
                continue
            await self._luck.wait()
            if self._luck.breaks():
                raise self._luck.choice((Unanswered("the watch broke off"), Expired("too old resource version")))
            seen = _version(news[0].body)
            yield news[0].type, copied(news[0].body)

    async def resource_of(self, api_version: str, kind: str, *, fresh: bool = False) -> Resource | None:
        """Return ConfigMaps; nothing else can be injected."""
        await self._luck.wait()
        return CONFIG_MAP if (api_version, kind) == ("v1", "ConfigMap") else None


def _version(body: Json) -> int:
    return int(body["metadata"]["resourceVersion"])


@dataclass
class Luck:
    """Delays and faults, all from one seed; none of the faults once ``calm``."""

    porch: PorchModel
    random: random.Random
    rate: float = 0.08
    """Share of requests that fail in some way."""
    calm: bool = False
    _waiting: set["asyncio.Future[None]"] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.porch.told = self._tell

    async def wait(self) -> None:
        """Take a moment: mostly a short one."""
        await asyncio.sleep(self.random.choice((0.0, 0.001, 0.01, 0.1, 1.0)))

    def breaks(self, times: int = 1) -> bool:
        return not self.calm and self.random.random() < self.rate * times

    def fault(self, verb: str) -> Fault | None:
        """Choose what becomes of a request: creates are few, and most goes wrong with them."""
        return self.random.choice(tuple(Fault)) if self.breaks(6 if verb == "create" else 1) else None

    def choice(self, errors: Sequence[Exception]) -> Exception:
        return self.random.choice(errors)

    async def told(self, seconds: float) -> None:
        """Wait for the next event of the server, so long at most."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.add(future)
        await asyncio.wait([future], timeout=seconds)
        self._waiting.discard(future)

    def _tell(self) -> None:
        for future in self._waiting:
            if not future.done():
                future.set_result(None)


class Runs(Protocol):
    """A controller."""

    async def run(self) -> None: ...

    def resync(self) -> None: ...


class LiveProcess(ABC):
    """A server, its users, and a controller as a process that is started again when it dies."""

    client_class: ClassVar[type[LiveClient]] = LiveClient

    def __init__(self, seed: int) -> None:
        self.porch = PorchModel()
        self.luck = Luck(self.porch, random.Random(seed))  # noqa: S311 - chooses what a test does
        self.faults = Faults()
        self.notes = Notes()
        self.failures: list[AssertionError] = []
        self.starts = 0
        self._controller: Runs | None = None
        self._task: asyncio.Task[None] | None = None

    @abstractmethod
    def made(self, client: LiveClient) -> Runs:
        """Return a controller with an empty memory."""

    @abstractmethod
    def holds_always(self) -> None:
        """Check what holds at every moment."""

    @abstractmethod
    def holds_in_the_end(self) -> None:
        """Check what holds when nothing is left to do."""

    @abstractmethod
    def does(self, step: Step) -> None:
        """Let a user do something."""

    def check(self) -> None:
        """Note what does not hold now; the controller would take an error for one of the server's."""
        try:
            self.holds_always()
        except AssertionError as error:
            self.failures.append(error)

    async def keep_running(self) -> None:
        """Run the controller; start it again, with an empty memory, when it dies."""
        while True:
            self.starts += 1
            self.client = self.client_class(self.porch, self.faults, self.check, self.luck)
            self._controller = self.made(self.client)
            try:
                await self._controller.run()
            except BaseExceptionGroup as group:
                if not group.subgroup(Crash):
                    raise
            except Crash:
                pass

    def start(self) -> None:
        """Start the controller's process."""
        self._task = asyncio.create_task(self.keep_running())

    async def stop(self) -> None:
        """Kill the controller's process."""
        assert self._task is not None
        self._task.cancel()
        await asyncio.wait([self._task])
        if not self._task.cancelled() and (error := self._task.exception()) is not None:
            raise error

    def resync(self) -> None:
        """Have the controller look at everything again."""
        assert self._controller is not None
        self._controller.resync()


class Live(LiveProcess):
    """The controller of variants."""

    def __init__(self, seed: int, *, points: bool) -> None:
        super().__init__(seed)
        self.people = People(self.porch, points=points)
        self.people.prepare()
        self.inherited: set[tuple[str, str]] = set()
        self.left: set[tuple[str, str]] = set()

    def made(self, client: LiveClient) -> Runs:
        options = Options(ControllerMetrics(CollectorRegistry()), workers=3)
        controller = PackageVariantController(client, self.notes, options)  # type: ignore[arg-type]
        controller._guard._clock = self._seconds
        return controller

    def _seconds(self) -> float:
        return self.porch.now.timestamp()

    def does(self, step: Step) -> None:
        self.people.does(step)

    def holds_always(self) -> None:
        check_always(self)

    def holds_in_the_end(self) -> None:
        check_end(self)


async def play(live: LiveProcess, script: Sequence[tuple[float, Step | None]]) -> None:
    """Play a script, let everything come to rest, and check that it stays there."""
    live.start()
    await perform(live, script)
    await come_to_rest(live)
    check(live)
    await stays(live, live.resync)
    await live.stop()
    await stays(live, live.start)
    await live.stop()
    check(live)


async def perform(live: LiveProcess, script: Sequence[tuple[float, Step | None]]) -> None:
    """Let users do what the script says, while everything may fail."""
    for pause, step in script:
        await asyncio.sleep(pause)
        if step is None:
            await live.stop()
            live.start()
        else:
            live.does(step)
            live.check()


async def come_to_rest(live: LiveProcess) -> None:
    """Let nothing fail any more, and wait until everything is done."""
    live.luck.calm = True
    await asyncio.sleep(REST)
    live.faults.finish()
    await asyncio.sleep(REST)


async def stays(live: LiveProcess, begin: Callable[[], None]) -> None:
    """Check that the controller writes nothing after ``begin``."""
    before = len(live.porch.writes)
    begin()
    await asyncio.sleep(REST)
    assert live.porch.writes[before:] == [], "there was nothing to do (I1)"


def check(live: LiveProcess) -> None:
    """Check what held all the time, and how things are now."""
    assert not live.failures, live.failures[0]
    live.holds_in_the_end()


def play_live(script: Sequence[tuple[float, Step | None]], seed: int, *, points: bool) -> Live:
    """Play a script of users' steps, each after a pause in seconds (None: the process is killed), and check the end."""
    live = Live(seed, points=points)
    in_virtual_time(lambda: play(live, script))
    return live


def in_virtual_time(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Do some work on a loop of its own in which time costs nothing."""
    loop = VirtualTimeLoop()
    try:
        with capture_logs() as lines:  # thousands of them, about faults that were asked for
            loop.run_until_complete(work())
    finally:
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(1))
        loop.close()
    assert not [line for line in lines if line.get("exc_info")], "an error that is no answer of the server's"
