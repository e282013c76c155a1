"""Two servers of a cluster on one PostgreSQL, behind one address: either serves, and one may die."""

from contextlib import closing

import pytest
from aggregated_replicas import AggregatedReplicas
from eventually import eventually
from manifests import Register
from porch_client import Answer, PorchClient
from remotes import Remote, refs

PATIENCE = 120.0


@pytest.fixture
def remote(register: Register, empty_remote: Remote) -> Remote:
    """A remote that is registered."""
    register(deployments=empty_remote)
    return empty_remote


def taken(answer: Answer) -> Answer:
    """Fail, to be tried again, while a server is away or has not read the repository."""
    assert answer.code not in {404, 500, 502, 503, 504}, answer.body
    return answer


def publish(porch: PorchClient, package: str) -> None:
    """Publish a package, each step as often as a client would try it."""

    def created() -> None:
        assert taken(porch.create_revision("deployments", package)).code in {201, 409}

    def is_in(lifecycle: str, subresource: str = "") -> None:
        name = f"deployments.{package}.v1"
        if taken(porch.revision(name)).object["spec"]["lifecycle"] != lifecycle:
            taken(porch.set_lifecycle(name, lifecycle, subresource))
        assert taken(porch.revision(name)).object["spec"]["lifecycle"] == lifecycle

    eventually(created, timeout=PATIENCE)
    eventually(lambda: is_in("Proposed"), timeout=PATIENCE)
    eventually(lambda: is_in("Published", "approval"), timeout=PATIENCE)


def test_either_replica_serves_and_one_may_die(
    porch_server: AggregatedReplicas, porch: PorchClient, remote: Remote
) -> None:
    publish(porch, "before")

    for server in (porch_server, *porch_server.others):
        with closing(server.direct(server.cluster.client_certificate)) as direct:
            direct.namespace = porch.namespace
            listed = {one["metadata"]["name"] for one in direct.revisions()}
            assert "deployments.before.v1" in listed

    porch_server.others[0].kill()
    try:
        publish(porch, "after")
    finally:
        porch_server.start()

    assert {"refs/tags/before/v1", "refs/tags/after/v1"} <= set(refs(remote.path))
    tags = [name for name in refs(remote.path) if name.startswith("refs/tags/")]
    assert len(tags) == 2, "nothing was published twice"
