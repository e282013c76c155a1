"""Overload as kubectl meets it: row 90 of ``kube-api.md`` 7.2."""

import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from eventually import eventually
from kubectl import Kubectl
from porch_client import PorchClient
from porch_process import PorchProcess

from apiserver.auth.certificates import Files, issue_client, load_authority
from apiserver.auth.kubeconfig import kubeconfig_for

MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture(scope="module")
def narrow_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PorchProcess]:
    """A server that lets one user do one write at a time, and everybody everything."""
    environment = {"PORCH_MAX_WRITES": "2", "PORCH_AUTHORIZATION": "always-allow"}
    server = PorchProcess(tmp_path_factory.mktemp("narrow") / "data", environment=environment)
    server.start()
    yield server
    server.stop()


class Bob:
    """A user who is no administrator, for those have no limits."""

    def __init__(self, server: PorchProcess, folder: Path) -> None:
        self.server = server
        self.certificate, self.key, kubeconfig = folder / "bob.crt", folder / "bob.key", folder / "bob.kubeconfig"
        certificate, key = issue_client(load_authority(Files.under(server.data)), "bob", ["system:authenticated"])
        self.certificate.write_bytes(certificate)
        self.key.write_bytes(key)
        ca = (server.data / "ca.crt").read_bytes()
        kubeconfig.write_bytes(kubeconfig_for(server=server.url, ca=ca, certificate=certificate, key=key))
        self.kubectl = Kubectl(kubeconfig, cache=str(folder / "cache"))

    def client(self) -> PorchClient:
        """Return a plain client."""
        return PorchClient(self.server.url, ca=self.server.data / "ca.crt", certificate=(self.certificate, self.key))

    def begin_a_write(self) -> ssl.SSLSocket:
        """Send a request whose body does not come; it is under way until the connection is closed."""
        context = ssl.create_default_context(cafile=str(self.server.data / "ca.crt"))
        context.load_cert_chain(self.certificate, self.key)
        connection = context.wrap_socket(
            socket.create_connection(("127.0.0.1", self.server.port), timeout=60), server_hostname="localhost"
        )
        head = f"POST {MAPS} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n"
        connection.sendall(head.encode())
        return connection


@pytest.mark.standalone("of a server in a cluster: tests/aggregated/test_cluster_rows.py")
def test_row_90_who_is_told_to_come_back_succeeds_when_he_does(narrow_server: PorchProcess, tmp_path: Path) -> None:
    bob = Bob(narrow_server, tmp_path)
    client = bob.client()
    occupied = bob.begin_a_write()
    eventually(lambda: _one_writes(narrow_server))

    first = client.request("POST", MAPS, {"metadata": {"name": "refused"}})
    second = client.request("POST", MAPS, {"metadata": {"name": "refused"}})
    with bob.kubectl.watch("create", "configmap", "a", "-v=8") as creating:
        creating.wait_for(lambda lines: "429" in "\n".join(lines))
        occupied.close()
        creating.wait_for(lambda lines: "configmap/a created" in lines)

    assert [answer.code for answer in (first, second)] == [429, 429], "one waits as long as the other"
    assert first.headers["retry-after"] == "1"
    assert (first.reason, first.object["details"]) == ("TooManyRequests", {"retryAfterSeconds": 1})
    client.close()


def _one_writes(server: PorchProcess) -> None:
    assert 'apiserver_current_inflight_requests{request_kind="mutating"} 1.0' in server.metrics()
