# ruff: noqa: F811 # fixtures are imported and then named as parameters
"""A standby takes the place of the database under load: nothing acknowledged is lost, and the former primary is not believed."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from embedded_postgres import OwnPostgres, new_postgres
from eventually import eventually
from git_server import GitServer, create_repository
from loaded import under_load
from replica_fixtures import remote  # noqa: F401 # found by name
from replica_set import SLOW, ReplicaSet, register, running_replicas
from standby_postgres import Standby, either, sessions, takes_writes

pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def primary(tmp_path: Path) -> Iterator[OwnPostgres]:
    server = OwnPostgres(tmp_path / "pg")
    yield server
    server.end()


@pytest.fixture
def standby(tmp_path: Path, primary: OwnPostgres) -> Iterator[Standby]:
    server = Standby(primary, tmp_path / "standby")
    yield server
    server.end()


@pytest.fixture
def replicas(tmp_path: Path, primary: OwnPostgres, standby: Standby) -> Iterator[ReplicaSet]:
    """Two replicas that know both servers, the primary first."""
    database = new_postgres(primary.url).partition("?")[0].rpartition("/")[2]
    standby.required()
    with running_replicas(tmp_path / "replicas", either(primary.url, standby.url, database)) as running:
        yield running


def nobody_at(server: OwnPostgres) -> None:
    assert sessions(server.url) == 0


def test_servers_go_on_with_a_promoted_standby_and_refuse_the_former_primary(
    replicas: ReplicaSet, primary: OwnPostgres, standby: Standby, remote: GitServer
) -> None:
    create_repository(remote.root / "failover.git")
    clients = replicas.clients()
    register(clients, remote, "failover")
    for client in clients:
        client.close()
    pids = [member.pid for member in replicas.members]
    with under_load(replicas, remote, "failover") as loaded:
        loaded.go_on(4)
        primary.end(9)
        standby.promote()
        loaded.go_on(4)

        # It takes writes, too, and is named first; nobody has told it that it is not the primary any more.
        primary.start_again()
        eventually(lambda: takes_writes(primary.url), SLOW)
        standby.refuse_sessions()
        loaded.go_on(4)
        loaded.end()
        eventually(lambda: nobody_at(primary), SLOW)
        assert sessions(standby.url) >= 2 * len(pids)

        loaded.check()
    assert [member.pid for member in replicas.members if member.running] == pids
    for member in replicas.members:
        with closing(member.client()) as client:
            assert client.request("GET", "/readyz").code == 200
