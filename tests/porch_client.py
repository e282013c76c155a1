"""A plain HTTPS client of the server under test, for requests that ``kubectl`` cannot or would not send.

One kept connection per client; use one client per thread.
"""

import http.client
import json
import ssl
import traceback
import urllib.parse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Object = dict[str, Any]
PORCH = "/apis/porch.kpt.dev/v1alpha1"
CONFIG = "/apis/config.porch.kpt.dev/v1alpha1"


@dataclass(frozen=True)
class Answer:
    """One HTTP answer."""

    code: int
    body: bytes
    headers: dict[str, str]
    """By names in lower case."""

    @property
    def object(self) -> Any:
        """The decoded body."""
        return json.loads(self.body)

    @property
    def message(self) -> str:
        """The message of a Status."""
        return str(self.object["message"])

    @property
    def reason(self) -> str:
        """The reason of a Status."""
        return str(self.object["reason"])


class Connection(http.client.HTTPSConnection):
    """Leaves no socket behind when the server dies while the connection is made.

    ``SSLSocket._create`` of Python 3.11 takes the socket over and, when the other end has reset it by then, raises without closing
    it; the ResourceWarning would fail whatever test runs when it is collected.
    """

    def connect(self) -> None:
        """Connect. Raises OSError."""
        try:
            super().connect()
        except OSError as error:
            for frame, _ in traceback.walk_tb(error.__traceback__):
                if isinstance(half_made := frame.f_locals.get("self"), ssl.SSLSocket):
                    half_made.close()
            raise


class PorchClient:
    """Speaks JSON to one namespace of the server, as the owner of a client certificate."""

    def __init__(
        self,
        url: str,
        *,
        ca: Path,
        certificate: tuple[Path, Path] | None,
        namespace: str = "default",
        timeout: float = 60.0,
    ) -> None:
        context = ssl.create_default_context(cafile=str(ca))
        if certificate:
            context.load_cert_chain(*map(str, certificate))
        address = urllib.parse.urlparse(url)
        assert address.hostname
        self._connection = Connection(address.hostname, address.port, context=context, timeout=timeout)
        self.namespace = namespace
        self.headers: dict[str, str] = {}
        """Sent with every request."""

    @property
    def local_address(self) -> object:
        """Our end of the connection, None while there is none: two connections have different ones."""
        return self._connection.sock.getsockname() if self._connection.sock else None

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def request(
        self,
        method: str,
        path: str,
        body: Object | bytes | None = None,
        *,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> Answer:
        """Send one request and return the answer, whatever its code."""
        self.send(method, path, body, content_type=content_type, accept=accept)
        return self.receive()

    def send(
        self,
        method: str,
        path: str,
        body: Object | bytes | None = None,
        *,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> None:
        """Send one request; its answer is what the next :meth:`receive` returns."""
        data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        headers = {"Accept": accept, "Content-Type": content_type, **self.headers}
        try:
            self._connection.request(method, path, data, headers)
        except (OSError, http.client.HTTPException):
            self._connection.close()
            raise

    def receive(self) -> Answer:
        """Return the answer of the request that was sent."""
        try:
            response = self._connection.getresponse()
            return Answer(
                response.status, response.read(), {name.lower(): value for name, value in response.getheaders()}
            )
        except (OSError, http.client.HTTPException):
            self._connection.close()
            raise

    # --- package revisions -----------------------------------------------------------------

    def path(self, resource: str, name: str = "", subresource: str = "") -> str:
        """Return the path of a porch.kpt.dev resource in this client's namespace."""
        parts = [PORCH, "namespaces", self.namespace, resource, name, subresource]
        return "/".join(part for part in parts if part)

    def create_revision(self, repository: str, package: str, workspace: str = "v1", **spec: Any) -> Answer:
        """POST a package revision; without ``tasks`` it is created by ``init``."""
        tasks = [{"type": "init", "init": {"description": f"{package} description"}}]
        body = {
            "apiVersion": "porch.kpt.dev/v1alpha1",
            "kind": "PackageRevision",
            "metadata": {"namespace": self.namespace},
            "spec": {
                "packageName": package,
                "repository": repository,
                "workspaceName": workspace,
                "lifecycle": "Draft",
                "tasks": tasks,
                **spec,
            },
        }
        return self.request("POST", self.path("packagerevisions"), body)

    def revision(self, name: str) -> Answer:
        """GET a package revision."""
        return self.request("GET", self.path("packagerevisions", name))

    def revisions(self, selector: str = "") -> list[Object]:
        """List the package revisions, with a field selector or without."""
        query = "?" + urllib.parse.urlencode({"fieldSelector": selector}) if selector else ""
        items: list[Object] = self.request("GET", self.path("packagerevisions") + query).object["items"]
        return items

    def resources(self, name: str) -> Answer:
        """GET the files of a package revision."""
        return self.request("GET", self.path("packagerevisionresources", name))

    def save(self, name: str, files: dict[str, str | None], *, resource_version: str | None = None) -> Answer:
        """GET the files, change some (None takes one out), PUT them all; one attempt."""
        current = self.resources(name).object
        contents = current["spec"]["resources"]
        for path, text in files.items():
            if text is None:
                contents.pop(path, None)
            else:
                contents[path] = text
        if resource_version is not None:
            current["metadata"]["resourceVersion"] = resource_version
        return self.request("PUT", self.path("packagerevisionresources", name), current)

    def propose(self, name: str) -> Answer:
        """Set the lifecycle to Proposed through the main resource."""
        return self.set_lifecycle(name, "Proposed")

    def approve(self, name: str) -> Answer:
        """Set the lifecycle to Published through the approval subresource."""
        return self.set_lifecycle(name, "Published", "approval")

    def set_lifecycle(self, name: str, lifecycle: str, subresource: str = "") -> Answer:
        """GET the revision, change its lifecycle, PUT it; one attempt."""
        current = self.revision(name).object
        if current.get("kind") != "PackageRevision":
            raise AssertionError(current)
        current["spec"]["lifecycle"] = lifecycle
        return self.request("PUT", self.path("packagerevisions", name, subresource), current)

    def delete_revision(self, name: str) -> Answer:
        """DELETE a package revision."""
        return self.request("DELETE", self.path("packagerevisions", name))
