"""The PackageVariant controller in a thread of the test, with what it counts: reconciles, requests, passes."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from threaded_controller import ThreadedController

from controllers.packagevariant.controller import Options, PackageVariantController, package_variant_controller
from krm.client.client import connect

Json = dict[str, Any]
TELL_SECONDS = 0.1
"""Shorter than the quiet by which it is seen that everything has happened."""
WRITES = ("POST", "PUT", "PATCH", "DELETE")


class LiveController(ThreadedController[PackageVariantController]):
    """A controller of one namespace that works; what it counts since the last :meth:`begin`."""

    def __init__(self, kubeconfig: Path, namespace: str, *, check_wakeups: bool = False) -> None:
        super().__init__(kubeconfig, namespace)
        self._check = check_wakeups
        self._before: dict[str, float] = {}

    def begin(self) -> None:
        """Count from now on."""
        self._before = self._counts()

    def count(self, what: str) -> int:
        """Return how often something happened: ``reconciles``, ``passes`` (but the skipped), ``skipped``, ``writes``, ``reads``."""
        return int(self._counts()[what] - self._before.get(what, 0))

    def _done(self) -> object:
        return self._counts()

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

    async def _work(self) -> None:
        async with connect(self._kubeconfig, observe=self._metrics.requested) as client:
            options = Options(
                self._metrics,
                workers=4,
                namespace=self._namespace,
                check_wakeups=self._check,
                tell_seconds=TELL_SECONDS,
            )
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
