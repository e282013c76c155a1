# ruff: noqa: F811 # fixtures are imported and then named as parameters
"""Watches that are cut every second and resumed at any replica lose nothing, see nothing twice, and are told soon."""

from pathlib import Path

import pytest
from git_server import GitServer, create_repository
from replica_fixtures import remote, replicas, url  # noqa: F401 # found by name
from replica_set import ReplicaSet, register, running_replicas
from watch_story import WatchStory, delays_between

SOON = 0.25
"""Seconds (``kube-api.md`` 5.5, and 7.2 row 53); what ``make soak`` measures."""

pytestmark = pytest.mark.timeout(600)


def drafts(replicas: ReplicaSet, remote: GitServer, repository: str, count: int) -> list[str]:
    """Register a repository at every replica and begin packages in it."""
    create_repository(remote.root / f"{repository}.git")
    clients = replicas.clients()
    register(clients, remote, repository)
    made = [clients[0].create_revision(repository, f"drafted-{number}") for number in range(count)]
    for client in clients:
        client.close()
    assert [answer.code for answer in made] == [201] * count
    return [answer.object["metadata"]["name"] for answer in made]


def test_watches_that_move_between_replicas_see_every_write_once(replicas: ReplicaSet, remote: GitServer) -> None:
    names = drafts(replicas, remote, "watched", 4)

    lags = WatchStory(replicas, names).run(1, watchers=6, writes=200, per_second=50)

    assert len(lags) > 0
    print(f"lag p50 {lags[len(lags) // 2] * 1000:.0f} ms, p99 {lags[len(lags) * 99 // 100] * 1000:.0f} ms")  # noqa: T201


def test_of_three_replicas_each_hears_soon_what_another_wrote(tmp_path: Path, url: str, remote: GitServer) -> None:
    with running_replicas(tmp_path, url, 3) as three:
        (name,) = drafts(three, remote, "three", 1)
        one, two, other = three.members

        for writer, watched in ((one, two), (two, other), (other, one)):
            delays = delays_between(writer, watched, name)

            # It must not be the poll that tells them, whatever else this machine does in between: as each write follows an event,
            # nearly all would have to wait the whole second between two polls.
            assert delays[len(delays) // 10] < SOON, delays
