# ruff: noqa: F811 # fixtures are imported and then named as parameters
"""``kill -9`` of one replica under load: clients see at most one error that they may retry, and watches resume without a loss."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from eventually import eventually
from git_server import GitServer, create_repository, run_git
from loaded import under_load
from replica_fixtures import remote, url  # noqa: F401 # found by name
from replica_set import SLOW, ReplicaSet, register, running_replicas

pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def mortal(tmp_path: Path, url: str) -> Iterator[ReplicaSet]:
    with running_replicas(tmp_path, url) as replicas:
        yield replicas


def test_a_replica_that_dies_under_load_costs_each_client_at_most_one_error_and_no_watch_an_event(
    mortal: ReplicaSet, remote: GitServer
) -> None:
    create_repository(remote.root / "death.git")
    clients = mortal.clients()
    register(clients, remote, "death")
    for client in clients:
        client.close()
    with under_load(mortal, remote, "death") as loaded:
        loaded.go_on(6)
        mortal.members[0].kill()
        loaded.go_on(10)
        loaded.end()

        assert [load.errors for load in loaded.loads if len(load.errors) > 1] == []
        loaded.check()


def test_a_draft_whose_replica_dies_before_it_was_pushed_is_pushed_by_the_other(
    mortal: ReplicaSet, remote: GitServer
) -> None:
    create_repository(remote.root / "orphan.git")
    clients = mortal.clients()
    register(clients, remote, "orphan")
    remote.faults.refuse = True
    try:
        made = clients[0].create_revision("orphan", "left-behind")
        mortal.members[0].kill()
    finally:
        remote.faults.refuse = False
    assert made.code == 201, made.body
    for client in clients:
        client.close()
    name, path = made.object["metadata"]["name"], remote.root / "orphan.git"

    def pushed() -> None:
        assert run_git(path, "for-each-ref", "refs/heads/drafts/left-behind") != ""

    eventually(pushed, SLOW)
    with closing(mortal.members[1].client()) as client:
        assert client.resources(name).code == 200
        assert client.propose(name).code == 200
        assert client.approve(name).code == 200
