"""Register the repositories of a load, each with one published package that all clients approve into."""

from collections.abc import Mapping

from eventually import eventually
from manifests import credentials, repository
from porch_client import CONFIG, PorchClient
from remotes import Remote
from soak_client import SHARED, SHARED_BASE

READY_SECONDS = 60.0
"""How long a server may take to read a repository that it was just told of, on a busy machine."""


def register(porch: PorchClient, remotes: Mapping[str, Remote]) -> None:
    """Register remotes as repositories, the first as a deployment repository; returns when all are in use."""
    porch.request("POST", f"/api/v1/namespaces/{porch.namespace}/secrets", credentials())
    for number, (name, remote) in enumerate(remotes.items()):
        body = repository(name, remote.url, deployment=number == 0)
        answer = porch.request("POST", f"{CONFIG}/namespaces/{porch.namespace}/repositories", body)
        assert answer.code == 201, answer.body
    for name in remotes:
        _share(porch, name)


def _share(porch: PorchClient, repository: str) -> None:
    def created() -> None:
        answer = porch.create_revision(repository, SHARED, SHARED_BASE)
        assert answer.code == 201, answer.body

    eventually(created, timeout=READY_SECONDS)
    name = f"{repository}.{SHARED}.{SHARED_BASE}"
    for answer in (porch.propose(name), porch.approve(name)):
        assert answer.code == 200, answer.body
