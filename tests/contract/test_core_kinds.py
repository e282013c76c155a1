"""Core kinds and Repository as real kubectl uses them, over HTTP, on a real SQLite store.

kubectl runs without extra flags: it reads discovery and OpenAPI, sends protobuf for core kinds, and
patches as our documents allow. Left out: package revisions, TLS, certificates.
"""

import asyncio
import base64
import json
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.types import Scope as AsgiScope

from apiserver.machinery.machinery import ApiMachinery
from apiserver.machinery.rest import Served, User
from apiserver.machinery.stopping import Stopping
from apiserver.resources.config import repository_definition
from apiserver.resources.core import config_map_definition, secret_definition
from apiserver.resources.event_kinds import event_definition
from apiserver.resources.namespace_deletion import ContentsOf, NamespaceDeletion
from apiserver.resources.namespaces import NamespaceFinalize, Namespaces, create_protected_namespaces
from apiserver.resources.objects import StatusOf, StoredObjects, stored_namespaces
from storage.bodies import encode_body
from storage.interfaces import Mutation, ObjectKey, Op
from storage.sealing import Sealer
from storage.sql.migrate import upgrade
from storage.sql.sqlite import sqlite_database
from storage.watchcache.store import WatchedStore

Json = dict[str, Any]

CONFIG_MAP = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {colour: red, shape: round}
"""
REPOSITORY = """
apiVersion: config.porch.kpt.dev/v1alpha1
kind: Repository
metadata: {name: blueprints}
spec:
  type: git
  git: {repo: "https://git.example/blueprints.git", directory: /}
