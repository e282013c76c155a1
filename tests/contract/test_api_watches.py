"""Watches over real HTTP: what is told, from where, in which form, and when it ends."""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from api_fixture import Api, api_server

from storage.interfaces import Compacted

MAPS = "/api/v1/namespaces/default/configmaps"
TABLE = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}
MERGE = {"content-type": "application/merge-patch+json"}
Json = dict[str, Any]


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    async with api_server() as server:
        yield server


class Watching:
    """The lines of one watch, one after the other."""

    def __init__(self, response: httpx2.Response) -> None:
        self._lines = response.aiter_lines()

    async def next(self) -> Json:
        """Return the next event; fails after a minute."""
        async with asyncio.timeout(60):
            event: Json = json.loads(await anext(self._lines))
        return event

    async def take(self, count: int) -> list[tuple[str, str]]:
        """Return type and name of the next events."""
        events = [await self.next() for _ in range(count)]
        return [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]

    async def ended(self) -> bool:
        """Tell whether the stream ends cleanly within a minute without another event."""
        async with asyncio.timeout(60):
            return await anext(self._lines, None) is None


@contextlib.asynccontextmanager
async def watching(
    api: Api, query: dict[str, str] | None = None, *, path: str = MAPS, headers: dict[str, str] | None = None
) -> AsyncIterator[Watching]:
    async with api.client.stream("GET", path, params={"watch": "true", **(query or {})}, headers=headers) as response:
        assert response.status_code == 200
        assert response.headers["content-type"] == "application/json"
        yield Watching(response)


async def put(api: Api, name: str, **labels: str) -> Json:
    body = {"metadata": {"name": name, "labels": labels}, "data": {"k": "v"}}
    answer = await api.client.post(MAPS, json=body)
    assert answer.status_code == 201
    result: Json = answer.json()
    return result


async def label(api: Api, name: str, **labels: str | None) -> Json:
    answer = await api.client.patch(f"{MAPS}/{name}", json={"metadata": {"labels": labels}}, headers=MERGE)
    result: Json = answer.json()
    return result


async def test_a_watch_from_a_revision_tells_every_later_change_in_order(api: Api) -> None:
    await put(api, "old")
    revision = str(api.store.rv)
    await put(api, "a")
    async with watching(api, {"resourceVersion": revision}) as watch:
        changed = await label(api, "a", x="y")
        await api.client.delete(f"{MAPS}/a")
        first, second, third = await watch.next(), await watch.next(), await watch.next()

    assert [event["type"] for event in (first, second, third)] == ["ADDED", "MODIFIED", "DELETED"]
    assert second["object"] == changed
    assert third["object"]["data"] == {"k": "v"}
    assert int(third["object"]["metadata"]["resourceVersion"]) > int(changed["metadata"]["resourceVersion"])


async def test_a_watch_without_revision_begins_with_what_is_there(api: Api) -> None:
    await put(api, "b")
    await put(api, "a")
    queries: list[dict[str, str]] = [{}, {"resourceVersion": "0"}]
    for query in queries:
        async with watching(api, query) as watch:
            assert await watch.take(2) == [("ADDED", "a"), ("ADDED", "b")]


async def test_objects_come_and_go_with_their_labels(api: Api) -> None:
    await put(api, "a", app="x")
    async with watching(api, {"labelSelector": "app=x", "resourceVersion": str(api.store.rv)}) as watch:
        left_at = (await label(api, "a", app="y"))["metadata"]["resourceVersion"]
        left = await watch.next()
        await label(api, "a", app="x")
        await label(api, "a", other="1")
        await put(api, "never")
        await api.client.delete(f"{MAPS}/a")
        rest = await watch.take(3)

    assert left["type"] == "DELETED"
    assert left["object"]["metadata"]["labels"] == {"app": "x"}
    assert left["object"]["metadata"]["resourceVersion"] == left_at
    assert rest == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]


async def test_streaming_lists_end_with_one_marked_bookmark(api: Api) -> None:
    await put(api, "a")
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    async with watching(api, query) as watch:
        added, bookmark = await watch.next(), await watch.next()
        await put(api, "b")
        live = await watch.take(1)

    assert added["type"] == "ADDED"
    assert bookmark == {
        "type": "BOOKMARK",
        "object": {
            "kind": "ConfigMap",
            "apiVersion": "v1",
            "metadata": {
                "resourceVersion": added["object"]["metadata"]["resourceVersion"],
                "annotations": {"k8s.io/initial-events-end": "true"},
            },
        },
    }
    assert live == [("ADDED", "b")]


