"""Drafts for the checks of ``kube-api.md`` 7.2 on package revisions, standalone and behind a kube-apiserver."""

import itertools
from collections.abc import Iterator
from contextlib import closing

import pytest
from checked_draft import REPOSITORY, CheckedDraft, Drafts
from git_server import GitServer
from kubectl import Kubectl
from manifests import namespace_object, register_remotes
from porch_client import PorchClient
from porch_process import PorchProcess
from remotes import Remote, empty_remote

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def drafts_of_module(
    porch_server: PorchProcess, git_http: GitServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Drafts]:
    """A namespace with a repository that a module's tests share; each has a package of its own."""
    name = f"drafts-{next(_numbers)}"
    with closing(porch_server.client(name)) as porch:
        porch.request("POST", "/api/v1/namespaces", namespace_object(name))
        remote = Remote(empty_remote(git_http.root / f"{name}.git"), f"{git_http.url}/{name}.git")
        register_remotes(porch, {REPOSITORY: remote})
        kubectl = Kubectl(porch_server.kubeconfig, name, str(tmp_path_factory.mktemp("kubectl-cache")))
        yield Drafts(kubectl, porch)
    with closing(porch_server.client()) as porch:  # a test may have restarted the server
        porch.request("DELETE", f"/api/v1/namespaces/{name}")


@pytest.fixture
def draft(drafts_of_module: Drafts) -> CheckedDraft:
    """A package that nobody has begun, in the namespace of the module's tests."""
    return drafts_of_module.new()


@pytest.fixture
def drafts(kubectl: Kubectl, porch: PorchClient, empty_remote: Remote) -> Drafts:
    """A namespace of the test's own, with a repository."""
    register_remotes(porch, {REPOSITORY: empty_remote})
    return Drafts(kubectl, porch)
