# ruff: noqa: F811 # fixtures are imported and then named as parameters
"""Watches that are cut every second and resumed at any replica lose nothing, and see nothing twice."""

import pytest
from git_server import GitServer, create_repository
from replica_fixtures import remote, replicas, url  # noqa: F401 # found by name
from replica_set import ReplicaSet, register
from watch_story import WatchStory


@pytest.mark.timeout(600)
def test_watches_that_move_between_replicas_see_every_write_once(replicas: ReplicaSet, remote: GitServer) -> None:
    create_repository(remote.root / "watched.git")
    clients = replicas.clients()
    register(clients, remote, "watched")
    drafts = []
    for number in range(4):
        made = clients[0].create_revision("watched", f"drafted-{number}")
        assert made.code == 201, made.body
        drafts.append(made.object["metadata"]["name"])
    for client in clients:
        client.close()

    lags = WatchStory(replicas, drafts).run(1, watchers=6, writes=200, per_second=50)

    assert len(lags) > 0
    print(f"lag p50 {lags[len(lags) // 2] * 1000:.0f} ms, p99 {lags[len(lags) * 99 // 100] * 1000:.0f} ms")  # noqa: T201
