"""The controller as a whole is made anew for each term of leadership; its metrics are there while it works."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any, cast

from cluster_bodies import repository, variant
from prometheus_client import CollectorRegistry

from controllers.packagevariant.controller import Options, PackageVariantController, package_variant_controller
from controllers.runtime.metrics import ControllerMetrics
from krm.client.client import KubeClient, Page
from krm.client.resources import PACKAGE_VARIANTS, REPOSITORIES, Resource
from krm.meta.errors import NotFound

Json = dict[str, Any]


class Server:
    """Has one paused variant whose status says so, and says nothing more."""

    def __init__(self) -> None:
        self.writes: list[str] = []
        self.answering = asyncio.Event()
        self.answering.set()

    async def list(self, resource: Resource, namespace: str | None, **_: Any) -> AsyncIterator[Page]:
        if resource == PACKAGE_VARIANTS:
            yield Page([variant(spec={"suspend": True})], "10")
        else:
            yield Page([repository()] if resource == REPOSITORIES else [], "10")

    async def watch(self, *_: Any, **__: Any) -> AsyncIterator[tuple[str, Json]]:
        await asyncio.sleep(3600)
        yield "", {}

    async def get(self, resource: Resource, namespace: str | None, name: str) -> Json:
        raise NotFound(name)

    async def update(self, resource: Resource, body: Json, *, subresource: str = "") -> Json:
        await self.answering.wait()
        self.writes.append(f"{resource.plural} {body['metadata']['name']} {subresource}")
        body["metadata"]["resourceVersion"] = str(int(body["metadata"]["resourceVersion"]) + 1)
        return body


class NoEvents:
    def event(self, body: Json, type_: str, reason: str, message: str, /) -> None:
        """Forget it."""


def make(server: Server, metrics: ControllerMetrics) -> PackageVariantController:
    client = cast("KubeClient", server)  # what is asked of it
    return package_variant_controller(client, NoEvents(), Options(metrics, workers=2))


def passes(metrics: ControllerMetrics) -> float:
    """Return how many passes the metrics show; none where they are not shown."""
    samples = [sample for family in metrics.registry.collect() for sample in family.samples]
    return sum(one.value for one in samples if one.name == "porch_variant_passes_total")


def busy(metrics: ControllerMetrics) -> float | None:
    labels = {"controller": "packagevariant"}
    return metrics.registry.get_sample_value("controller_runtime_active_workers", labels)


async def until(done: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not done():
            await asyncio.sleep(0.005)


async def stop(working: asyncio.Task[None]) -> None:
    working.cancel()
    with suppress(asyncio.CancelledError):
        await working


async def test_terms_follow_one_another() -> None:
    server, metrics = Server(), ControllerMetrics(CollectorRegistry())
    for term in (1, 2):
        controller = make(server, metrics)
        before = controller.ready
        working = asyncio.create_task(controller.run())
        await until(lambda: passes(metrics) == 1)
        ready = controller.ready and controller.healthy
        await stop(working)

        assert (before, ready) == (False, True), term
        assert passes(metrics) == 0
    assert server.writes == ["packagevariants bar status"] * 2  # of a server that forgets


async def test_a_resync_looks_at_every_variant() -> None:
    server, metrics = Server(), ControllerMetrics(CollectorRegistry())
    controller = make(server, metrics)
    working = asyncio.create_task(controller.run())
    await until(lambda: passes(metrics) == 1)
    controller.resync()
    await until(lambda: passes(metrics) == 2)
    by_reason = [
        metrics.registry.get_sample_value("porch_variant_passes_total", {"reason": reason})
        for reason in ("paused", "skipped")
    ]
    await stop(working)

    assert by_reason == [1, 1]
    assert server.writes == ["packagevariants bar status"]


async def test_what_runs_may_finish_when_it_is_told_to_stop() -> None:
    server, metrics = Server(), ControllerMetrics(CollectorRegistry())
    server.answering.clear()
    controller = make(server, metrics)
    working = asyncio.create_task(controller.run())
    await until(lambda: busy(metrics) == 1)
    working.cancel()
    await asyncio.sleep(0.05)
    server.answering.set()
    await stop(working)

    assert server.writes == ["packagevariants bar status"]
