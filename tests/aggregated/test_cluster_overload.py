"""Overload as kubectl meets it behind a kube-apiserver: row 90 of ``kube-api.md`` 7.2."""

import json
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from aggregated_process import AggregatedProcess
from control_plane import ControlPlane
from eventually import eventually
from kubectl import Kubectl
from manifests import Register, init_task, package_revision
from porch_client import PorchClient
from remotes import Remote

PATIENCE = 60.0
TIMEOUT = 40
"""Seconds of a request; a package operation waits for its place a quarter of that."""
USER = "hasty"


@pytest.fixture(scope="module")
def porch_server(cluster: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AggregatedProcess]:
    """A server that lets one user do one package operation at a time."""
    environment = {"PORCH_MAX_PACKAGE_OPERATIONS": "2", "PORCH_REQUEST_TIMEOUT": str(TIMEOUT)}
    server = AggregatedProcess(cluster, tmp_path_factory.mktemp("narrow") / "data", environment=environment)
    server.start()
    yield server
    server.stop()
    server.unregister()


@pytest.fixture
def path(kubectl: Kubectl, porch: PorchClient, register: Register, empty_remote: Remote) -> str:
    """Where package revisions are, of which a user may make some."""
    register(deployments=empty_remote)
    kubectl.ok("create", "rolebinding", USER, "--clusterrole=porch-author", f"--user={USER}")
    return porch.path("packagerevisions")


def begin_a_write(server: AggregatedProcess, path: str) -> ssl.SSLSocket:
    """Send a request whose body does not come; it is under way until the connection is closed, or its time is over."""
    keys = server.cluster.authority.client(USER)
    context = ssl.create_default_context(cafile=str(server.cluster.ca))
    context.load_cert_chain(keys.certificate, keys.key)
    connection = context.wrap_socket(
        socket.create_connection(("127.0.0.1", server.cluster.port), timeout=PATIENCE), server_hostname="localhost"
    )
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n"
    connection.sendall(head.encode())
    return connection


def test_row_90_who_is_told_to_come_back_succeeds_when_he_does(
    porch_server: AggregatedProcess, namespace: str, path: str, tmp_path: Path
) -> None:
    kubectl = Kubectl(porch_server.kubeconfig_of(USER), namespace, str(tmp_path / "cache"))
    keys = porch_server.cluster.authority.client(USER)
    cluster = porch_server.cluster
    body = package_revision("deployments", "app", "v1", init_task())
    command = kubectl.command("create", "-f", "-", "-v=8")
    told = tmp_path / "told"
    with (
        closing(begin_a_write(porch_server, path)) as occupied,
        closing(PorchClient(cluster.url, ca=cluster.ca, certificate=(keys.certificate, keys.key))) as client,
        told.open("w") as output,
    ):
        eventually(lambda: is_under_way(porch_server), timeout=TIMEOUT / 2)
        refused = client.request("POST", path, body)
        occupied.close()
        again = begin_a_write(porch_server, path)
        eventually(lambda: is_under_way(porch_server), timeout=TIMEOUT / 2)
        creating = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=output, stderr=output, text=True)
        assert creating.stdin is not None
        creating.stdin.write(json.dumps(body))
        creating.stdin.close()
        eventually(lambda: is_refused(told), timeout=PATIENCE)
        again.close()
        code = creating.wait(timeout=PATIENCE)

    assert (refused.code, refused.reason) == (429, "TooManyRequests")
    assert refused.headers["retry-after"] == "1"
    assert refused.object["details"] == {"retryAfterSeconds": 1}
    assert code == 0, told.read_text()
    assert "packagerevision.porch.kpt.dev/deployments.app.v1 created" in told.read_text()


def is_under_way(server: AggregatedProcess) -> None:
    assert 'apiserver_current_inflight_requests{request_kind="package"} 1.0' in server.metrics()


def is_refused(told: Path) -> None:
    assert "429" in told.read_text()
