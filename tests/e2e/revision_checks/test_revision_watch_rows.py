# ruff: noqa: F811 # fixtures are imported and then named as parameters
"""Rows 43 to 55 of ``kube-api.md`` 7.2 on package revisions: watches."""

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from checked_draft import KIND, CheckedDraft, Drafts
from eventually import eventually
from kubectl import Object, needs_kubectl
from open_watch import OpenWatch
from porch_process import PorchProcess
from revision_fixtures import drafts  # noqa: F401 # found by name

MARKED = "k8s.io/initial-events-end"
PATIENCE = 120.0
LARGE = "x" * 1_000_000
"""A description that makes every event of a revision as large, so that what lies between server and client is soon full."""
EVENTS = 80


def wait_until(condition: Callable[[], bool]) -> None:
    def check() -> None:
        assert condition()

    eventually(check, timeout=PATIENCE)


def stream(server: PorchProcess, drafts: Drafts, query: str) -> list[Object]:
    """Read a watch to its end; fails if the server does not end it properly."""
    with closing(server.client()) as client:
        answer = client.request("GET", drafts.path(f"watch=true&{query}"))
    assert answer.code == 200, answer.body
    return [json.loads(line) for line in answer.body.splitlines()]


def newest(drafts: Drafts) -> str:
    revision: str = drafts.listed()["metadata"]["resourceVersion"]
    return revision


def packages(events: list[Object]) -> list[str]:
    return [event["object"]["spec"]["packageName"] for event in events]


def test_row_43_a_watch_prints_its_header_once_and_a_row_for_every_change(drafts: Drafts) -> None:
    draft = drafts.of("a")
    draft.create()
    with drafts.kubectl.watch("get", "packagerevisions", "-w") as watch:
        watch.wait_for(lambda lines: len(lines) == 2, timeout=PATIENCE)
        draft.label("x=y")
        watch.wait_for(lambda lines: len(lines) == 3, timeout=PATIENCE)
        drafts.kubectl.ok("delete", KIND, draft.name)
        lines = watch.wait_for(lambda lines: len(lines) == 4, timeout=PATIENCE)

    assert lines[0].split()[:2] == ["NAME", "PACKAGE"]
    assert [line.split()[1] for line in lines[1:]] == ["a", "a", "a"]


def test_row_44_a_watch_of_one_object_shows_it_once(drafts: Drafts) -> None:
    draft = drafts.of("a")
    draft.create()
    drafts.of("b").create()
    with drafts.kubectl.watch("get", KIND, draft.name, "-w") as watch:
        watch.wait_for(lambda lines: len(lines) == 2, timeout=PATIENCE)
        draft.label("x=y")
        watch.wait_for(lambda lines: len(lines) == 3, timeout=PATIENCE)
        draft.label("x-")
        lines = watch.wait_for(lambda lines: len(lines) >= 4, timeout=PATIENCE)

    assert [line.split()[0] for line in lines] == ["NAME", draft.name, draft.name, draft.name]


def test_row_45_watch_events_are_named(drafts: Drafts) -> None:
    drafts.of("there").create()
    draft = drafts.of("a")
    with drafts.kubectl.watch("get", "packagerevisions", "-w", "--output-watch-events") as watch:
        watch.wait_for(lambda lines: len(lines) == 2, timeout=PATIENCE)
        draft.create()
        draft.label("x=y")
        drafts.kubectl.ok("delete", KIND, draft.name)
        lines = watch.wait_for(lambda lines: len(lines) == 5, timeout=PATIENCE)

    assert lines[0].split()[:2] == ["EVENT", "NAME"]
    assert lines[1].split()[:2] == ["ADDED", drafts.of("there").name]
    assert [line.split()[0] for line in lines[2:]] == ["ADDED", "MODIFIED", "DELETED"]


def test_row_46_objects_come_and_go_with_their_labels(drafts: Drafts) -> None:
    draft = drafts.of("a")
    draft.create(app="x")
    arguments = ("get", "packagerevisions", "-l", "app=x", "-w", "--output-watch-events")
    with drafts.kubectl.watch(*arguments) as watch:
        watch.wait_for(lambda lines: len(lines) == 2, timeout=PATIENCE)
        draft.label("app=y", "--overwrite")
        watch.wait_for(lambda lines: len(lines) == 3, timeout=PATIENCE)
        draft.label("app=x", "--overwrite")
        lines = watch.wait_for(lambda lines: len(lines) == 4, timeout=PATIENCE)

    told = [line.split()[:2] for line in lines[1:]]
    assert told == [["ADDED", draft.name], ["DELETED", draft.name], ["ADDED", draft.name]]


def test_row_47_a_watch_with_a_time_limit_ends_cleanly_at_that_time(porch_server: PorchProcess, drafts: Drafts) -> None:
    begun = time.monotonic()

    events = stream(porch_server, drafts, f"timeoutSeconds=3&resourceVersion={newest(drafts)}")

    assert events == []
    assert time.monotonic() - begun > 2.5


def test_row_48_a_bookmark_comes_before_the_end(porch_server: PorchProcess, drafts: Drafts) -> None:
    query = f"allowWatchBookmarks=true&timeoutSeconds=5&resourceVersion={newest(drafts)}"

    events = stream(porch_server, drafts, query)

    assert {event["type"] for event in events} == {"BOOKMARK"}
    assert set(events[0]["object"]) == {"kind", "apiVersion", "metadata"}
    assert int(events[0]["object"]["metadata"]["resourceVersion"]) > 0


