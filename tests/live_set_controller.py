"""The PackageVariantSet controller in a thread of the test, with what it wrote, what it told and how often it looked."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry
from recording_client import Recording, recording_client

from controllers.packagevariantset.controller import (
    Options,
    PackageVariantSetController,
    package_variant_set_controller,
)
from controllers.runtime.metrics import ControllerMetrics
from krm.variants.sets.guards import GuardDefaults

Json = dict[str, Any]
READY_SECONDS = 20.0
QUIET_SECONDS = 0.4
"""Nothing happens for so long: what was caused by a request has happened."""
SETTLED_WITHIN = 120.0
"""What was caused has an end: seconds, on a machine where twenty others work."""
TELL_SECONDS = 0.1
CLOSE_SECONDS = 0.2
"""TLS connections take a moment to close."""


class LiveSetController:
    """A controller of the sets of one namespace that works; ``options`` are further ones of the controller's."""

    def __init__(self, kubeconfig: Path, namespace: str, guards: GuardDefaults, options: Json | None = None) -> None:
        self._kubeconfig, self._namespace, self._guards, self._options = kubeconfig, namespace, guards, options or {}
        self._metrics = ControllerMetrics(CollectorRegistry())
        self._loop = asyncio.new_event_loop()
        self._task: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._run)
        self._error: BaseException | None = None
        self._reconciles = 0.0
        self.recording = Recording()
        self.events: list[tuple[str, str, str]] = []
        """Name of the object, reason and message of each Event."""
        self.controller: PackageVariantSetController | None = None

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
        self._thread.join(timeout=20)
        assert not self._thread.is_alive()
        assert isinstance(self._error, asyncio.CancelledError), self._error

    def wait_killed(self) -> None:
        """Wait until the recording has killed it."""
        self._thread.join(timeout=30)
        assert not self._thread.is_alive()
        assert not isinstance(self._error, asyncio.CancelledError | None), self._error

    def resync(self) -> None:
        """Have every set looked at."""
        assert self.controller is not None
        self._loop.call_soon_threadsafe(self.controller.resync)

    def begin(self) -> None:
        """Count and record from now on."""
        self.recording.clear()
        self.events.clear()
        self._reconciles = self._count()

    @property
    def reconciles(self) -> int:
        """How often it looked at a set since the last :meth:`begin`."""
        return int(self._count() - self._reconciles)

    @property
    def lines(self) -> list[str]:
        """What it wrote since then, but for the status of sets, in order."""
        return [one.line for one in self.recording.writes if one.plural != "packagevariantsets"]

    @property
    def all_lines(self) -> list[str]:
        """What it wrote since then."""
        return [one.line for one in self.recording.writes]

    def sample(self, name: str, **labels: str) -> float | None:
        """Return a metric."""
        return self._metrics.registry.get_sample_value(name, labels)

    def settle(self) -> None:
        """Wait until nothing has happened for a while."""
        last, since = self._state(), time.monotonic()
        deadline = since + SETTLED_WITHIN
        while time.monotonic() - since < QUIET_SECONDS:
            assert time.monotonic() < deadline, f"no end: {last}"
            time.sleep(0.02)
            if (now := self._state()) != last:
                last, since = now, time.monotonic()

    def _state(self) -> tuple[object, ...]:
        assert self.controller is not None
        queue = self.controller._queue
        return self._count(), queue.working, queue.depth, len(self.recording.writes), queue.working and time.monotonic()

    def _count(self) -> float:
        return sum(
            value
            for family in self._metrics.registry.collect()
            for name, _, value, *_ in family.samples
            if name == "controller_runtime_reconcile_total"
        )

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._work())
        except BaseException as error:  # noqa: BLE001 - told by stop
            self._error = error
        finally:
            self._loop.run_until_complete(asyncio.sleep(CLOSE_SECONDS))
            self._loop.close()

    async def _work(self) -> None:
        self._task = asyncio.current_task()
        async with recording_client(self._kubeconfig, self.recording) as client:
            given = {"tell_seconds": TELL_SECONDS, **self._options}
            options = Options(self._metrics, namespace=self._namespace, guards=self._guards, **given)
            self.controller = package_variant_set_controller(client, self, options)
            await self.controller.run()

    def event(self, body: Json, type_: str, reason: str, message: str, /) -> None:
        """Keep an Event in place of writing it."""
        del type_
        self.events.append((body["metadata"]["name"], reason, message))


@contextmanager
def live_set_controller(
    kubeconfig: Path, namespace: str, guards: GuardDefaults | None = None, **options: Any
) -> Iterator[LiveSetController]:
    """Run a controller until the block ends."""
    controller = LiveSetController(kubeconfig, namespace, guards or GuardDefaults(), options)
    controller.start()
    try:
        yield controller
    finally:
        controller.stop()
