"""Which resource serves a kind: what is asked, and how often."""

import asyncio
from typing import Any

import pytest

from krm.client import discovery
from krm.client.discovery import Discovery
from krm.client.resources import Resource
from krm.meta.errors import NotFound

Json = dict[str, Any]
WIDGETS = {"name": "widgets", "kind": "Widget", "namespaced": True}


class Server:
    """Documents by path, and which were read."""

    def __init__(self, **documents: list[Json]) -> None:
        self.documents = {f"/apis/example.com/{version}": resources for version, resources in documents.items()}
        self.read: list[str] = []

    async def __call__(self, path: str) -> Json:
        self.read.append(path)
        await asyncio.sleep(0)
        if path not in self.documents:
            raise NotFound(path)
        return {"resources": self.documents[path]}


async def test_a_kind_is_looked_for_once_by_many() -> None:
    server = Server(v1=[WIDGETS])
    found = Discovery(server)

    answers = await asyncio.gather(*(found.resource_of("example.com/v1", "Widget") for _ in range(20)))

    assert answers == [Resource("example.com", "v1", "widgets", "Widget")] * 20
    assert len(server.read) == 1


async def test_what_is_not_served_is_not_asked_for_all_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server()
    found = Discovery(server)
    for _ in range(3):
        assert await found.resource_of("example.com/v1", "Widget") is None
    assert len(server.read) == 1
    monkeypatch.setattr(discovery, "MISS_SECONDS", 0.0)
    server.documents["/apis/example.com/v1"] = [WIDGETS]

    assert await found.resource_of("example.com/v1", "Widget") is not None


async def test_who_asks_for_news_gets_them_also_when_something_was_read_just_now() -> None:
    server = Server()
    found = Discovery(server)
    assert await found.resource_of("example.com/v1", "Widget") is None
    server.documents["/apis/example.com/v1"] = [WIDGETS]
    answers = await asyncio.gather(*(found.resource_of("example.com/v1", "Widget", fresh=True) for _ in range(20)))

    assert None not in answers
    assert len(server.read) == 2
    del server.documents["/apis/example.com/v1"]
    assert await found.resource_of("example.com/v1", "Widget", fresh=True) is None


async def test_subresources_are_no_resources_and_odd_documents_do_no_harm() -> None:
    status = {"name": "widgets/status", "kind": "Widget", "namespaced": True}
    server = Server(v1=[status, {}, {"name": "x"}, {"kind": "Y"}, WIDGETS])

    assert await Discovery(server).resource_of("example.com/v1", "Widget") == Resource(
        "example.com", "v1", "widgets", "Widget"
    )


async def test_the_core_group_has_a_path_of_its_own_and_odd_versions_reach_nothing_else() -> None:
    server = Server()
    found = Discovery(server)
    for version in ("v1", "a/b/c", "../v1", "a?b/v1", "..", "", "a/", "./."):
        assert await found.resource_of(version, "Widget") is None

    assert server.read == ["/api/v1", "/apis/a%2Fb/c", "/apis/a%3Fb/v1"]


async def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "KEPT_DOCUMENTS", 10)
    found = Discovery(Server())
    for number in range(50):
        await found.resource_of(f"group-{number}.example.com/v1", "Widget")

    assert len(found._documents) <= 10