"""


class Anybody:
    async def authenticate(self, scope: AsgiScope) -> User | None:
        return User("tester")


@dataclass
class Answer:
    code: int
    out: str
    err: str


class Kubectl:
    """Runs kubectl against the server under test, with a cache of its own."""

    def __init__(self, port: int, home: Path) -> None:
        self._flags = [f"--server=http://127.0.0.1:{port}", f"--cache-dir={home}"]
        self._environment = {
            "HOME": str(home),
            "PATH": "/usr/bin:/bin:/usr/local/bin",
            "KUBE_EDITOR": "sed -i s/red/blue/",
        }

    async def start(self, *arguments: str, stdin: int = asyncio.subprocess.PIPE) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            "kubectl",
            *self._flags,
            *arguments,
            stdin=stdin,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=self._environment,
        )

    async def __call__(self, *arguments: str, stdin: str = "") -> Answer:
        process = await self.start(*arguments)
        async with asyncio.timeout(90):
            out, err = await process.communicate(stdin.encode())
        return Answer(process.returncode or 0, out.decode(), err.decode())

    async def ok(self, *arguments: str, stdin: str = "") -> str:
        answer = await self(*arguments, stdin=stdin)
        assert answer.code == 0, answer.err
        return answer.out

    async def object(self, *arguments: str) -> Json:
        decoded: Json = json.loads(await self.ok("get", "-o", "json", *arguments))
        return decoded


def new_config_map(namespace: str, name: str) -> Mutation:
    metadata = {"name": name, "namespace": namespace, "uid": name, "creationTimestamp": "2026-01-02T03:04:05Z"}
    body = encode_body({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    return Mutation(ObjectKey("configmaps", namespace, name), Op.CREATE, 0, name, body)


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("migrated") / "porch.db"
    upgrade(path)
    return path.read_bytes()


@pytest.fixture
async def store(tmp_path: Path, migrated: bytes) -> WatchedStore:
    path = tmp_path / "porch.db"
    path.write_bytes(migrated)
    return WatchedStore(sqlite_database(path), Sealer(b"k" * 32))


@pytest.fixture
async def kubectl(store: WatchedStore, tmp_path: Path) -> AsyncIterator[Kubectl]:
    check = stored_namespaces(store)
    plain = [
        StoredObjects(definition, store, namespace_check=check)
        for definition in (repository_definition(), config_map_definition(), secret_definition(), event_definition())
    ]
    namespaces = Namespaces(store)
    for resource in (namespaces, *plain):
        resource.register()
    served = [Served(namespaces, {"status": StatusOf(namespaces), "finalize": NamespaceFinalize(store)})]
    served += [Served(one, {"status": StatusOf(one)} if one.definition.status else {}) for one in plain]
    deletion = NamespaceDeletion(store, [ContentsOf(resource) for resource in plain])
    stopping = Stopping()
    machinery = ApiMachinery(
        served,
        authenticator=Anybody(),
        version_info={"major": "1", "minor": "32", "gitVersion": "v1.32.0"},
        stopping=stopping,
    )
    await store.start()
    await create_protected_namespaces(store)
    listener = socket.create_server(("127.0.0.1", 0))
    app = Starlette(routes=machinery.routes())
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off", ws="none"))
    controller = asyncio.create_task(deletion.run())
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield Kubectl(listener.getsockname()[1], tmp_path)
    finally:
        stopping.set()
        server.should_exit = True
        await serving
        controller.cancel()
        await asyncio.gather(controller, return_exceptions=True)
        await store.stop()
        listener.close()


async def test_config_maps_are_created_from_protobuf_listed_and_described(kubectl: Kubectl) -> None:
    await kubectl.ok("create", "configmap", "a", "--from-literal=k=v")
    duplicate = await kubectl("create", "configmap", "a")
    listed = await kubectl.ok("get", "cm")
    described = await kubectl.ok("describe", "cm", "a")

    assert duplicate.code == 1
    assert 'configmaps "a" already exists' in duplicate.err
    assert listed.splitlines()[0].split() == ["NAME", "DATA", "AGE"]
    assert listed.splitlines()[1].split()[:2] == ["a", "1"]
    assert "k:\n----\nv" in described


async def test_secrets_keep_bytes_and_fold_string_data(kubectl: Kubectl) -> None:
    await kubectl.ok("create", "secret", "generic", "login", "--from-literal=password=p4ss")
    text = '{"apiVersion":"v1","kind":"Secret","metadata":{"name":"texts"},"stringData":{"a":"b"}}'
    await kubectl.ok("apply", "-f", "-", stdin=text)

    login, texts = await kubectl.object("secret", "login"), await kubectl.object("secret", "texts")

    assert base64.b64decode(login["data"]["password"]) == b"p4ss"
    assert (texts["data"], texts["type"]) == ({"a": base64.b64encode(b"b").decode()}, "Opaque")
    assert "stringData" not in texts
    found = await kubectl.ok("get", "secrets", "--field-selector=type=Opaque", "-o", "name")
    assert found.split() == ["secret/login", "secret/texts"]


async def test_apply_creates_changes_prunes_and_leaves_alone(kubectl: Kubectl) -> None:
    created = await kubectl.ok("apply", "-f", "-", stdin=CONFIG_MAP)
    version = (await kubectl.object("cm", "settings"))["metadata"]["resourceVersion"]
    unchanged = await kubectl.ok("apply", "-f", "-", stdin=CONFIG_MAP)
    same = (await kubectl.object("cm", "settings"))["metadata"]["resourceVersion"]
    changed = await kubectl.ok(
        "apply", "-f", "-", stdin=CONFIG_MAP.replace(", shape: round", "").replace("red", "blue")
    )

    assert "created" in created
    assert "unchanged" in unchanged
    assert version == same
    assert "configured" in changed
    assert (await kubectl.object("cm", "settings"))["data"] == {"colour": "blue"}


async def test_patches_of_every_type_change_a_config_map(kubectl: Kubectl) -> None:
    await kubectl.ok("create", "-f", "-", stdin=CONFIG_MAP)
    await kubectl.ok("patch", "cm", "settings", "-p", '{"data":{"a":"strategic"}}')
    await kubectl.ok("patch", "cm", "settings", "--type=merge", "-p", '{"data":{"b":"merge","shape":null}}')
    operation = '[{"op":"add","path":"/data/c","value":"json"}]'
    await kubectl.ok("patch", "cm", "settings", "--type=json", "-p", operation)
    failed = await kubectl(
        "patch", "cm", "settings", "--type=json", "-p", operation.replace("add", "test").replace('"json', '"x')
    )
    await kubectl.ok("label", "cm", "settings", "tier=gold")
    await kubectl.ok("annotate", "cm", "settings", "note=yes")
    await kubectl.ok("edit", "cm", "settings")

    settings = await kubectl.object("cm", "settings")
    assert settings["data"] == {"colour": "blue", "a": "strategic", "b": "merge", "c": "json"}
    assert settings["metadata"]["labels"] == {"tier": "gold"}
    assert failed.code == 1


async def test_replace_takes_a_fresh_copy_and_refuses_a_stale_one(kubectl: Kubectl) -> None:
    await kubectl.ok("create", "-f", "-", stdin=CONFIG_MAP)
    copy = await kubectl.ok("get", "cm", "settings", "-o", "yaml")
    await kubectl.ok("replace", "-f", "-", stdin=copy.replace("red", "green"))
    stale = await kubectl("replace", "-f", "-", stdin=copy.replace("red", "blue"))
    await kubectl.ok("replace", "--force", "-f", "-", stdin=CONFIG_MAP)

    assert stale.code == 1
    assert "the object has been modified" in stale.err
    assert (await kubectl.object("cm", "settings"))["data"]["colour"] == "red"


@pytest.mark.parametrize(
    ("manifest", "complaint"),
    [
        pytest.param(CONFIG_MAP.replace("colour: red", '"a b": c'), "data[a b]", id="key"),
        pytest.param(CONFIG_MAP.replace("colour: red", "colour: 1"), "expected string, got integer", id="type"),
        pytest.param(CONFIG_MAP + "colour: red\n", 'unknown field "colour"', id="unknown-field"),
        pytest.param(CONFIG_MAP.replace("settings", "A_b"), "metadata.name", id="name"),
        pytest.param(
            CONFIG_MAP.replace("settings}", "a, namespace: nowhere}"), 'namespaces "nowhere" not found', id="ns"
        ),
        pytest.param(
            REPOSITORY.replace("type: git", "type: svn"), 'supported values: "git", "oci"', id="repository-type"
        ),
        pytest.param(REPOSITORY.replace("blueprints}", "a.b}"), "RFC1123 DNS label", id="repository-name"),
        pytest.param(REPOSITORY + "  content: Function\n", "its only valid value is 'Package'", id="content"),
        pytest.param(REPOSITORY + "  sync: {schedule: now}\n", "cron expression", id="schedule"),
        pytest.param(
            REPOSITORY.replace('repo: "https://git.example/blueprints.git", ', ""), "spec.git.repo", id="no-repo"
        ),
    ],
)
async def test_bad_objects_are_refused_with_the_field_at_fault(kubectl: Kubectl, manifest: str, complaint: str) -> None:
    refused = await kubectl("create", "-f", "-", stdin=manifest)

    assert refused.code == 1
    assert complaint in refused.err
    assert await kubectl.ok("get", "cm,repositories", "-A", "-o", "name") == ""


async def test_an_immutable_config_map_stays_as_it_is(kubectl: Kubectl) -> None:
    await kubectl.ok("create", "-f", "-", stdin=CONFIG_MAP + "immutable: true\n")

    refused = await kubectl("patch", "cm", "settings", "-p", '{"data":{"colour":"blue"}}')

    assert "field is immutable when `immutable` is set" in refused.err
    await kubectl.ok("delete", "cm", "settings")


async def test_repositories_have_defaults_columns_status_and_immutable_fields(kubectl: Kubectl) -> None:
    await kubectl.ok("apply", "-f", "-", stdin=REPOSITORY)
    ready = {"type": "Ready", "status": "True", "reason": "Ready", "message": "Repository Ready"}
    status = json.dumps({"status": {"conditions": [ready]}, "spec": {"deployment": True}})
    await kubectl.ok("patch", "repo", "blueprints", "--subresource=status", "--type=merge", "-p", status)
    await kubectl.ok("patch", "repo", "blueprints", "--type=merge", "-p", '{"status":null,"spec":{"description":"x"}}')
    moved = await kubectl("patch", "repo", "blueprints", "--type=merge", "-p", '{"spec":{"git":{"branch":"dev"}}}')
    strategic = await kubectl("patch", "repo", "blueprints", "-p", '{"spec":{"description":"y"}}')
    listed = (await kubectl.ok("get", "repositories")).splitlines()
    waited = await kubectl.ok("wait", "--for=condition=Ready", "repository/blueprints", "--timeout=50s")

    repository = await kubectl.object("repo", "blueprints")
    assert (repository["spec"]["content"], repository["spec"]["git"]["branch"]) == ("Package", "main")
    assert "deployment" not in repository["spec"]
    assert repository["metadata"]["generation"] == 2
    assert "spec.git.branch is immutable" in moved.err
    assert strategic.code == 1
    assert listed[0].split() == [
        "NAME",
        "TYPE",
        "CONTENT",
        "SYNC",
        "SCHEDULE",
        "DEPLOYMENT",
        "READY",
        "ADDRESS",
        "BRANCH",
        "AGE",
    ]
    assert "https://git.example/blueprints.git" in listed[1]
    assert "condition met" in waited


async def test_a_namespace_goes_with_everything_in_it(kubectl: Kubectl) -> None:
    await kubectl.ok("create", "namespace", "team")
    await kubectl.ok("create", "-n", "team", "-f", "-", stdin=REPOSITORY)
    await kubectl.ok("create", "-n", "team", "-f", "-", stdin=CONFIG_MAP)
    assert (await kubectl.object("ns", "team"))["metadata"]["labels"] == {"kubernetes.io/metadata.name": "team"}

    await kubectl.ok("delete", "namespace", "team", "--timeout=50s")

    gone = await kubectl("get", "namespace", "team")
    assert 'namespaces "team" not found' in gone.err
    await kubectl.ok("create", "namespace", "team")
    assert await kubectl.ok("get", "cm,repositories", "-n", "team", "-o", "name") == ""


async def test_a_namespace_with_many_objects_goes_in_one_sweep(kubectl: Kubectl, store: WatchedStore) -> None:
    await kubectl.ok("create", "namespace", "team")
    await store.write([new_config_map("team", f"settings-{number}") for number in range(120)])

    await kubectl.ok("delete", "namespace", "team", "--timeout=50s")

    assert store.snapshot("configmaps", "team") == []


async def test_a_held_object_keeps_its_namespace_terminating_and_closed(kubectl: Kubectl) -> None:
    await kubectl.ok("create", "namespace", "team")
    held = CONFIG_MAP.replace("settings}", "settings, finalizers: [example.com/hold]}")
    await kubectl.ok("create", "-n", "team", "-f", "-", stdin=held)
    await kubectl.ok("delete", "namespace", "team", "--wait=false")

    refused = await kubectl("create", "configmap", "late", "-n", "team")
    listed = await kubectl.ok("get", "ns", "--field-selector=status.phase=Terminating")
    await kubectl.ok("wait", "--for=condition=NamespaceContentRemaining", "ns/team", "--timeout=50s")
    release = '{"metadata":{"finalizers":null}}'
    await kubectl.ok("patch", "cm", "settings", "-n", "team", "--type=merge", "-p", release)
    await kubectl.ok("wait", "--for=delete", "ns/team", "--timeout=50s")

    assert "because it is being terminated" in refused.err
    assert listed.splitlines()[1].split()[:2] == ["team", "Terminating"]


async def test_protected_namespaces_exist_and_stay(kubectl: Kubectl) -> None:
    names = (await kubectl.ok("get", "namespaces", "-o", "name")).split()

    refused = await kubectl("delete", "namespace", "default")

    assert names == ["namespace/default", "namespace/kube-public", "namespace/kube-system"]
    assert "this namespace may not be deleted" in refused.err


async def test_the_finalize_subresource_lets_a_namespace_go(kubectl: Kubectl, store: WatchedStore) -> None:
    await kubectl.ok("create", "namespace", "team")
    held = CONFIG_MAP.replace("settings}", "settings, finalizers: [example.com/hold]}")
    await kubectl.ok("create", "-n", "team", "-f", "-", stdin=held)
    await kubectl.ok("delete", "namespace", "team", "--wait=false")
    body = json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}, "spec": {}})

    await kubectl.ok("replace", "--raw", "/api/v1/namespaces/team/finalize", "-f", "-", stdin=body)

    assert (await kubectl("get", "namespace", "team")).code == 1


async def test_a_watch_prints_each_change_once(kubectl: Kubectl) -> None:
    await kubectl.ok("create", "configmap", "first")
    watcher = await kubectl.start("get", "cm", "--watch", "--no-headers", "--output-watch-events")
    assert watcher.stdout is not None
    async with asyncio.timeout(60):
        listed = (await watcher.stdout.readline()).decode().split()[:3]
    await kubectl.ok("create", "configmap", "a")
    await kubectl.ok("patch", "cm", "a", "-p", '{"data":{"k":"v"}}')
    await kubectl.ok("delete", "cm", "a")

    async with asyncio.timeout(60):
        lines = [(await watcher.stdout.readline()).decode().split()[:3] for _ in range(3)]
    watcher.terminate()
    await watcher.communicate()

    assert listed == ["ADDED", "first", "0"]
    assert lines == [["ADDED", "a", "0"], ["MODIFIED", "a", "1"], ["DELETED", "a", "1"]]


async def test_events_are_found_by_what_they_are_about(kubectl: Kubectl) -> None:
    await kubectl.ok("create", "-f", "-", stdin=CONFIG_MAP)
    uid = (await kubectl.object("cm", "settings"))["metadata"]["uid"]
    about = {"kind": "ConfigMap", "apiVersion": "v1", "namespace": "default", "name": "settings", "uid": uid}
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "settings.1", "namespace": "default"},
        "involvedObject": about,
        "reason": "Painted",
        "message": "it is red now",
        "type": "Normal",
        "lastTimestamp": "2026-01-02T03:04:05Z",
    }
    await kubectl.ok("create", "-f", "-", stdin=json.dumps(event))
    elsewhere = await kubectl(
        "create", "-f", "-", stdin=json.dumps({**event, "involvedObject": {**about, "namespace": "x"}})
    )

    assert "Painted" in await kubectl.ok("events", "--for", "configmap/settings")
    assert "it is red now" in await kubectl.ok("describe", "cm", "settings")
    assert "does not match event.namespace" in elsewhere.err


async def test_dry_run_writes_nothing_and_diff_tells_of_changes(kubectl: Kubectl) -> None:
    await kubectl.ok("create", "-f", "-", stdin=CONFIG_MAP)
    await kubectl.ok("create", "configmap", "b", "--dry-run=server")
    await kubectl.ok("delete", "cm", "settings", "--dry-run=server")
    await kubectl.ok("apply", "--dry-run=server", "-f", "-", stdin=CONFIG_MAP.replace("red", "blue"))

    assert (await kubectl.ok("get", "cm", "-o", "name")).split() == ["configmap/settings"]
    assert (await kubectl.object("cm", "settings"))["data"]["colour"] == "red"


async def test_kubectl_explains_what_is_served(kubectl: Kubectl) -> None:
    repository = await kubectl.ok("explain", "repositories.spec.git")
    owner = await kubectl.ok("explain", "configmap.metadata.ownerReferences")

    assert "branch\t<string>" in repository
    assert "repo\t<string> -required-" in repository
    assert "blockOwnerDeletion" in owner
