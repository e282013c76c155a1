"""The store of a server in a cluster: what it reads of the cluster, what it writes there, and what it does when it may not.

The cluster is a table of objects behind plain HTTP, with faults at hand; a real one is in ``tests/aggregated``.
"""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from kube_stand_in import event, kubeconfig, stand_in, start_stream

from apiserver.cluster.answers import ClusterUnusable
from apiserver.cluster.events import ClusterEvents
from apiserver.cluster.store import ClusterStore
from apiserver.engine.registered import read_settings
from apiserver.engine.repository_status import FINALIZER, RESOURCE, RepositoryStatus, SyncOutcome
from apiserver.engine.terminating_namespaces import is_terminating, is_terminating_now
from apiserver.machinery.rest import Scope, User, WriteOptions
from apiserver.resources.objects import stored_namespaces
from apiserver.resources.packagerevisions import PackageRevisions
from krm.client.client import connect
from krm.meta.errors import NotFound, ServiceUnavailable
from storage.bodies import decode, encode_body
from storage.interfaces import Event, Mutation, ObjectKey, Op, StaleWrite, StoreUnavailable
from storage.sql.migrate import upgrade
from storage.sql.sqlite import sqlite_database
from storage.watchcache.store import WatchedStore

Json = dict[str, Any]
REPOSITORY = ObjectKey(RESOURCE, "ns", "blueprints")
WAIT_SECONDS = 60.0


class Cluster:
    """Objects by path, with versions, watches, and codes to answer with instead."""

    def __init__(self) -> None:
        self.objects: dict[str, Json] = {}
        self.version = 100
        self.faults: dict[tuple[str, str], int] = {}
        """(method, path) → the code that is answered."""
        self.asked: list[tuple[str, str]] = []
        self._watches: list[tuple[str, asyncio.Queue[bytes]]] = []

    def put(self, path: str, body: Json, kind: str = "") -> Json:
        """Store an object and tell the watches."""
        self.version += 1
        told = "MODIFIED" if path in self.objects else "ADDED"
        stored = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self.version)}}
        self.objects[path] = stored
        self._tell(path, kind or told, stored)
        return stored

    def remove(self, path: str) -> None:
        """Delete an object and tell the watches."""
        self.put(path, self.objects[path], "DELETED")
        del self.objects[path]

    def _tell(self, path: str, kind: str, body: Json) -> None:
        for collection, queue in self._watches:
            if _is_below(collection, path):
                queue.put_nowait(event(kind, body))

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer as a kube-apiserver would."""
        method, path = request.method, request.path
        self.asked.append((method, path))
        if code := self.faults.get((method, path)):
            return _status(code)
        if method in {"PUT", "POST"}:
            return await self._write(request)
        if "watch" in request.query:
            return await self._watch(request)
        if path in self.objects:
            return web.json_response(self.objects[path])
        if path.endswith(("/repositories", "/namespaces")):
            found = [one for at, one in self.objects.items() if _is_below(path, at)]
            return web.json_response(
                {"kind": "List", "metadata": {"resourceVersion": str(self.version)}, "items": found}
            )
        return _status(404)

    async def _write(self, request: web.Request) -> web.Response:
        body = json.loads(await request.read())
        path = request.path
        if request.method == "POST":
            return web.json_response(self.put(f"{path}/{body['metadata']['name']}", body), status=201)
        path, is_status = path.removesuffix("/status"), path.endswith("/status")
        known = self.objects.get(path)
        if known is None:
            return _status(404)
        if body["metadata"]["resourceVersion"] != known["metadata"]["resourceVersion"]:
            return _status(409)
        new = {**known, "status": body["status"]} if is_status else {**body, "status": known.get("status")}
        if new["metadata"].get("deletionTimestamp") and not new["metadata"].get("finalizers"):
            self.remove(path)
            return web.json_response(new)
        return web.json_response(self.put(path, new))

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        response, queue = await start_stream(request), asyncio.Queue[bytes]()
        self._watches.append((request.path, queue))
        with suppress(ConnectionResetError):
            while True:
                await response.write(await queue.get())
        return response


def _is_below(collection: str, path: str) -> bool:
    group, _, plural = collection.rpartition("/")
    return path.startswith(group) and path.rsplit("/", 2)[-2] == plural


def _status(code: int) -> web.Response:
    reasons = {403: "Forbidden", 404: "NotFound", 409: "Conflict", 503: "ServiceUnavailable"}
    status = {"kind": "Status", "code": code, "reason": reasons[code], "message": f"answered {code}"}
    return web.json_response(status, status=code)


CONFIG = "/apis/config.porch.kpt.dev/v1alpha1/namespaces/ns/repositories"
AT = f"{CONFIG}/blueprints"


def repository(**metadata: Any) -> Json:
    return {
        "apiVersion": "config.porch.kpt.dev/v1alpha1",
        "kind": "Repository",
        "metadata": {"name": "blueprints", "namespace": "ns", "uid": "u-1", "generation": 1, **metadata},
        "spec": {"type": "git", "git": {"repo": "https://git.example/r"}},
    }


def namespace(name: str, **metadata: Any) -> Json:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "uid": f"u-{name}", **metadata}}


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster()
    made.put(AT, repository())
    made.put("/api/v1/namespaces/ns", namespace("ns"))
    return made


@pytest.fixture(scope="module")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database that is migrated, to be copied."""
    path = tmp_path_factory.mktemp("empty") / "porch.db"
    upgrade(path)
    return path


