"""One package revision of a check: how it is written, created and looked at by kubectl."""

import itertools
from dataclasses import dataclass, field
from typing import Any

from kubectl import Kubectl
from porch_client import PorchClient

Object = dict[str, Any]
REPOSITORY = "deployments"
KIND = "packagerevision"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


@dataclass(frozen=True)
class CheckedDraft:
    """The revision ``v1`` of a package."""

    kubectl: Kubectl
    porch: PorchClient
    package: str

    @property
    def name(self) -> str:
        """The name that the server gives it."""
        return f"{REPOSITORY}.{self.package}.v1"

    @property
    def path(self) -> str:
        """Where it is served."""
        return self.porch.path("packagerevisions", self.name)

    def body(self, *, lifecycle: str = "Draft", description: str = "a check", **metadata: Any) -> Object:
        """Write it down."""
        spec = {
            "packageName": self.package,
            "repository": REPOSITORY,
            "workspaceName": "v1",
            "lifecycle": lifecycle,
            "tasks": [{"type": "init", "init": {"description": description}}],
        }
        meta = {"name": self.name, "namespace": self.kubectl.namespace, **metadata}
        return {"apiVersion": "porch.kpt.dev/v1alpha1", "kind": "PackageRevision", "metadata": meta, "spec": spec}

    def create(self, **labels: str) -> Object:
        """Create it past kubectl, which would take ten times as long; return it as the server answered."""
        answer = self.porch.request("POST", self.porch.path("packagerevisions"), self.body(labels=labels))
        assert answer.code == 201, answer.body
        created: Object = answer.object
        return created

    def get(self) -> Object:
        """Return it as kubectl reads it, with the managers of its fields."""
        found: Object = self.kubectl.json("get", KIND, self.name, "--show-managed-fields")
        return found

    def metadata(self) -> Object:
        """Return its metadata."""
        found: Object = self.get()["metadata"]
        return found

    def labels(self) -> dict[str, str]:
        """Return its labels."""
        found: dict[str, str] = self.metadata().get("labels") or {}
        return found

    def managers(self) -> dict[str, Object]:
        """Return the managed fields by manager."""
        return {entry["manager"]: entry for entry in self.metadata().get("managedFields") or []}

    def patch(self, patch: str, *arguments: str, kind: str = "merge") -> Any:
        """Patch it by kubectl, whatever comes of it."""
        return self.kubectl("patch", KIND, self.name, f"--type={kind}", f"--patch={patch}", *arguments)

    def apply(self, body: Object, *arguments: str) -> Any:
        """Apply it on the server, whatever comes of it."""
        return self.kubectl("apply", "--server-side", "-f", "-", *arguments, stdin=body)

    def label(self, *labels: str) -> str:
        """Set or take away labels."""
        return self.kubectl.ok("label", KIND, self.name, *labels)


@dataclass(frozen=True)
class Drafts:
    """Package revisions of one namespace."""

    kubectl: Kubectl
    porch: PorchClient
    _numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    def of(self, package: str) -> CheckedDraft:
        """Return the revision of a package, which need not exist."""
        return CheckedDraft(self.kubectl, self.porch, package)

    def new(self) -> CheckedDraft:
        """Return the revision of a package that nobody has begun."""
        return self.of(f"p{next(self._numbers)}")

    def packages(self, *arguments: str) -> list[str]:
        """Return the packages that ``kubectl get`` lists."""
        lines = self.kubectl.ok("get", "packagerevisions", "-o=name", *arguments).split()
        return [line.rpartition("/")[2].split(".")[1] for line in lines]

    def path(self, query: str = "") -> str:
        """Return where the package revisions are served."""
        return self.porch.path("packagerevisions") + (f"?{query}" if query else "")

    def listed(self, query: str = "") -> Object:
        """List them past kubectl."""
        answer = self.porch.request("GET", self.path(query))
        assert answer.code == 200, answer.body
        page: Object = answer.object
        return page
