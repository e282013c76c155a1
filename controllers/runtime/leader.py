"""One of several processes works: the one that holds a Lease.

Nobody's clock is trusted but one's own. A candidate waits until the Lease has not changed for as long as its holder
promised, counted from when the candidate saw it; a holder stops some seconds earlier, counted from before it asked for the
renewal that succeeded last. Source: ``libraries.md`` 6; the Lease's fields are client-go's.
"""

import asyncio
import datetime as dt
import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, NoReturn

import structlog

from krm.client.client import KubeClient, NoAnswer
from krm.client.resources import LEASES
from krm.meta.errors import NotFound, StatusError

Json = dict[str, Any]
log = structlog.get_logger()

STOP_SECONDS: Final = 10.0
"""How long led work may take to end once it was told to."""
RELEASE_SECONDS: Final = 2.0
MAX_PROMISE: Final = 600.0
"""Seconds of silence after which a Lease is free whatever it says."""


@dataclass(frozen=True, slots=True)
class Timings:
    """Seconds. Another process takes over ``duration`` to ``duration + 2 * retry`` after the last sign of life."""

    duration: float = 10.0
    """Silence after which candidates take the Lease."""
    renew: float = 6.0
    """Time without a renewal after which the holder stops; the rest of ``duration`` is for requests that it sent before."""
    retry: float = 1.5
    """Between two renewals, and between two looks."""


class LedWorkEnded(Exception):
    """The led work crashed, ended by itself or cannot be ended; the process is of no use any more."""


def boottime() -> float:
    """Return seconds of a clock that nobody sets and that runs on while the machine sleeps, where there is one."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime(clock)


class Election:
    """One candidate for one Lease; ``identity`` is this process's alone.

    ``healthy`` is asked before the Lease is taken or renewed: work that hangs loses it although the process runs.
    """

    def __init__(
        self,
        client: KubeClient,
        namespace: str,
        name: str,
        identity: str,
        timings: Timings | None = None,
        *,
        healthy: Callable[[], bool] = lambda: True,
        clock: Callable[[], float] = boottime,
    ) -> None:
        self._client = client
        self._namespace, self._name, self._identity = namespace, name, identity
        self._timings = timings or Timings()
        self._healthy = healthy
        self._clock = clock
        self._until = -math.inf
        self._held: Json | None = None
        self._seen: Json | None = None
        self._seen_at = -math.inf
        self._trouble = ""
        """What the last attempt failed with; told once, not every second."""

    def leading(self) -> bool:
        """Whether this process may write now.

        A process that was stopped and continues finds False here before it has heard of anybody else.
        """
        return self._clock() < self._until

    async def run(self, work: Callable[[], Awaitable[None]]) -> NoReturn:
        """Wait for the Lease and work while holding it, again and again. When cancelled, ``work`` is, then the Lease is released.

        Raises:
            LedWorkEnded: ``work`` crashed, returned, or goes on though it was cancelled.
        """
        while True:
            pause = await self._attempt() if self._healthy() else self._timings.retry
            if pause is None:
                log.info("became leader", lease=self._name, identity=self._identity)
                await self._lead(work)
            else:
                await asyncio.sleep(pause)

    async def _lead(self, work: Callable[[], Awaitable[None]]) -> None:
        led = asyncio.ensure_future(work())
        keeping = asyncio.create_task(self._keep())
        try:
            await asyncio.wait({led, keeping}, return_when=asyncio.FIRST_COMPLETED)
            lost = not led.done()
        finally:
            led.cancel()
            # The Lease is kept until the work has ended, however long that takes: nobody else may begin before.
            await asyncio.wait({led}, timeout=STOP_SECONDS)
            keeping.cancel()
            ended = _end_of(led)
            if led.done():
                await self._release()
        if not lost or not led.done():
            raise LedWorkEnded(f"the led work {'did not end when told to' if lost else 'ended'}") from ended
        log.warning("lost the lease", lease=self._name, identity=self._identity, error=ended and repr(ended))

    async def _keep(self) -> None:
        """Renew the Lease; return once it is lost."""
        while self.leading():
            await asyncio.sleep(self._timings.retry)
            if not self._healthy():
                log.error("the work hangs: the lease is not renewed", lease=self._name)
            elif self.leading():
                await self._attempt()

    async def _attempt(self) -> float | None:
        """Take or renew the Lease if it is free or ours; return None then, else the seconds until the next look."""
        try:
            async with asyncio.timeout(self._timings.renew / 2):
                pause = await self._take()
        except (StatusError, NoAnswer, TimeoutError) as error:
            trouble = str(error) or "no answer in time"
            if trouble != self._trouble:
                log.warning("lease neither read nor written", lease=self._name, error=trouble)
            self._trouble = trouble
            return self._timings.retry
        self._trouble = ""
        return pause

    async def _take(self) -> float | None:
        # While we hold it, the answer to our last write is what there is; after a failure it is read again.
        lease, self._held = self._held or await self._read(), None
        if (wait := self._free_in((lease or {}).get("spec") or {})) > 0:
            self._until = -math.inf
            return min(wait, self._timings.retry)
        asked = self._clock()
        self._held = await self._write(lease, self._identity, math.ceil(self._timings.duration))
        self._until = asked + self._timings.renew
        return None

    async def _release(self) -> None:
        """Let others take the Lease at once; if that fails, they wait as they would after a crash."""
        held, leading, self._until = self._held, self.leading(), -math.inf
        if held is None or not leading:
            return
        self._held = None
        try:
            async with asyncio.timeout(RELEASE_SECONDS):
                await self._write(held, "", 1)
        except (StatusError, NoAnswer, TimeoutError) as error:
            log.warning("lease not released", lease=self._name, error=str(error) or "no answer in time")

    async def _read(self) -> Json | None:
        try:
            return await self._client.get(LEASES, self._namespace, self._name)
        except NotFound:
            return None

    async def _write(self, lease: Json | None, holder: str, promise: int) -> Json:
        before = (lease or {}).get("spec") or {}
        now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = {**before, "holderIdentity": holder, "leaseDurationSeconds": promise, "renewTime": now}
        if before.get("holderIdentity") != holder and holder:
            spec |= {"acquireTime": now, "leaseTransitions": (before.get("leaseTransitions") or 0) + bool(lease)}
        if lease is not None:
            return await self._client.update(LEASES, {**lease, "spec": spec})
        body = {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": {"name": self._name}, "spec": spec}
        return await self._client.create(LEASES, self._namespace, body)

    def _free_in(self, spec: Json) -> float:
        """Return the seconds after which the Lease may be taken, if its holder does not renew it meanwhile."""
        holder, promised = spec.get("holderIdentity"), spec.get("leaseDurationSeconds")
        if not holder or holder == self._identity:
            return 0.0
        if spec != self._seen:
            if self._seen is None or holder != self._seen.get("holderIdentity"):
                log.info("another process leads", lease=self._name, holder=holder)
            self._seen, self._seen_at = spec, self._clock()
        silence = promised if isinstance(promised, int) and promised > 0 else self._timings.duration
        return self._seen_at + min(silence, MAX_PROMISE) - self._clock()


def _end_of(led: "asyncio.Future[None]") -> BaseException | None:
    """Return what the work ended with, or None when it was cancelled, returned or still runs."""
    return None if not led.done() or led.cancelled() else led.exception()
