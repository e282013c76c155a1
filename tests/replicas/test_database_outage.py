# ruff: noqa: F811 # fixtures are imported and then named as parameters
"""SIGKILL of PostgreSQL under load: clients are told to try again, nothing acknowledged is lost, no server is started anew."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from embedded_postgres import OwnPostgres, new_postgres
from eventually import eventually
from git_server import GitServer, create_repository
from loaded import under_load
from porch_client import Object, PorchClient
from porch_process import PorchProcess
from replica_fixtures import remote  # noqa: F401 # found by name
from replica_set import SLOW, ReplicaSet, register, running_replicas

pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[OwnPostgres]:
    server = OwnPostgres(tmp_path / "pg")
    yield server
    server.end()


@pytest.fixture
def replicas(tmp_path: Path, database: OwnPostgres) -> Iterator[ReplicaSet]:
    with running_replicas(tmp_path / "replicas", new_postgres(database.url)) as running:
        yield running


def test_servers_outlive_their_database_and_lose_nothing_that_was_acknowledged(
    replicas: ReplicaSet, database: OwnPostgres, remote: GitServer
) -> None:
    create_repository(remote.root / "outage.git")
    clients = replicas.clients()
    register(clients, remote, "outage")
    for client in clients:
        client.close()
    pids = [member.pid for member in replicas.members]
    with under_load(replicas, remote, "outage") as loaded:
        loaded.go_on(4)
        database.end(9)
        for member in replicas.members:
            _says_that_it_cannot(member)
        database.start_again()
        loaded.go_on(6)
        loaded.end()

        loaded.check()
    assert [member.pid for member in replicas.members] == pids
    assert all(member.running for member in replicas.members)


def _says_that_it_cannot(member: PorchProcess) -> None:
    """Wait until reads and writes are refused in a way that clients try again by themselves: never an answer from memory."""
    with closing(member.client()) as client:
        eventually(lambda: _refused(client, "GET", client.path("packagerevisions")), SLOW)
        eventually(lambda: _refused(client, "GET", client.path("packagerevisions", "outage.load-0-0.v1")), SLOW)
        spec = {"packageName": "never", "repository": "outage", "workspaceName": "v1", "lifecycle": "Draft"}
        body: Object = {"apiVersion": "porch.kpt.dev/v1alpha1", "kind": "PackageRevision", "metadata": {}, "spec": spec}
        _refused(client, "POST", client.path("packagerevisions"), body)
        assert client.request("GET", "/readyz").code != 200
        assert client.request("GET", "/livez").code == 200


def _refused(client: PorchClient, method: str, path: str, body: Object | None = None) -> None:
    answer = client.request(method, path, body)
    assert answer.code in {503, 504}, answer.body
    assert answer.object["kind"] == "Status"
    assert {name.lower() for name in answer.headers} >= {"retry-after"}, answer.headers
