# ruff: noqa: F811 # fixtures are imported and then named as parameters
"""Five pauses inside a publish (``make soak`` has a hundred): nothing is published twice, no number is given twice."""

import pytest
from git_server import GitServer, create_repository
from replica_fixtures import remote, replicas, url  # noqa: F401 # found by name
from replica_set import ReplicaSet, register
from split_brain import SplitBrain

ROUNDS = range(1, 6)


@pytest.mark.timeout(900)
def test_a_replica_that_sleeps_through_its_lease_inside_a_publish_publishes_nothing_twice(
    replicas: ReplicaSet, remote: GitServer
) -> None:
    create_repository(remote.root / "split.git")
    clients = replicas.clients()
    register(clients, remote, "split")
    for client in clients:
        client.close()
    story = SplitBrain(replicas, remote, "split")
    for seed in ROUNDS:
        story.round(seed)

    print(f"taken over after at most {max(story.took):.1f} s")  # noqa: T201
    assert story.seen["other 200"] + story.seen["sleeper 200"] >= len(ROUNDS)
