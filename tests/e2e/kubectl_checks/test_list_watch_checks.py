"""Lists and watches with real kubectl: rows 29, 30, 38-52 and 54 of ``kube-api.md`` 7.2.

What kubectl cannot send (headers of one's own, watches with a time limit) is sent by a plain client.
"""

import asyncio
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from eventually import eventually
from kubectl import Kubectl
from porch_client import Answer, PorchClient
from porch_process import PorchProcess

from storage.sql.sqlite import sqlite_database
from storage.watchcache.store import WatchedStore

Object = dict[str, Any]
SEE_REVISIONS = (
    "of what a server in a cluster serves: tests/e2e/revision_checks and tests/aggregated/test_cluster_rows.py"
)
MARKED = "k8s.io/initial-events-end"


def maps(namespace: str, query: str = "") -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps{'?' if query else ''}{query}"


def config_map(name: str, data: str = "v", **labels: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}, "data": {"k": data}}


def create(porch: PorchClient, name: str, data: str = "v", **labels: str) -> Object:
    answer = porch.request("POST", maps(porch.namespace), config_map(name, data, **labels))
    assert answer.code == 201, answer.body
    created: Object = answer.object
    return created


def create_many(server: PorchProcess, namespace: str, count: int) -> None:
    def some(first: int) -> None:
        client = server.client(namespace)
        for number in range(first, count, 4):
            create(client, f"m{number:05}")
        client.close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(some, range(4)))


def listed(porch: PorchClient, query: str = "") -> Object:
    answer = porch.request("GET", maps(porch.namespace, query))
    assert answer.code == 200, answer.body
    page: Object = answer.object
    return page


def stream(server: PorchProcess, path: str) -> Answer:
    """Read a watch to its end; fails if the server does not end it properly."""
    client = server.client(timeout=30)
    try:
        return client.request("GET", path)
    finally:
        client.close()


def events_of(answer: Answer) -> list[Object]:
    return [json.loads(line) for line in answer.body.splitlines()]


def until(condition: Callable[[], bool], timeout: float = 60.0) -> None:
    """Wait until a condition holds."""

    def check() -> None:
        assert condition()

    eventually(check, timeout)


def newest(porch: PorchClient) -> str:
    revision: str = listed(porch)["metadata"]["resourceVersion"]
    return revision


# --- lists ---------------------------------------------------------------------------------------


@pytest.mark.standalone(SEE_REVISIONS)
def test_row_29_a_get_of_1200_objects_reads_three_pages(
    porch_server: PorchProcess, kubectl: Kubectl, namespace: str
) -> None:
    create_many(porch_server, namespace, 1200)

    done = kubectl("get", "configmaps", "--no-headers", "-v=7")

    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 1200
    # The second is how newer kubectls log a request.
    asked = (" GET http", '"Request" verb="GET"')
    logged = [line for line in done.stderr.splitlines() if "limit=500" in line]
    pages = [line for line in logged if any(form in line for form in asked)]
    assert len(pages) == 3
    assert sum("continue=" in line for line in pages) == 2


@pytest.mark.standalone(SEE_REVISIONS)
def test_row_30_small_chunks_show_one_state_while_others_write(
    porch_server: PorchProcess, kubectl: Kubectl, namespace: str
) -> None:
    create_many(porch_server, namespace, 100)
    written: list[str] = []
    stop = Event()

    def write() -> None:
        client = porch_server.client(namespace)
        while not stop.is_set():
            written.append(create(client, f"m{len(written):05}-new")["metadata"]["name"])
        client.close()

    writer = Thread(target=write)
    writer.start()
    try:
        until(lambda: len(written) > 5)
        names = kubectl.ok("get", "configmaps", "-o", "name", "--chunk-size=7").split()
    finally:
        stop.set()
        writer.join()

    shown = [name.removeprefix("configmap/") for name in names]
    new = [name for name in shown if name.endswith("-new")]
    assert [name for name in shown if name not in new] == [f"m{number:05}" for number in range(100)]
    assert sorted(new) == sorted(written[: len(new)]), "what is shown of the new ones is a state that was"
    assert len(new) < len(written)


