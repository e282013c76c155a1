"""Several caches of one process read from one list and one watch of the real server, and each keeps what it needs."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from porch_process import PorchProcess

from controllers.packagevariant.caches import Caches
from controllers.packagevariantset.caches import Caches as SetCaches
from controllers.runtime.beside import beside
from krm.client.client import KubeClient, connect
from krm.client.informer import Informer
from krm.client.reflector import Reflectors
from krm.client.resources import PACKAGE_VARIANTS, Resource

Json = dict[str, Any]
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
VARIANT: Json = {
    "apiVersion": PACKAGE_VARIANTS.api_version,
    "kind": PACKAGE_VARIANTS.kind,
    "metadata": {"name": "mine"},
    "spec": {
        "upstream": {"repo": "blueprints", "package": "foo", "revision": 1},
        "downstream": {"repo": "deployments", "package": "bar"},
    },
}


class Kept:
    """What one cache keeps of a ConfigMap."""

    def __init__(self, body: Json) -> None:
        self.namespace, self.name = body["metadata"]["namespace"], body["metadata"]["name"]
        self.resource_version = body["metadata"]["resourceVersion"]


class Picky(Kept):
    """Understands only those that have data."""

    def __init__(self, body: Json) -> None:
        super().__init__(body)
        self.data = body["data"]


class Requests:
    """Counts what is asked of the server."""

    def __init__(self) -> None:
        self.of: Counter[str] = Counter()

    def __call__(self, _method: str, path: str, _code: int) -> None:
        self.of[path.partition("?")[0].rpartition("/")[2]] += 1


@pytest.fixture
def requests() -> Requests:
    return Requests()


@pytest.fixture
async def kube(porch_server: PorchProcess, requests: Requests) -> AsyncIterator[KubeClient]:
    async with connect(porch_server.kubeconfig, observe=requests) as client:
        yield client


async def until(done: Callable[[], bool]) -> None:
    while not done():
        await asyncio.sleep(0.02)


def config_map(name: str, **parts: Any) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **parts}


async def test_two_controllers_of_a_process_read_each_kind_once(
    kube: KubeClient, namespace: str, requests: Requests
) -> None:
    reflectors = Reflectors()
    variants, sets = Caches(kube, namespace, reflectors), SetCaches(kube, namespace, reflectors)
    async with beside(reflectors.run(), variants.run(), sets.run()), asyncio.timeout(90):
        await variants.wait_synced()
        await sets.wait_synced()
        requests.of.clear()
        await kube.create(PACKAGE_VARIANTS, namespace, VARIANT)
        await until(lambda: bool(variants.variant_keys()) and len(sets.variants) == 1)  # both hear of it by the watch

    assert requests.of["packagevariants"] == 2  # the creation, and one watch, which ended
    assert all(requests.of[one] <= 1 for one in ("packagerevisions", "repositories"))


async def test_what_one_of_them_writes_is_news_for_the_other(kube: KubeClient, namespace: str) -> None:
    reflectors = Reflectors()
    writer, reader = (Informer(kube, CONFIG_MAPS, namespace, Kept, reflectors=reflectors) for _ in range(2))
    told: dict[str, list[str]] = {"writer": [], "reader": []}
    writer.subscribe(lambda _, new: told["writer"].append(new.name if new else ""))
    reader.subscribe(lambda _, new: told["reader"].append(new.name if new else ""))
    async with beside(reflectors.run()), asyncio.timeout(90):
        await reader.wait_synced()
        with writer.writing(namespace, "mine"):
            writer.wrote(await kube.create(CONFIG_MAPS, namespace, config_map("mine")))
        await kube.create(CONFIG_MAPS, namespace, config_map("last"))
        await until(lambda: "last" in told["writer"] and "last" in told["reader"])

    assert "mine" not in told["writer"]
    assert "mine" in told["reader"]
    assert writer.get(namespace, "mine") is not None


async def test_caches_that_keep_the_same_share_it_and_one_that_does_not_understand_hinders_nobody(
    kube: KubeClient, namespace: str
) -> None:
    reflectors = Reflectors()
    first, second, picky = (
        Informer(kube, CONFIG_MAPS, namespace, parse, reflectors=reflectors) for parse in (Kept, Kept, Picky)
    )
    await kube.create(CONFIG_MAPS, namespace, config_map("empty"))
    await kube.create(CONFIG_MAPS, namespace, config_map("full", data={"a": "b"}))
    async with beside(reflectors.run()), asyncio.timeout(90):
        await first.wait_synced()

    assert first.get(namespace, "empty") is second.get(namespace, "empty") is not None
    assert picky.get(namespace, "empty") is None
    assert picky.get(namespace, "full") is not None
