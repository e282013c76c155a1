"""The requests that upstream's Go suite sends, for the scenarios written after it.

Its client is controller-runtime's typed one: JSON, no query parameters on writes, an update sends back the whole object
that was read, a DELETE carries DeleteOptions of porch's own version. Source: ``porch-api.md`` 1.3, 10 and 11.
"""

import copy
import json
import urllib.parse
from collections.abc import Mapping, Sequence
from typing import Any

from eventually import eventually
from manifests import credentials
from porch_client import CONFIG, PORCH, Answer
from porch_process import PorchProcess
from remotes import Remote

Object = dict[str, Any]

READY_SECONDS = 60.0
"""How long a repository may take to become Ready; upstream's suite allows 30 s to several minutes."""
DELETE_OPTIONS: Object = {"kind": "DeleteOptions", "apiVersion": "porch.kpt.dev/v1alpha1"}
PLURALS = {
    "PackageRevision": f"{PORCH}/namespaces/{{}}/packagerevisions",
    "PackageRevisionResources": f"{PORCH}/namespaces/{{}}/packagerevisionresources",
    "PorchPackage": f"{PORCH}/namespaces/{{}}/packages",
    "Repository": f"{CONFIG}/namespaces/{{}}/repositories",
    "ConfigMap": "/api/v1/namespaces/{}/configmaps",
    "Secret": "/api/v1/namespaces/{}/secrets",
}


class Refused(Exception):
    """What a Go client returns as its error: the message of the Status."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.message)
        self.code = answer.code
        self.reason = answer.reason


class UpstreamClient:
    """One namespace of one server, spoken to as upstream's suite does. Not for use by several threads."""

    def __init__(self, server: PorchProcess, namespace: str) -> None:
        self.server = server
        self.namespace = namespace
        self.http = server.client(namespace)

    def close(self) -> None:
        """Close the connection."""
        self.http.close()

    def another(self, namespace: str = "") -> "UpstreamClient":
        """Return a client with a connection of its own, to the same namespace unless another is named."""
        return UpstreamClient(self.server, namespace or self.namespace)

    # --- verbs ---------------------------------------------------------------------------------

    def create(self, wanted: Object) -> Object:
        """POST an object."""
        return self._accepted(self.http.request("POST", self._path(wanted["kind"]), wanted))

    def get(self, kind: str, name: str) -> Object:
        """GET an object by its name."""
        return self._accepted(self.http.request("GET", self._path(kind, name)))

    def items(self, kind: str, *, fields: str = "", labels: str = "") -> list[Object]:
        """List the namespace's objects of a kind."""
        given = {"fieldSelector": fields, "labelSelector": labels}
        query = urllib.parse.urlencode({key: value for key, value in given.items() if value})
        found = self._accepted(self.http.request("GET", self._path(kind) + (f"?{query}" if query else "")))
        items: list[Object] = found["items"]
        return items

    def update(self, wanted: Object, subresource: str = "") -> Object:
        """PUT the whole object."""
        return self._accepted(self.http.request("PUT", self.path(wanted, subresource), wanted))

    def update_approval(self, wanted: Object) -> Object:
        """PUT the whole PackageRevision to its approval subresource."""
        return self.update(wanted, "approval")

    def delete(self, obj: Object) -> Object:
        """DELETE an object."""
        return self._accepted(self.http.request("DELETE", self.path(obj), DELETE_OPTIONS))

    def path(self, obj: Object, subresource: str = "", *, named: bool = True) -> str:
        """Return the address of an object or of its subresource; of its collection when not ``named``."""
        path = self._path(obj["kind"], name_of(obj) if named else "")
        return f"{path}/{subresource}".rstrip("/")

    def _path(self, kind: str, name: str = "") -> str:
        return f"{PLURALS[kind].format(self.namespace)}/{name}".rstrip("/")

    def _accepted(self, answer: Answer) -> Object:
        if answer.code >= 300:
            raise Refused(answer)
        found: Object = answer.object
        return found

    # --- package revisions -----------------------------------------------------------------------

    def revision(self, name: str) -> Object:
        """GET a package revision."""
        return self.get("PackageRevision", name)

    def resources(self, name: str) -> Object:
        """GET the files of a package revision."""
        return self.get("PackageRevisionResources", name)

    def revisions(self, *, fields: str = "", labels: str = "") -> list[Object]:
        """List package revisions."""
        return self.items("PackageRevision", fields=fields, labels=labels)

    def exists(self, name: str, kind: str = "PackageRevision") -> bool:
        """Tell whether an object is there."""
        try:
            self.get(kind, name)
        except Refused as error:
            if error.code != 404:
                raise
            return False
        return True

    def make(self, repository: str, package: str, workspace: str = "v1", task: Object | None = None) -> Object:
        """Create a draft, by the init task that upstream's suite uses unless another is given."""
        return self.create(revision_of(repository, package, workspace, task, self.namespace))

    def propose(self, name: str) -> Object:
        """Read a revision, make it Proposed."""
        return self.update(with_lifecycle(self.revision(name), "Proposed"))

    def approve(self, name: str) -> Object:
        """Read a revision, approve it."""
        return self.update_approval(with_lifecycle(self.revision(name), "Published"))

    def publish(self, name: str) -> Object:
        """Propose and approve."""
        self.propose(name)
        return self.approve(name)

    def make_published(self, repository: str, package: str, workspace: str, task: Object | None = None) -> Object:
        """Create a draft and bring it to publication."""
        return self.publish(self.make(repository, package, workspace, task)["metadata"]["name"])

    def propose_deletion(self, name: str) -> Object:
        """Propose a published revision for deletion through the approval subresource, as most of the suite does."""
        return self.update_approval(with_lifecycle(self.revision(name), "DeletionProposed"))

    def delete_published(self, name: str) -> None:
        """Propose the deletion of a published revision, then delete it."""
        self.propose_deletion(name)
        self.delete(self.revision(name))
        assert not self.exists(name)

    # --- repositories ------------------------------------------------------------------------------

    def register(self, name: str, remote: Remote, *, wait: bool = True, deployment: bool = False, **git: Any) -> Object:
        """Register a repository with its own basic-auth Secret and wait until it is Ready; ``git`` adds to its fields."""
        self.create({**credentials(f"{name}-auth"), "kind": "Secret"})
        created = self.create(repository_of(name, remote.url, self.namespace, deployment=deployment, **git))
        if wait:
            self.wait_until_ready(name)
        return created

    def unregister(self, name: str) -> None:
        """Delete a Repository and its Secret and wait until none of its revisions is listed."""
        self.delete(self.get("Repository", name))
        self.delete(self.get("Secret", f"{name}-auth"))

        def gone() -> None:
            assert name not in [one["metadata"]["name"] for one in self.items("Repository")]
            assert self.revisions(fields=f"spec.repository={name}") == []

        eventually(gone, timeout=READY_SECONDS)

    def wait_until_ready(self, name: str) -> None:
        """Wait until the Ready condition of a Repository is True."""

        def ready() -> None:
            assert ready_condition(self.get("Repository", name)).get("status") == "True"

        eventually(ready, timeout=READY_SECONDS)


