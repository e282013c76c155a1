# ruff: noqa: F811 # fixtures are imported and then named as parameters
"""Ten histories of one package revision at two replicas (``make soak`` has two hundred): each is linearizable."""

from collections import Counter

import pytest
from git_server import GitServer, create_repository
from linearizability import violation
from object_histories import History
from replica_fixtures import remote, replicas, url  # noqa: F401 # found by name
from replica_set import ReplicaSet, register

HISTORIES, OPERATIONS = 10, 500


@pytest.mark.timeout(900)
def test_reads_and_writes_of_one_revision_at_two_replicas_are_linearizable(
    replicas: ReplicaSet, remote: GitServer
) -> None:
    create_repository(remote.root / "lin.git")
    clients = replicas.clients()
    register(clients, remote, "lin")
    for client in clients:
        client.close()
    answers: Counter[str] = Counter()
    for seed in range(HISTORIES):
        history = History(replicas.members, "lin", f"object-{seed}")
        history.run(seed, OPERATIONS)
        assert violation(history.operations) is None
        answers += history.answers

    assert answers["create 201"] >= HISTORIES
    assert answers["put 200"] > HISTORIES
    assert answers["get 200"] > HISTORIES, answers