def test_row_49_a_streaming_list_is_followed_by_a_marked_bookmark_and_what_happens(
    porch_server: PorchProcess, drafts: Drafts
) -> None:
    for package in ("a", "b"):
        drafts.of(package).create()
    query = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    with closing(OpenWatch(porch_server.client(), drafts.path(query))) as watch:
        wait_until(lambda: len(watch.events) == 3)
        drafts.of("c").create()
        wait_until(lambda: len(watch.events) > 3)
        events = [event for _, event in watch.events]

    shown = [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]
    first, second, third = (drafts.of(package).name for package in ("a", "b", "c"))
    assert shown[:4] == [("ADDED", first), ("ADDED", second), ("BOOKMARK", ""), ("ADDED", third)]
    assert events[2]["object"]["metadata"]["annotations"] == {MARKED: "true"}
    assert sum(MARKED in json.dumps(event) for event in events) == 1


def test_row_50_a_streaming_list_needs_its_match(drafts: Drafts) -> None:
    path = drafts.path("watch=true&sendInitialEvents=true")

    answer = drafts.porch.request("GET", path)

    assert (answer.code, answer.reason) == (422, "Invalid")
    assert answer.object["details"]["causes"][0]["field"] == "resourceVersionMatch"
    assert "sendInitialEvents requires setting resourceVersionMatch" in drafts.kubectl("get", "--raw", path).stderr


def test_row_52_a_watch_goes_on_after_a_restart_without_loss(porch_server: PorchProcess, drafts: Drafts) -> None:
    last = newest(drafts)
    for number in range(10):
        drafts.of(f"m{number:02}").create()
    porch_server.restart()
    drafts.porch.close()
    for number in range(10, 15):
        drafts.of(f"m{number:02}").create()
    wanted = [item["spec"]["packageName"] for item in drafts.listed()["items"]]

    events = stream(porch_server, drafts, f"timeoutSeconds=5&resourceVersion={last}")

    added = packages([event for event in events if event["type"] == "ADDED"])
    assert added == wanted
    assert len(wanted) == 15


def test_row_54_a_client_that_is_stopped_loses_its_watch_and_no_other_does(
    porch_server: PorchProcess, drafts: Drafts, tmp_path: Path
) -> None:
    draft = drafts.of("large")
    created = drafts.porch.request("POST", drafts.path(), draft.body(description=LARGE))
    assert created.code == 201, created.body
    closed, told = closed_watches(porch_server), tmp_path / "told"
    with drafts.kubectl.watch("get", "packagerevisions", "-w", "-o", "name") as well, told.open("wb") as output:
        well.wait_for(lambda lines: len(lines) == 1, timeout=PATIENCE)
        command = drafts.kubectl.command("get", "packagerevisions", "-w", "-o", "json")
        stopped = subprocess.Popen(command, stdout=output, stderr=subprocess.DEVNULL)
        try:
            eventually(lambda: follows(draft, told), timeout=PATIENCE)
            os.kill(stopped.pid, signal.SIGSTOP)
            for number in range(EVENTS):
                relabel(draft, str(number))
            wait_until(lambda: closed_watches(porch_server) > closed)
            drafts.of("last").create()
            last = f"packagerevision.porch.kpt.dev/{drafts.of('last').name}"
            lines = well.wait_for(lambda lines: last in lines, timeout=PATIENCE)
            os.kill(stopped.pid, signal.SIGCONT)
            stopped.wait(timeout=PATIENCE)  # it reads what had been sent, and then the end of its watch
        finally:
            stopped.kill()
            stopped.wait(timeout=PATIENCE)

    assert lines.count(f"packagerevision.porch.kpt.dev/{draft.name}") > EVENTS
    assert drafts.of("last").name not in told.read_text()


def follows(draft: CheckedDraft, told: Path) -> None:
    """Fail until a watch has printed an event, besides what was there before."""
    relabel(draft, f"begun-{time.monotonic():.3f}")
    assert told.stat().st_size > 1.5 * len(LARGE)


def closed_watches(server: PorchProcess) -> int:
    """Return how many watches of package revisions were closed because nobody read them, by all servers together."""
    pattern = r'^apiserver_terminated_watchers_total\{[^}]*resource="packagerevisions"[^}]*\} (\d+)'
    return sum(int(found) for found in re.findall(pattern, server.metrics(), re.MULTILINE))


def relabel(draft: CheckedDraft, value: str) -> None:
    patch = {"metadata": {"labels": {"step": value}}}
    answer = draft.porch.request("PATCH", draft.path, patch, content_type="application/merge-patch+json")
    assert answer.code == 200, answer.body[:300]


def test_row_55_wait_sees_values_creation_and_deletion(drafts: Drafts) -> None:
    needs_kubectl(31, "wait --for=create")
    draft = drafts.of("a")

    created = waiting(drafts, "--for=create", f"{KIND}/{draft.name}")
    draft.create()
    ended(created)
    proposed = waiting(drafts, "--for=jsonpath={.spec.lifecycle}=Proposed", f"{KIND}/{draft.name}")
    assert drafts.porch.propose(draft.name).code == 200
    ended(proposed)
    deleted = waiting(drafts, "--for=delete", f"{KIND}/{draft.name}")
    drafts.kubectl.ok("delete", KIND, draft.name)
    ended(deleted)


def waiting(drafts: Drafts, *arguments: str) -> "subprocess.Popen[str]":
    command = drafts.kubectl.command("wait", f"--timeout={PATIENCE:.0f}s", *arguments)
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def ended(process: "subprocess.Popen[str]") -> None:
    printed, _ = process.communicate(timeout=PATIENCE + 10)
    assert process.returncode == 0, printed
