"""The PackageVariant controller in a thread of the test, with what it counts: reconciles, requests, passes."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from controllers.packagevariant.controller import Options, PackageVariantController, package_variant_controller
from controllers.runtime.metrics import ControllerMetrics
from krm.client.client import connect

Json = dict[str, Any]
READY_SECONDS = 20.0
QUIET_SECONDS = 0.6
"""Nothing happens for so long: what was caused by a request has happened."""
CLOSE_SECONDS = 0.2
"""TLS connections take a moment to close."""
WRITES = ("POST", "PUT", "PATCH", "DELETE")


class LiveController:
    """A controller of one namespace that works; what it counts since the last :meth:`begin`."""

    def __init__(self, kubeconfig: Path, namespace: str, *, check_wakeups: bool = False) -> None:
        self._kubeconfig, self._namespace, self._check = kubeconfig, namespace, check_wakeups
        self._metrics = ControllerMetrics(CollectorRegistry())
        self._loop = asyncio.new_event_loop()
        self._task: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._run)
        self._error: BaseException | None = None
        self._before: dict[str, float] = {}
        self.controller: PackageVariantController | None = None

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

    def resync(self) -> None:
        """Have every variant looked at."""
        assert self.controller is not None
        self._loop.call_soon_threadsafe(self.controller.resync)

    def begin(self) -> None:
        """Count from now on."""
        self._before = self._counts()

    def count(self, what: str) -> int:
        """Return how often something happened: ``reconciles``, ``passes`` (but the skipped), ``skipped``, ``writes``, ``reads``."""
        return int(self._counts()[what] - self._before.get(what, 0))

    def settle(self) -> None:
        """Wait until nothing has happened for a while."""
        last, since = self._counts(), time.monotonic()
        deadline = since + 30
        while time.monotonic() - since < QUIET_SECONDS:
            assert time.monotonic() < deadline, f"no end: {last}"
            time.sleep(0.05)
            if (now := self._counts()) != last:
                last, since = now, time.monotonic()

    def _counts(self) -> dict[str, float]:
        counts = dict.fromkeys(("reconciles", "passes", "skipped", "writes", "reads", "drafts", "drifts"), 0.0)
        for family in self._metrics.registry.collect():
            for name, labels, value, *_ in family.samples:
                if name == "controller_runtime_reconcile_total":
                    counts["reconciles"] += value
                elif name == "porch_variant_passes_total":
                    counts["skipped" if labels["reason"] == "skipped" else "passes"] += value
                elif name == "porch_variant_drafts_created_total":
                    counts["drafts"] += value
                elif name == "porch_variant_drifts_total":
                    counts["drifts"] += value
                elif name == "rest_client_requests_total":
                    counts["writes" if labels["method"] in WRITES else "reads"] += value
        return counts

    @property
    def remembered(self) -> list[tuple[str, str]]:
        """The variants of which something is remembered between passes."""
        assert self.controller is not None
        one = self.controller
        return sorted(
            {
                *one._finished._finished,
                *one._finished._events,
                *one._finished._seen,
                *one._guard._made,
                *one._injectables._read,
            }
        )

    def sample(self, name: str, **labels: str) -> float | None:
        """Return a metric."""
        return self._metrics.registry.get_sample_value(name, labels)

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
        async with connect(self._kubeconfig, observe=self._metrics.requested) as client:
            options = Options(self._metrics, workers=4, namespace=self._namespace, check_wakeups=self._check)
            self.controller = package_variant_controller(client, _Silent(), options)
            await self.controller.run()


class _Silent:
    """Records no Events: they would count as writes."""

    def event(self, body: Json, type_: str, reason: str, message: str, /) -> None:
        """Forget it."""


@contextmanager
def live_controller(kubeconfig: Path, namespace: str, *, check_wakeups: bool = False) -> Iterator[LiveController]:
    """Run a controller until the block ends."""
    controller = LiveController(kubeconfig, namespace, check_wakeups=check_wakeups)
    controller.start()
    try:
        yield controller
    finally:
        controller.stop()
