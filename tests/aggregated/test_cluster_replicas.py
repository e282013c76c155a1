"""Two servers of a cluster on one PostgreSQL, behind one address: either serves, and one may die."""

import shutil
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from aggregated_process import AggregatedProcess, objects
from control_plane import ControlPlane
from cutting_proxy import cutting_proxy
from embedded_postgres import new_postgres
from eventually import eventually
from git_server import GitServer
from kubectl import Kubectl
from manifests import credentials, namespace_object, repository
from porch_client import CONFIG, Answer, PorchClient
from remotes import Remote, empty_remote, refs

PATIENCE = 120.0
NAMESPACE = "replicas"


@dataclass
class Pair:
    """The two servers, and a client that reaches one or the other through kube-apiserver."""

    servers: list[AggregatedProcess]
    porch: PorchClient


@pytest.fixture
def pair(cluster: ControlPlane, tmp_path: Path, postgres_server: str) -> Iterator[Pair]:
    environment = {
        "PORCH_DATABASE_URL": new_postgres(postgres_server),
        "PORCH_SYNC_INTERVAL": "2",
        "PORCH_REPLICA_LEASE": "2",
    }
    servers = [AggregatedProcess(cluster, tmp_path / f"server-{n}", environment=environment) for n in range(2)]
    first, second = servers
    try:
        first.start()
        second.data.mkdir()
        for name in ("ca.crt", "ca.key"):  # kube-apiserver trusts one authority
            shutil.copy(first.data / name, second.data / name)
        second.start()
        with cutting_proxy(first.port, second.port) as proxy, closing(first.client(NAMESPACE)) as porch:
            Kubectl(cluster.kubeconfig, "").apply(*objects(proxy.port, (first.data / "ca.crt").read_bytes()))
            first.wait_until_available()
            yield Pair(servers, porch)
    finally:
        Kubectl(cluster.kubeconfig)("delete", "namespace", NAMESPACE, "--wait=false")
        for server in servers:
            server.stop()


@pytest.fixture
def remote(pair: Pair, git_http: GitServer) -> Remote:
    """A remote that is registered, and read by both."""
    made = Remote(empty_remote(git_http.root / "replicas.git"), f"{git_http.url}/replicas.git")
    porch = pair.porch
    porch.request("POST", "/api/v1/namespaces", namespace_object(NAMESPACE))
    porch.request("POST", f"/api/v1/namespaces/{NAMESPACE}/secrets", credentials())
    path = f"{CONFIG}/namespaces/{NAMESPACE}/repositories"
    assert porch.request("POST", path, repository("deployments", made.url)).code == 201

    def ready() -> None:
        told = porch.request("GET", f"{path}/deployments").object.get("status", {}).get("conditions") or []
        assert [one["status"] for one in told] == ["True"], told

    eventually(ready, timeout=PATIENCE)
    return made


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


def test_either_replica_serves_and_one_may_die(pair: Pair, remote: Remote) -> None:
    publish(pair.porch, "before")

    for server in pair.servers:
        with closing(server.direct(server.cluster.client_certificate)) as direct:
            direct.namespace = NAMESPACE
            listed = {one["metadata"]["name"] for one in direct.revisions()}
            assert "deployments.before.v1" in listed

    pair.servers[0].kill()
    publish(pair.porch, "after")

    assert {"refs/tags/before/v1", "refs/tags/after/v1"} <= set(refs(remote.path))
    tags = [name for name in refs(remote.path) if name.startswith("refs/tags/")]
    assert len(tags) == 2, "nothing was published twice"
