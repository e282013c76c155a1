"""Clients that do not read: they cost no memory to speak of, are cut off, and lose nothing when they come back."""

import asyncio
import json
import os
import socket
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from api_fixture import Api, api_server

from apiserver import http_protocol
from apiserver.machinery import watch

MAPS = "/api/v1/namespaces/default/configmaps"
Json = dict[str, Any]


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    async with api_server(body_limit=1 << 20, request_seconds=5.0) as server:
        yield server


class SlowClient:
    """A connection whose kernel takes little for it, and which reads when it is told to."""

    def __init__(self, api: Api) -> None:
        host, _, port = api.url.removeprefix("http://").partition(":")
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self._socket.connect((host, int(port)))
        self._socket.setblocking(False)

    async def ask(self, target: str, headers: str = "") -> None:
        """Send a GET."""
        request = f"GET {target} HTTP/1.1\r\nhost: x\r\n{headers}\r\n".encode()
        await asyncio.get_running_loop().sock_sendall(self._socket, request)

    async def read(self, size: int = 65536) -> bytes:
        """Return what has come; raises ConnectionResetError when the server has cut the connection."""
        return await asyncio.get_running_loop().sock_recv(self._socket, size)

    async def read_until(self, wanted: bytes) -> bytes:
        """Return everything up to the piece with what is wanted."""
        received = b""
        while wanted not in received[-2 * 65536 :]:
            piece = await asyncio.wait_for(self.read(), 60)
            assert piece, "the connection ended"
            received += piece
        return received

    async def read_to_the_end(self) -> bytes:
        """Return everything up to the end of the connection, however it ends."""
        received = b""
        try:
            while piece := await asyncio.wait_for(self.read(), 60):
                received += piece
        except ConnectionResetError:
            pass
        self._socket.close()
        return received


async def fill(api: Api, count: int, size: int, *, random: bool = False) -> None:
    for number in range(count):
        data = os.urandom(size).hex() if random else "x" * size
        body = {"metadata": {"name": f"m{number:04}"}, "data": {"k": data}}
        assert (await api.client.post(MAPS, json=body)).status_code == 201


def resident_megabytes() -> float:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


async def settled(tasks: int) -> None:
    """Wait until no more tasks run than before."""
    end = time.monotonic() + 60
    while len(asyncio.all_tasks()) > tasks:
        assert time.monotonic() < end, asyncio.all_tasks()
        await asyncio.sleep(0.1)


async def test_a_list_that_nobody_reads_holds_little_memory_and_is_cut_at_its_deadline(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty clients ask for 30 MB each."""
    monkeypatch.setattr(http_protocol, "UNREAD_CHECK_SECONDS", 0.5)
    await fill(api, 60, 250_000, random=True)
    tasks, before = len(asyncio.all_tasks()), resident_megabytes()
    clients = [SlowClient(api) for _ in range(20)]
    for number, client in enumerate(clients):
        await client.ask(MAPS, "accept-encoding: gzip\r\n" if number % 2 else "")
    await asyncio.sleep(1)

    assert (await api.client.get(f"{MAPS}/m0000")).status_code == 200
    assert resident_megabytes() - before < 40, "30 MB each would be 600"
    await settled(tasks)
    for client in clients:
        received = await client.read_to_the_end()
        assert received.startswith(b"HTTP/1.1 200")
        assert not received.endswith(b"0\r\n\r\n"), "what is not complete does not look complete"


async def test_a_watch_that_nobody_reads_is_cut_and_nothing_is_lost_on_resume(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "SEND_SECONDS", 0.5)
    monkeypatch.setattr(http_protocol, "UNREAD_CHECK_SECONDS", 0.5)
    tasks, before = len(asyncio.all_tasks()), resident_megabytes()
    client = SlowClient(api)
    start = api.store.rv
    await client.ask(f"{MAPS}?watch=true&resourceVersion={start}")
    head = await client.read(400)
    await fill(api, 60, 200_000)
    await settled(tasks)
    held = resident_megabytes() - before

    first = lines_of(head + await client.read_to_the_end())
    monkeypatch.undo()
    last = first[-1]["object"]["metadata"]["resourceVersion"] if first else str(start)
    resumed = SlowClient(api)
    await resumed.ask(f"{MAPS}?watch=true&resourceVersion={last}", "connection: close\r\n")
    received = await resumed.read_until(b'"name":"m0059"')
    api.stopping.set()
    rest = lines_of(received + await resumed.read_to_the_end())

    names = [event["object"]["metadata"]["name"] for event in [*first, *rest]]
    assert len(first) < 60, "it was cut off"
    assert names == [f"m{number:04}" for number in range(60)]
    assert held < 60, "the objects themselves are 12 MB, and exist in the cache and on the way into it"


def lines_of(answer: bytes) -> list[Json]:
    """Return the complete events in an answer in chunks."""
    body = answer.partition(b"\r\n\r\n")[2]
    text = b""
    while body:
        size, _, body = body.partition(b"\r\n")
        length = int(size or b"0", 16)
        text, body = text + body[:length], body[length + 2 :]
    return [json.loads(line) for line in text.split(b"\n")[:-1]]


async def test_a_bookmark_never_passes_an_event_that_was_not_sent(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that lags behind gets events and bookmarks in the order of their revisions."""
    monkeypatch.setattr(watch, "BOOKMARK_SECONDS", 0.01)
    client = SlowClient(api)
    await client.ask(
        f"{MAPS}?watch=true&allowWatchBookmarks=true&timeoutSeconds=5&resourceVersion={api.store.rv}",
        "connection: close\r\n",
    )
    writing = asyncio.create_task(fill(api, 100, 20_000))
    received = b""
    while not writing.done():
        received += await asyncio.wait_for(client.read(20_000), 60)
        await asyncio.sleep(0.005)
    received += await client.read_to_the_end()

    events = lines_of(received)
    revisions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert revisions == sorted(revisions)
    assert sum(event["type"] == "ADDED" for event in events) == 100
    assert sum(event["type"] == "BOOKMARK" for event in events) > 3


async def test_stopping_tells_watchers_where_to_resume(api: Api) -> None:
    client = SlowClient(api)
    await client.ask(f"{MAPS}?watch=true&allowWatchBookmarks=true", "connection: close\r\n")
    await fill(api, 3, 10)
    api.stopping.set()
    received = await client.read_to_the_end()

    events = lines_of(received)
    assert [event["type"] for event in events] == ["ADDED"] * 3 + ["BOOKMARK"]
    assert events[-1]["object"]["metadata"]["resourceVersion"] == str(api.store.rv)
    assert received.endswith(b"0\r\n\r\n")


async def test_many_watchers_of_one_namespace_see_all_of_it_in_order(api: Api) -> None:
    """Events are sent from where they arise, in slices of the watchers."""
    start = api.store.rv
    clients = [SlowClient(api) for _ in range(250)]
    for client in clients:
        await client.ask(f"{MAPS}?watch=true&resourceVersion={start}", "connection: close\r\n")
    await fill(api, 20, 100)

    received = [await client.read_until(b'"name":"m0019"') for client in clients]
    api.stopping.set()
    for client, begun in zip(clients, received, strict=True):
        events = lines_of(begun + await client.read_to_the_end())
        assert [event["object"]["metadata"]["name"] for event in events] == [f"m{number:04}" for number in range(20)]
