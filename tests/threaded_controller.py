"""A controller in a thread of the test: how it is started, stopped, and asked for its metrics."""

import asyncio
import threading
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Generic, TypeVar

from prometheus_client import CollectorRegistry

from controllers.runtime.informed_controller import InformedController
from controllers.runtime.metrics import ControllerMetrics

C = TypeVar("C", bound=InformedController)

READY_SECONDS = 60.0
STOPPED_SECONDS = 60.0
QUIET_SECONDS = 0.6
"""Nothing happens for so long: what was caused by a request has happened."""
SETTLED_SECONDS = 120.0
"""What was caused has an end: seconds, on a machine where twenty others work."""
CLOSE_SECONDS = 0.2
"""TLS connections take a moment to close."""


class ThreadedController(ABC, Generic[C]):
    """A controller of one namespace that works on an event loop of its own, from :meth:`start` to :meth:`stop`."""

    def __init__(self, kubeconfig: Path, namespace: str) -> None:
        self._kubeconfig, self._namespace = kubeconfig, namespace
        self._metrics = ControllerMetrics(CollectorRegistry())
        self._loop = asyncio.new_event_loop()
        self._task: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._run)
        self._error: BaseException | None = None
        self.controller: C | None = None
        """The controller, once :meth:`_work` has made it."""

    @abstractmethod
    def _done(self) -> object:
        """Return what changes with everything that the controller does."""

    @abstractmethod
    async def _work(self) -> None:
        """Make the controller and run it."""

    def start(self) -> None:
        """Start it; returns when it has read everything."""
        self._thread.start()
        deadline = time.monotonic() + READY_SECONDS
        while not (self.controller and self.controller.ready):
            assert self._thread.is_alive(), self._error
            assert time.monotonic() < deadline, "the controller is not ready"
            time.sleep(0.02)

    def stop(self) -> None:
        """Stop it in order."""
        if self._task is not None:
            self._loop.call_soon_threadsafe(self._task.cancel)
        self._join()
        assert isinstance(self._error, asyncio.CancelledError), self._error

    def wait_killed(self) -> None:
        """Wait until something that no controller catches has ended it."""
        self._join()
        assert not isinstance(self._error, asyncio.CancelledError | None), self._error

    def resync(self) -> None:
        """Have every object looked at."""
        assert self.controller is not None
        self._loop.call_soon_threadsafe(self.controller.resync)

    def settle(self) -> None:
        """Wait until nobody has worked, and nothing was done, for a while."""
        last, since = self._done(), time.monotonic()
        deadline = since + SETTLED_SECONDS
        while time.monotonic() - since < QUIET_SECONDS:
            assert time.monotonic() < deadline, f"no end: {last}"
            time.sleep(0.02)
            if (now := self._done()) != last or self._is_busy:
                last, since = now, time.monotonic()

    @property
    def _is_busy(self) -> bool:
        assert self.controller is not None
        queue = self.controller._controller._queue
        return bool(queue.working or queue.depth)

    def sample(self, name: str, **labels: str) -> float | None:
        """Return a metric."""
        return self._metrics.registry.get_sample_value(name, labels)

    def _join(self) -> None:
        self._thread.join(timeout=STOPPED_SECONDS)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._cancellable())
        except BaseException as error:  # noqa: BLE001 - told by stop
            self._error = error
        finally:
            self._loop.run_until_complete(asyncio.sleep(CLOSE_SECONDS))
            self._loop.close()

    async def _cancellable(self) -> None:
        self._task = asyncio.current_task()
        await self._work()