@pytest.mark.standalone(SEE_REVISIONS)
def test_row_38_a_page_tells_how_many_remain_unless_a_selector_is_used(kubectl: Kubectl, porch: PorchClient) -> None:
    for number in range(5):
        create(porch, f"m{number}", app="x")

    page = json.loads(kubectl.ok("get", "--raw", maps(porch.namespace, "limit=1")))
    selected = json.loads(kubectl.ok("get", "--raw", maps(porch.namespace, "limit=1&labelSelector=app%3Dx")))

    assert page["metadata"]["continue"]
    assert page["metadata"]["remainingItemCount"] == 4
    assert selected["metadata"]["continue"]
    assert "remainingItemCount" not in selected["metadata"]


class Compacted:
    """A server whose log was compacted after a page was read; ``revision`` is that page's."""

    def __init__(self, folder: Path) -> None:
        self.server = PorchProcess(folder / "data")
        self.server.start()
        client = self.server.client()
        for name in ("a", "b", "c"):
            create(client, name)
        page = listed(client, "limit=1")["metadata"]
        self.token, self.revision = page["continue"], int(page["resourceVersion"])
        for name in ("d", "e"):
            create(client, name)
        client.close()
        self.server.stop()
        asyncio.run(self._compact())
        self.server.start()

    async def _compact(self) -> None:
        store = WatchedStore(sqlite_database(self.server.data / "porch.db"))
        await store.start()
        await store.compact(store.rv)
        await store.stop()


@pytest.fixture(scope="module")
def compacted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Compacted]:
    """A compacted log: the server does that every five minutes, of what is older than that."""
    compacted = Compacted(tmp_path_factory.mktemp("compacted"))
    yield compacted
    compacted.server.stop()


@pytest.mark.standalone(SEE_REVISIONS)
def test_row_39_a_compacted_continue_token_is_answered_with_a_fresh_one(compacted: Compacted) -> None:
    kubectl = Kubectl(compacted.server.kubeconfig)
    client = compacted.server.client()

    refused = client.request("GET", maps("default", f"limit=1&continue={compacted.token}"))
    by_kubectl = kubectl("get", "--raw", maps("default", f"limit=1&continue={compacted.token}"))

    assert (refused.code, refused.reason) == (410, "Expired")
    fresh = refused.object["metadata"]["continue"]
    page = client.request("GET", maps("default", f"limit=2&continue={fresh}")).object
    assert [item["metadata"]["name"] for item in page["items"]] == ["b", "c"]
    assert by_kubectl.returncode == 1
    assert "too old" in by_kubectl.stderr
    client.close()


