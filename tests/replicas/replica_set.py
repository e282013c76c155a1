"""Several server processes on one PostgreSQL database, with one CA, beside one Git server; and pauses in the middle of a push."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from eventually import eventually
from git_server import GitServer
from porch_client import CONFIG, PorchClient
from porch_process import PorchProcess

LEASE_SECONDS = 2.0
SHARED = ("ca.crt", "ca.key", "admin.crt", "admin.key", "secret.key", "service-account.key")
"""What replicas must have in common, in the data folder of each."""
SLOW = 90.0
"""Seconds after which something that should happen is given up, on a machine that does eight things at once."""


class ReplicaSet:
    """Servers on one database; each has its own data folder, with the same keys in it."""

    def __init__(self, folder: Path, url: str, count: int = 2, arguments: Sequence[str] = ()) -> None:
        environment = {"PORCH_DATABASE_URL": url, "PORCH_REPLICA_LEASE": str(LEASE_SECONDS)}
        self.members = [
            PorchProcess(folder / f"replica-{number}", arguments=arguments, environment=environment)
            for number in range(count)
        ]

    def start(self) -> None:
        """Start the first, then the others with its keys."""
        first = self.members[0]
        first.start()
        for member in self.members[1:]:
            member.data.mkdir(parents=True, exist_ok=True)
            for name in SHARED:
                shutil.copy(first.data / name, member.data / name)
            member.start()

    def stop(self) -> None:
        """End every member."""
        for member in self.members:
            if member.running:
                member.kill()

    def clients(self) -> list[PorchClient]:
        """Return a client of each member."""
        return [member.client() for member in self.members]


@contextmanager
def running_replicas(folder: Path, url: str, count: int = 2, arguments: Sequence[str] = ()) -> Iterator[ReplicaSet]:
    """Run replicas until the block ends."""
    replicas = ReplicaSet(folder, url, count, arguments)
    try:
        replicas.start()
        yield replicas
    finally:
        replicas.stop()


def register(clients: Sequence[PorchClient], server: GitServer, name: str) -> None:
    """Register a repository by the first client, and wait until every replica has read it."""
    body = {
        "apiVersion": "config.porch.kpt.dev/v1alpha1",
        "kind": "Repository",
        "metadata": {"name": name},
        "spec": {"type": "git", "git": {"repo": f"{server.url}/{name}.git"}},
    }
    at = f"{CONFIG}/namespaces/default/repositories"
    made = clients[0].request("POST", at, body)
    assert made.code == 201, made.body

    def ready() -> None:
        status = clients[0].request("GET", f"{at}/{name}").object.get("status") or {}
        assert [one["status"] for one in status.get("conditions") or []] == ["True"], status

    eventually(ready, SLOW)
    for client in clients:
        eventually(partial(_reads, client, name), SLOW)


def _reads(client: PorchClient, repository: str) -> None:
    """Fail until a replica can begin packages in a repository, as a dry run shows."""
    path = client.path("packagerevisions") + "?dryRun=All"
    spec = {"packageName": "probe", "repository": repository, "workspaceName": "v1", "lifecycle": "Draft"}
    body = {"apiVersion": "porch.kpt.dev/v1alpha1", "kind": "PackageRevision", "metadata": {}, "spec": spec}
    answer = client.request("POST", path, body)
    assert answer.code == 201, answer.body


def proposed(client: PorchClient, repository: str, package: str, workspace: str = "v1") -> str:
    """Begin a package, propose its revision, and return the revision's name."""
    made = client.create_revision(repository, package, workspace)
    assert made.code == 201, made.body
    name = str(made.object["metadata"]["name"])
    put = client.propose(name)
    assert put.code == 200, put.body
    return name