def revision_of(
    repository: str, package: str, workspace: str = "v1", task: Object | None = None, namespace: str = ""
) -> Object:
    """Build a PackageRevision as the Go type encodes it."""
    return {
        "kind": "PackageRevision",
        "apiVersion": "porch.kpt.dev/v1alpha1",
        "metadata": {"namespace": namespace} if namespace else {},
        "spec": {
            "packageName": package,
            "repository": repository,
            "workspaceName": workspace,
            "tasks": [task or {"type": "init", "init": {"description": f"{package} description"}}],
        },
        "status": {"publishTimestamp": None},
    }


def repository_of(name: str, url: str, namespace: str, *, deployment: bool = False, **git: Any) -> Object:
    """Build a Repository as the Go type encodes it."""
    login = {"secretRef": {"name": f"{name}-auth"}}
    return {
        "kind": "Repository",
        "apiVersion": "config.porch.kpt.dev/v1alpha1",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "description": "Porch Test Repository Description",
            **({"deployment": True} if deployment else {}),
            "type": "git",
            "git": {"repo": url, "branch": "main", **login, **git},
        },
        "status": {},
    }


def ready_condition(repository: Object) -> Object:
    """Return a Repository's Ready condition, {} while there is none."""
    conditions = (repository.get("status") or {}).get("conditions") or []
    found: list[Object] = [one for one in conditions if one["type"] == "Ready"]
    return found[0] if found else {}


def with_lifecycle(revision: Object, lifecycle: str) -> Object:
    """Return a copy with another lifecycle."""
    changed = copy.deepcopy(revision)
    changed["spec"]["lifecycle"] = lifecycle
    return changed


def name_of(obj: Object) -> str:
    """Return an object's name."""
    return str(obj["metadata"]["name"])


def names(objects: Sequence[Object]) -> list[str]:
    """Return the names of objects, in their order."""
    return [name_of(one) for one in objects]


def together(clients: Sequence[UpstreamClient], method: str, wanted: Object, subresource: str = "") -> list[str]:
    """Send a request of each client before any is answered; return the error of each, "" for success.

    One thread sends them all, so that they leave within a fraction of a millisecond, as goroutines' do.
    """
    path = clients[0].path(wanted, subresource, named=method != "POST")
    body = json.dumps(DELETE_OPTIONS if method == "DELETE" else wanted).encode()
    for client in clients:
        client.http.send(method, path, body)
    answers = [client.http.receive() for client in clients]
    return [answer.message if answer.code >= 300 else "" for answer in answers]


def labels_of(obj: Object) -> Mapping[str, str]:
    """Return an object's labels."""
    found: Mapping[str, str] = obj["metadata"].get("labels") or {}
    return found
