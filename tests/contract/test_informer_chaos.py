"""An informer of a server that breaks off, forgets, repeats itself and lies about nothing: its cache ends where the server is.

The server keeps a history and serves lists by pages and watches from it, as a real one does; whatever may go wrong on the way goes
wrong at random, by a seed. Meanwhile others write, and we do.
"""

import asyncio
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from kube_stand_in import event, kubeconfig, stand_in, start_stream

from krm.client import reflector as reflector_module
from krm.client.client import connect
from krm.client.informer import Informer
from krm.client.resources import Resource
from krm.meta import errors

Json = dict[str, Any]

MAPS = Resource("", "v1", "configmaps", "ConfigMap")
STEPS = 600
NAMES = [f"m{number}" for number in range(12)]
PAGE = 5


@dataclass(frozen=True, slots=True)
class Map:
    namespace: str
    name: str
    resource_version: str
    writer: str

    @classmethod
    def of(cls, body: Json) -> "Map":
        meta = body["metadata"]
        return cls(meta["namespace"], meta["name"], meta["resourceVersion"], body["data"]["writer"])


@dataclass
class Server:
    """Objects, the history of their changes, and a dice."""

    dice: random.Random
    version: int = 10
    compacted: int = 0
    objects: dict[str, Json] = field(default_factory=dict)
    history: list[tuple[int, str, Json]] = field(default_factory=list)
    snapshots: dict[int, list[Json]] = field(default_factory=dict)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    faults: bool = True

    # --- writes -------------------------------------------------------------------------------------

    def write(self, name: str, writer: str) -> Json:
        self.version += 1
        kind = "MODIFIED" if name in self.objects else "ADDED"
        meta = {"name": name, "namespace": "ns", "resourceVersion": str(self.version)}
        self.objects[name] = {"metadata": meta, "data": {"writer": writer}}
        self._happened(kind, self.objects[name])
        return self.objects[name]

    def delete(self, name: str) -> None:
        self.version += 1
        old = self.objects.pop(name)
        meta = {**old["metadata"], "resourceVersion": str(self.version)}
        self._happened("DELETED", {**old, "metadata": meta})

    def compact(self) -> None:
        self.compacted = self.version
        self.snapshots.clear()

    def _happened(self, kind: str, body: Json) -> None:
        self.history.append((self.version, kind, body))
        self.changed.set()
        self.changed = asyncio.Event()

    # --- answers ------------------------------------------------------------------------------------

    async def serve(self, request: web.Request) -> web.StreamResponse:
        if self._goes_wrong(0.15):
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        if "watch" in request.query:
            return await self._watch(request)
        return self._list(request)

    def _goes_wrong(self, likelihood: float) -> bool:
        return self.faults and self.dice.random() < likelihood

    def _list(self, request: web.Request) -> web.Response:
        if self._goes_wrong(0.1):
            return web.json_response(errors.TooManyRequests("later").to_status(), status=429)
        token = request.query.get("continue")
        if token is None:
            at, start = self.version, 0
            self.snapshots[at] = [body for _, body in sorted(self.objects.items())]
        else:
            at, start = map(int, token.split("-"))
            if at not in self.snapshots:
                return _expired()
        size = int(request.query.get("limit") or 1000)
        items = self.snapshots[at][start : start + size]
        meta = {"resourceVersion": str(at)}
        if start + size < len(self.snapshots[at]):
            meta["continue"] = f"{at}-{start + size}"
        return web.json_response({"metadata": meta, "items": items})

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        at = int(request.query["resourceVersion"])
        stream = await start_stream(request)
        while True:
            if at < self.compacted:
                await stream.write(event("ERROR", errors.Expired("too old").to_status()))
                return stream
            changed = self.changed
            for version, kind, body in [one for one in self.history if one[0] > at]:
                line = event(kind, body)
                if self._goes_wrong(0.03):
                    await stream.write(line[: self.dice.randrange(len(line))])
                    return stream
                await stream.write(line * (2 if self._goes_wrong(0.05) else 1))
                at = version
            if self._goes_wrong(0.1):
                await stream.write(event("BOOKMARK", {"metadata": {"resourceVersion": str(at)}}))
            if self._goes_wrong(0.05):
                await stream.write(b"{nothing\n")
            await changed.wait()
            await asyncio.sleep(self.dice.random() * 0.005)


