"""What tests of replicas share: a PostgreSQL, a Git server, and two replicas that live as long as a module's tests."""

from collections.abc import Iterator

import pytest
from embedded_postgres import new_postgres
from git_server import GitServer, git_server
from replica_set import ReplicaSet, running_replicas

__all__ = ["remote", "replicas", "url"]


@pytest.fixture(scope="module")
def url(postgres_server: str) -> str:
    return new_postgres(postgres_server)


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitServer]:
    with git_server(tmp_path_factory.mktemp("remotes")) as server:
        yield server


@pytest.fixture(scope="module")
def replicas(tmp_path_factory: pytest.TempPathFactory, url: str) -> Iterator[ReplicaSet]:
    with running_replicas(tmp_path_factory.mktemp("replicas"), url) as running:
        yield running