@pytest.mark.standalone(SEE_REVISIONS)
def test_row_40_exact_revisions_are_expired_or_waited_for(compacted: Compacted) -> None:
    """Only the first is asked for by kubectl, which would try the second ten times more, as Retry-After tells it to."""
    kubectl = Kubectl(compacted.server.kubeconfig)
    client = compacted.server.client()

    old = kubectl("get", "--raw", maps("default", "resourceVersion=1&resourceVersionMatch=Exact"))
    future = int(newest(client)) + 1000
    begun = time.monotonic()
    late = client.request("GET", maps("default", f"resourceVersion={future}&resourceVersionMatch=Exact"))
    waited = time.monotonic() - begun
    client.close()

    assert old.returncode == 1
    assert "too old resource version: 1 (" in old.stderr
    assert waited > 2.9
    assert (late.code, late.reason) == (504, "Timeout")
    assert late.object["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


def test_row_41_yaml_is_served_to_who_accepts_it(porch: PorchClient) -> None:
    create(porch, "a")

    answer = porch.request("GET", maps(porch.namespace), accept="application/yaml")

    assert answer.headers["content-type"] == "application/yaml"
    assert b"kind: ConfigMapList\n" in answer.body
    assert b"- metadata:" in answer.body or b"name: a\n" in answer.body


@pytest.mark.standalone(SEE_REVISIONS)
def test_row_42_cbor_is_refused_in_both_directions(porch: PorchClient) -> None:
    read = porch.request("GET", maps(porch.namespace), accept="application/cbor")
    written = porch.request("POST", maps(porch.namespace), b"\xa0", content_type="application/cbor")

    assert (read.code, read.reason) == (406, "NotAcceptable")
    assert (written.code, written.reason) == (415, "UnsupportedMediaType")
    assert "only the following media types are accepted" in read.message


# --- watches -------------------------------------------------------------------------------------


@pytest.mark.standalone(SEE_REVISIONS)
def test_row_43_a_watch_prints_its_header_once_and_a_row_for_every_change(kubectl: Kubectl, porch: PorchClient) -> None:
    create(porch, "a")
    with kubectl.watch("get", "configmaps", "-w") as watch:
        watch.wait_for(lambda lines: len(lines) == 2)
        kubectl.ok("label", "configmap", "a", "x=y")
        watch.wait_for(lambda lines: len(lines) == 3)
        kubectl.ok("delete", "configmap", "a")
        lines = watch.wait_for(lambda lines: len(lines) == 4)

    assert lines[0].split() == ["NAME", "DATA", "AGE"]
    assert [line.split()[0] for line in lines[1:]] == ["a", "a", "a"]


def test_row_44_a_watch_of_one_object_shows_it_once(kubectl: Kubectl, porch: PorchClient) -> None:
    create(porch, "a")
    create(porch, "b")
    with kubectl.watch("get", "configmap", "a", "-w") as watch:
        watch.wait_for(lambda lines: len(lines) == 2)
        time.sleep(1)
        before = list(watch.lines)
        kubectl.ok("label", "configmap", "a", "x=y")
        after = watch.wait_for(lambda lines: len(lines) == 3)

    assert [line.split()[0] for line in before] == ["NAME", "a"]
    assert [line.split()[0] for line in after] == ["NAME", "a", "a"]


@pytest.mark.standalone(SEE_REVISIONS)
def test_row_45_watch_events_are_named(kubectl: Kubectl, porch: PorchClient) -> None:
    with kubectl.watch("get", "configmaps", "--watch-only", "--output-watch-events") as watch:
        until(lambda: open_watches(porch) == 1)
        create(porch, "a")
        kubectl.ok("label", "configmap", "a", "x=y")
        kubectl.ok("delete", "configmap", "a")
        lines = watch.wait_for(lambda lines: len(lines) == 4)

    assert lines[0].split()[:2] == ["EVENT", "NAME"]
    assert [line.split()[0] for line in lines[1:]] == ["ADDED", "MODIFIED", "DELETED"]


def test_row_46_objects_come_and_go_with_their_labels(kubectl: Kubectl, porch: PorchClient) -> None:
    create(porch, "a", app="x")
    with kubectl.watch("get", "configmaps", "-l", "app=x", "-w", "--output-watch-events") as watch:
        watch.wait_for(lambda lines: len(lines) == 2)
        kubectl.ok("label", "configmap", "a", "app=y", "--overwrite")
        watch.wait_for(lambda lines: len(lines) == 3)
        kubectl.ok("label", "configmap", "a", "app=x", "--overwrite")
        lines = watch.wait_for(lambda lines: len(lines) == 4)

    assert [line.split()[:2] for line in lines[1:]] == [["ADDED", "a"], ["DELETED", "a"], ["ADDED", "a"]]


def test_row_47_a_watch_with_a_time_limit_ends_cleanly_at_that_time(
    porch_server: PorchProcess, porch: PorchClient
) -> None:
    begun = time.monotonic()
    answer = stream(porch_server, maps(porch.namespace, f"watch=true&timeoutSeconds=3&resourceVersion={newest(porch)}"))

    assert time.monotonic() - begun > 2.5
    assert (answer.code, answer.body) == (200, b"")
    assert answer.headers["transfer-encoding"] == "chunked"


@pytest.mark.standalone(SEE_REVISIONS)
def test_row_48_a_bookmark_comes_before_the_end(porch_server: PorchProcess, porch: PorchClient) -> None:
    query = f"watch=true&allowWatchBookmarks=true&timeoutSeconds=5&resourceVersion={newest(porch)}"
    answer = stream(porch_server, maps(porch.namespace, query))

    (bookmark,) = events_of(answer)
    assert bookmark["type"] == "BOOKMARK"
    assert set(bookmark["object"]) == {"kind", "apiVersion", "metadata"}
    assert int(bookmark["object"]["metadata"]["resourceVersion"]) > 0


@pytest.mark.standalone(SEE_REVISIONS)
def test_row_49_a_streaming_list_is_followed_by_a_marked_bookmark_and_what_happens(
    porch_server: PorchProcess, porch: PorchClient
) -> None:
    create(porch, "a")
    create(porch, "b")
    query = (
        "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=2"
    )
    with ThreadPoolExecutor() as pool:
        reading = pool.submit(stream, porch_server, maps(porch.namespace, query))
        until(lambda: open_watches(porch) == 1)
        create(porch, "c")
        events = events_of(reading.result())

    shown = [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]
    assert shown[:4] == [("ADDED", "a"), ("ADDED", "b"), ("BOOKMARK", ""), ("ADDED", "c")]
    assert events[2]["object"]["metadata"]["annotations"] == {MARKED: "true"}
    assert sum(MARKED in json.dumps(event) for event in events) == 1


def test_row_50_a_streaming_list_needs_its_match(kubectl: Kubectl, porch: PorchClient) -> None:
    path = maps(porch.namespace, "watch=true&sendInitialEvents=true")

    answer = porch.request("GET", path)

    assert (answer.code, answer.reason) == (422, "Invalid")
    assert answer.object["details"]["causes"][0]["field"] == "resourceVersionMatch"
    assert "sendInitialEvents requires setting resourceVersionMatch" in kubectl("get", "--raw", path).stderr


@pytest.mark.standalone(SEE_REVISIONS)
def test_row_51_a_watch_from_a_compacted_revision_is_told_so(compacted: Compacted) -> None:
    answer = stream(compacted.server, maps("default", f"watch=true&resourceVersion={compacted.revision}"))

    (event,) = events_of(answer)
    assert answer.code == 200
    assert event["type"] == "ERROR"
    assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")
    assert event["object"]["message"].startswith(f"too old resource version: {compacted.revision} (")


@pytest.mark.standalone(SEE_REVISIONS)
def test_row_52_a_watch_goes_on_after_a_restart_without_loss(porch_server: PorchProcess, namespace: str) -> None:
    client = porch_server.client(namespace)
    last = newest(client)
    for number in range(20):
        create(client, f"m{number:02}")
    client.close()
    porch_server.restart()
    client = porch_server.client(namespace)
    for number in range(20, 30):
        create(client, f"m{number:02}")
    names = [item["metadata"]["name"] for item in listed(client)["items"]]
    client.close()

    answer = stream(porch_server, maps(namespace, f"watch=true&timeoutSeconds=1&resourceVersion={last}"))

    assert [event["object"]["metadata"]["name"] for event in events_of(answer)] == names
    assert len(names) == 30


def open_watches(porch: PorchClient) -> int:
    """Return how many watches of ConfigMaps are open."""
    text = porch.request("GET", "/metrics").body.decode()
    pattern = r'apiserver_longrunning_requests\{[^}]*resource="configmaps"[^}]*\} (\d+)\.'
    return sum(int(found) for found in re.findall(pattern, text))


@pytest.mark.standalone(SEE_REVISIONS)
def test_row_54_a_client_that_is_stopped_loses_its_watch_and_no_other_does(
    kubectl: Kubectl, porch: PorchClient
) -> None:
    arguments = ("get", "configmaps", "--watch-only", "-o", "json")
    with kubectl.watch("get", "configmaps", "--watch-only", "-o", "name") as well:
        until(lambda: open_watches(porch) == 1)
        stopped = subprocess.Popen(kubectl.command(*arguments), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            until(lambda: open_watches(porch) == 2)
            os.kill(stopped.pid, signal.SIGSTOP)
            for number in range(40):
                create(porch, f"m{number}", "x" * 500_000)
            until(lambda: open_watches(porch) == 1)
            create(porch, "last")
            well.wait_for(lambda lines: "configmap/last" in lines)
        finally:
            os.kill(stopped.pid, signal.SIGCONT)
            stopped.terminate()
            stopped.wait(timeout=60)

    assert len(well.lines) == 41