async def test_without_initial_events_only_changes_are_told(api: Api) -> None:
    await put(api, "a")
    query = {"sendInitialEvents": "false", "resourceVersionMatch": "NotOlderThan"}
    async with watching(api, query) as watch:
        await put(api, "b")

        assert await watch.take(1) == [("ADDED", "b")]


async def test_a_table_watch_names_its_columns_once(api: Api) -> None:
    async with watching(api, headers=TABLE) as watch:
        await put(api, "a")
        await put(api, "b")
        first, second = (await watch.next())["object"], (await watch.next())["object"]

    assert first["kind"] == second["kind"] == "Table"
    assert [column["name"] for column in first["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert second["columnDefinitions"] is None
    assert second["rows"][0]["cells"][0] == "b"


async def test_watchers_of_one_form_share_the_encoded_frame(api: Api) -> None:
    async with watching(api) as one, watching(api) as two, watching(api, headers=TABLE) as three:
        await put(api, "a")

        assert await one.next() == await two.next()
        assert (await three.next())["object"]["kind"] == "Table"


async def test_a_watch_by_name_tells_of_one_object(api: Api) -> None:
    await put(api, "a")
    await put(api, "b")
    async with watching(api, {"fieldSelector": "metadata.name=b", "resourceVersion": "0"}) as watch:
        assert await watch.take(1) == [("ADDED", "b")]
    async with watching(api, path="/api/v1/watch/namespaces/default/configmaps/b") as watch:
        await label(api, "a", x="y")
        await label(api, "b", x="y")

        assert await watch.take(2) == [("ADDED", "b"), ("MODIFIED", "b")]


async def test_a_compacted_revision_is_told_as_an_error_event(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ring outlives compaction, so a store that lost its ring is pretended."""

    def lost(*_args: object, **_named: object) -> None:
        raise Compacted(2, 5)

    monkeypatch.setattr(api.store, "watch", lost)
    async with watching(api, {"resourceVersion": "2"}) as watch:
        event = await watch.next()

        assert await watch.ended()
    assert event["type"] == "ERROR"
    assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")
    assert event["object"]["message"] == "too old resource version: 2 (5)"


async def test_a_future_revision_is_told_as_an_error_event(api: Api) -> None:
    async with watching(api, {"resourceVersion": str(api.store.rv + 1000)}) as watch:
        event = await watch.next()

    assert event["object"]["code"] == 504
    assert event["object"]["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


async def test_a_watch_ends_at_its_time_after_a_last_bookmark(api: Api) -> None:
    began = time.monotonic()
    async with watching(api, {"timeoutSeconds": "3", "allowWatchBookmarks": "true"}) as watch:
        bookmark = await watch.next()
        marked = time.monotonic() - began
        clean = await watch.ended()

    assert bookmark["type"] == "BOOKMARK"
    assert int(bookmark["object"]["metadata"]["resourceVersion"]) > 0
    assert marked > 0.5
    assert clean
    assert time.monotonic() - began > 2.5


async def test_stopping_ends_watches_promptly(api: Api) -> None:
    async with watching(api) as watch:
        api.stopping.set()
        clean = await watch.ended()

    assert clean
    assert (await api.client.get("/readyz")).status_code == 500


async def test_a_client_that_leaves_frees_its_watch_at_once(api: Api) -> None:
    before = len(asyncio.all_tasks())
    async with watching(api):
        assert len(asyncio.all_tasks()) > before
    left = time.monotonic()
    while len(asyncio.all_tasks()) > before + 1:
        assert time.monotonic() - left < 20
        await asyncio.sleep(0.02)


async def test_a_client_that_stops_reading_is_dropped_and_others_go_on(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apiserver.machinery.watch.SEND_SECONDS", 2.0)
    host, _, port = api.url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port), limit=1024)
    writer.write(f"GET {MAPS}?watch=true HTTP/1.1\r\nhost: x\r\n\r\n".encode())
    await reader.readline()
    async with watching(api) as watch:
        tasks = len(asyncio.all_tasks())
        for number in range(120):
            body = {"metadata": {"name": f"m{number}"}, "data": {"k": "x" * 60_000}}
            await api.client.post(MAPS, json=body)
            assert (await watch.next())["object"]["metadata"]["name"] == f"m{number}"
        until = time.monotonic() + 60
        while len(asyncio.all_tasks()) >= tasks and time.monotonic() < until:
            await asyncio.sleep(0.05)

        assert len(asyncio.all_tasks()) < tasks
    writer.close()
