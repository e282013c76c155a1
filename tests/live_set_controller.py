"""The PackageVariantSet controller in a thread of the test, with what it wrote, what it told and how often it looked."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from recording_client import Recording, recording_client
from threaded_controller import ThreadedController

from controllers.packagevariantset.controller import (
    Options,
    PackageVariantSetController,
    package_variant_set_controller,
)
from krm.variants.sets.guards import GuardDefaults

Json = dict[str, Any]
TELL_SECONDS = 0.1


class LiveSetController(ThreadedController[PackageVariantSetController]):
    """A controller of the sets of one namespace that works; ``options`` are further ones of the controller's."""

    def __init__(self, kubeconfig: Path, namespace: str, guards: GuardDefaults, options: Json | None = None) -> None:
        super().__init__(kubeconfig, namespace)
        self._guards, self._options = guards, options or {}
        self._reconciles = 0.0
        self.recording = Recording()
        self.events: list[tuple[str, str, str]] = []
        """Name of the object, reason and message of each Event."""

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

    def _done(self) -> object:
        return self._count(), len(self.recording.writes)

    def _count(self) -> float:
        return sum(
            value
            for family in self._metrics.registry.collect()
            for name, _, value, *_ in family.samples
            if name == "controller_runtime_reconcile_total"
        )

    async def _work(self) -> None:
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