@pytest.fixture
async def store(cluster: Cluster, empty_database: Path, tmp_path: Path) -> AsyncIterator[ClusterStore]:
    shutil.copy(empty_database, tmp_path / "porch.db")
    async with stand_in(cluster.answer) as url, connect(kubeconfig(tmp_path, url)) as client:
        made = ClusterStore(WatchedStore(sqlite_database(tmp_path / "porch.db")), client)
        await made.start()
        yield made
        await made.stop()


async def comes_true(check: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_SECONDS):
        while not check():
            await asyncio.sleep(0.01)


async def test_repositories_of_the_cluster_are_entries_with_events(cluster: Cluster, store: ClusterStore) -> None:
    seen: list[Event] = []
    store.observe(RESOURCE, seen.append)

    cluster.put(AT, repository(labels={"a": "b"}))
    await comes_true(lambda: len(seen) == 2)
    cluster.remove(AT)
    await comes_true(lambda: len(seen) == 3)

    assert [one.type for one in seen] == ["ADDED", "MODIFIED", "DELETED"]
    assert seen[1].previous is seen[0].entry
    assert decode(seen[1].entry)["metadata"]["labels"] == {"a": "b"}
    assert store.snapshot(RESOURCE) == []


async def test_finalizer_and_status_go_to_the_cluster_and_are_seen_at_once(
    cluster: Cluster, store: ClusterStore
) -> None:
    seen: list[Event] = []
    store.observe(RESOURCE, seen.append)
    settings = read_settings(cluster.objects[AT])

    await RepositoryStatus(store).begin(settings)
    await RepositoryStatus(store).synced(settings, SyncOutcome(3, "abc"))

    stored = cluster.objects[AT]
    assert stored["metadata"]["finalizers"] == [FINALIZER]
    assert (stored["status"]["packageCount"], stored["status"]["conditions"][0]["reason"]) == (3, "Ready")
    entry = store.get(REPOSITORY)
    assert entry is not None
    assert decode(entry) == stored
    assert decode(seen[-1].entry) == stored
    assert [asked for asked in cluster.asked if asked[0] == "PUT"] == [
        ("PUT", AT),
        ("PUT", f"{AT}/status"),
        ("PUT", f"{AT}/status"),
    ]


async def test_whoever_wrote_between_keeps_what_they_wrote(cluster: Cluster, store: ClusterStore) -> None:
    settings = read_settings(cluster.objects[AT])
    # As if the watch had not told it yet.
    cluster.version += 1
    cluster.objects[AT] = {
        **repository(annotations={"by": "somebody"}, resourceVersion=str(cluster.version)),
        "status": {},
    }

    await RepositoryStatus(store).failed(settings, "no")

    stored = cluster.objects[AT]
    assert stored["metadata"]["annotations"] == {"by": "somebody"}
    assert stored["status"]["conditions"][0]["message"] == "no"


async def test_an_older_state_is_never_written_over_a_newer_one(cluster: Cluster, store: ClusterStore) -> None:
    entry = store.get(REPOSITORY)
    assert entry is not None
    cluster.put(AT, repository(labels={"a": "b"}))
    body = {**decode(entry), "status": {"packageCount": 1}}

    with pytest.raises(StaleWrite):
        await store.write([Mutation(REPOSITORY, Op.UPDATE, entry.rv, entry.uid, encode_body(body))])

    assert cluster.objects[AT]["metadata"]["labels"] == {"a": "b"}
    assert "packageCount" not in (cluster.objects[AT].get("status") or {})


async def test_a_repository_goes_when_its_finalizer_is_taken_off(cluster: Cluster, store: ClusterStore) -> None:
    cluster.put(AT, repository(finalizers=[FINALIZER], deletionTimestamp="2026-01-01T00:00:00Z"))
    await comes_true(lambda: (found := store.get(REPOSITORY)) is not None and b"deletionTimestamp" in found.body)

    await RepositoryStatus(store).release("ns", "blueprints")
    await comes_true(lambda: store.get(REPOSITORY) is None)
    await RepositoryStatus(store).release("ns", "blueprints")  # again: there is nothing to do

    assert AT not in cluster.objects


