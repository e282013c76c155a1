"""Workers that take keys from a queue and reconcile them, one at a time each; failures come back after a growing delay."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

import structlog

from controllers.runtime.metrics import ControllerMetrics
from controllers.runtime.workqueue import Key, ShutDown, WorkQueue
from krm.client.client import NoAnswer, WriteRefused
from krm.meta.errors import StatusError

log = structlog.get_logger()

DEADLINE: Final = 600.0
"""Seconds one reconcile may take; it is cancelled then and tried again later."""
HANG_MARGIN: Final = 30.0
"""Seconds beyond that after which a reconcile that does not end counts as hung."""
GRACE: Final = 3.0
"""Seconds for running reconciles to finish when the controller stops; the server drains its requests as long."""


@dataclass(frozen=True, slots=True)
class Result:
    """How a reconcile ended that raised nothing."""

    requeue_after: float | None = None
    """Look again in so many seconds."""
    back_off: float | None = None
    """An expected failure, told in the object's status: look again after the delay that grows from failure to failure,
    up to so many seconds."""


class Terminal(Exception):
    """The object cannot be reconciled as it is: logged, and not tried again before it changes."""


class Controller:
    """Reconciles keys of ``queue`` with ``workers`` tasks."""

    def __init__(
        self,
        name: str,
        reconcile: Callable[[Key], Awaitable[Result]],
        queue: WorkQueue,
        workers: int,
        metrics: ControllerMetrics,
        *,
        deadline: float = DEADLINE,
        grace: float = GRACE,
    ) -> None:
        self._name = name
        self._reconcile = reconcile
        self._queue = queue
        self._workers = workers
        self._metrics = metrics
        self._deadline = deadline
        self._grace = grace

    @property
    def healthy(self) -> bool:
        """Whether no reconcile hangs."""
        return self._queue.longest_work < self._deadline + HANG_MARGIN

    async def run(self) -> None:
        """Work until cancelled: then nothing new is begun, what runs may finish within the grace, and the rest is cancelled.

        Runs once; the queue is of no use afterwards.

        Raises:
            BaseException: what broke a worker, also CancelledError from inside; of several, a BaseExceptionGroup.
        """
        self._metrics.watch(self._name, self._queue, self._workers)
        workers = [asyncio.create_task(self._work(), name=f"{self._name} {number}") for number in range(self._workers)]
        try:
            # Workers end by themselves only when something is broken beyond their catching.
            ended, _ = await asyncio.wait(workers, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._queue.shut_down()
            broken = await self._finish(workers)
        if len(broken) > 1:
            raise BaseExceptionGroup("workers broke", broken)
        for worker in ended:
            worker.result()

    async def _finish(self, workers: list[asyncio.Task[None]]) -> list[BaseException]:
        """End the workers and return what broke any of them; asked of each, or asyncio would tell of it at some later time."""
        _, running = await asyncio.wait(workers, timeout=self._grace)
        for worker in running:
            worker.cancel()
        if running:
            log.warning("reconciles were cut short", controller=self._name, number=len(running))
            await asyncio.wait(running, timeout=self._grace)
        ended = [worker for worker in workers if worker.done() and not worker.cancelled()]
        broken = [error for worker in ended if (error := worker.exception()) is not None]
        for error in broken:
            log.error("a worker broke", controller=self._name, error=repr(error))
        return broken

    async def _work(self) -> None:
        while True:
            try:
                key = await self._queue.get()
            except ShutDown:
                return
            try:
                await self._process(key)
            finally:
                self._queue.done(key)

    async def _process(self, key: Key) -> None:
        namespace, name = key
        began = time.monotonic()
        with structlog.contextvars.bound_contextvars(controller=self._name, namespace=namespace, name=name):
            outcome = await self._outcome(key)
        self._metrics.reconciled(self._name, outcome, time.monotonic() - began)

    async def _outcome(self, key: Key) -> str:
        """Reconcile, see to it that the key comes again if it has to, and return what to count it as."""
        try:
            async with asyncio.timeout(self._deadline):
                result = await self._reconcile(key)
        except Terminal as error:
            log.error("not reconciled, and not tried again before it changes", error=str(error))  # noqa: TRY400 # expected
            self._queue.forget(key)
            return "terminal_error"
        except WriteRefused as error:
            # Either the lease is lost and all this ends, or it was renewed late and the key must not be forgotten.
            log.info("not reconciled, since this process may not write", error=str(error))
        except (StatusError, NoAnswer, TimeoutError) as error:
            log.warning("not reconciled, tried again later", error=str(error) or "not done in time")
        except Exception:
            log.exception("not reconciled, tried again later")
        else:
            return self._settle(key, result)
        self._queue.add_limited(key)
        return "error"

    def _settle(self, key: Key, result: Result) -> str:
        if result.back_off is not None:
            self._queue.add_limited(key, result.back_off)
            return "requeue"
        self._queue.forget(key)
        if result.requeue_after is None:
            return "success"
        self._queue.add_after(key, result.requeue_after)
        return "requeue_after"
