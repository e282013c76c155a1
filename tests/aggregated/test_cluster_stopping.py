"""A server of a cluster that is told to stop, as its users see it through kube-apiserver. Source: ``kube-api.md`` 4 (shutdown)."""

import contextlib
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from aggregated_process import AggregatedProcess
from control_plane import ControlPlane
from eventually import eventually
from kubectl import Kubectl
from porch_client import PORCH, PorchClient

REVISIONS = f"{PORCH}/packagerevisions"
WATCHED = f"{REVISIONS}?watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
DELAY = 20
"""Seconds; long enough for a busy machine to ask in, and so a test has to wait for them once."""
WATCHES_END_SECONDS = 10


@pytest.fixture
def stopping_server(cluster: ControlPlane, tmp_path: Path) -> Iterator[AggregatedProcess]:
    """A server of its own, which is the registered one until it has ended."""
    server = AggregatedProcess(cluster, tmp_path / "data", environment={"PORCH_SHUTDOWN_DELAY": str(DELAY)})
    server.start()
    yield server
    server.stop()


def test_users_are_served_on_and_their_watches_end_with_where_to_resume(
    stopping_server: AggregatedProcess,
) -> None:
    kubectl, process = Kubectl(stopping_server.kubeconfig), stopping_server._process
    with contextlib.closing(stopping_server.client()) as users, kubectl.watch("get", "--raw", WATCHED) as watch:
        watch.wait_for(bool, timeout=60)
        os.kill(stopping_server.pid, signal.SIGTERM)
        eventually(lambda: unready(stopping_server), timeout=DELAY)

        assert users.request("GET", REVISIONS).code == 200
        assert stopping_server.running
        assert len(watch.lines) == 1

        assert stopping_server.ended_within(DELAY + WATCHES_END_SECONDS + 60)
        watch.wait_for(lambda lines: len(lines) > 1)

    assert process is not None
    assert process.returncode == 0, stopping_server.log_tail()
    assert "with work unfinished" not in stopping_server.log_tail()
    assert [json.loads(line)["type"] for line in watch.lines] == ["BOOKMARK", "BOOKMARK"], "where to resume"


def unready(server: AggregatedProcess) -> None:
    direct: PorchClient = server.direct(None)
    with contextlib.closing(direct):
        assert direct.request("GET", "/readyz").code == 500
        assert direct.request("GET", "/livez").code == 200
