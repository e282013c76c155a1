"""A client that asks for the metadata of objects alone, against the real server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest
from porch_process import PorchProcess

from krm.client.client import KubeClient, connect
from krm.client.resources import Resource

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")


@pytest.fixture
async def kube(porch_server: PorchProcess) -> AsyncIterator[KubeClient]:
    """A client as the administrator."""
    async with connect(porch_server.kubeconfig) as client:
        yield client


async def test_lists_and_watches_bring_no_contents(kube: KubeClient, namespace: str) -> None:
    body = {"metadata": {"name": "one", "labels": {"a": "b"}}, "data": {"large": "text"}}
    await kube.create(CONFIG_MAPS, namespace, {"apiVersion": "v1", "kind": "ConfigMap", **body})
    client = kube.of_metadata()

    (page,) = [page async for page in client.list(CONFIG_MAPS, namespace, field_selector="metadata.name=one")]
    (listed,) = page.items
    assert listed["metadata"]["labels"] == {"a": "b"}
    assert "data" not in listed

    await kube.patch(CONFIG_MAPS, namespace, "one", {"data": {"more": "text"}})
    async with asyncio.timeout(60), aclosing(client.watch(CONFIG_MAPS, namespace, page.resource_version)) as watch:
        kind, changed = await anext(watch)
    assert (kind, changed["metadata"]["name"]) == ("MODIFIED", "one")
    assert "data" not in changed


async def test_a_single_object_comes_whole(kube: KubeClient, namespace: str) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "two"}, "data": {"a": "b"}}
    await kube.create(CONFIG_MAPS, namespace, body)

    assert (await kube.of_metadata().get(CONFIG_MAPS, namespace, "two"))["data"] == {"a": "b"}
