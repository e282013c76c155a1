"""The Kubernetes objects that end-to-end tests send, and the registration of remotes by them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from eventually import eventually
from porch_client import CONFIG, PorchClient
from remotes import PUSHER, Remote

Object = dict[str, Any]
Register = Callable[..., None]
"""The fixture that registers remotes as repositories of a test's namespace and waits until they are Ready."""


def namespace_object(name: str) -> Object:
    """Build a Namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def repository(
    name: str, url: str, *, deployment: bool = False, login: str = "git-auth", branch: str = "main"
) -> Object:
    """Build a Repository that pushes with the credentials of a Secret; an empty ``login`` means none."""
    git: Object = {"repo": url, "branch": branch}
    if login:
        git["secretRef"] = {"name": login}
    return {
        "apiVersion": "config.porch.kpt.dev/v1alpha1",
        "kind": "Repository",
        "metadata": {"name": name},
        "spec": {"type": "git", "content": "Package", "deployment": deployment, "git": git},
    }


def register_remotes(porch: PorchClient, remotes: Mapping[str, Remote], deployments: Sequence[str] = ()) -> None:
    """Register remotes as repositories of the client's namespace, ``deployments`` as such, and wait until they are Ready."""
    porch.request("POST", f"/api/v1/namespaces/{porch.namespace}/secrets", credentials())
    path = f"{CONFIG}/namespaces/{porch.namespace}/repositories"
    for name, remote in remotes.items():
        answer = porch.request("POST", path, repository(name, remote.url, deployment=name in deployments))
        assert answer.code == 201, answer.body
    for name in remotes:
        eventually(lambda at=f"{path}/{name}": _is_ready(porch, at), timeout=60)  # type: ignore[misc] # as inferred


def _is_ready(porch: PorchClient, path: str) -> None:
    status = porch.request("GET", path).object.get("status") or {}
    assert [c["status"] for c in status.get("conditions") or []] == ["True"], status


def credentials(name: str = "git-auth", *, password: str = PUSHER[1]) -> Object:
    """Build the basic-auth Secret that ``repository`` refers to."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/basic-auth",
        "metadata": {"name": name},
        "stringData": {"username": PUSHER[0], "password": password},
    }


def package_revision(repository: str, package: str, workspace: str, task: Object) -> Object:
    """Build a PackageRevision to create."""
    return {
        "apiVersion": "porch.kpt.dev/v1alpha1",
        "kind": "PackageRevision",
        "spec": {
            "packageName": package,
            "repository": repository,
            "workspaceName": workspace,
            "lifecycle": "Draft",
            "tasks": [task],
        },
    }


def init_task(description: str = "a package of a test") -> Object:
    """Build a task that makes a new package."""
    return {"type": "init", "init": {"description": description}}


def clone_task(upstream: str) -> Object:
    """Build a task that clones a package revision of the same namespace."""
    return {"type": "clone", "clone": {"upstreamRef": {"upstreamRef": {"name": upstream}}}}


def clone_git_task(url: str, ref: str, directory: str) -> Object:
    """Build a task that clones a directory of a Git address."""
    upstream = {"type": "git", "git": {"repo": url, "ref": ref, "directory": directory}}
    return {"type": "clone", "clone": {"upstreamRef": upstream}}


def edit_task(source: str) -> Object:
    """Build a task that makes the next revision of a package."""
    return {"type": "edit", "edit": {"sourceRef": {"name": source}}}


def deployment(name: str, namespace: str) -> Object:
    """Build the Deployment of one of the chart's components, such as ``porch-server``: commands of guides scale it, and nothing here runs it."""
    labels = {"app.kubernetes.io/name": "porch", "app.kubernetes.io/component": name.removeprefix("porch-")}
    containers = [{"name": "porch", "image": "registry.example.com/platform/porch"}]
    template = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": template},
    }
