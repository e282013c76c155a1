"""What the Kubernetes API calls a resource: where its objects are, and how long a write of one may take."""

from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from krm.meta.errors import BadRequest

SHORT_SECONDS: Final = 30.0
"""For one request that only reads or stores."""
RENDER_SECONDS: Final = 120.0
"""For a write after which the server may render a package: its own limits let such a request take this long."""


@dataclass(frozen=True, slots=True)
class Resource:
    """One served resource; an empty group is the core group."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    write_seconds: float = SHORT_SECONDS
    """Deadline of one write, in seconds."""

    @property
    def api_version(self) -> str:
        """The group and version as objects carry them."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str | None, name: str | None = None, subresource: str = "") -> str:
        """Return the URL path of one object, or without ``name`` of all; no namespace means every namespace.

        Raises:
            BadRequest: A part cannot stand in a path, being empty or a step in it: such a name would address something else.

        """
        path = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        if self.namespaced and namespace is not None:
            path += f"/namespaces/{_segment(namespace)}"
        path += f"/{self.plural}"
        if name is not None:
            path += f"/{_segment(name)}"
        return f"{path}/{subresource}" if subresource else path


def _segment(text: str) -> str:
    if text in {"", ".", ".."} or "/" in text:
        raise BadRequest(f"{text!r} is no name of an object")
    return quote(text, safe="")


_PORCH: Final = ("porch.kpt.dev", "v1alpha1")
_CONFIG: Final = "config.porch.kpt.dev"

PACKAGE_REVISIONS: Final = Resource(*_PORCH, "packagerevisions", "PackageRevision", write_seconds=RENDER_SECONDS)
PACKAGE_REVISION_RESOURCES: Final = Resource(
    *_PORCH, "packagerevisionresources", "PackageRevisionResources", write_seconds=RENDER_SECONDS
)
PACKAGE_VARIANT_SET_PREVIEWS: Final = Resource(
    *_PORCH, "packagevariantsetpreviews", "PackageVariantSetPreview", write_seconds=RENDER_SECONDS
)
REPOSITORIES: Final = Resource(_CONFIG, "v1alpha1", "repositories", "Repository")
PACKAGE_VARIANTS: Final = Resource(_CONFIG, "v1alpha1", "packagevariants", "PackageVariant")
PACKAGE_VARIANT_SETS: Final = Resource(_CONFIG, "v1alpha2", "packagevariantsets", "PackageVariantSet")
LEASES: Final = Resource("coordination.k8s.io", "v1", "leases", "Lease")
EVENTS: Final = Resource("", "v1", "events", "Event")
CUSTOM_RESOURCE_DEFINITIONS: Final = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)
API_SERVICES: Final = Resource("apiregistration.k8s.io", "v1", "apiservices", "APIService", namespaced=False)
