# ruff: noqa: F811 # fixtures are imported and then named as parameters
"""The garbage collector and the namespace controller run in one replica; one that is killed, or hangs, is replaced by the other."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from eventually import eventually
from manifests import namespace_object
from porch_client import Object, PorchClient
from porch_process import PorchProcess
from replica_fixtures import url  # noqa: F401 # found by name
from replica_set import SLOW, ReplicaSet, running_replicas

LEADS = 'leader_election_master_status{name="controllers"} 1.0'
TAKE_OVER = 15.0
"""Seconds (``users.md`` 7.2 #11); told, and not asserted on a machine that does eight things at once."""

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def mortal(tmp_path: Path, url: str) -> Iterator[ReplicaSet]:
    with running_replicas(tmp_path, url) as replicas:
        yield replicas


def leads(member: PorchProcess) -> bool:
    with closing(member.client()) as client:
        return LEADS in client.request("GET", "/metrics").body.decode()


def the_leader(replicas: ReplicaSet) -> tuple[PorchProcess, PorchProcess]:
    """Return who leads, and who stands by."""

    def one() -> list[PorchProcess]:
        found = [member for member in replicas.members if leads(member)]
        assert len(found) == 1
        return found

    (leader,) = eventually(one, SLOW)
    (other,) = (member for member in replicas.members if member is not leader)
    return leader, other


def config_map(name: str, owner: Object | None = None) -> Object:
    metadata: Object = {"name": name}
    if owner is not None:
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": owner["metadata"]["name"]}
        metadata["ownerReferences"] = [reference | {"uid": owner["metadata"]["uid"]}]
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def own_and_delete(client: PorchClient, namespace: str) -> str:
    """Make a dependent, delete its owner and a namespace; return the path of the dependent."""
    at = "/api/v1/namespaces/default/configmaps"
    owner = client.request("POST", at, config_map(f"owner-{namespace}"))
    assert owner.code == 201, owner.body
    assert client.request("POST", at, config_map(f"dependent-{namespace}", owner.object)).code == 201
    assert client.request("POST", "/api/v1/namespaces", namespace_object(namespace)).code == 201
    assert client.request("POST", f"/api/v1/namespaces/{namespace}/configmaps", config_map("inside")).code == 201
    assert client.request("DELETE", f"{at}/owner-{namespace}").code == 200
    assert client.request("DELETE", f"/api/v1/namespaces/{namespace}").code in {200, 202}
    return f"{at}/dependent-{namespace}"


def all_gone(client: PorchClient, namespace: str, dependent: str) -> None:
    assert client.request("GET", dependent).code == 404
    assert client.request("GET", f"/api/v1/namespaces/{namespace}").code == 404


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGSTOP])
def test_what_a_leader_left_undone_the_other_replica_does(mortal: ReplicaSet, end: signal.Signals) -> None:
    leader, other = the_leader(mortal)
    with closing(other.client()) as client:
        dependent = own_and_delete(client, "before")
        eventually(lambda: all_gone(client, "before", dependent), SLOW)

        os.kill(leader.pid, end)
        began = time.monotonic()
        dependent = own_and_delete(client, "after")
        eventually(lambda: all_gone(client, "after", dependent), SLOW)

        told = time.monotonic() - began
        print(f"{end.name} of the leader: taken over and done in {told:.1f} s, lease 2 s, goal {TAKE_OVER} s")  # noqa: T201
        assert leads(other)
    if end is signal.SIGSTOP:
        os.kill(leader.pid, signal.SIGCONT)
        eventually(lambda: stands_by(leader), SLOW)
        with closing(leader.client()) as client:
            dependent = own_and_delete(client, "awake")
            eventually(lambda: all_gone(client, "awake", dependent), SLOW)
        assert leads(other)


def stands_by(member: PorchProcess) -> None:
    assert not leads(member)