async def test_a_cluster_that_refuses_is_told_as_a_store_that_does(cluster: Cluster, store: ClusterStore) -> None:
    entry = store.get(REPOSITORY)
    assert entry is not None
    cluster.faults["PUT", f"{AT}/status"] = 403
    body = {**decode(entry), "status": {"packageCount": 1}}

    with pytest.raises(StoreUnavailable, match="repository ns/blueprints cannot be written: answered 403"):
        await store.write([Mutation(REPOSITORY, Op.UPDATE, entry.rv, entry.uid, encode_body(body))])


async def test_a_repository_is_written_alone(store: ClusterStore) -> None:
    mutation = Mutation(REPOSITORY, Op.UPDATE, 1, "u", b"")

    with pytest.raises(ValueError, match="written alone"):
        await store.write([mutation, mutation])


async def test_secrets_are_read_by_name_and_remembered_for_moments(cluster: Cluster, store: ClusterStore) -> None:
    path = "/api/v1/namespaces/ns/secrets/login"
    cluster.put(path, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login", "namespace": "ns"}})
    key = ObjectKey("secrets", "ns", "login")

    found = [await store.get_fresh(key, not_older_than=0) for _ in range(3)]

    assert all(one is not None and b'"login"' in one.body for one in found)
    assert cluster.asked.count(("GET", path)) == 1
    assert await store.get_fresh(ObjectKey("secrets", "ns", "none")) is None


async def test_a_secret_that_may_not_be_read_is_not_a_missing_one(cluster: Cluster, store: ClusterStore) -> None:
    cluster.faults["GET", "/api/v1/namespaces/ns/secrets/login"] = 403
    cluster.faults["GET", "/api/v1/namespaces/ns/secrets/ns-ca-bundle"] = 403

    with pytest.raises(StoreUnavailable, match="secret ns/login: answered 403"):
        await store.get_fresh(ObjectKey("secrets", "ns", "login"))

    assert await store.get_fresh(ObjectKey("secrets", "ns", "ns-ca-bundle")) is None, "which nobody named"


async def test_a_namespace_that_began_to_go_a_moment_ago_is_known_to_go(cluster: Cluster, store: ClusterStore) -> None:
    going = namespace("ns", deletionTimestamp="2026-01-01T00:00:00Z", resourceVersion="999")
    cluster.objects["/api/v1/namespaces/ns"] = going  # and no watch has told it

    assert not is_terminating(store, "ns")
    assert await is_terminating_now(store, "ns")


async def test_nothing_is_decided_about_a_namespace_that_cannot_be_asked_about(
    cluster: Cluster, store: ClusterStore
) -> None:
    cluster.faults["GET", "/api/v1/namespaces/ns"] = 503

    with pytest.raises(ServiceUnavailable, match="whether namespace ns is being deleted cannot be told"):
        await is_terminating_now(store, "ns")


async def test_a_create_where_no_namespace_can_be_looked_up_may_be_tried_again(
    cluster: Cluster, store: ClusterStore
) -> None:
    cluster.faults["GET", "/api/v1/namespaces/other"] = 503
    service: Any = None  # nothing comes as far as the engine
    revisions = PackageRevisions(store, service, stored_namespaces(store))

    with pytest.raises(ServiceUnavailable):
        await revisions.create(Scope("other", User("us")), {"metadata": {}}, WriteOptions())
    cluster.faults.clear()
    with pytest.raises(NotFound, match='namespaces "other" not found'):
        await revisions.create(Scope("other", User("us")), {"metadata": {}}, WriteOptions())


async def test_a_start_without_the_list_of_repositories_fails(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apiserver.cluster.store.START_SECONDS", 1.0)
    cluster.faults["GET", "/apis/config.porch.kpt.dev/v1alpha1/repositories"] = 403
    async with stand_in(cluster.answer) as url, connect(kubeconfig(tmp_path, url)) as client:
        store = ClusterStore(WatchedStore(sqlite_database(tmp_path / "porch.db")), client)

        with pytest.raises(ClusterUnusable, match=r"repositories cannot be read: answered 403; .* rights to get, list"):
            await store.start()

        assert not store.following


async def test_events_are_made_and_counted_up(cluster: Cluster, tmp_path: Path) -> None:
    def change(current: Json) -> Json:
        if current:
            return {**current, "count": current["count"] + 1}
        return {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "ns"}, "count": 1}

    async with stand_in(cluster.answer) as url, connect(kubeconfig(tmp_path, url)) as client:
        events, scope = ClusterEvents(client), Scope("ns", User("us"))
        made = [(await events.update(scope, "e", change, WriteOptions()))[1] for _ in range(2)]

    assert made == [True, False]
    assert cluster.objects["/api/v1/namespaces/ns/events/e"]["count"] == 2
