"""Plain kubectl against the machinery, without extra flags: the core kinds and Repository."""

import asyncio
import json
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest
from api_fixture import Api, api_server

Run = Callable[..., Coroutine[Any, Any, tuple[int, str]]]
KUBECTL = os.environ.get("KUBECTL", "kubectl")
REPOSITORY = """\
apiVersion: config.porch.kpt.dev/v1alpha1
kind: Repository
metadata: {name: edge, namespace: default}
spec:
  description: first
  git: {repo: "https://git.example/edge.git"}
"""
CONFIG_MAP = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: default}
data: {color: red, size: small}
"""


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    async with api_server() as server:
        yield server


@pytest.fixture
def kubectl(api: Api) -> Run:
    cache = tempfile.mkdtemp(prefix="kubectl-")

    async def run(*arguments: str, stdin: str = "") -> tuple[int, str]:
        process = await asyncio.create_subprocess_exec(
            KUBECTL,
            f"--server={api.url}",
            f"--cache-dir={cache}",
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={**os.environ, "KUBECONFIG": "/dev/null"},
        )
        output, _ = await asyncio.wait_for(process.communicate(stdin.encode()), 90)
        return process.returncode or 0, output.decode()

    return run


async def ok(run: Run, *arguments: str, stdin: str = "") -> str:
    code, output = await run(*arguments, stdin=stdin)
    assert code == 0, output
    return output


async def test_a_repository_is_applied_edited_replaced_and_deleted(kubectl: Run) -> None:
    assert "created" in await ok(kubectl, "apply", "-f", "-", stdin=REPOSITORY)
    assert "unchanged" in await ok(kubectl, "apply", "-f", "-", stdin=REPOSITORY)
    assert "configured" in await ok(kubectl, "apply", "-f", "-", stdin=REPOSITORY.replace("first", "second"))
    live = await ok(kubectl, "get", "repo", "edge", "-o", "yaml")
    assert "replaced" in await ok(kubectl, "replace", "-f", "-", stdin=live.replace("second", "third"))
    stale = await kubectl("replace", "-f", "-", stdin=live)
    moved = await kubectl("apply", "-f", "-", stdin=REPOSITORY.replace("edge.git", "core.git"))
    table = await ok(kubectl, "get", "repositories", "-o", "wide")
    assert "deleted" in await ok(kubectl, "delete", "repo", "edge")

    assert stale[0] == 1
    assert "the object has been modified; please apply your changes to the latest version" in stale[1]
    assert moved[0] == 1
    assert "spec.git.repo is immutable" in moved[1]
    headings = ["NAME", "TYPE", "CONTENT", "SYNC", "SCHEDULE", "DEPLOYMENT", "READY", "ADDRESS", "BRANCH", "AGE"]
    assert table.splitlines()[0].split() == headings


async def test_typed_creates_patches_and_labels_work_on_core_kinds(kubectl: Run) -> None:
    await ok(kubectl, "create", "configmap", "a", "--from-literal=k=v")
    await ok(kubectl, "create", "secret", "generic", "s", "--from-literal=p=word")
    await ok(kubectl, "create", "namespace", "team")
    await ok(kubectl, "apply", "-f", "-", stdin=CONFIG_MAP)
    await ok(kubectl, "apply", "-f", "-", stdin=CONFIG_MAP.replace(", size: small", ""))
    await ok(kubectl, "patch", "cm", "settings", "-p", '{"data":{"shape":"round"}}')
    await ok(kubectl, "patch", "cm", "settings", "--type=json", "-p", '[{"op":"remove","path":"/data/color"}]')
    await ok(kubectl, "label", "cm", "settings", "x=y")
    await ok(kubectl, "annotate", "cm", "settings", "note=here")
    again = await kubectl("create", "configmap", "a")
    bad = await kubectl("label", "cm", "settings", "x=not/allowed")
    found = json.loads(await ok(kubectl, "get", "cm", "-l", "x=y", "-o", "json"))["items"]
    secret = json.loads(await ok(kubectl, "get", "secret", "s", "-o", "json"))

    assert again[0] == 1
    assert "already exists" in again[1]
    assert bad[0] == 1
    assert [item["data"] for item in found] == [{"shape": "round"}]
    assert found[0]["metadata"]["annotations"]["note"] == "here"
    assert (secret["type"], secret["data"]) == ("Opaque", {"p": "d29yZA=="})


async def test_get_follows_pages_and_waits_see_changes(kubectl: Run, api: Api) -> None:
    for number in range(25):
        body = {"metadata": {"name": f"m{number:02}"}}
        await api.client.post("/api/v1/namespaces/default/configmaps", json=body)
    paged = await ok(kubectl, "get", "cm", "--chunk-size=7", "--no-headers")
    await ok(kubectl, "apply", "-f", "-", stdin=REPOSITORY)
    waiting = asyncio.create_task(kubectl("wait", "--for=condition=Ready", "repo/edge", "--timeout=60s"))
    await asyncio.sleep(1)
    ready = '{"status":{"conditions":[{"type":"Ready","status":"True","reason":"Ready","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}'
    await ok(kubectl, "patch", "repo", "edge", "--subresource=status", "--type=merge", "-p", ready)
    waited = await waiting

    assert len(paged.splitlines()) == 25
    assert waited[0] == 0, waited[1]


async def test_get_watch_prints_every_step(kubectl: Run, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    opened, open_watch = asyncio.Event(), api.store.watch

    def noted(*arguments: Any, **named: Any) -> Any:
        opened.set()
        return open_watch(*arguments, **named)

    monkeypatch.setattr(api.store, "watch", noted)
    watching = asyncio.create_task(
        kubectl("get", "cm", "--watch-only", "--output-watch-events", "--request-timeout=60s")
    )
    await asyncio.wait_for(opened.wait(), 60)
    path = "/api/v1/namespaces/default/configmaps"
    await api.client.post(path, json={"metadata": {"name": "w"}})
    await api.client.put(f"{path}/w", json={"metadata": {"name": "w"}, "data": {"k": "v"}})
    await api.client.delete(f"{path}/w")
    for _ in range(10):  # turns of the loop, in which the events are sent before the watch is ended
        await asyncio.sleep(0.1)
    api.stopping.set()
    _, output = await watching

    lines = [line.split()[:3] for line in output.splitlines()]
    assert lines[:4] == [["EVENT", "NAME", "DATA"], ["ADDED", "w", "0"], ["MODIFIED", "w", "1"], ["DELETED", "w", "1"]]


async def test_explain_discovery_and_mistakes(kubectl: Run) -> None:
    explained = await ok(kubectl, "explain", "repo.spec.git")
    resources = await ok(kubectl, "api-resources", "--api-group=config.porch.kpt.dev", "-o", "wide")
    typo = await kubectl("create", "-f", "-", stdin=REPOSITORY.replace("description", "descripton"))
    missing = await kubectl("create", "-f", "-", stdin=REPOSITORY.replace("namespace: default", "namespace: gone"))
    selector = await kubectl("get", "cm", "-l", "a in x")

    assert "repo\t<string>" in explained
    assert "create,delete,deletecollection,get,list,patch,update,watch" in resources
    assert 'unknown field "spec.descripton"' in typo[1]
    assert 'namespaces "gone" not found' in missing[1]
    assert "unable to parse requirement" in selector[1]
