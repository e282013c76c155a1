"""The watches of kinds that targets select, against the real server: shared, ended when idle, tried again when refused."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest
from porch_process import PorchProcess

from controllers.packagevariantset.cached_values import Key, Selectable
from controllers.packagevariantset.selected_objects import SelectedObjects
from controllers.runtime.kind_watches import Limits
from krm.client.client import KubeClient, connect
from krm.client.resources import CUSTOM_RESOURCE_DEFINITIONS, Resource
from krm.variants.sets.targets import Kind

Json = dict[str, Any]
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
CONFIG_MAP = ("v1", "ConfigMap")
FAST = Limits(idle=0.2, retry=0.2, round=0.05)
_groups = count(1)


@dataclass
class Watching:
    """Selected objects, and what they told."""

    objects: SelectedObjects
    woken: list[Key] = field(default_factory=list)
    changes: list[tuple[str, Kind, str]] = field(default_factory=list)
    """Namespace of the watch, kind and name of the object."""


@asynccontextmanager
async def watching(client: KubeClient, limits: Limits = FAST) -> AsyncIterator[Watching]:
    """Watch until the block ends."""
    made: Watching

    def changed(namespace: str, kind: Kind, old: Selectable | None, new: Selectable | None) -> None:
        one = new or old
        assert one is not None
        made.changes.append((namespace, kind, one.name))

    def wake(keys: Iterable[Key]) -> None:
        made.woken.extend(keys)

    made = Watching(SelectedObjects(client, wake, changed, limits=limits))
    task = asyncio.create_task(made.objects.run())
    try:
        yield made
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
async def kube(porch_server: PorchProcess) -> AsyncIterator[KubeClient]:
    """A client as the administrator."""
    async with connect(porch_server.kubeconfig) as client:
        yield client


async def until(done: Callable[[], bool], seconds: float = 60.0) -> None:
    async with asyncio.timeout(seconds):
        while not done():
            await asyncio.sleep(0.02)


def config_map(name: str) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"a": "b"}}}


def definition(group: str, scope: str) -> Json:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    names = {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": CUSTOM_RESOURCE_DEFINITIONS.api_version,
        "kind": CUSTOM_RESOURCE_DEFINITIONS.kind,
        "metadata": {"name": f"things.{group}"},
        "spec": {"group": group, "scope": scope, "names": names, "versions": [version]},
    }


async def test_two_sets_share_a_watch_which_ends_after_both(kube: KubeClient, namespace: str) -> None:
    first, second = (namespace, "first"), (namespace, "second")
    async with watching(kube) as made:
        for key in (first, second):
            await made.objects.open(key, [CONFIG_MAP])
        assert made.objects.watches == 1
        await kube.create(CONFIG_MAPS, namespace, config_map("one"))
        await until(lambda: (namespace, CONFIG_MAP, "one") in made.changes)
        listed = made.objects.listed(second)[CONFIG_MAP]
        assert ("one", {"a": "b"}) in [(one.name, one.labels) for one in listed if not isinstance(one, str)]

        made.objects.forget(first)
        await asyncio.sleep(0.5)
        assert made.objects.watches == 1
        made.objects.forget(second)
        await until(lambda: made.objects.watches == 0)
        assert made.objects.listed(second) == {}


async def test_a_kind_that_nobody_serves_is_missing_and_its_readers_are_woken_when_it_comes(
    kube: KubeClient, namespace: str
) -> None:
    key, group = (namespace, "my-set"), f"g{next(_groups)}.example.com"
    kind = (f"{group}/v1", "Thing")
    async with watching(kube) as made:
        await made.objects.open(key, [kind, CONFIG_MAP])
        assert made.objects.listed(key).keys() == {CONFIG_MAP}

        await kube.create(CUSTOM_RESOURCE_DEFINITIONS, None, definition(group, "Namespaced"))
        await until(lambda: made.woken == [key])
        await made.objects.open(key, [kind, CONFIG_MAP])
        assert made.objects.listed(key)[kind] == []

        await kube.delete(CUSTOM_RESOURCE_DEFINITIONS, None, f"things.{group}")
        made.objects.definitions_changed([kind])
        await until(lambda: made.woken == [key, key])
        assert kind not in made.objects.listed(key)


async def test_objects_of_the_cluster_as_a_whole_are_listed(kube: KubeClient, namespace: str) -> None:
    key, group = (namespace, "my-set"), f"g{next(_groups)}.example.com"
    kind = (f"{group}/v1", "Thing")
    await kube.create(CUSTOM_RESOURCE_DEFINITIONS, None, definition(group, "Cluster"))
    async with watching(kube) as made:
        await until_served(kube, kind)
        await made.objects.open(key, [kind])
        resource = Resource(group, "v1", "things", "Thing", namespaced=False)
        body = {"apiVersion": kind[0], "kind": "Thing", "metadata": {"name": "everywhere"}}
        await kube.create(resource, None, body)
        await until(lambda: (namespace, kind, "everywhere") in made.changes)

        listed = made.objects.listed(key)[kind]
        assert not isinstance(listed, str)
        assert [(one.namespace, one.name) for one in listed] == [("", "everywhere")]
    await kube.delete(CUSTOM_RESOURCE_DEFINITIONS, None, f"things.{group}")


async def until_served(kube: KubeClient, kind: Kind) -> None:
    async with asyncio.timeout(60):
        while await kube.resource_of(*kind, fresh=True) is None:
            await asyncio.sleep(0.05)


async def test_secrets_are_never_read(kube: KubeClient, namespace: str) -> None:
    key = (namespace, "my-set")
    async with watching(kube) as made:
        await made.objects.open(key, [("v1", "Secret")])

        assert made.objects.listed(key) == {("v1", "Secret"): "objects of kind Secret are never selected"}
        assert made.objects.watches == 0


async def test_no_more_kinds_are_watched_than_may_be(kube: KubeClient, namespace: str) -> None:
    first, second = (namespace, "first"), (namespace, "second")
    account = ("v1", "ServiceAccount")
    async with watching(kube, Limits(watches=1, idle=0.1, retry=0.2, round=0.05)) as made:
        await made.objects.open(first, [CONFIG_MAP])
        await made.objects.open(second, [account])
        assert made.objects.listed(second) == {account: "1 kinds are watched for sets already"}

        made.objects.forget(first)
        await until(lambda: made.woken == [second])
        await made.objects.open(second, [account])
        assert not isinstance(made.objects.listed(second)[account], str)
