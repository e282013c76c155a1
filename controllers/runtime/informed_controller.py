"""A controller that decides from caches: what it keeps running, in which order it begins, and whether it is well."""

from abc import ABC, abstractmethod
from collections.abc import Coroutine, Iterable
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.registry import Collector

from controllers.runtime.beside import beside
from controllers.runtime.controller import Controller
from controllers.runtime.informers import Informers


class InformedController(ABC):
    """Reconciles while ``run`` runs, which it does once; ``counts`` are shown meanwhile."""

    def __init__(
        self, controller: Controller, informers: Informers, counts: Collector, registry: CollectorRegistry
    ) -> None:
        self._controller, self._informers = controller, informers
        self._shown, self._registry = counts, registry

    @property
    def ready(self) -> bool:
        """Whether everything was read that decisions are made of."""
        return self._informers.synced

    @property
    def healthy(self) -> bool:
        """Whether no reconcile hangs."""
        return self._controller.healthy

    async def run(self) -> None:
        """Work until cancelled; what runs then may finish within the runtime's grace."""
        self._registry.register(self._shown)
        try:
            async with beside(self._informers.run(), *self._meanwhile()):
                await self._informers.wait_synced()
                self._begin()
                self.resync()
                await self._controller.run()
        finally:
            self._registry.unregister(self._shown)

    @abstractmethod
    def resync(self) -> None:
        """Have everything looked at, when nothing more urgent waits."""

    @abstractmethod
    def _begin(self) -> None:
        """Subscribe to events: everything was read."""

    def _meanwhile(self) -> Iterable[Coroutine[Any, Any, None]]:
        """Return what goes on beside the work besides the informers, and ends after it."""
        return ()
