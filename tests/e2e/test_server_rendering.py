"""Pipelines in the server: functions of every kind, large packages in worker processes, scripts that misbehave."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from drafts import Revision, accepted, draft, refused
from eventually import eventually
from manifests import Register
from porch_client import Answer, PorchClient
from porch_process import PorchProcess
from remotes import Remote

PROGRAM = """#!/bin/sh
sed 's/value: plain/value: set by a program/'
"""
LABELS = """pipeline:
  mutators:
    - image: set-labels:v0.2.0
      configMap:
        team: blue
"""
CONFIG_MAP = """apiVersion: v1
kind: ConfigMap
metadata:
  name: settings-{number}
data:
  value: plain # as before
"""


@pytest.fixture(scope="module")
def porch_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PorchProcess]:
    """A server that may run one program for images of example.com."""
    folder = tmp_path_factory.mktemp("porch")
    program = folder / "set-value"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    server = PorchProcess(
        folder / "data",
        environment={
            "PORCH_FUNCTION_EXECUTABLES": f'{{"example.com/fns/set-value:*": "{program}"}}',
            "PORCH_RENDER_WORKERS": "2",
        },
    )
    server.start()
    yield server
    server.stop()


@pytest.fixture
def app(porch: PorchClient, register: Register, empty_remote: Remote) -> Revision:
    """A draft of the package app."""
    register(deployments=empty_remote)
    return draft(porch, "deployments", empty_remote)


def kptfile(app: Revision, pipeline: str) -> str:
    return app.files["Kptfile"].partition("pipeline:")[0].partition("status:")[0] + pipeline


def script(source: str) -> str:
    lines = "".join(f"          {line}\n" for line in source.splitlines())
    return f"pipeline:\n  mutators:\n    - image: starlark:v0.5.0\n      configMap:\n        source: |\n{lines}"


def many(count: int) -> dict[str, str | None]:
    return {f"settings-{number}.yaml": CONFIG_MAP.format(number=number) for number in range(count)}


def workers(server: PorchProcess) -> list[int]:
    """Return the server's render workers."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == server.pid and b"render_worker" in (process / "cmdline").read_bytes():
                found.append(int(process.name))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_large_package_renders_in_a_worker_and_keeps_its_comments(app: Revision, porch_server: PorchProcess) -> None:
    accepted(app.porch.save(app.name, {"Kptfile": kptfile(app, LABELS), **many(300)}))

    assert workers(porch_server)
    files = app.files
    assert all("team: blue" in files[f"settings-{number}.yaml"] for number in range(300))
    assert "value: plain # as before" in files["settings-7.yaml"]


def test_a_worker_that_is_killed_while_it_renders_costs_the_client_nothing(
    app: Revision, porch_server: PorchProcess
) -> None:
    contents: dict[str, str | None] = {"Kptfile": kptfile(app, LABELS), **many(2500)}
    client = porch_server.client(app.porch.namespace)
    answers: list[Answer] = []
    saving = threading.Thread(target=lambda: answers.append(client.save(app.name, contents)))
    saving.start()
    time.sleep(0.8)  # rendering takes seconds
    for pid in workers(porch_server):
        os.kill(pid, signal.SIGKILL)
    saving.join()
    client.close()

    accepted(answers[0])
    assert "team: blue" in app.files["settings-2499.yaml"]


def test_a_rendered_package_that_is_saved_again_stays_as_it_is(app: Revision) -> None:
    accepted(app.porch.save(app.name, {"Kptfile": kptfile(app, LABELS), **many(300)}))
    settled = app.files
    accepted(app.porch.save(app.name, {"Kptfile": settled["Kptfile"]}))
    again = app.files
    accepted(app.porch.save(app.name, {"Kptfile": again["Kptfile"]}))

    assert app.files == again
    assert {path: text for path, text in again.items() if path != "Kptfile"} == {
        path: text for path, text in settled.items() if path != "Kptfile"
    }


def test_an_allowed_program_runs_as_a_function(app: Revision) -> None:
    pipeline = "pipeline:\n  mutators:\n    - image: example.com/fns/set-value:v1\n"

    accepted(app.porch.save(app.name, {"Kptfile": kptfile(app, pipeline), **many(1)}))

    assert "value: set by a program # as before" in app.files["settings-0.yaml"]


def test_an_image_that_nothing_runs_is_refused_with_what_would_run_it(app: Revision) -> None:
    before = app.snapshot()
    pipeline = "pipeline:\n  mutators:\n    - image: example.com/fns/other:v1\n"

    answer = app.porch.save(app.name, {"Kptfile": kptfile(app, pipeline)})

    refused(answer, 422, "Invalid", "example.com/fns/other:v1", "PORCH_FUNCTION_EXECUTABLES", "PORCH_CONTAINER_RUNTIME")
    assert app.look() == before


def test_a_script_edits_resources_and_keeps_comments(app: Revision) -> None:
    source = 'for r in ctx.resource_list["items"]:\n    if r["kind"] == "ConfigMap":\n        r["data"]["more"] = "yes"'

    accepted(app.porch.save(app.name, {"Kptfile": kptfile(app, script(source)), **many(1)}))

    assert app.files["settings-0.yaml"].endswith('data:\n  value: plain # as before\n  more: "yes"\n')


def test_a_script_that_never_ends_is_refused_while_others_are_served(app: Revision, porch_server: PorchProcess) -> None:
    before = app.snapshot()
    client = porch_server.client(app.porch.namespace)
    answers: list[Answer] = []
    contents: dict[str, str | None] = {"Kptfile": kptfile(app, script("while True:\n    pass"))}
    saving = threading.Thread(target=lambda: answers.append(client.save(app.name, contents)))
    saving.start()
    served = 0
    while saving.is_alive():
        accepted(app.porch.revision(app.name))
        served += 1
        time.sleep(0.05)
    saving.join()
    client.close()

    refused(answers[0], 422, "Invalid", "ran for more than 10 seconds")
    assert served > 5, "or each of them would have waited for the ten seconds to end"
    assert app.look() == before


def test_a_function_that_deletes_the_kptfile_is_refused(app: Revision) -> None:
    before = app.snapshot()
    source = 'ctx.resource_list["items"] = [r for r in ctx.resource_list["items"] if r["kind"] != "Kptfile"]'

    answer = app.porch.save(app.name, {"Kptfile": kptfile(app, script(source))})

    refused(answer, 422, "Invalid", "package must contain Kptfile at root")
    assert app.look() == before


def test_workers_end_with_a_server_that_is_killed(app: Revision, porch_server: PorchProcess) -> None:
    accepted(
        app.porch.save(app.name, {"Kptfile": kptfile(app, LABELS), **many(310)})
    )  # not remembered from another test
    pids = workers(porch_server)
    assert pids
    porch_server.kill()

    def ended() -> None:
        assert not any(map(is_running, pids))

    eventually(ended)
    porch_server.start()
    client = porch_server.client(app.porch.namespace)
    files = client.resources(app.name).object["spec"]["resources"]
    client.close()
    assert "team: blue" in files["settings-7.yaml"]
