"""The informer: its cache ends where the server is, whatever happens in between, and nobody is asked too often."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from cost import metered
from kube_stand_in import event, kubeconfig, stand_in, start_stream
from porch_process import PorchProcess

from krm.client import client as client_module
from krm.client import connection
from krm.client import reflector as reflector_module
from krm.client.client import KubeClient, connect
from krm.client.informer import Informer
from krm.client.resources import Resource
from krm.meta import errors

Json = dict[str, Any]

MAPS = Resource("", "v1", "configmaps", "ConfigMap")
MANY = 2000
WRITERS = 16


@dataclass(frozen=True, slots=True)
class Map:
    """What is kept of a ConfigMap."""

    namespace: str
    name: str
    resource_version: str
    color: str

    @classmethod
    def of(cls, body: Json) -> "Map":
        meta = body["metadata"]
        color = (body.get("data") or {}).get("color", "")
        return cls(meta["namespace"], meta["name"], meta["resourceVersion"], color)


Told = list[tuple[Map | None, Map | None]]


def config_map(name: str, color: str = "") -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"color": color}}


def colors(one: Map) -> list[str]:
    return [one.color]


@asynccontextmanager
async def informed(
    client: KubeClient, namespace: str | None, **options: Any
) -> AsyncIterator[tuple[Informer[Map], Told]]:
    """Run an informer of ConfigMaps; yield it and what it tells."""
    told: Told = []
    informer = Informer(client, MAPS, namespace, Map.of, indexes={"color": colors}, **options)
    informer.subscribe(lambda old, new: told.append((old, new)))
    running = asyncio.create_task(informer.run())
    try:
        yield informer, told
        assert not running.done(), running.exception()
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def until(check: Callable[[], bool], seconds: float = 30.0) -> None:
    async with asyncio.timeout(seconds):
        while not check():
            await asyncio.sleep(0.02)


def names(informer: Informer[Map]) -> set[str]:
    return {one.name for one in informer.values()}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[PorchProcess]:
    process = PorchProcess(tmp_path / "data")
    process.start()
    yield process
    process.stop()


async def all_at(client: KubeClient, namespace: str) -> dict[str, str]:
    return {
        one["metadata"]["name"]: one["metadata"]["resourceVersion"]
        async for page in client.list(MAPS, namespace)
        for one in page.items
    }


def cached(informer: Informer[Map]) -> dict[str, str]:
    return {one.name: one.resource_version for one in informer.values()}


async def test_two_thousand_objects_are_followed_through_kills_of_the_server(server: PorchProcess) -> None:
    async with connect(server.kubeconfig) as client:
        await _create(client, MANY)
        async with informed(client, "default") as (informer, told):
            await asyncio.wait_for(informer.wait_synced(), 30)
            assert len(informer) == len(told) == MANY
            assert len(informer.by_index("color", "c3")) == MANY // 10

            for round_number in range(2):
                server.restart()
                async with connect(server.kubeconfig) as other:
                    await _churn(other, round_number)
                    wanted = await all_at(other, "default")
                await until(lambda wanted=wanted: cached(informer) == wanted)  # type: ignore[misc]

            assert len(told) == len(set(told))
            assert informer.error is None


async def test_a_server_that_was_killed_is_watched_again_where_the_watch_was(server: PorchProcess) -> None:
    async with connect(server.kubeconfig) as client:
        await _create(client, 5)
        async with informed(client, "default") as (informer, told):
            await asyncio.wait_for(informer.wait_synced(), 30)
            server.restart()
            async with connect(server.kubeconfig) as other:
                await other.delete(MAPS, "default", "m1")
                await other.create(MAPS, "default", config_map("new"))
            await until(lambda: names(informer) == {"m0", "m2", "m3", "m4", "new"})

    # in the order in which it happened: a list would tell what is new first, and what is gone when it is read
    assert [(old and old.name, new and new.name) for old, new in told[5:]] == [("m1", None), (None, "new")]


async def test_what_went_while_the_log_was_lost_is_told_as_gone(server: PorchProcess, tmp_path: Path) -> None:
    """After a restore the version watched from is gone (410), and so is one of the objects."""
    async with connect(server.kubeconfig) as client, connect(server.kubeconfig) as other:
        await _create(other, 3)
        _porch(server, "backup", tmp_path / "backup")
        async with informed(client, "default") as (informer, told):
            await asyncio.wait_for(informer.wait_synced(), 30)
            await other.create(MAPS, "default", config_map("lost"))
            await until(lambda: "lost" in names(informer))
            server.stop()
            _porch(server, "restore", tmp_path / "backup")
            server.start()
            await until(lambda: "lost" not in names(informer))

            assert names(informer) == {"m0", "m1", "m2"}
            assert [new.name for old, new in told if new] == ["m0", "m1", "m2", "lost"]
            assert [old.name for old, new in told if old] == ["lost"]


def _porch(server: PorchProcess, command: str, folder: Path) -> None:
    arguments = [sys.executable, "-m", "apiserver", command, str(folder), "--data", str(server.data)]
    done = subprocess.run(arguments, capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr


async def _create(client: KubeClient, count: int) -> None:
    todo = iter(range(count))

    async def work() -> None:
        for number in todo:
            await client.create(MAPS, "default", config_map(f"m{number}", f"c{number % 10}"))

    async with asyncio.TaskGroup() as tasks:
        for _ in range(WRITERS):
            tasks.create_task(work())


async def _churn(client: KubeClient, round_number: int) -> None:
    """Delete, change and create a few of the objects."""
    start = round_number * 100
    for number in range(start, start + 20):
        await client.delete(MAPS, "default", f"m{number}")
        await client.patch(MAPS, "default", f"m{number + 50}", {"data": {"color": f"new{round_number}"}})
        await client.create(MAPS, "default", config_map(f"round{round_number}-{number}"))


async def test_own_writes_are_there_at_once_and_wake_nobody(porch_server: PorchProcess, namespace: str) -> None:
    async with connect(porch_server.kubeconfig) as client, informed(client, namespace) as (informer, told):
        await asyncio.wait_for(informer.wait_synced(), 30)
        for number in range(50):
            with informer.writing(namespace, f"m{number}"):
                informer.wrote(await client.create(MAPS, namespace, config_map(f"m{number}")))
            with informer.writing(namespace, f"m{number}"):
                informer.wrote(await client.patch(MAPS, namespace, f"m{number}", {"data": {"color": "red"}}))
            assert len(informer.by_index("color", "red")) == number + 1
        with informer.writing(namespace, "m7"):
            await client.delete(MAPS, namespace, "m7")
            informer.forget(namespace, "m7")
        assert informer.get(namespace, "m7") is None
        await client.patch(MAPS, namespace, "m9", {"data": {"color": "foreign"}})
        await until(lambda: bool(told))

        assert [(old and old.color, new and new.color) for old, new in told] == [("red", "foreign")]
        assert cached(informer) == await all_at(client, namespace)


async def test_selectors_choose_what_is_kept(porch_server: PorchProcess, namespace: str) -> None:
    async with (
        connect(porch_server.kubeconfig) as client,
        informed(client, namespace, field_selector="metadata.name=b") as (informer, _),
    ):
        for name in "abc":
            await client.create(MAPS, namespace, config_map(name))
        await until(lambda: len(informer) > 0)
        await client.delete(MAPS, namespace, "b")
        await client.create(MAPS, namespace, config_map("b"))
        version = (await client.get(MAPS, namespace, "b"))["metadata"]["resourceVersion"]
        await until(lambda: cached(informer) == {"b": version})


@dataclass
class Script:
    """A server whose lists and watches the test makes up; counts what it is asked."""

    items: list[Json] = field(default_factory=list)
    version: int = 1
    lists: list[dict[str, str]] = field(default_factory=list)
    watches: list[dict[str, str]] = field(default_factory=list)
    answer_list: Callable[[dict[str, str]], web.Response | None] = lambda _: None
    """Return None for the items."""
    answer_watch: Callable[[int, web.StreamResponse], Any] = lambda *_: asyncio.sleep(60)
    """Called with how many watches there were before."""

    async def serve(self, request: web.Request) -> web.StreamResponse:
        query = dict(request.query)
        if "watch" not in query:
            self.lists.append(query)
            return self.answer_list(query) or self.listed()
        self.watches.append(query)
        stream = await start_stream(request)
        await self.answer_watch(len(self.watches) - 1, stream)
        return stream

    def listed(self, items: list[Json] | None = None, token: str = "") -> web.Response:
        meta = {"resourceVersion": str(self.version)} | ({"continue": token} if token else {})
        return web.json_response({"metadata": meta, "items": self.items if items is None else items})


def item(name: str, version: int, color: str = "") -> Json:
    meta = {"name": name, "namespace": "ns", "resourceVersion": str(version)}
    return {"metadata": meta, "data": {"color": color}}


@asynccontextmanager
async def following(script: Script, folder: Path) -> AsyncIterator[tuple[Informer[Map], Told]]:
    async with (
        stand_in(script.serve) as url,
        connect(kubeconfig(folder, url)) as client,
        informed(client, "ns") as running,
    ):
        yield running


def _expired() -> web.Response:
    return web.json_response(errors.Expired("too old").to_status(), status=410)


async def asked_for_two_seconds(requests: list[dict[str, str]]) -> None:
    """Let two seconds go by, or more on a busy machine: until there were at least three requests."""
    await asyncio.gather(asyncio.sleep(2), until(lambda: len(requests) >= 3))


class TestBadServers:
    async def test_one_that_closes_every_watch_at_once_is_not_asked_often(self, tmp_path: Path) -> None:
        script = Script([item("a", 1)], answer_watch=lambda *_: asyncio.sleep(0))
        async with following(script, tmp_path) as (informer, told):
            await asked_for_two_seconds(script.watches)

            assert names(informer) == {"a"}
        assert len(script.lists) == 1
        assert len(script.watches) <= 8
        assert len(told) == 1

    async def test_one_that_sends_the_same_event_and_closes_is_not_asked_often(self, tmp_path: Path) -> None:
        script = Script()
        script.answer_watch = lambda _, stream: stream.write(event("ADDED", item("a", 5)))
        async with following(script, tmp_path) as (_, told):
            await asked_for_two_seconds(script.watches)

        assert len(script.watches) <= 8
        assert len(told) == 1
        assert script.watches[-1]["resourceVersion"] == "5"

    async def test_one_that_knows_no_version_is_not_asked_often(self, tmp_path: Path) -> None:
        """Each list is followed by a 410: the next list waits longer and longer."""
        script = Script([item("a", 1)])
        script.answer_watch = lambda _, stream: stream.write(event("ERROR", errors.Expired("too old").to_status()))
        async with following(script, tmp_path) as (informer, told):
            await asked_for_two_seconds(script.lists)

            assert informer.synced
        assert len(script.lists) <= 8
        assert len(told) == 1

    async def test_one_that_refuses_tells_why_and_is_asked_again(self, tmp_path: Path) -> None:
        refuses = True
        script = Script([item("a", 1)])
        refusal = errors.Forbidden("not you").to_status()
        script.answer_list = lambda _: web.json_response(refusal, status=403) if refuses else None
        async with following(script, tmp_path) as (informer, _):
            await until(lambda: len(script.lists) > 2)
            assert isinstance(informer.error, errors.Forbidden)
            assert not informer.synced
            refuses = False
            await asyncio.wait_for(informer.wait_synced(), 60)

            assert informer.error is None

    async def test_a_line_that_is_no_event_costs_only_that_watch(self, tmp_path: Path) -> None:
        script = Script()

        async def watch(number: int, stream: web.StreamResponse) -> None:
            if number == 0:
                await stream.write(event("ADDED", item("a", 5)) + b"{garbage\n" + event("ADDED", item("b", 6)))
            else:
                await stream.write(event("ADDED", item("b", 6)))
                await asyncio.sleep(60)

        script.answer_watch = watch
        async with following(script, tmp_path) as (informer, _):
            await until(lambda: names(informer) == {"a", "b"})

        assert script.watches[1]["resourceVersion"] == "5"
        assert len(script.lists) == 1

    async def test_one_that_falls_silent_is_asked_again(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(reflector_module, "WATCH_SECONDS", (1, 1))
        monkeypatch.setattr(client_module, "WATCH_GRACE_SECONDS", 0.2)
        script = Script([item("a", 1)], version=3)
        async with following(script, tmp_path):
            await until(lambda: len(script.watches) == 3)

        assert {(one["timeoutSeconds"], one["resourceVersion"]) for one in script.watches} == {("1", "3")}
        assert len(script.lists) == 1

    async def test_errors_that_last_are_answered_by_a_new_list(self, tmp_path: Path) -> None:
        """Such as a version of the future, after the server was put back to an older state."""
        script = Script([item("a", 1), item("b", 1)])

        async def watch(number: int, stream: web.StreamResponse) -> None:
            script.items = [item("a", 1)]
            if number < reflector_module.REFUSALS:
                await stream.write(event("ERROR", errors.Timeout("too large resource version").to_status()))
            else:
                await asyncio.sleep(60)

        script.answer_watch = watch
        async with following(script, tmp_path) as (informer, told):
            await until(lambda: len(script.watches) > reflector_module.REFUSALS)

            assert names(informer) == {"a"}
        assert len(script.lists) == 2
        assert [old.name for old, _ in told if old] == ["b"]

    async def test_one_that_has_too_much_to_do_is_not_burdened_with_lists(self, tmp_path: Path) -> None:
        script = Script([item("a", 1)])
        busy = errors.TooManyRequests("later").to_status()
        script.answer_watch = lambda _, stream: stream.write(event("ERROR", busy))
        async with following(script, tmp_path):
            await until(lambda: len(script.watches) > reflector_module.REFUSALS + 1)

        assert len(script.lists) == 1

    async def test_an_object_that_is_not_understood_leaves_the_others_be(self, tmp_path: Path) -> None:
        odd: list[Any] = [3, {}, {"metadata": None}, {"metadata": {"name": "x"}}, {**item("y", 1), "data": 7}]
        script = Script([*odd, item("a", 1)])
        script.answer_watch = lambda _, stream: _and_wait(
            stream, b"".join(event("ADDED", one) for one in odd[1:]) + event("ADDED", item("b", 9))
        )
        async with following(script, tmp_path) as (informer, _):
            await until(lambda: names(informer) == {"a", "b"})

    @pytest.mark.parametrize("body", [{}, {"metadata": {}}, {"metadata": 3, "items": []}, {"metadata": {}, "items": 3}])
    async def test_what_is_no_list_is_not_taken_for_an_empty_one(self, tmp_path: Path, body: Json) -> None:
        """Or everything would be taken for deleted."""
        script = Script([item("a", 1)])
        script.answer_watch = lambda _, stream: stream.write(event("ERROR", errors.Expired("too old").to_status()))
        script.answer_list = lambda _: web.json_response(body) if len(script.lists) > 1 else None
        async with following(script, tmp_path) as (informer, _):
            await until(lambda: len(script.lists) > 2)

            assert names(informer) == {"a"}


async def _and_wait(stream: web.StreamResponse, sent: bytes) -> None:
    await stream.write(sent)
    await asyncio.sleep(60)


class TestVersions:
    async def test_a_watch_goes_on_where_the_last_bookmark_was(self, tmp_path: Path) -> None:
        script = Script(version=3)

        async def watch(number: int, stream: web.StreamResponse) -> None:
            if number == 0:
                await stream.write(event("BOOKMARK", {"metadata": {"resourceVersion": "77"}}))
            else:
                await asyncio.sleep(60)

        script.answer_watch = watch
        async with following(script, tmp_path) as (_, told):
            await until(lambda: len(script.watches) == 2)

        assert [one["resourceVersion"] for one in script.watches] == ["3", "77"]
        assert script.watches[0]["allowWatchBookmarks"] == "true"
        assert told == []

    async def test_a_list_after_a_410_tells_only_the_difference(self, tmp_path: Path) -> None:
        script = Script([item("same", 1), item("changed", 2), item("gone", 3)], version=3)

        async def watch(number: int, stream: web.StreamResponse) -> None:
            if number:
                await asyncio.sleep(60)
            script.items, script.version = [item("same", 1), item("changed", 8), item("new", 9)], 9
            await stream.write(event("ERROR", errors.Expired("too old").to_status()))

        script.answer_watch = watch
        async with following(script, tmp_path) as (informer, told):
            await until(lambda: len(script.watches) == 2)

            assert cached(informer) == {"same": "1", "changed": "8", "new": "9"}
        changes = [
            (old and (old.name, old.resource_version), new and (new.name, new.resource_version)) for old, new in told
        ]
        assert changes[3:] == [
            (("changed", "2"), ("changed", "8")),
            (None, ("new", "9")),
            (("gone", "3"), None),
        ]
        assert [one["resourceVersion"] for one in script.watches] == ["3", "9"]

    async def test_pages_whose_state_goes_away_are_read_again_and_then_all_at_once(self, tmp_path: Path) -> None:
        script = Script([item("a", 1), item("b", 1)])

        def listing(query: dict[str, str]) -> web.Response | None:
            if "continue" in query:
                return _expired()
            if query.get("limit"):
                return script.listed(script.items[:1], token="next")
            return None

        script.answer_list = listing
        async with following(script, tmp_path) as (informer, told):
            await asyncio.wait_for(informer.wait_synced(), 60)

            assert names(informer) == {"a", "b"}
        assert [("continue" in one, "limit" in one) for one in script.lists] == [
            (False, True),
            (True, True),
            (False, True),
            (True, True),
            (False, False),
        ]
        assert len(told) == 2

    async def test_pages_that_are_too_long_are_made_smaller(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A few objects of the largest size must not keep all others from being seen."""
        monkeypatch.setattr(connection, "RESPONSE_BYTES", 1 << 20)
        script = Script([item(f"m{number}", 1, "x" * 400_000) for number in range(9)])

        def listing(query: dict[str, str]) -> web.Response:
            start, size = int(query.get("continue", 0)), int(query["limit"])
            end = start + size
            return script.listed(script.items[start:end], token=str(end) if end < 9 else "")

        script.answer_list = listing
        async with following(script, tmp_path) as (informer, _):
            await asyncio.wait_for(informer.wait_synced(), 60)

            assert len(informer) == 9
        assert [query["limit"] for query in script.lists] == ["500", "62", "7", *["1"] * 9]

    async def test_an_object_whose_event_cannot_be_read_is_listed(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(connection, "LINE_BYTES", 1 << 20)
        script = Script([item("a", 1)])

        async def watch(_: int, stream: web.StreamResponse) -> None:
            script.items = [item("a", 1), item("large", 7, "x" * (2 << 20))]
            if len(script.lists) == 1:
                await stream.write(event("ADDED", script.items[1]))
            await asyncio.sleep(60)

        script.answer_watch = watch
        async with following(script, tmp_path) as (informer, _):
            await until(lambda: names(informer) == {"a", "large"})

        assert len(script.lists) == 2

    async def test_an_own_write_that_a_list_does_not_know_yet_stays(self, tmp_path: Path) -> None:
        script = Script([item("a", 1)], version=3)

        async def watch(number: int, stream: web.StreamResponse) -> None:
            if number:
                await asyncio.sleep(60)
            informer.wrote(item("a", 8, "own"))
            informer.wrote(item("made", 9, "own"))
            await stream.write(event("ERROR", errors.Expired("too old").to_status()))

        script.answer_watch = watch
        async with following(script, tmp_path) as (informer, told):
            await until(lambda: len(script.watches) == 2)

            assert cached(informer) == {"a": "8", "made": "9"}
        assert len(told) == 1


async def test_a_flood_of_events_is_taken_quickly(tmp_path: Path) -> None:
    """Counted in processor time, in which also the sending is; a tenth of what is usual."""
    count = 20_000
    lines = b"".join(event("MODIFIED", item(f"m{number % 50}", number + 2, "x" * 500)) for number in range(count))
    script = Script()
    script.answer_watch = lambda _, stream: _and_wait(stream, lines)
    async with following(script, tmp_path) as (informer, told):
        with metered() as cost:
            await until(lambda: len(told) == count, 60)

        assert len(informer) == 50
        assert json.loads(lines.splitlines()[-1])["object"]["metadata"]["resourceVersion"] == str(count + 1)
    assert count / cost.seconds > 2_000