def _expired() -> web.Response:
    return web.json_response(errors.Expired("too old").to_status(), status=410)


class Follower:
    """What a subscriber knows, which has to fit together change by change."""

    def __init__(self, informer: Informer[Map]) -> None:
        self.known: dict[str, Map] = {}
        self.told = 0
        informer.subscribe(self._changed)

    def own(self, one: Map) -> None:
        self.known[one.name] = one

    def own_deletion(self, name: str) -> None:
        self.known.pop(name, None)

    def _changed(self, old: Map | None, new: Map | None) -> None:
        one = new or old
        assert one is not None
        assert self.known.get(one.name) == old
        assert new is None or new.writer == "other" or self.known.get(one.name) != new
        self.told += 1
        if new:
            self.known[one.name] = new
        else:
            del self.known[one.name]


@pytest.mark.parametrize("seed", range(6))
async def test_the_cache_ends_where_the_server_is(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reflector_module, "FIRST_PAUSE_SECONDS", 0.001)
    monkeypatch.setattr(reflector_module, "LONGEST_PAUSE_SECONDS", 0.02)
    monkeypatch.setattr(reflector_module, "PAGE", PAGE)
    dice = random.Random(seed)  # noqa: S311 - the same in every run
    server = Server(dice)
    async with stand_in(server.serve) as url, connect(kubeconfig(tmp_path, url)) as client:
        informer = Informer(client, MAPS, "ns", Map.of, indexes={"writer": lambda one: [one.writer]})
        follower = Follower(informer)
        running = asyncio.create_task(informer.run())
        try:
            await asyncio.wait_for(informer.wait_synced(), 60)
            for _ in range(STEPS):
                await _step(server, informer, follower)
            server.faults = False
            await _until_equal(server, informer, running)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    assert {one.name: one for one in informer.values()} == follower.known
    assert sorted(one.name for one in informer.by_index("writer", "other")) == sorted(
        name for name, body in server.objects.items() if body["data"]["writer"] == "other"
    )
    assert informer._cache._own == {}
    assert follower.told > 50


async def _step(server: Server, informer: Informer[Map], follower: Follower) -> None:
    name = server.dice.choice(NAMES)
    known = informer.get("ns", name)
    current = server.objects.get(name)
    match server.dice.choice(["other", "other", "other", "delete", "own", "own", "own delete", "compact", "wait"]):
        case "other":
            server.write(name, "other")
        case "delete" if current:
            server.delete(name)
        case "own" if current is None or (known and known.resource_version == current["metadata"]["resourceVersion"]):
            await _own_write(server, informer, follower, name)
        case "own delete" if current and known and known.resource_version == current["metadata"]["resourceVersion"]:
            with informer.writing("ns", name):
                server.delete(name)
                await asyncio.sleep(server.dice.random() * 0.01)
                informer.forget("ns", name)
                follower.own_deletion(name)
        case "compact" if server.dice.random() < 0.3:
            server.compact()
        case "wait":
            await asyncio.sleep(server.dice.random() * 0.01)


async def _own_write(server: Server, informer: Informer[Map], follower: Follower, name: str) -> None:
    """Write as the holder of the newest version; the answer may come before the event or after it."""
    with informer.writing("ns", name):
        answer = server.write(name, "own")
        await asyncio.sleep(server.dice.random() * 0.01)
        informer.wrote(answer)
        follower.own(Map.of(answer))


async def _until_equal(server: Server, informer: Informer[Map], running: "asyncio.Task[None]") -> None:
    wanted = {name: body["metadata"]["resourceVersion"] for name, body in server.objects.items()}
    async with asyncio.timeout(60):
        while {one.name: one.resource_version for one in informer.values()} != wanted or informer._cache._own:
            assert not running.done(), running.exception()
            await asyncio.sleep(0.01)
