"""Composition root of the controllers' process: every part is chosen and wired here, nowhere else."""

import asyncio
import random
import socket
import uuid
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any, Final, Protocol

import structlog
from prometheus_client import CollectorRegistry, ProcessCollector, disable_created_metrics

from controllers.approval.controller import Options as ApprovalOptions
from controllers.approval.controller import approval_controller
from controllers.packagevariant.controller import Options, package_variant_controller
from controllers.packagevariantset.controller import Options as SetOptions
from controllers.packagevariantset.controller import package_variant_set_controller
from controllers.runtime.beside import beside
from controllers.runtime.endpoints import endpoints
from controllers.runtime.leader import Election, Timings
from controllers.runtime.metrics import ControllerMetrics
from controllers.runtime.status import Recorder
from controllers.settings import Settings
from krm.client.client import KubeClient, connect
from krm.client.reflector import Reflectors
from krm.variants.sets.guards import GuardDefaults

COMPONENTS: Final = {
    "variants": ("packagevariant-controller", "packagevariantset-controller"),
    "approval": ("approval-controller",),
}
"""As whom the controllers report Events, by what the process does."""
_SPREAD: Final = 0.1
"""Share of the resync time by which it is varied."""

log = structlog.get_logger()


class _Controller(Protocol):
    """What is run while this process leads."""

    @property
    def ready(self) -> bool: ...

    @property
    def healthy(self) -> bool: ...

    async def run(self) -> None: ...

    def resync(self) -> None: ...


class _Together:
    """Several controllers that are led as one; when one of them ends, all do."""

    def __init__(self, controllers: Sequence[_Controller]) -> None:
        self._controllers = controllers

    @property
    def ready(self) -> bool:
        return all(one.ready for one in self._controllers)

    @property
    def healthy(self) -> bool:
        return all(one.healthy for one in self._controllers)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for one in self._controllers:
                tasks.create_task(one.run())

    def resync(self) -> None:
        for one in self._controllers:
            one.resync()


class Process:
    """One process of controllers; ``run`` works until cancelled."""

    def __init__(self, settings: Settings) -> None:
        # Otherwise every series is doubled by the time of its creation, which no dashboard reads.
        disable_created_metrics()  # type: ignore[no-untyped-call] # the library has no type here
        self._settings = settings
        self._metrics = ControllerMetrics(CollectorRegistry())
        ProcessCollector(registry=self._metrics.registry)
        self._controller: _Controller | None = None

    @property
    def healthy(self) -> bool:
        """Whether no work hangs."""
        return self._controller is None or self._controller.healthy

    @property
    def ready(self) -> bool:
        """Whether this process works, or waits for another one to stop working."""
        return self._controller is None or self._controller.ready

    def resync(self) -> None:
        """Have every variant looked at again; does nothing in a process that waits to lead."""
        log.info("resync asked for", leading=self._controller is not None)
        if self._controller is not None:
            self._controller.resync()

    async def run(self) -> None:
        """Work while leading, until cancelled: then what runs may finish, and the Lease is released.

        Raises:
            BadKubeconfig: the API server or our credentials are not told.
            OSError: the port of the endpoints is taken.
            LedWorkEnded: the work crashed or cannot be ended.
        """
        settings = self._settings
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(connect(settings.kubeconfig, observe=self._metrics.requested))
            if settings.port is not None:
                port = await stack.enter_async_context(self._endpoints(settings.host, settings.port))
                log.info("health and metrics are served", host=settings.host, port=port)
            if not settings.leader_election:
                await self._work(client)
                return
            election = self._election(client)
            self._metrics.follow_leadership(settings.lease, election.leading)
            await election.run(lambda: self._work(client.guarded(election.leading)))

    def _election(self, client: KubeClient) -> Election:
        settings = self._settings
        return Election(
            client,
            settings.lease_namespace,
            settings.lease,
            identity=f"{socket.gethostname()}_{uuid.uuid4()}",
            timings=Timings(settings.lease_duration, settings.lease_renew, settings.lease_retry),
            healthy=lambda: self.healthy,
        )

    def _endpoints(self, host: str, port: int) -> Any:
        checks = {"work": lambda: self.healthy}
        readiness = {**checks, "synced": lambda: self.ready}
        return endpoints(host, port, self._metrics.registry, health=checks, readiness=readiness)

    async def _work(self, client: KubeClient) -> None:
        """Run the controllers, made anew for each term, until cancelled."""
        recorders = [Recorder(client, component) for component in COMPONENTS[self._settings.run]]
        reflectors = Reflectors()
        controller = _Together(self._made(client, recorders, reflectors))
        async with beside(*(recorder.run() for recorder in recorders), reflectors.run(), self._resync_by_time()):
            self._controller = controller
            try:
                await controller.run()
            finally:
                self._controller = None

    def _made(self, client: KubeClient, recorders: Sequence[Recorder], reflectors: Reflectors) -> list[_Controller]:
        settings, metrics, namespace = self._settings, self._metrics, self._settings.namespace or None
        if settings.run == "approval":
            lease = settings.lease_namespace, settings.lease
            options = ApprovalOptions(metrics, lease, settings.workers, namespace)
            return [approval_controller(client, recorders[0], options)]
        guards = GuardDefaults(settings.set_max_deletions, settings.set_on_empty_selection)
        variants = Options(
            workers=settings.workers,
            namespace=namespace,
            metrics=metrics,
            reflectors=reflectors,
            check_wakeups=settings.check_wakeups,
        )
        sets = SetOptions(
            metrics,
            namespace=namespace,
            reflectors=reflectors,
            guards=guards,
            upstream_identity=settings.upstream_identity,
            check_wakeups=settings.check_wakeups,
        )
        return [
            package_variant_controller(client, recorders[0], variants),
            package_variant_set_controller(client, recorders[1], sets),
        ]

    async def _resync_by_time(self) -> None:
        while True:
            await asyncio.sleep(self._settings.resync * random.uniform(1 - _SPREAD, 1 + _SPREAD))  # noqa: S311 # no secret
            self.resync()
