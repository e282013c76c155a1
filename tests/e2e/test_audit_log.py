"""The audit log of a running server: every acknowledged write is in it after a stop, and it does not grow without end."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kubectl import Kubectl
from porch_process import PorchProcess

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
MAX_SIZE = 64 * 1024


@pytest.fixture
def server(tmp_path: Path) -> Iterator[PorchProcess]:
    environment = {"PORCH_AUDIT_LOG_MAX_SIZE": str(MAX_SIZE), "PORCH_AUDIT_LOG_BACKUPS": "20"}
    process = PorchProcess(
        tmp_path / "data", arguments=["--audit-log", str(tmp_path / "audit.log")], environment=environment
    )
    process.start()
    yield process
    process.stop()


def events(folder: Path) -> list[dict[str, Any]]:
    """Return what was recorded, the oldest first."""
    files = sorted(folder.glob("audit.log*"), key=lambda path: -int(path.suffix[1:]) if path.suffix != ".log" else 0)
    return [json.loads(line) for path in files for line in path.read_text().splitlines()]


def test_every_acknowledged_write_is_recorded_after_a_stop(server: PorchProcess, tmp_path: Path) -> None:
    client = server.client()
    names = [f"written-{number}" for number in range(150)]
    for name in names:
        wanted = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
        assert client.request("POST", CONFIG_MAPS, wanted).code == 201
    server.stop()
    client.close()

    recorded = events(tmp_path)
    answered = [event for event in recorded if (event["verb"], event["stage"]) == ("create", "ResponseComplete")]
    assert [event["objectRef"]["name"] for event in answered] == names
    received = {event["auditID"] for event in recorded if event["stage"] == "RequestReceived"}
    assert {event["auditID"] for event in answered} <= received
    assert len(list(tmp_path.glob("audit.log.*"))) >= 1
    assert all(path.stat().st_size < 2 * MAX_SIZE for path in tmp_path.glob("audit.log*"))


def test_who_acts_for_whom_is_recorded_and_what_was_decided(server: PorchProcess, tmp_path: Path) -> None:
    kubectl = Kubectl(server.kubeconfig, "default", str(tmp_path / "cache"))
    kubectl("get", "configmaps", "--as=bob", "--as-group=team-a")
    anybody = server.client(anonymous=True)
    anybody.request("GET", CONFIG_MAPS)
    anybody.close()
    server.stop()

    denied, unknown = (
        next(event for event in events(tmp_path) if event.get("responseStatus", {}).get("code") == code)
        for code in (403, 401)
    )
    assert denied["user"]["username"] == "admin"
    assert denied["impersonatedUser"] == {"username": "bob", "groups": ["team-a", "system:authenticated"]}
    assert denied["annotations"]["authorization.k8s.io/decision"] == "forbid"
    assert denied["userAgent"].startswith("kubectl/")
    assert unknown["user"] == {}
    assert unknown["responseStatus"]["reason"] == "Unauthorized"
